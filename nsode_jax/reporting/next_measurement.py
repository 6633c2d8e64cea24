"""What to measure next: where the laws that matter foretell different things.

Of two laws that fit the data alike the next observation decides, if it is made where
their solutions part by more than the noise. The weighted spread of the predictions is the
first term of the expected gain of information (Box and Hill 1967, Technometrics 9).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from nsode_jax.observed.dataset import Dataset
from nsode_jax.results.formatting import time_text, value_of_range
from nsode_jax.results.result import Candidate, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LAWS = 8
_MATTERS = 0.02
"""Laws with a smaller share of the first one's probability do not matter."""

_TELLS_LITTLE = 0.5
"""Times the noise, by which one observation tells laws hardly apart."""

_TIMES, _STARTS, _STEPS = 200, 31, 40
_LEAST_NOISE = 1e-6

NoiseOf = Callable[[Float[np.ndarray, " values"]], Float[np.ndarray, " values"]]


@dataclasses.dataclass(frozen=True)
class NextMeasurement:
    """Where one more observation, or one more series, would tell laws apart.

    Differences are standard deviations of the predictions, weighted by the laws'
    probabilities, in units of the noise.

    Attributes:
      laws: number of laws that matter.
      time: when they differ most in a continuation of the (first) series, at most as long
        again as it is.
      difference: how much, at that time.
      start: the first value of a new series in which they differ most.
      start_time: after how much time they do so.
      start_difference: how much.
      span: width of the range of the values.
      times: where the predictions were compared, shape [times].
      differences: at each of them, shape [times]; NaN where fewer than two laws have a
        solution.
    """

    laws: int
    time: float
    difference: float
    start: float
    start_time: float
    start_difference: float
    span: float
    times: Float[np.ndarray, " times"] = dataclasses.field(compare=False)
    differences: Float[np.ndarray, " times"] = dataclasses.field(compare=False)

    def __str__(self) -> str:
        most = max(self.difference, self.start_difference)
        if most < _TELLS_LITTLE:
            return (
                f"{self.laws} laws matter; no single observation would decide between them: they "
                f"differ by {_factor(most)} times the noise at most."
            )
        elapsed = float(np.ptp(self.times))
        at, after = (
            time_text(float(value_of_range(time, elapsed))) for time in (self.time, self.start_time)
        )
        text = (
            f"{self.laws} laws matter; they differ most at t = {at}, "
            f"by {_factor(self.difference)} times the noise"
        )
        if self.start_difference > 1.2 * self.difference:
            text += (
                f"; in a new series from y = {value_of_range(self.start, self.span)}, after "
                f"{after}, by {_factor(self.start_difference)} times"
            )
        return f"{text}."


def next_measurement(result: Result) -> NextMeasurement | None:
    """What would decide between the candidates that matter.

    Args:
      result: what was found; the first of its series is continued.

    Returns:
      The times and the initial value where their predictions differ most relative to the
      noise; None if only one law matters, or the others have no solutions to compare.
    """
    laws = [
        candidate
        for candidate in result.candidates
        if candidate.probability >= _MATTERS * result.best.probability
        and np.isfinite(candidate.residual_rms)
    ][:_MOST_LAWS]
    if len(laws) < 2:
        return None
    series = result.trajectory
    noise = _noise_of(result)
    first, last = float(series.t[0]), float(series.t[-1])
    times = np.linspace(first, 2 * last - first, _TIMES)
    differences = _differences(laws, [law.solution(times) for law in laws], noise)
    if not np.isfinite(differences).any():
        return None
    at = int(np.nanargmax(differences))
    start, after, most = _best_start(laws, result, last - first, noise)
    return NextMeasurement(
        laws=len(laws),
        time=float(times[at]),
        difference=float(differences[at]),
        start=start,
        start_time=after,
        start_difference=most,
        span=float(np.ptp(Dataset(result.trajectories).y)),
        times=times,
        differences=differences,
    )


def draw_next(
    axes: Axes, advice: NextMeasurement, last: float, time_name: str, of: str = ""
) -> None:
    """Draws how much the laws that matter differ over time.

    Args:
      axes: where to.
      advice: what is drawn.
      last: time of the last observation.
      time_name: of the axis.
      of: what the last observation is one of.
    """
    axes.plot(advice.times, advice.differences, color="#0072b2")
    axes.plot(advice.time, advice.difference, "o", color="#d55e00", label="tells most")
    axes.axvline(last, color="0.6", ls=":", label=f"last observation{of}")
    axes.axhline(1.0, color="0.6", ls="--", lw=1, label="the noise")
    axes.set_ylim(0.0, None)
    axes.set_xlabel(time_name, parse_math=False)
    axes.set_ylabel("difference of predictions / noise")
    axes.legend(frameon=False)


def _best_start(
    laws: Sequence[Candidate], result: Result, span: float, noise: NoiseOf
) -> tuple[float, float, float]:
    """First value, time after it and difference of the series that would tell most."""
    low = min(float(each.y.min()) for each in result.trajectories)
    high = max(float(each.y.max()) for each in result.trajectories)
    margin = (high - low) / 2
    # What was never negative may not be able to.
    below = low - margin if low < 0 else max(low - margin, low / 10)
    after = np.linspace(0.0, span, _STEPS)
    best = (low, 0.0, 0.0)
    for start in np.linspace(below, high + margin, _STARTS):
        curves = [law.predict(after, float(start)) for law in laws]
        differences = _differences(laws, curves, noise)
        if np.isfinite(differences).any():
            at = int(np.nanargmax(differences))
            best = max(best, (float(start), float(after[at]), float(differences[at])), key=_last)
    return best


def _last(entry: tuple[float, float, float]) -> float:
    return entry[-1]


def _differences(
    laws: Sequence[Candidate], curves: Sequence[Float[np.ndarray, " times"]], noise: NoiseOf
) -> Float[np.ndarray, " times"]:
    """Weighted standard deviation of the curves in units of the noise, shape [times]."""
    values = np.array(curves)
    weights = np.array([law.probability for law in laws])[:, None] * np.isfinite(values)
    values = np.where(np.isfinite(values), values, 0.0)
    # The mean of two laws or more; one alone differs from nobody.
    several = (weights > 0).sum(axis=0) > 1
    total = np.where(several, weights.sum(axis=0), np.nan)
    mean = (weights * values).sum(axis=0) / total
    return np.sqrt((weights * (values - mean) ** 2).sum(axis=0) / total) / noise(mean)


def _noise_of(result: Result) -> NoiseOf:
    """The standard deviation of a measurement, by the value."""
    spread, scale = max(float(np.ptp(each.y)) for each in result.trajectories), result.noise_scale
    rms = max(result.best.residual_rms, _LEAST_NOISE * (spread if scale.linear else scale.factor))
    return lambda y: rms / scale.slope(y)


def _factor(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


__all__ = ["NextMeasurement", "draw_next", "next_measurement"]
