"""Systems that have a name: which of the table a system is, and what it costs as one of them."""

from __future__ import annotations

import collections
import functools
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.prefix import Prefix
from nsode_jax.expressions.summands import summands
from nsode_jax.selection.term_prior import TIME, Kind, canonical_term, known_systems

SHARE = 0.5
"""Probability that a system is one of the table."""

_PLACE = (0.83, 0.61, 0.47, 0.71, 0.53)
"""Values of the states, and of the time, at which the sign of a term is told."""

Shape = tuple[tuple[tuple[Kind, bool], ...], ...]
"""The kinds of terms of each equation and whether they are negative, states called x0, x1, ..."""


def named_system(equations: Sequence[Expression], states: Sequence[str]) -> str | None:
    """The name that the table has for a system, constants aside but not the signs of terms.

    Args:
      equations: a right-hand side for each state.
      states: their names in the equations.

    Returns:
      None for one that the table lacks, or that depends on an input.
    """
    known = {*states, TIME}
    if any(v in equation.prefix for equation in equations for v in {*equation.variables} - known):
        return None
    parts = tuple(tuple(summands(equation)) for equation in equations)
    return _named(parts, tuple(states))


def system_cost(terms: float, name: str | None, number: int) -> float:
    """Minus twice the logarithm of a system's prior probability, its constants aside.

    A mixture: with probability `SHARE` one of the table, each with its states in any order, and
    otherwise one of terms.

    Args:
      terms: that of its terms alone (`term_prior`).
      name: of the system in the table, or None.
      number: of its states.
    """
    alone = -terms / 2 + math.log(1 - SHARE)
    if name is None:
        return -2 * alone
    systems = sum(len(shape) == number for shape in _table())
    listed = math.log(SHARE / (systems * math.factorial(number)))
    return -2 * (max(alone, listed) + math.log1p(math.exp(-abs(alone - listed))))


@functools.lru_cache(maxsize=20_000)
def _named(parts: tuple[tuple[Prefix, ...], ...], states: tuple[str, ...]) -> str | None:
    shapes = set()
    for order in itertools.permutations(range(len(states))):
        called = {states[place]: f"x{i}" for i, place in enumerate(order)}
        shapes.add(_shape([parts[place] for place in order], called))
    return ", or ".join(name for shape, name in _table().items() if shape in shapes) or None


def _shape(parts: Sequence[Sequence[Prefix]], called: Mapping[str, str]) -> Shape:
    names = (*called.values(), TIME)
    places = dict(zip(names, (*_PLACE[: len(called)], _PLACE[-1]), strict=True))

    def signed(term: Prefix) -> tuple[Kind, bool]:
        renamed = tuple(called.get(str(token), token) for token in term)
        with np.errstate(all="ignore"):
            value = Expression(renamed, names).evaluate(*places.values())
        return canonical_term(renamed, names), bool(value < 0)

    return tuple(tuple(sorted(set(map(signed, terms)), key=str)) for terms in parts)


@functools.cache
def _table() -> dict[Shape, str]:
    """The names of all systems by their shape; where two are alike, both."""
    found: dict[Shape, list[str]] = collections.defaultdict(list)
    for name, laws in known_systems():
        states = {f"x{i}": f"x{i}" for i in range(len(laws))}
        found[_shape([summands(law) for law in laws], states)].append(name)
    return {shape: ", or ".join(names) for shape, names in found.items()}
