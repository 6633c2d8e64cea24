"""The data of a discovery: the series of one law, and what is asked of all of them at once."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.frame import Frame
from nsode_jax.observed.noise_scale import NoiseScale, scale_of
from nsode_jax.observed.smoothing import noise_of_neighbours, range_of

_DECIMALS = 7
"""Of the largest value, within which a step of rounding is looked for."""

_ON_THE_STEP = 1e-6

_NEAR = 10.0
"""Ranges of the values from 0 to which they are near it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Series that follow one law, each with an initial value of its own.

    What is derived from them is computed once.

    Attributes:
      trajectories: at least one, in the units in which laws are looked for.
      limits: values of which only that is known, for each series; () for none at all.
      frame: what is known of the law; laws that are fitted are the unknown part then.
    """

    trajectories: tuple[Trajectory, ...]
    limits: tuple[Limits, ...] = ()
    frame: Frame | None = None

    @classmethod
    def of(
        cls,
        trajectories: Sequence[Trajectory],
        limits: Sequence[Limits] = (),
        frame: Frame | None = None,
    ) -> Dataset:
        """The data, times counted from each series' first: laws do not know the time."""
        starts = [s.t[0] for s in trajectories]
        return cls(
            tuple(dataclasses.replace(s, t=s.t - s.t[0]) for s in trajectories),
            tuple(limit.rescaled(t0, 1.0, 0.0, 1.0) for limit, t0 in zip(limits, starts)),
            frame,
        )

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.trajectories)

    def __len__(self) -> int:
        return len(self.trajectories)

    def split(self, values: Float[np.ndarray, " observations"]) -> list[Float[np.ndarray, " time"]]:
        """Values of all observations, by series."""
        return np.split(values, self._ends)

    @property
    def rows(self) -> list[Int[np.ndarray, " time"]]:
        """Where the observations of each series stand among all."""
        return np.split(np.arange(self.count), self._ends)

    @property
    def _ends(self) -> Int[np.ndarray, " ends"]:
        """Where one series ends and the next begins."""
        return np.cumsum([len(series) for series in self])[:-1]

    def with_noise(self, noise: Float[np.ndarray, " observations"]) -> Dataset:
        """The same with relative standard deviations of the values."""
        pairs = zip(self, self.split(noise), strict=True)
        series = tuple(dataclasses.replace(one, noise=part) for one, part in pairs)
        return dataclasses.replace(self, trajectories=series)

    @functools.cached_property
    def y(self) -> Float[np.ndarray, " observations"]:
        """The values of all series, one after the other."""
        return np.concatenate([trajectory.y for trajectory in self.trajectories])

    @functools.cached_property
    def weights(self) -> Float[np.ndarray, " observations"]:
        """Measurement weights: what residuals are multiplied by."""
        return np.concatenate([trajectory.weights for trajectory in self.trajectories])

    @property
    def sigma(self) -> float | None:
        """Known standard deviation of a measurement whose weight is 1, in units of y, or None."""
        return self.trajectories[0].sigma

    @property
    def count(self) -> int:
        """Number of observations."""
        return self.y.size

    @property
    def low(self) -> float:
        """The smallest value; next to 0 where noise may have put what is more below it."""
        return self._range[0]

    @property
    def high(self) -> float:
        """The largest value; next to 0 where noise may have put what is less above it."""
        return self._range[1]

    @functools.cached_property
    def _range(self) -> tuple[float, float]:
        return range_of(self.y, max(noise_of_neighbours(one.t, one.y) for one in self))

    @functools.cached_property
    def size(self) -> float:
        """The largest magnitude of a value."""
        return float(np.abs(self.y).max())

    @property
    def resolution(self) -> float:
        """The largest magnitude, or that below which noise hides a value, if they span decades.

        What solvers must be exact to, but for their tolerance.
        """
        return min(self.size, self.noise_scale.level)

    @functools.cached_property
    def nearness(self) -> float:
        """Below 1 for values far from 0, by what solutions must be more exact than beside them.

        What counts are their changes, the range of a series.
        """
        widest = max(float(np.ptp(series.y)) for series in self)
        return min(1.0, _NEAR * widest / self.size) or 1.0

    @functools.cached_property
    def spread(self) -> float:
        """Standard deviation about the mean of each series, in units of y.

        Values count as precisely as they were measured, here and in residuals.
        """
        squares = 0.0
        for trajectory in self.trajectories:
            weights = trajectory.weights
            mean = np.average(trajectory.y, weights=weights**2)
            squares += float(((weights * (trajectory.y - mean)) ** 2).sum())
        return math.sqrt(squares / self.count) or 1.0

    @functools.cached_property
    def noise_scale(self) -> NoiseScale:
        """The scale in which the values are alike noisy; that of y unless noise spans decades."""
        counted = self.weights > 0
        return scale_of(self.y[counted], 1.0 / self.weights[counted])

    def noise_at(self, values: Float[np.ndarray, " values"]) -> Float[np.ndarray, " values"]:
        """The relative standard deviation of other values, as that of observations of their size.

        That of the largest beyond them, unless the noise is known to grow with the values.
        """
        scale = self.noise_scale
        if not scale.linear:
            return scale.size(values) / scale.factor
        counted = np.flatnonzero(self.weights > 0)
        order = counted[np.argsort(np.abs(self.y[counted]))]
        return np.interp(np.abs(values), np.abs(self.y[order]), 1.0 / self.weights[order])

    @functools.cached_property
    def rounding(self) -> float:
        """What rounding alone leaves of a residual, in units of y; 0 if none is seen.

        Measured values are often rounded: 9.6, 18.3, 29.0 say nothing below 0.03.
        """
        # From the coarsest step that could matter down.
        first = math.floor(math.log10(self.size))
        for exponent in range(first, first - _DECIMALS, -1):
            steps = self.y / 10.0**exponent
            if np.abs(steps - np.round(steps)).max() < _ON_THE_STEP:
                return 10.0**exponent / math.sqrt(12.0)
        return 0.0

    def whole(self, law: Expression) -> Expression:
        """The law that solutions follow: with what is known, if anything is."""
        return law if self.frame is None else self.frame.law(law)

    def values(self, number: int) -> Float[np.ndarray, " values"]:
        """Values over the observed range, evenly spaced in the scale of their noise."""
        scale = self.noise_scale
        low, high = scale.forward(np.array([self.low, self.high]))
        return scale.inverse(np.linspace(low, high, number))

    def telling(
        self, rates: Float[np.ndarray, " values"], y: Float[np.ndarray, " values"]
    ) -> Float[np.ndarray, " values"]:
        """Rates of change at some values, in the scale of their noise: as the data tell them."""
        return rates * self.noise_scale.slope(y)
