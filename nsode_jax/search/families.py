"""Terms with constants that only a fit can tell: thresholds, exponents, rates.

A family is all terms that differ in such constants. Which of its members an equation may have
depends on what else is in it. So those are searched with other terms that explain most of the
target beside a few sets of simple terms; a grid of constants tells where they are, and grids
between its points tell more: of one constant all but its value, of two where a fit should begin.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.prefix import Prefix, joined, substituted
from nsode_jax.observed.regression import Regression
from nsode_jax.search.sparse import Left, values_along

_CONSTANTS = ("_0", "_1")
"""What stands for them in a term."""

_ZOOMS = 6
"""So many grids between the neighbours of the best constants, each of the one before."""

_FINE = 5
"""Values of each constant in these."""

_LOOKED_AT, _KEPT = 45, 30
"""Beside each set of terms: families whose constants are found closely, and those that stay."""

_MOST_ROWS = 200
"""Of a regression, that tell constants well enough to begin with."""

_THRESHOLDS, _LEAST, _BEYOND = 14, 1e-4, 4.0
"""Of saturations: so many, between shares of the largest magnitude of the variable."""

_WIDE = np.geomspace(0.1, 10.0, 12)
"""In units of what a constant is compared with."""

_COARSE = np.geomspace(0.12, 6.0, 9)
"""The same of terms with two constants."""

_EXPONENTS = np.array([-2.5, -1.5, -0.75, -0.3, 0.3, 0.7, 1.4, 2.5, 3.5])
_SMALL_EXPONENTS = np.array([0.25, 0.5, 0.8, 1.3])
"""Of products of two powers."""

_COOPERATIVE = np.array([1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0])
"""Of saturations by a power."""

_RATES = np.geomspace(0.3, 10.0, 7)
"""Of exponentials, in units of one over the largest magnitude of the variable, or over the
times."""

_STEEPNESS = np.array([-12.0, -5.0, -2.0, 2.0, 5.0, 12.0])
"""Of sigmoids, in units of one over the range of the variable."""


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """Terms that differ in one or two constants.

    Attributes:
      term: with `_0` and `_1` for the constants.
      grids: values of each constant that are tried, increasing.
    """

    term: Prefix
    grids: tuple[Float[np.ndarray, " _"], ...]

    def member(self, constants: Float[np.ndarray, " constants"]) -> Prefix:
        """The term with these constants."""
        numbers = ((float(f"{value:.6g}"),) for value in constants)
        return _computed(substituted(self.term, dict(zip(_CONSTANTS, numbers))))

    @property
    def example(self) -> Prefix:
        """One of its members."""
        return self.member(np.array([grid[0] for grid in self.grids]))

    def values(
        self,
        nodes: Float[np.ndarray, "variables nodes"],
        variables: tuple[str, ...],
        constants: Float[np.ndarray, "members constants"],
    ) -> Float[np.ndarray, "nodes members"]:
        """Members along the data, zeros where one is not finite everywhere."""
        law = Expression(self.term, (*variables, *_CONSTANTS[: len(self.grids)]))
        found = law.evaluate(*nodes[:, :, None], *constants.T[:, None, :])
        return np.where(np.isfinite(found).all(axis=0), found, 0.0)


def families(
    variables: Sequence[str], values: Float[np.ndarray, "variables nodes"]
) -> list[Family]:
    """Saturations, powers and exponentials, alone and times variables."""
    rows = dict(zip(variables, values, strict=True))
    found: list[Family] = []
    for name, row in rows.items():
        others = [(), *((other,) for other in variables if other != name)]
        found += _times(_saturations(name, row), others)
        found += _sigmoids(name, row)
        found += _times(_exponentials(name, row), [*others, (name,)])
        if row.min() > 0.0:
            found += _times([Family(("pow", name, "_0"), (_EXPONENTS,))], others)
            found += _times(_cooperative(name, row), others)
    positive = [name for name, row in rows.items() if row.min() > 0.0]
    for one, other in itertools.combinations(positive, 2):
        found += _of_two(one, other, rows)
    return found


def decays(span: float, variables: Sequence[str], time: str) -> list[Family]:
    """exp(-k t), alone and times variables: what fades within the span of the times, or soon."""
    decay = Family(("exp", "mul", "_0", time), (-_RATES[::-1] / span,))
    return _times([decay], [(), *((name,) for name in variables)])


def telling(
    found: Sequence[Family],
    form: Regression,
    beside: Sequence[Sequence[Prefix]],
    variables: tuple[str, ...],
) -> list[tuple[Prefix, ...]]:
    """Members that explain most of the target beside any of some sets of terms.

    Args:
      found: the families.
      form: what an equation is to explain.
      beside: the sets; () is the constant.
      variables: of the equations.

    Returns:
      Each member with the set beside which it does so: the member first.
    """
    nodes = np.atleast_2d(form.nodes)
    rows = np.unique(np.linspace(0, len(form.target) - 1, _MOST_ROWS).round().astype(int))
    operator, target = form.operator[rows], form.target[rows]

    def columns(family: Family, constants: Float[np.ndarray, "members constants"]):
        return operator @ family.values(nodes, variables, constants)

    tries = [(family, _mesh(family.grids)) for family in found]
    tried = [(family, constants, columns(family, constants)) for family, constants in tries]
    kept: list[tuple[Prefix, ...]] = []
    for terms in beside:
        left = Left.of(operator @ values_along(form, terms, variables), target)
        best = []
        for family, constants, values in tried:
            gains = left.gains(values)
            best.append((float(gains.max()), constants[gains.argmax()], family))
        closer = [
            _closer(left, gain, chosen, family, columns)
            for gain, chosen, family in heapq.nlargest(_LOOKED_AT, best, key=lambda each: each[0])
        ]
        for _, member in heapq.nlargest(_KEPT, closer, key=lambda pair: pair[0]):
            kept.append((member, *terms))
    return kept


def _closer(
    left: Left,
    gain: float,
    chosen: Float[np.ndarray, " constants"],
    family: Family,
    columns: Callable[..., Float[np.ndarray, "rows members"]],
) -> tuple[float, Prefix]:
    """The largest gain near the constants of a grid, and the member that has it."""
    grids = family.grids
    for _ in range(_ZOOMS):
        grids = tuple(_around(grid, value) for grid, value in zip(grids, chosen, strict=True))
        constants = _mesh(grids)
        gains = left.gains(columns(family, constants))
        if gains.max() >= gain:
            gain, chosen = float(gains.max()), constants[gains.argmax()]
    return gain, family.member(chosen)


def _mesh(grids: Sequence[Float[np.ndarray, " _"]]) -> Float[np.ndarray, "members constants"]:
    return np.stack([part.ravel() for part in np.meshgrid(*grids, indexing="ij")], axis=1)


def _around(grid: Float[np.ndarray, " _"], value: float) -> Float[np.ndarray, " fine"]:
    """A finer grid between the neighbours of a value of a grid."""
    place = int(np.abs(grid - value).argmin())
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, grid.size - 1)]
    return np.linspace(low, high, _FINE)


# --- the families ------------------------------------------------------------------


def _saturations(name: str, row: Float[np.ndarray, " nodes"]) -> list[Family]:
    """Quotients with a threshold, without those that have a pole among the values."""
    sizes = np.abs(row)
    largest = float(sizes.max()) or 1.0
    least = max(float(np.quantile(sizes, 0.03)) / 2, _LEAST * largest)
    grid, found = np.geomspace(least, _BEYOND * largest, _THRESHOLDS), []
    if row.min() >= 0.0 or row.max() <= 0.0:
        signed = grid if row.min() >= 0.0 else -grid[::-1]
        below = ("add", "_0", name)
        found += [Family(("div", top, *below), (signed,)) for top in (1.0, name)]
    below = ("add", "_0", "pow", name, 2.0)
    return found + [Family(("div", top, *below), (grid**2,)) for top in (1.0, name)]


def _cooperative(name: str, row: Float[np.ndarray, " nodes"]) -> list[Family]:
    """Saturations by a power of a positive variable (Hill 1910)."""
    grids = float(np.median(row)) * _COARSE, _COOPERATIVE
    below = ("add", "pow", "_0", "_1", "pow", name, "_1")
    return [Family(("div", *top, *below), grids) for top in ((1.0,), ("pow", name, "_1"))]


def _sigmoids(name: str, row: Float[np.ndarray, " nodes"]) -> list[Family]:
    steepness = _STEEPNESS / (np.ptp(row) or 1.0)
    middles = np.quantile(row, (0.1, 0.3, 0.5, 0.7, 0.9))
    wave = ("exp", "mul", "_0", "sub", name, "_1")
    return [Family(("div", 1.0, "add", 1.0, *wave), (steepness, middles))]


def _exponentials(name: str, row: Float[np.ndarray, " nodes"]) -> list[Family]:
    """exp(k x), and exp(-c/x) of a positive variable."""
    rates = _RATES / (np.abs(row).max() or 1.0)
    found = [Family(("exp", "mul", "_0", name), (np.concatenate([-rates[::-1], rates]),))]
    if row.min() > 0.0:
        grid = -float(np.median(row)) * _RATES[::-1]
        found.append(Family(("exp", "div", "_0", name), (grid,)))
    return found


def _of_two(one: str, other: str, rows: dict[str, Float[np.ndarray, " nodes"]]) -> list[Family]:
    """Of two positive variables: products of powers, x z/(x + c z) and x z/(c + x + d z)."""
    row, share = rows[one], float(np.median(rows[one] / rows[other]))
    product, both = ("mul", one, other), (one, "mul", "_0", other)
    twice = ("add", "_1", "add", *both)
    exponents = (_SMALL_EXPONENTS, _SMALL_EXPONENTS)
    return [
        Family(("mul", "pow", one, "_0", "pow", other, "_1"), exponents),
        Family(("div", *product, "add", *both), (share * _WIDE,)),
        Family(("div", *product, *twice), (share * _COARSE, float(np.median(row)) * _COARSE)),
    ]


def _times(found: Sequence[Family], factors: Sequence[Prefix]) -> list[Family]:
    return [
        dataclasses.replace(family, term=joined("mul", (factor, family.term)))
        for family, factor in itertools.product(found, factors)
    ]


def _computed(prefix: Prefix) -> Prefix:
    """The same with operations on numbers alone carried out."""
    stack: list[Prefix] = []
    for token in reversed(prefix):
        operator = OPERATORS.get(token) if isinstance(token, str) else None
        arguments = [stack.pop() for _ in range(operator.arity)] if operator else []
        if operator and all(len(a) == 1 and not isinstance(a[0], str) for a in arguments):
            stack.append((float(operator.numpy(*(a[0] for a in arguments))),))
        else:
            stack.append((token, *itertools.chain.from_iterable(arguments)))
    return stack.pop()
