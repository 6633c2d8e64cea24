"""A trajectory as model input, for training and for discovery alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import Bool, Float, UInt32

from nsode_jax.data.bits import float_to_words


@dataclasses.dataclass(frozen=True)
class ExampleFormat:
    """Shapes of an example.

    Attributes:
      num_points: most points of a trajectory.
      max_length: positions of a target.
      derivative_channel: whether dy/dt is a channel too.
      num_states: quantities for which there are channels.
    """

    num_points: int
    max_length: int
    derivative_channel: bool
    # Always that of the equations, whose text in a run's settings says it.
    num_states: int = dataclasses.field(default=1, repr=False)

    @property
    def channels(self) -> int:
        """Numbers read per point: t, every quantity and perhaps its dy/dt."""
        return 1 + self.num_states * (2 if self.derivative_channel else 1)


def trajectory_points(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, "time ..."], form: ExampleFormat
) -> tuple[Float[np.ndarray, "points channels"], Bool[np.ndarray, " points"]]:
    """A trajectory as a fixed number of points.

    A trajectory with more than `num_points` points is thinned evenly; a shorter
    one is filled up with NaN and masked. What is missing is NaN, whose bits no number has:
    single values, and the channels of quantities that a smaller system does not have.

    Args:
      t: increasing times, shape [time], at least two.
      y: values, shape [time], of several quantities [time, states]; NaN where one is missing.
      form: shapes.

    Returns:
      (t, y_1, ..., y_K[, dy_1/dt, ..., dy_K/dt]) in float64 and which points are
      observed. dy/dt is the second-order finite difference on the given times.

    Raises:
      ValueError: if there are more quantities than channels.
    """
    if t.size > form.num_points:
        index = np.round(np.linspace(0, t.size - 1, form.num_points)).astype(int)
        t, y = t[index], y[index]
    y = y.reshape(t.size, -1)
    if y.shape[1] > form.num_states:
        raise ValueError(
            f"{y.shape[1]} quantities, but the network reads no more than {form.num_states}"
        )
    points = np.full((form.num_points, form.channels), np.nan)
    points[: t.size, 0], points[: t.size, 1 : 1 + y.shape[1]] = t, y
    if form.derivative_channel:
        for k, column in enumerate(y.T):
            there = np.isfinite(column)
            if there.sum() > 1:
                slope = points[: t.size, 1 + form.num_states + k]
                slope[there] = np.gradient(column[there], t[there])
    return points, np.arange(form.num_points) < t.size


def encode_trajectories(
    trajectories: Iterable[tuple[Float[np.ndarray, " _"], Float[np.ndarray, "_ ..."]]],
    form: ExampleFormat,
) -> tuple[UInt32[np.ndarray, "batch points channels 2"], Bool[np.ndarray, "batch points"]]:
    """Model input of pairs (t, y): IEEE-754 words and masks, see `trajectory_points`."""
    points, masks = zip(*(trajectory_points(t, y, form) for t, y in trajectories), strict=True)
    return float_to_words(np.stack(points)), np.stack(masks)
