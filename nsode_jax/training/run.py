"""A run of training: where it is, and what it keeps in its workdir."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.modeling.checkpoints import TrainingCheckpoints
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.pretrained import export
from nsode_jax.modeling.transformer import Model, Params
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.inputs import Inputs
from nsode_jax.training.parallel import is_shared, replicate, unreplicate
from nsode_jax.training.run_config import changes, pretrained_params, write_config
from nsode_jax.training.step import TrainState, init_state
from nsode_jax.training.stream import Stream
from nsode_jax.training.validation import BestValidation


@dataclasses.dataclass
class RunRecord:
    """What is known of a run besides its arrays; saved with them as JSON.

    Attributes:
      best: the lowest validation loss.
      validation: metrics of the latest validation.
      samples_before: samples seen by the weights that the run started from.
    """

    best: BestValidation = dataclasses.field(default_factory=BestValidation)
    validation: dict[str, float] = dataclasses.field(default_factory=dict)
    samples_before: int = 0


@dataclasses.dataclass
class Run:
    """A run between two steps.

    Attributes:
      sections: of the config: generation, corruption, model, training.
      workdir: for the config, checkpoints and, in `weights/`, the exported weights of the best
        validation.
      model: what is trained.
      data: where the next batch comes from.
      checkpoints: in the workdir.
      step: so many are done.
      state: after them, on every device.
      record: what else is known of it.
    """

    sections: Mapping[str, Any]
    workdir: Path
    model: Model
    data: Stream
    checkpoints: TrainingCheckpoints
    step: int
    state: TrainState
    record: RunRecord

    @classmethod
    def begin(
        cls,
        sections: Mapping[str, Any],
        workdir: Path,
        model: Model,
        inputs: Inputs,
        checkpoints: TrainingCheckpoints,
    ) -> Run:
        """Goes on from the newest checkpoint, if there is one, and writes the config.

        From weights it goes on in the data behind the samples that they have seen.

        Raises:
          ValueError: if the processes do not share the workdir.
        """
        if not is_shared(workdir):
            raise ValueError(
                f"the processes do not share the workdir {workdir}: all need the same folder on "
                "a disk that all of them reach"
            )
        begun = _begin(checkpoints, sections, model, inputs, workdir)
        if jax.process_index() == 0:
            write_config(workdir, sections)
        state = replicate(begun.state)
        data, step, record = begun.data, begun.step, begun.record
        return cls(sections, workdir, model, data, checkpoints, step, state, record)

    @property
    def config(self) -> TrainingConfig:
        return self.sections["training"]

    def save(self, best: bool) -> None:
        """Saves a checkpoint, and exports the weights if they are the best."""
        on_host = unreplicate(self.state)
        if jax.process_index() == 0 and (best or not self.config.validation_batches):
            # Before the checkpoint that says so: a run killed between the two does it again.
            vocabulary = Vocabulary.of(self.sections["generation"].system)
            weights = on_host.inference_params, self.sections["model"], vocabulary
            _export(self.workdir / "weights", *weights, self._card())
        kept = {
            **dataclasses.asdict(self.record),
            "position": self.data.get_state(),
            "has_average": on_host.average is not None,
        }
        self.checkpoints.save(self.step, on_host, kept, best_step=self.record.best.step)

    def _card(self) -> dict[str, Any]:
        return {
            "dataset": self.config.dataset,
            "init_from": self.config.init_from,
            "samples_seen": self.record.samples_before + self.step * self.config.batch_size,
            "validation": self.record.validation,
        }


class _Begun(NamedTuple):
    """Where a run goes on from: fields as of `Run`, the state on the host."""

    step: int
    state: TrainState
    data: Stream
    record: RunRecord


def _begin(
    checkpoints: TrainingCheckpoints,
    sections: Mapping[str, Any],
    model: Model,
    inputs: Inputs,
    workdir: Path,
) -> _Begun:
    """From the newest checkpoint if there is one, from another run, from weights, or afresh."""
    config: TrainingConfig = sections["training"]
    if checkpoints.latest_step() is not None:
        return _go_on(checkpoints, sections, model, inputs, workdir)
    if config.branch_from:
        trunk = Path(config.branch_from)
        others = TrainingCheckpoints(trunk / "checkpoints", read_only=True)
        with contextlib.closing(others):
            if others.latest_step() is None:
                raise ValueError(f"branch_from: {trunk} has no checkpoint")
            begun = _go_on(others, sections, model, inputs, trunk)
        begun.record.best = BestValidation()
        return begun
    record, params = RunRecord(), None
    if config.init_from:
        vocabulary = Vocabulary.of(sections["generation"].system)
        params, card = pretrained_params(config.init_from, model.config, vocabulary)
        record.samples_before = int(card.get("samples_seen", 0))
        if jax.process_index() == 0:
            print(f"starts from the weights {config.init_from}", flush=True)
    # The data behind those that the weights have seen, if they were trained as this run is.
    data = inputs.training(config.seed, record.samples_before // config.batch_size)
    return _Begun(0, init_state(model, config, params), data, record)


def _go_on(
    checkpoints: TrainingCheckpoints,
    sections: Mapping[str, Any],
    model: Model,
    inputs: Inputs,
    workdir: Path,
) -> _Begun:
    """From the newest checkpoint of a run in a workdir."""
    config: TrainingConfig = sections["training"]
    changed = changes(workdir, sections)
    saved = checkpoints.record()
    # As it was saved; then with or without an average, as the config says now.
    as_saved = dataclasses.replace(config, ema_decay=0.5 if saved["has_average"] else 0.0)
    shapes = jax.eval_shape(functools.partial(init_state, model, as_saved))
    state = checkpoints.state(jax.tree.map(lambda s: np.empty(s.shape, s.dtype), shapes))
    if not config.ema_decay:
        state = dataclasses.replace(state, average=None)
    elif state.average is None:
        state = dataclasses.replace(state, average=state.params)
    if state.skipped_in_a_row >= config.max_skipped:  # Another try.
        state = dataclasses.replace(state, skipped_in_a_row=0 * state.skipped_in_a_row)
    data, step = inputs.training(config.seed), checkpoints.steps()[-1]
    data.set_state(saved["position"])
    if jax.process_index() == 0:
        print(f"resumed from step {step}", flush=True)
        if changed:
            print(f"changed since then: {'; '.join(changed)}", flush=True)
    record = RunRecord(
        BestValidation(**saved["best"]), saved["validation"], saved["samples_before"]
    )
    return _Begun(step, state, data, record)


def _export(
    folder: Path,
    params: Params,
    config: ModelConfig,
    vocabulary: Vocabulary,
    card: dict[str, Any],
) -> None:
    """Exports weights in place of older ones, which stay whole until then."""
    new, old = folder.with_suffix(".new"), folder.with_suffix(".old")
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)
    export(new, params, config, vocabulary, card)
    if folder.exists():
        os.replace(folder, old)
    os.replace(new, folder)
    shutil.rmtree(old, ignore_errors=True)
