"""The data of a system: runs of the same equations, and smooth curves through each."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.dop853_system import Inputs
from nsode_jax.dynamics.system import System, measured_inputs
from nsode_jax.fitting.smoothing import SmoothCurve, smooth_curves


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """Quantities measured together over time.

    Attributes:
      t: strictly increasing times.
      y: measured values, finite.
      u: measured inputs at these times, finite.
      noise_sizes: standard deviations of the values relative to each other; None where all
        values of a quantity are equally precise.
    """

    t: Float[np.ndarray, " time"]
    y: Float[np.ndarray, "time observed"]
    u: Float[np.ndarray, "time inputs"]
    noise_sizes: Float[np.ndarray, "time observed"] | None = None

    def __len__(self) -> int:
        return self.t.size

    def pieces(self, number: int) -> list[slice]:
        """The rows of so many pieces of about equal size."""
        edges = np.linspace(0, len(self), number + 1).round().astype(int)
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]

    @functools.cached_property
    def inputs(self) -> Inputs:
        """The inputs as curves."""
        return measured_inputs(self.t, self.u)

    @functools.cached_property
    def weights(self) -> Float[np.ndarray, "time observed"]:
        """What residuals are multiplied by, of mean square 1 for each quantity."""
        if self.noise_sizes is None:
            return np.ones_like(self.y)
        weights = 1 / self.noise_sizes
        return weights / np.sqrt(np.mean(weights**2, axis=0))

    @functools.cached_property
    def _curves(self) -> list[SmoothCurve]:
        return smooth_curves(self.t, self.y, self.weights)

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

    @functools.cached_property
    def count(self) -> int:
        """Number of times at which each quantity was measured, in all runs."""
        return sum(map(len, self.runs))

    @functools.cached_property
    def spread(self) -> Float[np.ndarray, " observed"]:
        """Standard deviation of each quantity about its mean in each run, weighted."""
        squares = np.zeros(self.runs[0].y.shape[1])
        for run in self.runs:
            mean = np.average(run.y, axis=0, weights=run.weights**2)
            squares += ((run.weights * (run.y - mean)) ** 2).sum(axis=0)
        return np.sqrt(squares / self.count)

    @functools.cached_property
    def noise(self) -> Float[np.ndarray, " observed"]:
        """Root mean square of the runs' noise."""
        squares = sum(len(run) * run.noise**2 for run in self.runs)
        return np.sqrt(squares / self.count)

    @functools.cached_property
    def state_size(self) -> Float[np.ndarray, " states"]:
        """The largest magnitude of each state, smoothed."""
        order = self.system.order
        return np.max([np.abs(run.states(run.t, order)).max(axis=1) for run in self.runs], axis=0)

    def points(
        self, run: Run, t: Float[np.ndarray, " time"]
    ) -> Float[np.ndarray, "variables time"]:
        """Values of all variables of the equations at some times of a run."""
        time = t[None] if self.system.explicit_time else np.empty((0, t.size))
        return np.concatenate([run.states(t, self.system.order), run.inputs(t), time])
