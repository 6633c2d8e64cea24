"""Whether a series rises and falls, which no solution of dy/dt = f(y) does."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.optimize import isotonic_regression

from nsode_jax.dynamics.trajectory import Trajectory

NO_LAW = 0.95
"""Probability that no law dy/dt = f(y) is right where a series is said to rise and fall."""

_BY_CHANCE = 0.1
_LEAST = 0.1  # Of the standard deviation of the values.
_BEYOND_NOISE, _MANY, _GROWTH = 2.0, 25, 0.25
"""So many times the noise a monotone curve misses; of more points than these by a power more, as a
drift of the noise is taken for a turn the sooner the more points follow it. Of 600 simulated
monotone series of 8 to 300 points with each of three kinds of independent noise (normal, heavy
tails, outliers) at most 1.2% are said to turn, mostly less than 0.5%; of 200 of 25 to 600 points
whose noise has an autocorrelation of 0.8 at most 2%, of 0.9 at most 9%."""
_OF_NORMAL = 0.6745  # The median of absolute values of normal noise.


def most_probably_none(trajectories: Iterable[Trajectory]) -> bool:
    """Whether no law dy/dt = f(y) explains the series: more of them turn than may by chance."""
    turning = [rises_and_falls(trajectory) for trajectory in trajectories]
    return sum(turning) > _BY_CHANCE * len(turning)


def rises_and_falls(trajectory: Trajectory) -> bool:
    """Whether every monotone curve misses the values by more than noise.

    Noise is how far each point lies from the line through its neighbours: in the root mean
    square, which a few outliers do not pass for turns, or in the median, in which jumps between
    repeated doses do not pass for noise. Of known errors of measurement it is these at least,
    however they drift.
    """
    t, y = trajectory.t, trajectory.y
    if len(y) < 3:
        return False
    share = (t[1:-1] - t[:-2]) / (t[2:] - t[:-2])
    deviation = y[1:-1] - (1 - share) * y[:-2] - share * y[2:]
    deviation = np.abs(deviation) / np.sqrt(1 + share**2 + (1 - share) ** 2)
    missed = [np.abs(isotonic_regression(y, increasing=up).x - y) for up in (True, False)]
    by_square = min(_rms(miss) for miss in missed), _rms(deviation)
    by_median = min(_typical(miss) for miss in missed), _typical(deviation)
    known = 0.0 if trajectory.errors is None else _rms(trajectory.errors)
    beyond = _BEYOND_NOISE * max(1.0, len(y) / _MANY) ** _GROWTH
    return any(
        best > _LEAST * y.std() and best > beyond * max(noise, known)
        for best, noise in (by_square, by_median)
    )


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _typical(values: np.ndarray) -> float:
    return float(np.median(values)) / _OF_NORMAL
