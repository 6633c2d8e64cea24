"""Endless fresh examples from a bank of skeletons or from the prior, nothing stored.

    bank, prior -> constants, initial values, solutions -> corrupt and encode -> batches

A chunk of some batches is a function of the seed and its number alone, so the
examples do not depend on how many worker processes make them, and the position
is the number of the next batch.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.encode import ExampleFormat
from nsode_jax.data.examples import Example, corrupted_example, points_to_words
from nsode_jax.data.generate import GenerationConfig, draw_records, settings, stream
from nsode_jax.data.skeletons import draw_fresh
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.expressions.coupled import SystemSkeleton
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.system.workers import Workers

_BATCHES_PER_CHUNK = 8
_MAX_BARREN = 2000


@dataclasses.dataclass(frozen=True)
class OnlineConfig:
    """All that decides the examples.

    Attributes:
      bank: file or name of a skeleton bank; its first `generation.num_skeletons`
        skeletons are used. Empty: every skeleton is drawn from the prior.
      generation: distribution of constants, initial values and durations; how many
        equations are fresh laws instead.
      corruption: what is done to the clean solutions.
      form: shapes of an example.
      split: `train` or `validation`, by skeleton.
      batch_size: examples per batch.
      seed: of all random numbers.
      process: of several that draw different examples from one seed.
    """

    bank: str
    generation: GenerationConfig
    corruption: CorruptionConfig
    form: ExampleFormat
    split: str
    batch_size: int
    seed: int
    process: int = 0


def skeletons_of(bank: SkeletonBank, config: OnlineConfig) -> list[tuple[str, int]]:
    """The skeletons that examples are drawn from, and how many sets of constants each gets.

    Of the first `generation.num_skeletons` of the bank these are those of the split whose
    targets have room. Where a share of the equations are fresh laws, the bank stands for the
    trees of the prior beside them: skeletons of more than `prior.max_operators` operators, of
    which a bank of another prior may hold half its skeletons, are left out.
    """
    generation = config.generation
    work = bank.first(generation.num_skeletons).work(generation, config.split)
    most = generation.prior.max_operators if generation.fresh_law_share else math.inf
    return [
        (key, sets)
        for key, sets in work
        if key.count(" ") + 1 < config.form.max_length and _operators(key) <= most
    ]


class OnlineBatches(Iterator[Example]):
    """An endless iterator over batches, as `pipeline.batches` yields them.

    `words` [batch, points, channels, 2], `mask` [batch, points], `low` and
    `fraction` [batch, length].
    """

    def __init__(self, config: OnlineConfig, processes: int | None = None):
        """
        Args:
          config: what to draw.
          processes: worker processes; all cores by default, 0 works in this one.

        Raises:
          FileNotFoundError: if there is no such bank.
          ValueError: if the bank is damaged, is of other systems, or has no skeleton of the
            split.
        """
        _Drawer.of(config)  # Refuses bad settings here, not in a worker.
        self._config = config
        self._workers = Workers(processes)
        self._next = 0
        self._batches: Iterator[Example] | None = None

    def __next__(self) -> Example:
        if self._batches is None:
            self._batches = self._from(self._next)
        batch = next(self._batches)
        self._next += 1
        return batch

    @property
    def fingerprint(self) -> str:
        """Of all that decides the examples, but for the seed, the batch size and the process."""
        return _Drawer.of(self._config).fingerprint

    @property
    def source(self) -> str:
        """What skeletons the examples have, in words."""
        drawer, share = _Drawer.of(self._config), self._config.generation.fresh_law_share
        return drawer.source + (f", {share:.0%} of the examples from fresh laws" if share else "")

    def get_state(self) -> dict[str, Any]:
        """The position, as plain JSON; the same for all processes of a run."""
        return {"next_batch": self._next}

    def set_state(self, state: dict[str, Any]) -> None:
        """Moves to a position."""
        self._next, self._batches = int(state["next_batch"]), None

    def first_of(self, config: OnlineConfig, count: int) -> list[Example]:
        """The first batches of another config, drawn by the workers of this one."""
        chunks = range(math.ceil(count / _BATCHES_PER_CHUNK))
        drawn = self._workers.map(functools.partial(_draw_chunk, config), chunks)
        first = list(itertools.islice(itertools.chain.from_iterable(drawn), count))
        # Workers have one task list at a time: ours, if begun, goes on from our position.
        self._batches = None
        return first

    def close(self) -> None:
        """Ends the worker processes."""
        self._workers.close()

    def _from(self, position: int) -> Iterator[Example]:
        chunk, skip = divmod(position, _BATCHES_PER_CHUNK)
        draw = functools.partial(_draw_chunk, self._config)
        chunks = self._workers.map(draw, itertools.count(chunk))
        return itertools.islice(itertools.chain.from_iterable(chunks), skip, None)


def _draw_chunk(config: OnlineConfig, chunk: int) -> list[Example]:
    return _Drawer.of(config).chunk(chunk)


class _Drawer:
    """Draws chunks; made once per process, since it holds the bank."""

    @classmethod
    @functools.lru_cache(maxsize=4)
    def of(cls, config: OnlineConfig) -> _Drawer:
        return cls(config)

    def __init__(self, config: OnlineConfig):
        self._config, self._vocabulary = config, Vocabulary.of(config.generation.system)
        if config.form.max_length <= 1:
            raise ValueError("max_length leaves no room for an expression; raise it")
        bank = SkeletonBank.load(config.bank) if config.bank else None
        system = settings(config.generation).get("system", "")
        alike = dataclasses.replace(config, process=0, batch_size=0, seed=0)
        everything = f"{alike} {bank.sha256 if bank else ''}"
        self.fingerprint = hashlib.sha256(f"{everything}{system}".encode()).hexdigest()[:16]
        self._keys, self._ends, self.source = [], [], "the prior"
        if bank:
            self._use(bank)

    def _use(self, bank: SkeletonBank) -> None:
        """Takes its skeletons from a bank."""
        config, generation = self._config, self._config.generation
        if bank.settings.get("system") != settings(generation).get("system"):
            raise ValueError(
                f"the bank {config.bank} is one of other systems than generation.system: draw "
                "one by nsode_jax.generate --bank, or train without a bank, on 'online:'"
            )
        work = skeletons_of(bank, config)
        if not work:
            raise ValueError(f"the bank {config.bank} has no skeleton for {config.split}")
        # A skeleton is drawn as often as it would get constants in a stored data set.
        self._keys = [key for key, _ in work]
        self._ends = list(itertools.accumulate(sets for _, sets in work))
        of = min(len(bank.keys), generation.num_skeletons)
        self.source = f"{len(work):,} of the first {of:,} skeletons of the bank {config.bank}"

    def chunk(self, number: int) -> list[Example]:
        config = self._config
        # Of each batch size a stream of its own: what follows the samples seen so far, in batches
        # of another size, is none of them.
        label = "online", config.split, config.batch_size, config.process, number
        rng = stream(config.seed, *label)
        size = config.batch_size * _BATCHES_PER_CHUNK
        examples: list[Example] = []
        dropped: collections.Counter[str] = collections.Counter()
        barren = 0
        while len(examples) < size:
            records, counts = draw_records(config.generation, self._skeleton(rng), rng)
            fitting = [r for r in records if len(r.skeleton.tokens) < config.form.max_length]
            examples += [
                corrupted_example(record, config.form, config.corruption, self._vocabulary, rng)
                for record in fitting
                for _ in range(config.corruption.copies)
            ]
            barren = 0 if fitting else barren + 1
            dropped += counts
            if barren == _MAX_BARREN:
                raise RuntimeError(
                    f"{barren} equations in a row gave no example ({dict(dropped)}); "
                    "loosen solver.min_range, max_value or max_derivative_error"
                )
        # Solutions of one equation come together; a chunk is mixed through.
        order = rng.permutation(len(examples))[:size]
        return [
            _batch([examples[i] for i in order[start : start + config.batch_size]])
            for start in range(0, size, config.batch_size)
        ]

    def _skeleton(self, rng: np.random.Generator) -> SystemSkeleton:
        generation, split = self._config.generation, self._config.split
        if generation.fresh_law_share and rng.random() < generation.fresh_law_share:
            return draw_fresh(generation, split, rng, laws=True)
        if not self._keys:
            return draw_fresh(generation, split, rng, laws=False)
        return generation.system.skeleton(
            self._keys[bisect.bisect(self._ends, rng.integers(self._ends[-1]))]
        )


def _operators(key: str) -> int:
    return sum(token in OPERATORS for token in key.split())


def _batch(examples: list[Example]) -> Example:
    names = examples[0]
    return points_to_words({name: np.stack([e[name] for e in examples]) for name in names})
