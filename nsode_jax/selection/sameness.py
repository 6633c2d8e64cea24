"""When two laws are the same over the data, and which simpler laws are the same as one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.prefix import exponent_places, with_one_term_less

SAME = 1e-4
"""Laws whose f differs by less than this share of its size are not told apart."""

PLACES = 64

_DECADES = 100.0
"""Ratio of the largest to the smallest value from which on these count as much as those."""

_NEAR = 3.0
"""Ratio of values whose rates of change have one size then."""

_NEARLY_PLAIN = 0.02
_MOST_REDUCTIONS = 8


def places_between(low: float, high: float) -> Float[np.ndarray, " places"]:
    """Values of y to compare laws at: evenly spaced, or in decades where there are some."""
    if _in_decades(np.array([low, high], np.float64)):
        return np.geomspace(low, high, PLACES)
    return np.linspace(low, high, PLACES)


def sizes_of(
    rates: Float[np.ndarray, " places"], places: Float[np.ndarray, " places"]
) -> Float[np.ndarray, " places"]:
    """What differences between rates of change are compared with: the largest of all.

    In decades the largest nearby: what decides at small values is nothing beside the rates at
    large ones.
    """
    size = np.abs(rates)
    if not _in_decades(places):
        return np.full(size.shape, size.max())
    logs = np.log(np.abs(places))
    near = np.abs(logs - logs[:, None]) <= np.log(_NEAR)
    sizes = np.where(near, size, 0.0).max(axis=1)
    return np.where(sizes > 0, sizes, size.max())


def _in_decades(values: Float[np.ndarray, " values"]) -> bool:
    """Whether values of one sign span decades."""
    size = np.abs(values)
    return bool(values.min() * values.max() > 0 and size.max() >= _DECADES * size.min())


def reductions(
    expression: Expression,
    places: Float[np.ndarray, " places"],
    rates: Float[np.ndarray, " places"],
) -> list[Expression]:
    """The law, and simpler ones that equal it over the data, simplest first."""
    chain, sizes = [expression], sizes_of(rates, places)
    for _ in range(_MOST_REDUCTIONS):
        equal = []
        for simpler in _simpler(chain[-1]):
            difference = np.abs(simpler.evaluate(places) - rates) / sizes
            if difference.max() <= SAME:  # False for NaN.
                equal.append((simpler.complexity, float(difference.max()), simpler))
        if not equal:
            break
        chain.append(min(equal, key=lambda found: found[:2])[2])
    return chain[::-1]


def _simpler(expression: Expression) -> Iterator[Expression]:
    """Laws with one term of a sum left out, or one exponent made plain."""
    prefix = expression.prefix
    options = list(with_one_term_less(prefix))
    for place in exponent_places(prefix):
        exponent = prefix[place]
        if isinstance(exponent, str) or is_plain(exponent):
            continue
        plain = round(2 * exponent) / 2
        if abs(plain - exponent) <= _NEARLY_PLAIN and is_plain(plain):
            options.append((*prefix[:place], plain, *prefix[place + 1 :]))
    for option in options:
        try:
            yield canonicalize(Expression(option))
        except ExpressionError:
            continue
