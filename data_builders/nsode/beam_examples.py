"""The examples of the builder `nsode` as an Apache Beam transform (extra `beam`)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import apache_beam as beam

from nsode_jax.data.generate import GenerationConfig, skeleton_records
from nsode_jax.data.records import record_to_features
from nsode_jax.system.workers import Workers

Work = tuple[str, int]
"""The key of a skeleton and the number of its sets of constants."""


class _SolveSkeletons(beam.DoFn):
    """(number, work) --> (key, example) of each of its records.

    Beam works in threads, where SymPy's limits of processor time do not hold (a
    signal reaches the main thread only). So every instance keeps a process of its
    own, and the records are those of `Builder` without Beam.
    """

    def __init__(self, config: GenerationConfig):
        self._solve = functools.partial(skeleton_records, config)
        self._system = config.system

    def setup(self) -> None:
        self._workers = Workers(1)

    def process(self, numbered: tuple[int, Work]) -> Iterator[tuple[str, dict[str, Any]]]:
        number, work = numbered
        for records, _ in self._workers.map(self._solve, [work]):
            for i, record in enumerate(records):
                yield f"{number}_{i}", record_to_features(record, self._system)

    def teardown(self) -> None:
        self._workers.close()


def beam_examples(config: GenerationConfig, work: list[Work]) -> beam.PTransform:
    """The examples of a split, for `tfds.core.GeneratorBasedBuilder`."""
    return beam.Create(list(enumerate(work))) | beam.ParDo(_SolveSkeletons(config))
