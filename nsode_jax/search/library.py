"""Simple laws that are tried whatever the network proposes.

The simplest laws must not be missed by chance, and they cost little: sums of simple
functions are nearly linear in their constants. They are also what the search near
the best laws begins with.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from nsode_jax.expressions.expression import Expression, ExpressionError, Prefix
from nsode_jax.expressions.operators import VARIABLE
from nsode_jax.expressions.prefix import joined, times
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.progress import Progress
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.search.sources import Proposal, Proposals

MAX_DEGREE = 6
"""Of the polynomials."""

_MOST_TERMS = 3


@dataclasses.dataclass(frozen=True)
class LibrarySource:
    """The laws of `library`, for the size of the data."""

    name: str = "library"

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> Proposals:
        """All of them."""
        laws = tuple(Proposal(law, Origin(self.name)) for law in library(data.size))
        return Proposals(laws, f"{len(laws):,} polynomials and sums of simple functions")


def library(scale: float) -> list[Expression]:
    """Polynomials, and sums of up to three simple functions of y.

    Coefficients are placeholders, since f is linear in them. Those inside a function
    are where a fit begins. Laws are not in canonical form.

    Args:
      scale: largest size of y in the data, in its units; rates are its inverse.

    Returns:
      Laws, each once.
    """
    sums = itertools.chain(_sums(_functions(scale), _MOST_TERMS), _sums(_powers(), MAX_DEGREE + 1))
    found: dict[Prefix, Expression] = {}
    for terms in sums:
        try:
            law = Expression(_sum_of(terms))
        except ExpressionError:  # The scale leads out of the range of numbers.
            continue
        found.setdefault(law.prefix, law)
    return list(found.values())


def _functions(scale: float) -> list[Prefix]:
    """Terms without their coefficient; an empty one is the constant term."""
    rate, size = 1.3 / scale, 0.4 * scale
    y = VARIABLE
    return [
        (),
        *_powers()[1:4],
        ("sqrt", y),
        ("div", 1.0, y),
        ("log", y),
        ("mul", y, "log", y),
        ("pow", y, 1.4),
        ("exp", "mul", -rate, y),
        ("exp", "mul", rate, y),
        ("mul", y, "exp", "mul", -rate, y),
        ("sin", "mul", rate, y),
        ("cos", "mul", rate, y),
        ("sin", y),
        ("cos", y),
        ("exp", y),
        ("log", "add", 1.3, "mul", rate, y),
        ("div", y, "add", size, y),
        ("div", "pow", y, 2.0, "add", size**2, "pow", y, 2.0),
        ("div", 1.0, "add", size, y),
    ]


def _powers() -> list[Prefix]:
    higher = (("pow", VARIABLE, float(power)) for power in range(2, MAX_DEGREE + 1))
    return [(), (VARIABLE,), *higher]


def _sums(terms: list[Prefix], most: int) -> Iterator[tuple[Prefix, ...]]:
    for size in range(1, most + 1):
        yield from itertools.combinations(terms, size)


def _sum_of(terms: Iterable[Prefix]) -> Prefix:
    return joined("add", (times(0.7 + 0.01 * number, term) for number, term in enumerate(terms)))
