"""From records to batches: corruption, IEEE-754 words, two-hot targets, Grain.

    record source -> shuffle -> repeat -> corrupt and encode -> share -> batch

The corruption of a record is drawn anew in every epoch, and the iterator's
position is saved with each checkpoint. Grain works backwards from the batch that is
asked for, so a process reads and encodes its share alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nsode_jax.data.encode import ExampleFormat
from nsode_jax.data.examples import corrupted_example, points_to_words
from nsode_jax.data.records import features_to_record
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.system.extras import extra

with extra("train", "reading a stored data set"):
    import grain


class CorruptAndEncode(grain.transforms.RandomMap):
    """TFDS features of a record --> one training example."""

    def __init__(self, form: ExampleFormat, corruption: CorruptionConfig, vocabulary: Vocabulary):
        self._form, self._corruption, self._vocabulary = form, corruption, vocabulary

    def random_map(
        self, element: dict[str, Any], rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """`points`, `mask`, `low` and `fraction` of a record."""
        record = features_to_record(element, self._vocabulary.system)
        return corrupted_example(record, self._form, self._corruption, self._vocabulary, rng)


def batches(
    source: Sequence[dict[str, Any]],
    form: ExampleFormat,
    corruption: CorruptionConfig,
    *,
    batch_size: int,
    seed: int,
    repeat: bool = True,
    threads: int = 1,
    process: int = 0,
    processes: int = 1,
    vocabulary: Vocabulary | None = None,
) -> grain.IterDataset:
    """Batches of examples from a random-access source of records.

    Args:
      source: feature dictionaries, as from `records.open_split`.
      form: shapes of an example.
      corruption: what is done to the clean solutions.
      batch_size: examples per batch of all processes together; the last, smaller
        batch is dropped.
      seed: of the order and of the corruption.
      repeat: go through the source for ever, reshuffled each time.
      threads: that read and encode ahead.
      process: number of this process, which gets every n-th row of each batch.
      processes: how many share the batches; divides batch_size.
      vocabulary: the paper's by default.

    Returns:
      Dictionaries of `words` [batch, points, channels, 2], `mask` [batch,
      points], `low` and `fraction` [batch, length].

    Raises:
      ValueError: if the source has fewer records than a batch.
    """
    if len(source) < batch_size:
        raise ValueError(
            f"{len(source)} records are fewer than a batch of {batch_size}; generate more, or set "
            "training.batch_size lower"
        )
    dataset = grain.MapDataset.source(source).seed(seed).shuffle()
    if repeat:
        dataset = dataset.repeat()
    encode = CorruptAndEncode(form, corruption, vocabulary or Vocabulary())
    dataset = dataset.random_map(encode)
    # After the random numbers, which Grain draws from the place of a record in the order
    # of all. Whole batches only: all processes must have the same number of them.
    whole = len(dataset) - len(dataset) % batch_size
    dataset = dataset.slice(slice(process, whole, processes))
    dataset = dataset.batch(batch_size // processes).map(points_to_words)
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4 * threads)
    return dataset.to_iter_dataset(options)
