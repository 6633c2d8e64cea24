"""Terms of which the equations of systems are made.

Monomials of all variables; products of two functions of one variable each; waves in time.
`families` has those with constants that only a fit can tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.prefix import Prefix, joined, times

MAX_DEGREE = 3
"""Of the monomials."""

_LARGEST_ANGLE, _LARGEST_EXPONENT = 30.0, 10.0
"""Magnitudes up to which a variable may be an angle in radians, or an exponent."""

_DEGREE = math.pi / 180

_LEAST_BENT = 0.01
"""Magnitude of a variable from which on its functions are seen to bend: sin(x) differs from x by
a sixth of the square of it, as a share."""

_TWO_SIDED = 0.05
"""Share of its largest magnitude that a variable has to reach on the other side of 0, for x|x| to
be another function than a square."""


def monomials(variables: Sequence[str], degree: int) -> list[Prefix]:
    """All products of the variables up to a degree; first the constant, an empty one."""
    found = []
    for total in range(degree + 1):
        for choice in itertools.combinations_with_replacement(variables, total):
            powers = {name: choice.count(name) for name in choice}
            found.append(_product([_power(name, power) for name, power in powers.items()]))
    return found


def functions(
    variables: Sequence[str], values: Float[np.ndarray, "variables nodes"]
) -> list[Prefix]:
    """Functions of one variable, and products of functions of two.

    Waves and exponentials of variables that are large in the units at hand are left out, but for
    waves of what may be an angle in degrees. So are poles among the values: next to one a term
    fits any single point. And so is what is a simpler term along these values: waves and
    exponentials of small variables, and x|x| on one side of 0.
    """
    of_each = [_elementary(name, row) for name, row in zip(variables, values, strict=True)]
    found = [part for parts in of_each for part in parts]
    for name, row in zip(variables, values, strict=True):
        if _is_within(row, _LARGEST_ANGLE):
            found.append(("mul", "sin", name, "cos", name))
        elif _is_within(_DEGREE * row, _LARGEST_ANGLE) and _changes_sign(row):
            found += [(wave, "mul", _DEGREE, name) for wave in ("sin", "cos")]
        if min(row.max(), -row.min()) > _TWO_SIDED * np.abs(row).max():
            found.append(("mul", name, "sqrt", "pow", name, 2.0))
    for (left, one), (right, other) in itertools.combinations(zip(of_each, values), 2):
        found += [("mul", *x, *z) for x, z in itertools.product(left, right)]
        x, z = left[0][0], right[0][0]
        if _is_within(one - other, math.inf):  # Of phases that run apart too.
            found += [("sin", "sub", x, z), ("cos", "sub", x, z)]
        if _is_within(one + other, _LARGEST_EXPONENT):
            found.append(("exp", "add", x, z))
    return found


def waves(frequencies: Sequence[float], variables: Sequence[str], time: str) -> list[Prefix]:
    """cos(w t) and sin(w t), alone and times monomials."""
    found: list[Prefix] = []
    for frequency in frequencies:
        for function in ("cos", "sin"):
            wave = (function, "mul", float(frequency), time)
            found += [_product([part, wave]) for part in monomials(variables, 2)]
    return found


def _changes_sign(values: Float[np.ndarray, " nodes"]) -> bool:
    return bool(values.min() <= 0.0 <= values.max())


def _is_within(values: Float[np.ndarray, " nodes"], largest: float) -> bool:
    """Whether a function of these values bends, and is no more than that."""
    return _LEAST_BENT < float(np.abs(values).max()) < largest


def _elementary(name: str, values: Float[np.ndarray, " nodes"]) -> list[Prefix]:
    found: list[Prefix] = [(name,), ("pow", name, 2.0), ("sqrt", name), ("log", name)]
    if not _changes_sign(values):
        found.append(("div", 1.0, name))
    if _is_within(values, _LARGEST_ANGLE):
        found += [("sin", name), ("cos", name), ("pow", "sin", name, 2.0)]
    if _is_within(values, _LARGEST_EXPONENT):
        found += [("exp", name)]
    return found


def _power(name: str, power: int) -> Prefix:
    return (name,) if power == 1 else ("pow", name, float(power))


def _product(parts: Sequence[Prefix]) -> Prefix:
    return joined("mul", parts)


def sum_of(
    terms: Sequence[Prefix],
    coefficients: Sequence[float] | Float[np.ndarray, " terms"],
    variables: tuple[str, ...],
) -> Expression:
    """The sum of terms times their coefficients.

    Raises:
      ExpressionError: if a coefficient is not finite.
    """
    pairs = zip(coefficients, terms, strict=True)
    return Expression(joined("add", (times(float(c), term) for c, term in pairs)), variables)
