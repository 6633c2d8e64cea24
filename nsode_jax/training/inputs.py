"""Where training gets its batches: a stored data set, or fresh examples from a bank.

Both yield the same dictionaries and say and take their position as plain JSON. Of
several processes each reads its share of every batch:

- of a stored data set all processes go through one random order, and each reads
  every n-th row, so the batch of a step is the same for any number of processes;
  but one alone can make batches of like length of them (`length_multiple`);
- from a bank each process draws a stream of its own, since drawing takes too long to
  draw what others need. Runs on another number of processes see other examples.

Either way the position is the same in every process.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from nsode_jax.data.examples import Example
from nsode_jax.data.generate import settings
from nsode_jax.data.online import OnlineBatches, OnlineConfig
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.training.config import Config
from nsode_jax.training.like_length import LikeLength
from nsode_jax.training.stream import Positioned, Stream

ONLINE = "online:"
"""Begins the name of a data set that is drawn as training goes: from the bank of that name,
`online:base`, or, with none, from the prior alone."""


class Inputs:
    """The batches of a training run; as a context manager it ends its worker processes."""

    def __init__(self, config: Config, process: int = 0, processes: int = 1):
        """
        Args:
          config: what is drawn or read, in what form, and how it is made into batches.
          process: number of this process.
          processes: how many train together.

        Raises:
          ValueError: if the processes do not divide a batch.
        """
        if config.training.batch_size % processes:
            raise ValueError(
                f"{processes} processes do not divide a batch of {config.training.batch_size}; set "
                "training.batch_size to a multiple"
            )
        self._config, self._process, self._processes = config, process, processes
        self._online: list[OnlineBatches] = []
        self._validation: dict[tuple[int, int], list[Example]] = {}

    @property
    def _is_online(self) -> bool:
        return self._config.training.dataset.startswith(ONLINE)

    @property
    def source(self) -> str:
        """What the examples are of, in words, once `training` has been called."""
        return self._online[0].source if self._online else self._config.training.dataset

    def training(self, seed: int, first: int = 0) -> Stream:
        """Endless batches of the training split.

        Args:
          seed: of their order, and of what is drawn.
          first: number of the first one; those before it are left out.

        Raises:
          FileNotFoundError: if the data set or the bank is not there.
          ValueError: if it holds too little, is damaged, or does not fit the model.
        """
        config = self._config.training
        data: dict[str, str | int] = {
            "training.dataset": config.dataset,
            "training.seed": seed,
            "training.batch_size": config.batch_size,
        }
        if self._is_online:
            online = self._train_stream(seed)
            online.set_state({"next_batch": first})
            data["number of processes"] = self._processes
            data["generation, corruption, model and bank"] = online.fingerprint
            batches: Positioned = online
        else:
            batches = iter(self._stored("train", seed, repeat=True))
            batches.set_state({"next_index": first})
            data["contents, corruption and model"] = self._stored_fingerprint()
            if config.length_multiple:
                data["number of processes"] = self._processes
        # Several processes must take steps of one shape, and each sees its own share only.
        if config.length_multiple and self._processes == 1:
            batches = LikeLength(batches, config.length_multiple)
        return Stream(batches, data)

    def validation(self, seed: int, batches: int) -> Iterator[Example]:
        """The same batches of the validation split every time it is called.

        From a bank they are drawn at the first call, by the workers of the training.
        """
        if self._is_online:
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
        workers = self._config.training.data_workers
        self._online.append(OnlineBatches(self._fresh("train", seed), workers))
        return self._online[-1]

    def _fresh(self, split: str, seed: int) -> OnlineConfig:
        config = self._config
        return OnlineConfig(
            config.training.dataset.removeprefix(ONLINE),
            config.generation,
            config.corruption,
            config.model.example_format,
            split,
            config.training.batch_size // self._processes,
            seed,
            self._process,
        )

    @functools.cached_property
    def _stored_in(self) -> str:
        """The folder of the data set, which fits the model: no record ends the run later."""
        from nsode_jax.data.records import generated_with, longest_target

        config, name = self._config, self._config.training.dataset
        folder = str(Path(config.training.data_dir).expanduser())
        generated = generated_with(name, folder, config.generation)
        if generated.get("system") != settings(config.generation).get("system"):
            raise ValueError(
                f"the data set {name} is one of other systems than generation.system: generate "
                "one anew"
            )
        longest, room = longest_target(name, folder, generated), config.model.max_length
        if longest > room:
            raise ValueError(
                f"model.max_length is {room}, but the data set {name} needs {longest}, of which "
                f"one is for the end; raise model.max_length to that, or generate one with "
                f"generation.max_complexity {room - 1}"
            )
        return folder

    def _stored_fingerprint(self) -> str:
        """Of all that decides the examples of a stored data set, but for order and batch size."""
        from nsode_jax.data.records import contents_of

        config = self._config
        contents = contents_of(config.training.dataset, self._stored_in)
        everything = f"{contents} {config.corruption} {config.model.example_format}"
        return hashlib.sha256(everything.encode()).hexdigest()[:16]

    def _stored(self, split: str, seed: int, repeat: bool):
        # Imported late: drawing from a bank needs neither TFDS nor Grain.
        from nsode_jax.data.pipeline import batches
        from nsode_jax.data.records import open_split

        config, training = self._config, self._config.training
        return batches(
            open_split(training.dataset, split, self._stored_in),
            config.model.example_format,
            config.corruption,
            batch_size=training.batch_size,
            seed=seed,
            repeat=repeat,
            threads=max(training.data_workers, 1),
            process=self._process,
            processes=self._processes,
            vocabulary=Vocabulary.of(config.generation.system),
        )
