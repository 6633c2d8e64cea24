"""What the best law and the data say: slopes, fixed points, and whether residuals are noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.pattern import pattern_of
from nsode_jax.results.diagnostics import BAD_FIT
from nsode_jax.results.formatting import probability_text
from nsode_jax.results.result import Candidate, Result

_MOST_SLOPES = 100
_GRID = 801  # Values of y.
_NEGLIGIBLE = 1e-5  # Residuals below this share of the data's spread are the solver's.


# --- the data and their range ------------------------------------------------


def slopes(data: Trajectory) -> tuple[Float[np.ndarray, " slope"], Float[np.ndarray, " slope"]]:
    """Slopes of the data by central differences.

    A long series is first averaged in blocks of neighbours, so that the scatter of
    the slopes does not grow with the number of points.

    Returns:
      (y, dy/dt), in the units of the data.
    """
    blocks = min(len(data), _MOST_SLOPES)
    starts = (np.arange(blocks) * len(data)) // blocks
    sizes = np.diff(starts, append=len(data))
    elapsed = data.t - data.t[0]  # Means of large times would round.
    t, y = (np.add.reduceat(values, starts) / sizes for values in (elapsed, data.y))
    return y[1:-1], (y[2:] - y[:-2]) / (t[2:] - t[:-2])


def relative_slopes(
    data: Trajectory,
) -> tuple[Float[np.ndarray, " slope"], Float[np.ndarray, " slope"]]:
    """(y, (dy/dt) / y) of the positive values: slopes of their logarithm, for growth in decades."""
    positive = data.y > 0
    if positive.sum() < 2:
        return np.zeros(0), np.zeros(0)
    level, slope = slopes(Trajectory(data.t[positive], np.log(data.y[positive])))
    return np.exp(level), slope


def grid(values: Float[np.ndarray, " time"], margin: float = 0.05) -> Float[np.ndarray, " grid"]:
    """The observed range and a share of it more; values that are never negative stay so."""
    low, high = limits(values, margin)
    near = 0.1 * np.ptp(values)  # Zero, where many laws rest, is worth a little more.
    if values.min() >= 0 and low < near:
        low = 0.0
    if values.max() <= 0 and high > -near:
        high = 0.0
    return np.linspace(low, high, _GRID)


def limits(values: Float[np.ndarray, "..."], margin: float) -> tuple[float, float]:
    """The ends of the range of the values, and a share of it more on either side."""
    low, high = float(np.min(values)), float(np.max(values))
    extra = margin * (high - low) or 1.0
    return low - extra, high + extra


def finite(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Values with NaN, which leaves a gap, where there is no finite number."""
    values = np.asarray(values, np.float64)
    return np.where(np.isfinite(values), values, np.nan)


# --- fixed points ------------------------------------------------------------


class FixedPoint(NamedTuple):
    """A value at which the best law rests.

    Attributes:
      y: the value.
      standard_error: of it, from that of f there; NaN if unknown.
      stable: whether solutions approach it.
      observed: whether it lies in the range of the data.
    """

    y: float
    standard_error: float
    stable: bool
    observed: bool


def find_fixed_points(result: Result) -> list[FixedPoint]:
    """Fixed points of the best law in the range of the data and half of it on either side."""
    best = result.best
    values = np.concatenate([trajectory.y for trajectory in result.trajectories])
    size = np.abs(values)
    least = _LEAST * float(size.min(initial=size.max(), where=size > 0))
    found = []
    for y, stable in fixed_points(best.expression, _places(values, least)):
        y = 0.0 if abs(y) <= min(least, 1e-9 * np.ptp(values)) else y
        observed = bool(values.min() <= y <= values.max())
        step = 1e-5 * min(float(np.ptp(values)), abs(y)) or least
        error = _root_error(best, y, np.ptp(values), step)
        found.append(FixedPoint(y, error, stable, observed))
    return found


_LEAST = 1e-3
"""Of the smallest magnitude of the data: nearer to 0 no fixed points but 0 are looked for."""

_BESIDE, _EXACT = 1e-9, 1e-6


def _places(values: Float[np.ndarray, " all"], least: float) -> Float[np.ndarray, " places"]:
    """Values to look for fixed points between: evenly spaced, and in decades from `least` on."""
    even = grid(values, 0.5)
    decades = np.geomspace(least, np.abs(even).max(), _GRID)
    places = np.unique(np.concatenate([-decades, even, decades]))
    return places[(places >= even[0]) & (places <= even[-1])]


def _root_error(best: Candidate, y: float, span: float, step: float) -> float:
    """Standard error of a root of f: that of f over the slope of f, by differences of a step."""
    rises = np.diff(best.expression.evaluate(np.array([y - step, y, y + step])))
    known = rises[np.isfinite(rises)]  # On one side only where f ends, as y**c does at 0.
    slope = abs(known.mean()) / step if known.size else math.nan
    error, near = best.rate_standard_error(np.array([y, y + _BESIDE * span]))
    if error == 0.0:
        return 0.0  # Whatever the constants are, as 0 of -k*y**2.
    if y == 0.0 and math.isnan(error) and near < _EXACT * slope * span:
        return 0.0  # The derivative of y**c by c has a logarithm, and tends to 0.
    return float(error) / slope if slope > 0 else math.nan


def fixed_points(expression: Expression, y: Float[np.ndarray, " grid"]) -> list[tuple[float, bool]]:
    """Where f crosses zero on the range of the grid, and whether it is stable there.

    Args:
      expression: f.
      y: increasing values; crossings are found between neighbours.

    Returns:
      (y, stable) for each fixed point, y increasing. Stable: f falls through zero.
    """

    def at(value: float) -> float:
        return float(expression.evaluate(value))

    f = expression.evaluate(y)
    scale = np.nanmax(np.abs(finite(f)), initial=0.0)
    roots = []
    for i in range(len(y) - 1):
        low, high = f[i], f[i + 1]
        if not (np.isfinite(low) and np.isfinite(high)):
            continue
        if low < 0 < high or high < 0 < low:
            root = brentq(at, y[i], y[i + 1], xtol=1e-9 * (y[i + 1] - y[i]))
            assert isinstance(root, float)  # And no report on the search: none was asked for.
            if abs(at(root)) <= 1e-6 * scale:  # At a pole f changes sign without being zero.
                roots.append((root, bool(low > 0)))
        elif low == 0 != high:
            before = f[i - 1] if i else -high
            if before < 0 < high or high < 0 < before:
                roots.append((float(y[i]), bool(high < 0)))
        elif high == 0 != low and i == len(y) - 2:
            roots.append((float(y[-1]), bool(low > 0)))
    return roots


# --- residuals ---------------------------------------------------------------


def residuals(result: Result) -> list[Float[np.ndarray, " time"]]:
    """Data minus the solution of the best law, per series; NaN where there is no solution."""
    return [
        finite(data.y - result.best.predict(data.t, trajectory=number))
        for number, data in enumerate(result.trajectories)
    ]


def residual_text(result: Result, candidate: Candidate | None = None) -> str:
    """The root mean square residual of the best law, or another, in units of y or of values."""
    rms, scale = (candidate or result.best).residual_rms, result.noise_scale
    return f"{rms:.3g}" if scale.linear else f"{rms / scale.factor:.2g} of each value"


class Remark(NamedTuple):
    """A sentence on the residuals, and whether it speaks against the law as no note does."""

    text: str
    warns: bool


def residual_remark(result: Result) -> Remark:
    """Whether the residuals of the best law look like independent noise.

    Each counts by its precision, as in the fit: else the largest values would be all of it.
    """
    pairs = zip(residuals(result), result.trajectories, strict=True)
    remark = remark_on(
        [left * data.weights for left, data in pairs], Dataset(result.trajectories).spread
    )
    goodness = result.best.goodness_of_fit
    if remark.warns or not goodness < BAD_FIT:
        return remark
    return Remark(
        "From one time to the next the residuals look like independent noise, but errors of "
        f"measurement do not account for them (probability {probability_text(goodness)}).",
        False,
    )


def remark_on(series: Sequence[Float[np.ndarray, " _"]], spread: float) -> Remark:
    """Whether residuals look like independent noise.

    Args:
      series: residuals over time of each series, alike noisy; NaN where there is no solution.
      spread: standard deviation of the data.
    """
    left = [each[np.isfinite(each)] for each in series]
    if not sum(map(len, left)):
        return Remark("The best law has no solution over the observed times.", True)
    if np.sqrt(np.mean(np.concatenate(left) ** 2)) <= _NEGLIGIBLE * spread:
        return Remark("The residuals are so small that numerical errors may be all of them.", False)
    pattern = pattern_of(left)
    if pattern.is_systematic:
        reason = "The law misses something systematic, or the noise is correlated."
    elif pattern.alternates:
        reason = "Neighbouring points err in opposite directions."
    else:
        return Remark("The residuals show no pattern that independent noise would not.", False)
    return Remark(f"The residuals are not random: {pattern.counted}. {reason}", True)
