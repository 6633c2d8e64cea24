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

_PLACE, _TIME_THERE = (0.83, 0.61, 0.47, 0.71), 0.53
"""Values of the states, and of the time, at which the sign of a term is told."""

Shape = tuple[tuple[Kind, bool], ...]
"""The kinds of terms of an equation and whether they are negative, states called x0, x1, ..."""


def named_system(equations: Sequence[Expression], states: Sequence[str]) -> str | None:
    """The name that the table has for a system, constants aside but not the signs of terms.

    Args:
      equations: a right-hand side for each state.
      states: their names in the equations.

    Returns:
      None for one that the table lacks, or that depends on an input.
    """
    listed = any(len(shapes) == len(states) for shapes in _table())
    if not (listed and all(_of_states_and_time(equation, states) for equation in equations)):
        return None
    parts = tuple(tuple(summands(equation)) for equation in equations)
    return _named(parts, tuple(states))


def named_combinations(
    options: Sequence[Sequence[Expression]], states: Sequence[str]
) -> list[tuple[int, ...]]:
    """Which of the systems have a name that take one equation of each list.

    Args:
      options: right-hand sides for each state.
      states: their names in the equations.

    Returns:
      The place of each equation in its list.
    """
    found: set[tuple[int, ...]] = set()
    table = [shapes for shapes in _table() if len(shapes) == len(states)]
    if not table:
        return []
    for order in itertools.permutations(range(len(states))):
        called = {states[place]: f"x{i}" for i, place in enumerate(order)}
        alike: list[dict[Shape, list[int]]] = [collections.defaultdict(list) for _ in order]
        for places, state in zip(alike, order, strict=True):
            for number, equation in enumerate(options[state]):
                if _of_states_and_time(equation, states):
                    places[_shape(summands(equation), called)].append(number)
        for shapes in table:
            rows = [places.get(shape, []) for places, shape in zip(alike, shapes, strict=True)]
            for chosen in itertools.product(*rows):
                by_state = dict(zip(order, chosen, strict=True))
                found.add(tuple(by_state[i] for i in range(len(states))))
    return sorted(found)


def _of_states_and_time(equation: Expression, states: Sequence[str]) -> bool:
    return not any(v in equation.prefix for v in {*equation.variables} - {*states, TIME})


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
    systems = sum(len(shapes) == number for shapes in _table())
    listed = math.log(SHARE / (systems * math.factorial(number)))
    return -2 * (max(alone, listed) + math.log1p(math.exp(-abs(alone - listed))))


@functools.lru_cache(maxsize=20_000)
def _named(parts: tuple[tuple[Prefix, ...], ...], states: tuple[str, ...]) -> str | None:
    shapes = set()
    for order in itertools.permutations(range(len(states))):
        called = {states[place]: f"x{i}" for i, place in enumerate(order)}
        shapes.add(tuple(_shape(parts[place], called) for place in order))
    return ", or ".join(name for shape, name in _table().items() if shape in shapes) or None


def _shape(terms: Sequence[Prefix], called: Mapping[str, str]) -> Shape:
    names = (*called.values(), TIME)
    places = dict(zip(names, (*_PLACE[: len(called)], _TIME_THERE), strict=True))

    def signed(term: Prefix) -> tuple[Kind, bool]:
        renamed = tuple(called.get(str(token), token) for token in term)
        with np.errstate(all="ignore"):
            value = Expression(renamed, names).evaluate(*places.values())
        return canonical_term(renamed, names), bool(value < 0)

    return tuple(sorted(set(map(signed, terms)), key=str))


@functools.cache
def _table() -> dict[tuple[Shape, ...], str]:
    """The names of all systems by their shape; where two are alike, both."""
    found: dict[tuple[Shape, ...], list[str]] = collections.defaultdict(list)
    for name, laws in known_systems():
        states = {f"x{i}": f"x{i}" for i in range(len(laws))}
        found[tuple(_shape(summands(law), states) for law in laws)].append(name)
    return {shapes: ", or ".join(names) for shapes, names in found.items()}
