"""How exactly a formula can be computed at all: bounds that hold for every processor's libm."""

import itertools

import numpy as np

from nsode_jax.expressions.operators import OPERATORS

_ROUNDING = 16 * np.finfo(float).eps
"""Of one operation: functions of vector units err by 4 units in the last place, products of
powers by some more."""
_BOUNDED_SLOPE = ("sin", "cos")


def value_and_error_bound(prefix, y):
    """The value of an expression at each y, and how far two computations of it may differ.

    Constants that are not whole are taken to be rounded, as those of a rewritten formula are.
    Every operation is also evaluated with its arguments moved as far as their own bounds
    allow. Where the kind of result (a number, an infinity, none) then changes, or has
    changed on the way, the bound is infinite; where it surely has no finite value, it is 0.

    Returns:
      Values and bounds, both of the shape of y.
    """
    with np.errstate(all="ignore"):
        value, bound, end = _evaluate(prefix, 0, np.asarray(y, float))
    assert end == len(prefix)
    return np.broadcast_to(value, np.shape(y)), np.broadcast_to(bound, np.shape(y))


def _evaluate(prefix, start, y):
    token = prefix[start]
    if not isinstance(token, str):
        rounded = 0.0 if token == round(token) else _ROUNDING * abs(token)
        return np.full(y.shape, token), np.full(y.shape, rounded), start + 1
    if token not in OPERATORS:
        return y, np.zeros(y.shape), start + 1
    arguments, position = [], start + 1
    for _ in range(OPERATORS[token].arity):
        value, bound, position = _evaluate(prefix, position, y)
        arguments.append((value, bound))
    function = OPERATORS[token].numpy
    value = function(*(v for v, _ in arguments))
    moved = np.zeros(y.shape)
    for corner in itertools.product(*((v - b, v + b) for v, b in arguments)):
        other = function(*corner)
        same = (other == value) | (np.isnan(other) & np.isnan(value))
        distance = np.where(np.isfinite(other) & np.isfinite(value), np.abs(other - value), np.inf)
        moved = np.maximum(moved, np.where(same, 0.0, distance))
    if token in _BOUNDED_SLOPE:
        moved = np.where(np.isfinite(value), np.minimum(arguments[0][1], 2.0), moved)
    rounding = np.where(np.isfinite(value), _ROUNDING * np.abs(value) + 1e-300, 0.0)
    unknown = np.any([~np.isfinite(b) for _, b in arguments], axis=0)
    # 1/inf is 0, but perhaps only a number too large to be held stood there.
    unknown |= np.isfinite(value) & np.any([~np.isfinite(v) for v, _ in arguments], axis=0)
    return value, np.where(unknown, np.inf, 2.0 * moved + rounding), position


def assert_equal_as_far_as_known(computed, prefix, y):
    """That values of an expression are right, wherever they can be told at all.

    Returns:
      The share of values that were compared.
    """
    expected, bound = value_and_error_bound(prefix, y)
    known = np.isfinite(bound)
    equal = (computed == expected) | (np.isnan(computed) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        wrong = known & ~equal & ~(np.abs(computed - expected) <= bound)
    assert not wrong.any(), (prefix, np.asarray(y)[wrong], computed[wrong], expected[wrong])
    return np.mean(known)
