"""Exact changes of units: several views of one series, and the way back.

The network knows times on [0, 4] and values of a few units. Real data have any
units, so it reads the data through affine views. If z = (y - b)/a and
s = (t - t0)/c obey dz/ds = g(z), then y obeys dy/dt = f(y) = (a/c) g((y - b)/a),
exactly, whatever the factors.
"""

from __future__ import annotations

import dataclasses
import math
from typing import cast

import numpy as np
import sympy

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize, from_sympy
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import VARIABLE
from nsode_jax.expressions.prefix import Prefix, substituted, times
from nsode_jax.observed.dataset import Dataset

VIEW_TIME = 4.0
"""The time span the network is trained on."""

_SMALL, _LARGE = 1e-2, 1e4
_IN_RANGE = 5.0
"""Size of the initial values that the network is trained on; solutions may go beyond."""


@dataclasses.dataclass(frozen=True)
class AffineView:
    """The change of variables z = (y - b)/a, s = (t - t0)/c.

    Attributes:
      t0: time that becomes 0, in units of t.
      c: unit of time, positive, in units of t.
      b: value that becomes 0, in units of y. Zero keeps formulas short.
      a: unit of value, positive, in units of y.
    """

    t0: float
    c: float
    b: float
    a: float

    def __post_init__(self):
        if not (self.a > 0 and self.c > 0):
            raise ValueError(f"the units a and c must be positive, got a={self.a}, c={self.c}")

    def apply(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory in the view's variables, (s, z); measurement weights are relative."""
        return Trajectory(
            (trajectory.t - self.t0) / self.c,
            (trajectory.y - self.b) / self.a,
            trajectory.noise,
            None if trajectory.sigma is None else trajectory.sigma / self.a,
        )

    def apply_to(self, data: Dataset) -> Dataset:
        """All series in the view's variables, with what else is known; no value may be shifted.

        Raises:
          ValueError: if the view shifts values.
        """
        if self.b:
            raise ValueError("data whose values are shifted follow no law of the same frame")
        return Dataset(
            tuple(self.apply(trajectory) for trajectory in data),
            tuple(limit.rescaled(self.t0, self.c, self.b, self.a) for limit in data.limits),
            None if data.frame is None else data.frame.in_units(self.a, self.c),
        )

    def inverse(self) -> AffineView:
        """The way back as a view: what it restores is g(z) = (c/a) f(a z + b) of a law f(y)."""
        return AffineView(-self.t0 / self.c, 1 / self.c, -self.b / self.a, 1 / self.a)

    def restore(self, expression: Expression, absorb: bool = True) -> Expression:
        """The law dy/dt = f(y) of a law dz/ds = g(z) found in this view.

        Args:
          expression: g.
          absorb: whether factors that the change of units leaves inside sums are moved
            out, for the shortest form; that takes SymPy some milliseconds.

        Returns:
          f(y) = (a/c) g((y - b)/a), in canonical form.

        Raises:
          ExpressionError: if f has no canonical form in our language, for
            example because a constant leaves the range of numbers.
        """
        moved: Prefix = ("sub", VARIABLE, self.b) if self.b else (VARIABLE,)
        inside = moved if self.a == 1.0 else times(1.0 / self.a, moved)
        prefix, factor = substituted(expression.prefix, {VARIABLE: inside}), self.a / self.c
        restored = Expression(prefix if factor == 1.0 else times(factor, prefix))
        if not absorb or (self.a == 1.0 and not self.b):
            return canonicalize(restored)
        return canonicalize(from_sympy(_absorb(restored.to_sympy())))


def working_units(data: Dataset) -> AffineView:
    """Units in which values and times are neither tiny nor huge; those of the data, if they are.

    All of a discovery happens in them: the search must not depend on whether times are
    given in nanoseconds or in years. Powers of ten keep the digits of the data.
    """
    span = max(float(np.ptp(trajectory.t)) for trajectory in data)
    return AffineView(0.0, _unit(span), 0.0, _unit(data.size))


def _unit(size: float) -> float:
    if _SMALL <= size <= _LARGE:
        return 1.0
    return 10.0 ** math.floor(math.log10(size))


def candidate_views(trajectory: Trajectory, limit: int = 4) -> tuple[AffineView, ...]:
    """A few sensible views of a series, without repetitions.

    Time is mapped to [0, 4]. Values that lie in the network's range are left
    alone; others, and these too, are divided by their largest size, by a half of it
    and so on, so that max|z| is 1, 2, 5 or 3. Values far from 0 relative to their
    own range are also shifted. Series in range that span at most 4 units of time
    are also read in their own time. Nothing is scaled by the first value, which may
    be 0.

    Args:
      trajectory: the series, at least two points.
      limit: most views; the network reads them as one batch, for which powers of
        two are best.

    Returns:
      Up to `limit` views, the most natural one first.
    """
    t, y = trajectory.t, trajectory.y
    start, span = float(t[0]), float(t[-1] - t[0])
    size = float(np.abs(y).max()) or 1.0
    low, high = float(y.min()), float(y.max())
    unit_of_time = span / VIEW_TIME

    views = []
    if 0.05 <= size <= _IN_RANGE:
        views.append(AffineView(start, unit_of_time, 0.0, 1.0))
        if span <= VIEW_TIME:
            views.append(AffineView(start, 1.0, 0.0, 1.0))
    scaled = [AffineView(start, unit_of_time, 0.0, size / top) for top in (1.0, 2.0, 5.0, 3.0)]
    views.append(scaled[0])
    if high - low < 0.2 * size:
        spread = (high - low) / 2 or size
        views.append(AffineView(start, unit_of_time, (low + high) / 2, spread))
        views.append(AffineView(start, unit_of_time, low, spread))
    views += scaled[1:]

    kept: list[AffineView] = []
    for view in views:
        alike = (
            np.allclose((view.c, view.a), (other.c, other.a), rtol=0.05, atol=0.0)
            and view.b == other.b
            for other in kept
        )
        if not any(alike):
            kept.append(view)
    return tuple(kept[:limit])


def _absorb(expression: sympy.Expr) -> sympy.Expr:
    """Moves factors that a change of units leaves inside sums into an outer factor.

    3*y/(1 + 0.01*y) becomes 300*y/(100 + y): the same function with one constant
    less, so a law does not look longer because of the units it was found in.
    """
    if not expression.args or not expression.free_symbols:
        return expression
    arguments = [_absorb(argument) for argument in _arguments(expression)]
    if expression.is_Pow:
        base, exponent = arguments
        factor, rest = _leading_factor(base)
        # (k x)^p = k^p x^p for a negative k holds for integer p only.
        if exponent.is_number and (factor > 0 or exponent == int(exponent)):
            return sympy.Mul(sympy.Pow(factor, exponent), sympy.Pow(rest, exponent))
        return sympy.Pow(base, exponent)
    if expression.is_Mul:
        factors = []
        outer = sympy.S.One
        for argument in arguments:
            factor, rest = _leading_factor(argument)
            if rest.func == sympy.exp and rest.args[0].is_Add:
                shift, exponent = _arguments(rest)[0].as_coeff_Add()
                factor, rest = factor * sympy.exp(shift), sympy.exp(exponent)
            outer *= factor
            factors.append(rest)
        return sympy.Mul(outer, *factors)
    if expression.is_Add and any(argument.is_number for argument in arguments):
        arguments = [_split_logarithm(argument) for argument in arguments]
    return expression.func(*arguments)


def _arguments(expression: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """Of the operators of our language, whose arguments are numbers and formulas."""
    return cast("tuple[sympy.Expr, ...]", expression.args)


def _leading_factor(expression: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """(k, x) with expression = k x, where the first term of the sum x has factor 1."""
    if not expression.is_Add:
        return expression.as_coeff_Mul() if expression.free_symbols else (expression, sympy.S.One)
    terms = [term.as_coeff_Mul() for term in _arguments(expression) if term.free_symbols]
    factor = min(terms, key=lambda term: sympy.default_sort_key(term[1]))[0]
    # Term by term: multiplying the sum by 1/k would be rounded, and k/k must be 1.
    scaled = []
    for term in _arguments(expression):
        coefficient, rest = term.as_coeff_Mul()
        scaled.append(sympy.S.One * rest if coefficient == factor else coefficient / factor * rest)
    return factor, sympy.Add(*scaled)


def _split_logarithm(term: sympy.Expr) -> sympy.Expr:
    """k log(m x) -> k log(m) + k log(x), for a term beside a constant."""
    coefficient, rest = term.as_coeff_Mul()
    if rest.func != sympy.log:
        return term
    factor, argument = _arguments(rest)[0].as_coeff_Mul()
    if not factor > 0:
        return term
    return coefficient * sympy.log(factor) + coefficient * sympy.log(argument)
