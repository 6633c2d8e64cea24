"""The order of candidate laws: how well they fit against how long they are.

The score of a law, lower is better, is twice a description length in nats, up
to a constant that all laws share:

    n log(r^2 + F^2) + m log((r^2 + f^2) / (r^2 + F^2)) + k log(n) + 2 j + 3 * length

r is the residual of the *integrated* solution relative to the spread of the data, n
the number of observations, m the smaller of n and 10. The first term and k log(n),
with k constants, are the BIC. It takes observations for independent witnesses, which
holds for noise only: what is left below F = 1e-3 is systematic (a solver's tolerance,
a sensor's drift, a curve that nearly is the right one), smooth over the whole series,
and counts as m observations. Otherwise long formulas would be bought with digits
that nobody measured. Below f, 1e-5 or the rounding of the data if that is coarser,
nothing counts. The last term is a prior over formulas, at 1.5 nats per token, in
which some tokens count more (`length`), to which `EDGE_COST` adds.

Constants and length are those of the law in arbitrary units (`in_arbitrary_units`).
In noise 16.4 - y is hardly worse than 16.1 - 0.97*y, but that the factor should be 1 in
the units at hand would be a miracle, not simplicity. Only j counts numbers as they
stand, those that are not plain (`is_plain`): a round number is told in fewer words.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import (
    Expression,
    Prefix,
    subtree_end,
)

TOKEN_COST = 3.0
"""Score of one token of a formula: twice 1.5 nats."""

NUMBER_COST = 2.0
"""Score of a constant that is no plain number."""

RELATIVE_FLOOR = 1e-5
"""Residuals below this share of the data's spread count as equally small."""

SYSTEMATIC = 1e-3
"""Residuals below this share are not independent from one observation to the next."""

_WITNESSES = 10
"""As how many independent observations a series counts there."""

_LARGEST_WHOLE = 10.0
_LARGEST_HALF = 2.5

_COSTS = {"exp": 2.0, "log": 2.0, "sin": 3.0, "cos": 3.0}
_FREE_WAVE_COST = 3.0
"""Tokens that count more than once, and what a wave of free length or phase counts
more. A periodic right-hand side claims infinitely many equilibria, and half a wave
fits any hump: on the yeast data of the examples c*sin(c*y) fits a little better than
the logistic law, with fewer tokens. sin(y) itself is an angle's law, and no such fit."""

_VARIABLE_EXPONENT_COST = 2.0
_SQUARED_SUM_COST = 3.0

EDGE_COST = 9.0
"""Score of a law that ends, or has a pole, just beyond the data. Few real laws do, but
the square root or the reciprocal of a shifted y bends to fit much."""

_FREE_EXPONENT_COST = 3.0
"""An exponent such as 1.38 bends a power to fit nearly any curve."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """A law fitted to one series.

    Attributes:
      expression: the law f, constants fitted, in the data's units.
      y0s: fitted value at the first time, per trajectory.
      residual_rms: root mean square of solution minus data, in units of y, each value
        weighted by its precision; inf if the law has no solution over the observed
        times.
      r2: share of the data's variance that the solution explains, weighted likewise,
        at most 1; -inf without a solution.
      converged: whether the last least-squares fit of the solution met its
        tolerance; False for laws that were never fitted that far.
      source: index of the proposal that the law descends from.
    """

    expression: Expression
    y0s: tuple[float, ...]
    residual_rms: float
    r2: float
    converged: bool
    source: int

    @property
    def diverged(self) -> bool:
        """Whether the law has no solution over the observed times."""
        return not math.isfinite(self.residual_rms)


def is_plain(constant: float) -> bool:
    """Whether a constant is a whole number to 10 or a half one to 2.5, as in exponents."""
    if constant == round(constant):
        return abs(constant) <= _LARGEST_WHOLE
    return abs(constant) <= _LARGEST_HALF and 2 * constant == round(2 * constant)


def length(expression: Expression) -> float:
    """Length of a formula in tokens, as the score counts them.

    The exponent of a square is free (a square is one thing), but the square of a sum
    counts three tokens more: a polynomial is simplest when multiplied out. An exponent
    that is not plain counts three times, one that depends on y two tokens extra, exp and
    log twice, sin and cos three times, or six with a fitted constant in their
    argument, everything else once.
    """
    prefix = expression.prefix
    exponents = _exponents(prefix)
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


def spread_of(trajectories: Sequence[Trajectory]) -> float:
    """Standard deviation of the data about the mean of each trajectory, in units of y.

    Values count as precisely as they were measured, here and in residuals.
    """
    squares = 0.0
    for trajectory in trajectories:
        weights = trajectory.weights
        mean = np.average(trajectory.y, weights=weights**2)
        squares += float(((weights * (trajectory.y - mean)) ** 2).sum())
    return math.sqrt(squares / sum(len(t) for t in trajectories)) or 1.0


def in_arbitrary_units(expression: Expression) -> tuple[float, int]:
    """(length, number of constants) of the law if other units had been chosen.

    With y in other units the law is m f(k y), whose constants are no round numbers:
    y - y**2 has two constants then, exp(y) two, sqrt(y) one. Constants are counted as
    the dimensions of that family of functions, so that one too many, as in
    (a*y + b)/(c*y + d), does not count. A constant that is not written adds a factor to
    the length. Whole and half exponents do not depend on units and are no constants.
    """
    prefix = expression.prefix
    exponents = _exponents(prefix)
    generic = tuple(
        token
        if isinstance(token, str) or (i in exponents and is_plain(token)) or token == 1.0
        else math.copysign(_generic(i), token)
        for i, token in enumerate(prefix)
    )
    return _in_arbitrary_units(generic)


def _generic(place: int) -> float:
    """A number that is no plain one, and another one for every place."""
    return 0.5 + (place + 1) * 0.6180339887498949 % 1.0


def _exponents(prefix: Prefix) -> set[int]:
    return {subtree_end(prefix, i + 1) for i, token in enumerate(prefix) if token == "pow"}


@functools.lru_cache(maxsize=100_000)
def _in_arbitrary_units(prefix: Prefix) -> tuple[float, int]:
    law = Expression(prefix)
    exponents = _exponents(prefix)
    written = [
        i
        for i, token in enumerate(prefix)
        if not isinstance(token, str) and token != 1.0 and not (i in exponents and is_plain(token))
    ]
    columns = [law.evaluate(_PLACES)]  # d/dm at m = 1.
    with np.errstate(all="ignore"):
        # d/dk at k = 1 is y f'.
        columns.append(law.evaluate(_PLACES * (1 + _STEP)) - law.evaluate(_PLACES * (1 - _STEP)))
        for i in written:
            above, below = (
                Expression((*prefix[:i], prefix[i] * (1 + side * _STEP), *prefix[i + 1 :]))
                for side in (1, -1)
            )
            columns.append(above.evaluate(_PLACES) - below.evaluate(_PLACES))
        tangent = np.array(columns)
        tangent = tangent[:, np.isfinite(tangent).all(axis=0)]
        size = np.linalg.norm(tangent, axis=1, keepdims=True)
    if tangent.shape[1] < len(columns) or not np.isfinite(size).all():
        constants = len(written) + 1  # Defined nearly nowhere.
    else:
        singular = np.linalg.svd(tangent / np.where(size > 0, size, 1.0), compute_uv=False)
        constants = int((singular > _RANK_TOLERANCE * singular[0]).sum())
    return length(law) + 2.0 * max(constants - len(written), 0), constants


_MAGNITUDES = np.geomspace(0.13, 4.7, 16)
_PLACES = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])
_STEP = 1e-5
_RANK_TOLERANCE = 1e-6


def residual_floor(trajectories: Sequence[Trajectory]) -> float:
    """Smallest residual that the data can show, relative to their spread.

    Measured values are often rounded: 9.6, 18.3, 29.0 say nothing below 0.03.
    """
    y = np.concatenate([trajectory.y for trajectory in trajectories])
    spread, size = spread_of(trajectories), float(np.abs(y).max())
    # From the coarsest step that could matter down to the floor itself.
    for exponent in range(math.floor(math.log10(size)), math.floor(math.log10(size)) - 7, -1):
        steps = y / 10.0**exponent
        if np.abs(steps - np.round(steps)).max() < 1e-6:
            return max(RELATIVE_FLOOR, 10.0**exponent / math.sqrt(12.0) / spread)
    return RELATIVE_FLOOR


def score(
    expression: Expression,
    relative_rms: float,
    num_points: int,
    floor: float = RELATIVE_FLOOR,
) -> float:
    """Twice the description length of a law and of the data given it (see above).

    Args:
      expression: the law.
      relative_rms: residual divided by the standard deviation of the data.
      num_points: number of observations.
      floor: smallest residual that counts, relative likewise.

    Returns:
      The score, lower is better; inf for a law that diverges.
    """
    if not math.isfinite(relative_rms):
        return math.inf
    tokens, constants = in_arbitrary_units(expression)
    return (
        _misfit(relative_rms, num_points, floor)
        + constants * math.log(num_points)
        + NUMBER_COST * sum(not is_plain(c) for c in expression.constants)
        + TOKEN_COST * tokens
    )


def optimistic_score(
    expression: Expression, relative_rms: float, num_points: int, floor: float
) -> float:
    """A score that is found faster, and is seldom worse than the true one: in these units."""
    numbers = sum(not is_plain(c) for c in expression.constants)
    return (
        _misfit(relative_rms, num_points, floor)
        + numbers * (math.log(num_points) + NUMBER_COST)
        + TOKEN_COST * length(expression)
    )


def _misfit(relative_rms: float, num_points: int, floor: float) -> float:
    square = relative_rms**2
    systematic = square + SYSTEMATIC**2
    witnesses = min(num_points, _WITNESSES)
    return num_points * math.log(systematic) + witnesses * math.log(
        (square + floor**2) / systematic
    )


def scores(fits: Sequence[Fit], trajectories: Sequence[Trajectory]) -> list[float]:
    """The score of each fit, lower is better; inf for those that diverge."""
    spread, floor = spread_of(trajectories), residual_floor(trajectories)
    count = sum(len(trajectory) for trajectory in trajectories)
    nearby = _nearby(trajectories)
    return [
        score(fit.expression, fit.residual_rms / spread, count, floor)
        + (0.0 if _is_tame(fit.expression, nearby) else EDGE_COST)
        for fit in fits
    ]


def _nearby(trajectories: Sequence[Trajectory]) -> Float[np.ndarray, " values"]:
    """The observed range and half of it on either side; 0 is not passed."""
    y = np.concatenate([trajectory.y for trajectory in trajectories])
    low, high = float(y.min()), float(y.max())
    margin = (high - low) / 2
    below = low - margin if low < 0 else max(low - margin, low / 10)
    above = high + margin if high > 0 else min(high + margin, high / 10)
    return np.linspace(below, above, 200)


def _is_tame(expression: Expression, nearby: Float[np.ndarray, " values"]) -> bool:
    """Whether a law has neither an edge of its domain nor a pole near the data."""
    rates = expression.evaluate(nearby)
    if not np.isfinite(rates).all():
        return False
    # Across a pole f changes its sign between large values, across a zero between small ones.
    flips = np.flatnonzero(np.sign(rates[1:]) != np.sign(rates[:-1]))
    smaller = np.minimum(np.abs(rates[1:]), np.abs(rates[:-1]))[flips]
    return not (smaller > np.median(np.abs(rates))).any()


def weights_of(values: Sequence[float]) -> list[float]:
    """Posterior probability of each law, if one of them is the right one.

    A score is twice a description length, so the probability falls as exp(-score / 2).

    Args:
      values: scores, at least one of them finite.
    """
    least = min(values)
    shares = [math.exp(-(value - least) / 2) for value in values]
    return [share / sum(shares) for share in shares]


def rank(
    fits: Sequence[Fit],
    trajectories: Sequence[Trajectory],
    *,
    same: float = 1e-6,
    alike: float = 1e-4,
) -> list[tuple[Fit, float]]:
    """Best law first, each law once.

    Of fits with the same skeleton (signs aside) the best stays. Of laws whose f
    differs by less than `same` of its largest value over the observed range the
    simplest stays, of those that differ by less than `alike` the best: they are one law
    written in two ways, or not to be told apart. Laws that diverge come last.

    Args:
      fits: any number of fits.
      trajectories: the data they were fitted to.
      same, alike: such relative differences.

    Returns:
      Pairs of a fit and its score, lowest score first.
    """
    values = scores(fits, trajectories)
    order = sorted(range(len(fits)), key=lambda i: (values[i], fits[i].expression.complexity, i))
    y = np.concatenate([trajectory.y for trajectory in trajectories])
    grid = np.linspace(y.min(), y.max(), 64)
    kept: list[int] = []
    curves: dict[int, np.ndarray] = {}
    keys: set[str] = set()
    # What each would score if it fitted exactly.
    simplest = [score(fit.expression, 0.0, y.size) for fit in fits]
    for i in order:
        key = fits[i].expression.skeleton.unsigned_key
        if key in keys:
            continue
        keys.add(key)
        curve = fits[i].expression.evaluate(grid)
        twin = next((j for j in kept if _same_curve(curve, curves[j], alike)), None)
        if twin is None:
            kept.append(i)
        elif _same_curve(curve, curves[twin], same) and simplest[i] < simplest[twin]:
            kept[kept.index(twin)] = i
        else:
            continue
        curves[i] = curve
    kept.sort(key=lambda i: (values[i], fits[i].expression.complexity, i))
    return [(fits[i], values[i]) for i in kept]


def _same_curve(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether two right-hand sides agree wherever both are defined; NaNs must match."""
    defined = np.isfinite(one)
    if not defined.any() or not np.array_equal(defined, np.isfinite(other)):
        return False
    size = np.abs(other[defined]).max()
    return bool(np.abs(one[defined] - other[defined]).max() <= tolerance * size)
