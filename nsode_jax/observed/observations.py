"""The data of a system: runs of the same equations, and smooth curves through each."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
from jaxtyping import Bool, Float, Int

from nsode_jax.dynamics.dop853_system import Inputs
from nsode_jax.dynamics.measured_inputs import measured_inputs
from nsode_jax.dynamics.system import System
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.noise_scale import LINEAR, NoiseScale, scale_of
from nsode_jax.observed.smoothing import SmoothCurve, smooth_curves

_PRECISE = 1e-3
"""Of the spread: what curves miss by less is no noise, but what residuals cannot be below."""


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """Quantities measured together over time.

    Attributes:
      t: strictly increasing times.
      y: measured values, finite.
      u: measured inputs, finite.
      noise_sizes: relative standard deviations of the values of each quantity, the mean of
        1 / square over all runs being 1; None where all are alike.
      input_times: at which the inputs were measured, strictly increasing; None where they are
        those of the quantities.
      holds: whether each of the inputs is held between the rows; none is if it is empty.
      exact: whether curves go through all values, as fast as these may change.
    """

    t: Float[np.ndarray, " time"]
    y: Float[np.ndarray, "time observed"]
    u: Float[np.ndarray, "rows inputs"]
    noise_sizes: Float[np.ndarray, "time observed"] | None = None
    input_times: Float[np.ndarray, " rows"] | None = None
    holds: tuple[bool, ...] = ()
    exact: bool = False

    def __len__(self) -> int:
        return self.t.size

    def quantity(self, k: int) -> Trajectory:
        """One quantity alone."""
        noise = None if self.noise_sizes is None else self.noise_sizes[:, k]
        return Trajectory(self.t, self.y[:, k], noise)

    def pieces(self, number: int) -> list[slice]:
        """The rows of so many pieces of about equal size."""
        edges = np.linspace(0, len(self), number + 1).round().astype(int)
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]

    @functools.cached_property
    def inputs(self) -> Inputs:
        """The inputs at any time: held between the rows, or curves."""
        times = self.t if self.input_times is None else self.input_times
        return measured_inputs(times, self.u, self.holds)

    @functools.cached_property
    def weights(self) -> Float[np.ndarray, "time observed"]:
        """What residuals are multiplied by."""
        return np.ones_like(self.y) if self.noise_sizes is None else 1 / self.noise_sizes

    @functools.cached_property
    def scales(self) -> tuple[NoiseScale, ...]:
        """In which each quantity is alike noisy; that of y unless its noise spans decades.

        What changes its sign is not smooth in another scale.
        """
        if self.noise_sizes is None:
            return (LINEAR,) * self.y.shape[1]
        columns = zip(self.y.T, self.noise_sizes.T, strict=True)
        return tuple(
            LINEAR if y.min() < 0.0 < y.max() else scale_of(y, sizes) for y, sizes in columns
        )

    @functools.cached_property
    def _curves(self) -> list[SmoothCurve]:
        return smooth_curves(self.t, self.y, self.weights, self.scales, self.exact)

    @property
    def noise(self) -> Float[np.ndarray, " observed"]:
        """How far the values are from the curves through them, weighted, in units of y."""
        return np.array([curve.noise for curve in self._curves])

    def states(self, t: Float[np.ndarray, " time"], order: int) -> Float[np.ndarray, "states time"]:
        """Smoothed quantities, and their velocities in a system of second order."""
        return np.stack([curve(t, degree) for degree in range(order) for curve in self._curves])


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """Runs of one system.

    Attributes:
      system: what was measured.
      runs: at least one.
    """

    system: System
    runs: tuple[Run, ...]

    def with_noise(self, sizes: Float[np.ndarray, "observations observed"]) -> Observations:
        """The same with relative standard deviations of the values, in the order of the runs."""
        sizes = sizes * np.sqrt(np.mean(sizes**-2.0, axis=0))
        ends = np.cumsum([len(run) for run in self.runs])[:-1]
        parts = zip(self.runs, np.split(sizes, ends), strict=True)
        runs = tuple(dataclasses.replace(run, noise_sizes=part) for run, part in parts)
        return dataclasses.replace(self, runs=runs)

    @functools.cached_property
    def through_values(self) -> Observations:
        """The same with curves through all values."""
        runs = tuple(dataclasses.replace(run, exact=True) for run in self.runs)
        return dataclasses.replace(self, runs=runs)

    @functools.cached_property
    def y(self) -> Float[np.ndarray, "observations observed"]:
        """The values of all runs, one after the other."""
        return np.concatenate([run.y for run in self.runs])

    @functools.cached_property
    def weights(self) -> Float[np.ndarray, "observations observed"]:
        """What residuals are multiplied by, likewise."""
        return np.concatenate([run.weights for run in self.runs])

    @functools.cached_property
    def count(self) -> int:
        """Number of times at which each quantity was measured, in all runs."""
        return sum(map(len, self.runs))

    @functools.cached_property
    def changing(self) -> Bool[np.ndarray, "runs observed"]:
        """In which runs each quantity changes: where it rests it does not show its noise."""
        changing = np.array([np.ptp(run.y, axis=0) > 0.0 for run in self.runs])
        return changing | ~changing.any(axis=0)

    @functools.cached_property
    def counts(self) -> Int[np.ndarray, " observed"]:
        """Number of observations of each quantity, in the runs in which it changes."""
        return np.array([len(run) for run in self.runs]) @ self.changing

    @functools.cached_property
    def span(self) -> float:
        """The duration of the longest run."""
        return max(float(np.ptp(run.t)) for run in self.runs)

    @functools.cached_property
    def spread(self) -> Float[np.ndarray, " observed"]:
        """Standard deviation of each quantity about its mean in each run, weighted."""
        squares = np.zeros(self.runs[0].y.shape[1])
        for run in self.runs:
            mean = np.average(run.y, axis=0, weights=run.weights**2)
            squares += ((run.weights * (run.y - mean)) ** 2).sum(axis=0)
        return np.sqrt(squares / self.counts)

    @functools.cached_property
    def noise(self) -> Float[np.ndarray, " observed"]:
        """Root mean square of the runs' noise."""
        squares = sum(len(run) * run.noise**2 for run in self.runs)
        return np.sqrt(squares / self.counts)

    @property
    def precision(self) -> Float[np.ndarray, " observed"]:
        """Share of each quantity's spread to which it is known to be exact; 0 where noise is."""
        share = self.noise / self.spread
        return np.where(share < _PRECISE, share, 0.0)

    @functools.cached_property
    def state_size(self) -> Float[np.ndarray, " states"]:
        """The largest magnitude of each state, smoothed; not 0."""
        order = self.system.order
        sizes = [np.abs(run.states(run.t, order)).max(axis=1) for run in self.runs]
        largest = np.max(sizes, axis=0)
        return np.where(largest > 0.0, largest, 1.0)

    def resolution(self, run: Run) -> Float[np.ndarray, " states"]:
        """The largest magnitudes of the states, or those below which noise hides a value."""
        levels = self.state_size.copy()
        for k, scale in enumerate(run.scales):
            levels[k] = min(levels[k], scale.level)
        return levels

    def rms(self, law: Expression) -> float:
        """Root mean square of a law, or of a term, along the data; 0 if it is not finite."""
        with np.errstate(all="ignore"):
            value = float(np.sqrt(np.mean(law.evaluate(*self.along) ** 2)))
        return value if math.isfinite(value) else 0.0

    @functools.cached_property
    def along(self) -> Float[np.ndarray, "variables observations"]:
        """All variables of the equations at the times of the observations."""
        return np.concatenate([self.points(run, run.t) for run in self.runs], axis=1)

    def points(
        self, run: Run, t: Float[np.ndarray, " time"]
    ) -> Float[np.ndarray, "variables time"]:
        """Values of all variables of the equations at some times of a run."""
        time = t[None] if self.system.explicit_time else np.empty((0, t.size))
        return np.concatenate([run.states(t, self.system.order), run.inputs(t), time])
