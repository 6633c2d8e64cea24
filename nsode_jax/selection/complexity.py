"""How complex a law is, in the units of the data and in arbitrary ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS, VARIABLES
from nsode_jax.expressions.prefix import Prefix, exponent_places, subtree_end

_COSTS = {token: operator.cost for token, operator in OPERATORS.items()}
_FREE_WAVE_COST = 3.0
"""Tokens that count more than once, and what a wave of free length or phase counts
more. A periodic right-hand side claims infinitely many equilibria, and half a wave
fits any hump: on the yeast data of the examples c*sin(c*y) fits a little better than
the logistic law, with fewer tokens. sin(y) itself is an angle's law, and no such fit."""

_VARIABLE_EXPONENT_COST = 2.0
_SQUARED_SUM_COST = 3.0

_FREE_EXPONENT_COST = 3.0
"""An exponent such as 1.38 bends a power to fit nearly any curve."""


def weighted_complexity(expression: Expression) -> float:
    """Complexity of a formula in tokens, as the score counts them.

    The exponent of a square is free (a square is one thing), but the square of a sum
    counts three tokens more: a polynomial is simplest when multiplied out. An exponent
    that is not plain counts three times, one that depends on y two tokens extra, exp and
    log twice, sin and cos three times, or six with a fitted constant in their
    argument, everything else once.
    """
    prefix = expression.prefix
    exponents = exponent_places(prefix)
    total = 0.0
    for i, token in enumerate(prefix):
        if isinstance(token, str):
            total += _COSTS.get(token, 1.0)
            total += _VARIABLE_EXPONENT_COST if i in exponents else 0.0
            if token in ("sin", "cos"):
                inside = prefix[i + 1 : subtree_end(prefix, i + 1)]
                if any(not isinstance(t, str) and not is_plain(t) for t in inside):
                    total += _FREE_WAVE_COST
            if token == "pow" and prefix[i + 1] in ("add", "sub"):
                is_square = prefix[subtree_end(prefix, i + 1)] == 2.0
                total += _SQUARED_SUM_COST if is_square else 0.0
        elif i in exponents and not is_plain(token):
            total += _FREE_EXPONENT_COST
        elif i not in exponents or token != 2.0:
            total += 1.0
    return total


def in_arbitrary_units(expression: Expression) -> tuple[float, int]:
    """(complexity, number of constants) of the law if other units had been chosen.

    With y in other units the law is m f(k y), whose constants are no round numbers:
    y - y**2 has two constants then, exp(y) two, sqrt(y) one. Constants are counted as
    the dimensions of that family of functions, so that one too many, as in
    (a*y + b)/(c*y + d), does not count. A constant that is not written adds a factor to
    the complexity. Whole and half exponents do not depend on units and are no constants.
    """
    prefix = expression.prefix
    written = set(_written(prefix))
    changed = (generic(i, token) if i in written else token for i, token in enumerate(prefix))
    return _in_arbitrary_units(tuple(changed))


def generic(place: int, token: str | float) -> float:
    """A number of the same sign that is no plain one, and another one for every place."""
    return math.copysign(0.5 + (place + 1) * 0.6180339887498949 % 1.0, float(token))


def tangents(
    expression: Expression, number: int, y: Float[np.ndarray, " values"]
) -> Float[np.ndarray, "constants values"]:
    """How f changes with the logarithms of its constants, in arbitrary units.

    Args:
      expression: f.
      number: of its constants, as `in_arbitrary_units` tells it.
      y: where.

    Returns:
      A row for each constant that is written, and as many more as that takes for changes
      of f and of y by a factor. Shape [constants, values].
    """
    f, slope, rows = _changes(expression.prefix, _written(expression.prefix), y)
    for row in (f, slope):
        if len(rows) >= number:
            break
        others = np.array(rows).reshape(len(rows), y.size).T
        if not (np.isfinite(others).all() and np.isfinite(row).all()):
            rows.append(row)
            continue
        own = row - others @ np.linalg.lstsq(others, row, rcond=_RANK_TOLERANCE)[0]
        if np.linalg.norm(own) > _ALONG * np.linalg.norm(row):
            rows.append(own)
    return np.array(rows).reshape(len(rows), y.size)


def _written(prefix: Prefix) -> list[int]:
    """Places of the numbers that would change with the units."""
    exponents = exponent_places(prefix)
    return [
        i
        for i, token in enumerate(prefix)
        if not isinstance(token, str) and token != 1.0 and not (i in exponents and is_plain(token))
    ]


def _changes(
    prefix: Prefix, places: Sequence[int], y: Float[np.ndarray, " values"]
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """f, df/dk of f(k y) at k = 1, which is y f', and df/dlog(c) of the numbers at the places."""
    # A row for f and two for each change, all in one evaluation.
    steps = np.zeros((1 + len(places), 3 + 2 * len(places), 1))
    for i in range(len(steps)):
        steps[i, 1 + 2 * i : 3 + 2 * i, 0] = _STEP, -_STEP
    names = {place: f"c{i}" for i, place in enumerate(places)}
    tokens = tuple(names.get(i, token) for i, token in enumerate(prefix))
    law = Expression(tokens, (*VARIABLES, *names.values()))
    numbers = (float(prefix[place]) * (1 + step) for place, step in zip(places, steps[1:]))
    rows = law.evaluate(y * (1 + steps[0]), *numbers)
    f, slope, *tangents = rows[0], *(rows[1::2] - rows[2::2]) / (2 * _STEP)
    return f, slope, tangents


def fitted_exponents(expression: Expression) -> list[float]:
    """Exponents that are numbers, but no plain ones."""
    prefix = expression.prefix
    places = exponent_places(prefix)
    return [
        token
        for i, token in enumerate(prefix)
        if i in places and not isinstance(token, str) and not is_plain(token)
    ]


@functools.lru_cache(maxsize=100_000)
def _in_arbitrary_units(prefix: Prefix) -> tuple[float, int]:
    law, written = Expression(prefix), _written(prefix)
    with np.errstate(all="ignore"):
        # d/dm at m = 1 is f.
        f, slope, others = _changes(prefix, written, _PLACES)
        tangent = np.array([f, slope, *others])
        tangent = tangent[:, np.isfinite(tangent).all(axis=0)]
        size = np.linalg.norm(tangent, axis=1, keepdims=True)
    if tangent.shape[1] < len(tangent) or not np.isfinite(size).all():
        constants = len(written) + 1  # Defined nearly nowhere.
    else:
        singular = np.linalg.svd(tangent / np.where(size > 0, size, 1.0), compute_uv=False)
        constants = int((singular > _RANK_TOLERANCE * singular[0]).sum())
    return weighted_complexity(law) + 2.0 * max(constants - len(written), 0), constants


_MAGNITUDES = np.geomspace(0.13, 4.7, 16)
_PLACES = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])
_STEP = 1e-5
_RANK_TOLERANCE = 1e-6
_ALONG = 1e-4
"""A change that others make up for but for so much of it is none of its own."""
