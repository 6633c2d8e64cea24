"""The derivative form: dy/dt = f(y) itself, at some points of clean and dense data.

In a scale z of y that is not linear it is dz/dt = dz/dy f(y).

High-order differences of clean data are far more exact than any quadrature over a
smooth curve: laws are told apart by their last digits. Noise forbids it, so there is no
such form of noisy or sparse data.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.noise_scale import NoiseScale
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.splines import lagrange_weights

PRECISION = 3e-6
"""Largest error of dy/dt, relative to its size, that makes the form worth having."""

FLOOR = 25.0
"""Times its estimated error, a residual of dy/dt may still be the solver's or the
instrument's: that of the true law is below it for nine in ten of simulated laws, with
LSODA at tolerances from 1e-5 to 1e-9 alike (`benchmarks/precision.py`)."""

_LEAST_FLOOR = 1e-9
_UNEVEN_FLOOR = 1e-5
"""Where a steep piece hides how large the errors of the others are."""

_HALF = 4  # Points on either side of a difference: order 8.
_NEIGHBOURHOOD = 33
"""Points whose noise is alike."""

_APART, _STANDING_OUT = 12, 3.0
"""A kink is so many times larger than what is so many points before and after it."""

_NODES = 64
_FEWEST = 16

_Points = Float[np.ndarray, " points"]


def derivative_form(data: Dataset, nodes: int = _NODES) -> Regression | None:
    """Rates of change at points spread over the range and over the time of the data.

    Args:
      data: the series.
      nodes: most points; where there are fewer the last one stands for them, for nothing.

    Returns:
      The regression; its target is relative to the root mean square of dz/dt. None
      if the data are too noisy or too sparse for it.
    """
    series = [each for each in data if len(each) > 2 * _HALF + 1]
    if not series:
        return None
    for noise_of, least in ((_everywhere, _LEAST_FLOOR), (_nearby, _UNEVEN_FLOOR)):
        parts = [_differences(each, data.noise_scale, noise_of) for each in series]
        z, rates, errors = (np.concatenate(column) for column in zip(*parts, strict=True))
        size = float(np.sqrt(np.mean(rates**2)))
        exact = np.flatnonzero(errors <= PRECISION * size)
        if exact.size >= max(_FEWEST, z.size / 2):
            error = float(np.sqrt(np.mean(errors[exact] ** 2))) / size
            floor = max(FLOOR * error, least)
            form = _regression(data, z[exact], rates[exact], size, nodes, floor)
            return form if data.frame is None else data.frame.applied(form)
    return None


def _regression(
    data: Dataset, z: _Points, rates: _Points, size: float, nodes: int, floor: float
) -> Regression:
    """Some of the points as a regression."""
    chosen = _spread(z, nodes)
    chosen = chosen[np.argsort(z[chosen], kind="stable")]
    # As if every observation had told its rate: residuals are means over all of them.
    scale = math.sqrt(data.count / chosen.size) / size
    y0s = tuple(float(series.y[0]) for series in data)
    # Always as many rows and nodes, since a program is compiled for each number.
    lacking = nodes - chosen.size
    weights = np.concatenate([np.full(chosen.size, scale), np.zeros(lacking)])
    chosen = np.concatenate([chosen, np.full(lacking, chosen[-1])])
    y = data.noise_scale.inverse(z[chosen])
    operator, target = np.diag(weights * data.noise_scale.slope(y)), weights * rates[chosen]
    return Regression(y, operator, target, 0.0, data.count, floor, True, y0s)


def _differences(
    series: Trajectory, scale: NoiseScale, noise_of: Callable[[_Points], _Points | float]
) -> tuple[
    Float[np.ndarray, " points"], Float[np.ndarray, " points"], Float[np.ndarray, " points"]
]:
    """(z, dz/dt, its estimated error) at all points but those near the ends."""
    t, z = series.t, scale.forward(series.y)
    inner = np.arange(_HALF, t.size - _HALF)
    rates = [_rates(t, z, inner, half) for half in (_HALF, _HALF - 1)]
    # What the neighbours foretell of a point tells its noise, and how a difference
    # magnifies it.
    others = inner[:, None] + np.r_[-_HALF:0, 1 : _HALF + 1]
    weights = lagrange_weights(t[others], t[inner])
    noise = np.abs((weights * z[others]).sum(axis=1) - z[inner])
    noise /= np.sqrt(1 + (weights**2).sum(axis=1))
    step = (t[inner + 1] - t[inner - 1]) / 2
    return z[inner], rates[0], np.abs(rates[0] - rates[1]) + noise_of(noise) / step


def _everywhere(noise: _Points) -> float:
    """Root mean square of the noise, which is alike everywhere."""
    return float(np.sqrt(np.mean(noise**2)))


def _nearby(noise: _Points) -> _Points:
    """The same over each neighbourhood: a steep piece tells nothing of the others."""
    near = np.ones(min(_NEIGHBOURHOOD, noise.size))
    number = np.convolve(np.ones(noise.size), near, mode="same")
    return np.maximum(np.sqrt(np.convolve(noise**2, near, mode="same") / number), _kinks(noise))


def _kinks(noise: _Points) -> float:
    """What stands out from both sides, root mean square over all points.

    A solver's solution is smooth within a step, and wrong by as much as it bends between
    two of them: kinks anywhere are errors everywhere.
    """
    far = np.full(_APART, np.inf)
    before, after = np.concatenate([far, noise[:-_APART]]), np.concatenate([noise[_APART:], far])
    standing_out = noise > _STANDING_OUT * np.maximum(before[: noise.size], after[: noise.size])
    return float(np.sqrt(np.mean(np.where(standing_out, noise, 0.0) ** 2)))


def _rates(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], at: np.ndarray, half: int
) -> Float[np.ndarray, " points"]:
    """Derivative of the polynomial through 2 * half + 1 neighbours of each point."""
    columns = at[:, None] + np.arange(-half, half + 1)
    away = t[columns] - t[at][:, None]  # [points, neighbours]
    scale = np.abs(away).max(axis=1, keepdims=True)
    powers = np.swapaxes((away / scale)[..., None] ** np.arange(2 * half + 1), 1, 2)
    first = np.zeros((at.size, 2 * half + 1, 1))
    first[:, 1] = 1.0
    weights = np.linalg.solve(powers, first)[..., 0] / scale
    return (weights * (y[columns] - y[at][:, None])).sum(axis=1)


def _spread(y: Float[np.ndarray, " points"], number: int) -> np.ndarray:
    """So many indices: half of them even in time, the others even in the values."""
    if y.size <= number:
        return np.arange(y.size)
    in_time = np.linspace(0, y.size - 1, number // 2).round().astype(int)
    order = np.argsort(y, kind="stable")
    wanted = np.linspace(y.min(), y.max(), number - in_time.size)
    in_value = order[np.clip(np.searchsorted(y[order], wanted), 0, y.size - 1)]
    return np.unique(np.concatenate([in_time, in_value]))
