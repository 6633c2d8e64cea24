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
      derivative_channel: whether dy/dt is a third channel.
    """

    num_points: int
    max_length: int
    derivative_channel: bool


def trajectory_points(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], form: ExampleFormat
) -> tuple[Float[np.ndarray, "points channels"], Bool[np.ndarray, " points"]]:
    """A trajectory as a fixed number of points.

    A trajectory with more than `num_points` points is thinned evenly; a shorter
    one is filled up with NaN and masked.

    Args:
      t, y: increasing times and values, shape [time], at least two.
      form: shapes.

    Returns:
      (t, y[, dy/dt]) in float64 and which points are observed. dy/dt is the
      second-order finite difference on the given times.
    """
    if t.size > form.num_points:
        index = np.round(np.linspace(0, t.size - 1, form.num_points)).astype(int)
        t, y = t[index], y[index]
    points = np.full((form.num_points, 3 if form.derivative_channel else 2), np.nan)
    points[: t.size, 0], points[: t.size, 1] = t, y
    if form.derivative_channel:
        points[: t.size, 2] = np.gradient(y, t)
    return points, np.arange(form.num_points) < t.size


def encode_trajectories(
    trajectories: Iterable[tuple[Float[np.ndarray, " time"], Float[np.ndarray, " time"]]],
    form: ExampleFormat,
) -> tuple[UInt32[np.ndarray, "batch points channels 2"], Bool[np.ndarray, "batch points"]]:
    """Model input of pairs (t, y): IEEE-754 words and masks, see `trajectory_points`."""
    points, masks = zip(*(trajectory_points(t, y, form) for t, y in trajectories), strict=True)
    return float_to_words(np.stack(points)), np.stack(masks)
