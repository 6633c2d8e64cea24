"""Where training gets its batches: a stored data set, or fresh examples from a bank.

Both yield the same dictionaries and say and take their position as plain JSON. Of
several processes each reads its share of every batch:

- of a stored data set all processes go through one random order, and each reads
  every n-th row, so the batch of a step is the same for any number of processes;
- from a bank each process draws a stream of its own, since drawing takes too long to
  draw what others need. Runs on another number of processes see other examples.

Either way the position is the same in every process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from nsode_jax.data.encode import ExampleFormat
from nsode_jax.data.examples import Example
from nsode_jax.data.generate import GenerationConfig
from nsode_jax.data.online import OnlineBatches, OnlineConfig
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.training.like_length import LikeLength
from nsode_jax.training.stream import Positioned, Stream

ONLINE = "online:"
"""Begins the name of a data set that is drawn as training goes: from the bank of that name,
`online:base`, or, with none, from the prior alone."""


class Inputs:
    """The batches of a training run; as a context manager it ends its worker processes."""

    def __init__(
        self,
        dataset: str,
        generation: GenerationConfig,
        corruption: CorruptionConfig,
        form: ExampleFormat,
        *,
        data_dir: str,
        batch_size: int,
        workers: int,
        length_multiple: int = 0,
        process: int = 0,
        processes: int = 1,
    ):
        """
        Args:
          dataset: a TFDS data set (`nsode/small`), or `online:` and a bank or nothing.
          generation: what is drawn from a bank.
          corruption: what is done to the clean solutions.
          form: shapes of an example.
          data_dir: folder of the TFDS data set.
          batch_size: examples per batch of all processes together.
          workers: worker processes that draw from a bank, threads that read a stored
            data set; 0 draws in this process.
          length_multiple: training batches are of like length and cut to a multiple of
            so many positions, if one process trains; 0 leaves them.
          process: number of this process.
          processes: how many train together.

        Raises:
          ValueError: if the processes do not divide a batch.
        """
        if batch_size % processes:
            raise ValueError(
                f"{processes} processes do not divide a batch of {batch_size}; set "
                "training.batch_size to a multiple"
            )
        self._dataset, self._generation, self._corruption = dataset, generation, corruption
        self._form, self._batch_size, self._workers = form, batch_size, workers
        self._length_multiple = length_multiple
        self._process, self._processes = process, processes
        self._data_dir = str(Path(data_dir).expanduser())
        self._online: list[OnlineBatches] = []
        self._validation: dict[tuple[int, int], list[Example]] = {}

    def training(self, seed: int, first: int = 0) -> Stream:
        """Endless batches of the training split.

        Args:
          seed: of their order, and of what is drawn.
          first: number of the first one; those before it are left out.

        Raises:
          FileNotFoundError: if the data set or the bank is not there.
          ValueError: if it holds too little or is damaged.
        """
        data: dict[str, str | int] = {
            "training.dataset": self._dataset,
            "training.seed": seed,
            "training.batch_size": self._batch_size,
        }
        if self._dataset.startswith(ONLINE):
            online = self._train_stream(seed)
            online.set_state({"next_batch": first})
            data["number of processes"] = self._processes
            data["generation, corruption, model and bank"] = online.fingerprint
            batches: Positioned = online
        else:
            batches = iter(self._stored("train", seed, repeat=True))
            batches.set_state({"next_index": first})
        if self._length_multiple:
            # Several processes must take steps of one shape: the longest.
            alone = self._processes == 1
            multiple = self._length_multiple if alone else self._form.max_length
            batches = LikeLength(batches, multiple)
        return Stream(batches, data)

    def validation(self, seed: int, batches: int) -> Iterator[Example]:
        """The same batches of the validation split every time it is called.

        From a bank they are drawn at the first call, by the workers of the training.
        """
        if self._dataset.startswith(ONLINE):
            if (seed, batches) not in self._validation:
                training = self._online[-1] if self._online else self._train_stream(seed)
                config = self._fresh("validation", seed)
                self._validation[seed, batches] = training.first_of(config, batches)
            return iter(self._validation[seed, batches])
        return itertools.islice(self._stored("validation", seed, repeat=False), batches)

    def close(self) -> None:
        """Ends the worker processes."""
        for batches in self._online:
            batches.close()

    def __enter__(self) -> Inputs:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _train_stream(self, seed: int) -> OnlineBatches:
        self._online.append(OnlineBatches(self._fresh("train", seed), self._workers))
        return self._online[-1]

    def _fresh(self, split: str, seed: int) -> OnlineConfig:
        return OnlineConfig(
            self._dataset.removeprefix(ONLINE),
            self._generation,
            self._corruption,
            self._form,
            split,
            self._batch_size // self._processes,
            seed,
            self._process,
        )

    def _stored(self, split: str, seed: int, repeat: bool):
        # Imported late: drawing from a bank needs neither TFDS nor Grain.
        from nsode_jax.data.pipeline import batches
        from nsode_jax.data.records import open_split

        return batches(
            open_split(self._dataset, split, self._data_dir),
            self._form,
            self._corruption,
            batch_size=self._batch_size,
            seed=seed,
            repeat=repeat,
            threads=max(self._workers, 1),
            process=self._process,
            processes=self._processes,
            vocabulary=Vocabulary.of(self._generation.system),
        )
