"""A record as a training example: corrupted, as model input, with its target."""

from __future__ import annotations

import numpy as np

from nsode_jax.data.bits import float_to_words
from nsode_jax.data.encode import ExampleFormat, trajectory_points
from nsode_jax.data.generate import Record
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig, corrupt

Example = dict[str, np.ndarray]


def corrupted_example(
    record: Record,
    form: ExampleFormat,
    corruption: CorruptionConfig,
    vocabulary: Vocabulary,
    rng: np.random.Generator,
) -> Example:
    """One example of a record.

    Returns:
      `points` [points, channels], `mask` [points], `low` and `fraction` [length].

    Raises:
      NotEncodable: if the equation is too long for the target.
    """
    # A law that depends on the time is another one where time begins elsewhere.
    shift = not vocabulary.system.explicit_time
    t, y = corrupt(record.t, record.y, form.num_points, corruption, rng, from_zero=shift)
    points, mask = trajectory_points(t, y, form)
    low, fraction = vocabulary.encode_system(record.laws, form.max_length)
    return {"points": points, "mask": mask, "low": low, "fraction": fraction}


def points_to_words(batch: Example) -> Example:
    """Replaces the `points` of a batch by the `words` that the model reads."""
    points = batch.pop("points")
    return {"words": float_to_words(points), **batch}
