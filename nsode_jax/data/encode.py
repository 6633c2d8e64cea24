"""A trajectory as model input, for training and for discovery alike."""

from __future__ import annotations

import dataclasses

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


def encode_trajectory(
    t: Float[np.ndarray, "time"], y: Float[np.ndarray, "time"], form: ExampleFormat
) -> tuple[UInt32[np.ndarray, "points channels 2"], Bool[np.ndarray, "points"]]:
    """Model input of a trajectory.

    A trajectory with more than `num_points` points is thinned evenly; a shorter
    one is filled up with NaN and masked.

    Args:
      t, y: increasing times and values, shape [time], at least two.
      form: shapes.

    Returns:
      IEEE-754 words of (t, y[, dy/dt]) and which points are observed. dy/dt is
      the second-order finite difference on the given times.
    """
    if t.size > form.num_points:
        index = np.round(np.linspace(0, t.size - 1, form.num_points)).astype(int)
        t, y = t[index], y[index]
    columns = [t, y]
    if form.derivative_channel:
        columns.append(np.gradient(y, t))
    points = np.full((form.num_points, len(columns)), np.nan)
    points[: t.size] = np.stack(columns, axis=-1)
    return float_to_words(points), np.arange(form.num_points) < t.size
