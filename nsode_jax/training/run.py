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
from nsode_jax.training.config import Config, TrainingConfig
from nsode_jax.training.inputs import Inputs
from nsode_jax.training.parallel import is_same, is_shared, replicate, unreplicate
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
      validated: the step of the latest validation.
      samples_before: samples seen by the weights that the run started from.
    """

    best: BestValidation = dataclasses.field(default_factory=BestValidation)
    validation: dict[str, float] = dataclasses.field(default_factory=dict)
    validated: int = 0
    samples_before: int = 0

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> RunRecord:
        """The record in what a checkpoint keeps beside the arrays."""
        best = BestValidation(**saved["best"])
        return cls(best, saved["validation"], saved.get("validated", 0), saved["samples_before"])


@dataclasses.dataclass
class Run:
    """A run between two steps.

    Attributes:
      config: all that defines it.
      workdir: for the config, checkpoints and, in `weights/`, the exported weights of the best
        validation.
      model: what is trained.
      data: where the next batch comes from.
      checkpoints: in the workdir.
      step: so many are done.
      state: after them, on every device.
      record: what else is known of it.
    """

    config: Config
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
        config: Config,
        workdir: Path,
        model: Model,
        inputs: Inputs,
        checkpoints: TrainingCheckpoints,
    ) -> Run:
        """Goes on from the newest checkpoint, if there is one, and writes the config.

        From weights it goes on in the data behind the samples that they have seen.

        Raises:
          ValueError: if the processes do not share the workdir, or do not begin alike.
        """
        if not is_shared(workdir):
            raise ValueError(
                f"the processes do not share the workdir {workdir}: all need the same folder on "
                "a disk that all of them reach"
            )
        begun = _begin(checkpoints, config, model, inputs, workdir)
        if not is_same((np.int64(begun.step), begun.state)):
            raise ValueError(
                "the processes found different checkpoints or weights to begin from, as those of "
                "a run that is going on may be; start all of them again"
            )
        if jax.process_index() == 0:
            write_config(workdir, config)
        state = replicate(begun.state)
        data, step, record = begun.data, begun.step, begun.record
        return cls(config, workdir, model, data, checkpoints, step, state, record)

    def save(self, best: bool) -> None:
        """Saves a checkpoint, and exports the weights if they are the best."""
        on_host = unreplicate(self.state)
        if jax.process_index() == 0 and (best or not self.config.training.validation_batches):
            # Before the checkpoint that says so: a run killed between the two does it again.
            vocabulary = Vocabulary.of(self.config.generation.system)
            weights = on_host.inference_params, self.config.model, vocabulary
            about = card(self.config.training, self.record, self.step)
            _export(self.workdir / "weights", *weights, about)
        kept = {
            **dataclasses.asdict(self.record),
            "position": self.data.get_state(),
            "has_average": on_host.average is not None,
        }
        self.checkpoints.save(self.step, on_host, kept, best_step=self.record.best.step)


def card(config: TrainingConfig, record: RunRecord, step: int) -> dict[str, Any]:
    """What is known of the weights of a step: the model card."""
    return {
        "dataset": config.dataset,
        "init_from": config.init_from,
        "samples_seen": record.samples_before + step * config.batch_size,
        "validation": record.validation,
    }


class _Begun(NamedTuple):
    """Where a run goes on from: fields as of `Run`, the state on the host."""

    step: int
    state: TrainState
    data: Stream
    record: RunRecord


def _begin(
    checkpoints: TrainingCheckpoints,
    config: Config,
    model: Model,
    inputs: Inputs,
    workdir: Path,
) -> _Begun:
    """From the newest checkpoint if there is one, from another run, from weights, or afresh."""
    training = config.training
    if checkpoints.latest_step() is not None:
        return _go_on(checkpoints, config, model, inputs, workdir)
    if training.branch_from:
        trunk = Path(training.branch_from)
        others = TrainingCheckpoints(trunk / "checkpoints", read_only=True)
        with contextlib.closing(others):
            if others.latest_step() is None:
                raise ValueError(f"branch_from: {trunk} has no checkpoint")
            begun = _go_on(others, config, model, inputs, trunk)
        if begun.step >= training.steps:
            raise ValueError(
                f"branch_from: {trunk} is at step {begun.step} already, so a branch of it to "
                f"training.steps {training.steps} would do nothing; raise that"
            )
        begun.record.best = BestValidation()
        return begun
    record, params = RunRecord(), None
    if training.init_from:
        vocabulary = Vocabulary.of(config.generation.system)
        params, known = pretrained_params(training.init_from, model.config, vocabulary)
        record.samples_before = int(known.get("samples_seen", 0))
        if jax.process_index() == 0:
            print(f"starts from the weights {training.init_from}", flush=True)
    # The data behind those that the weights have seen, if they were trained as this run is.
    data = inputs.training(training.seed, record.samples_before // training.batch_size)
    return _Begun(0, init_state(model, training, params), data, record)


def _go_on(
    checkpoints: TrainingCheckpoints,
    config: Config,
    model: Model,
    inputs: Inputs,
    workdir: Path,
) -> _Begun:
    """From the newest checkpoint of a run in a workdir."""
    training, changed = config.training, changes(workdir, config)
    step, state, saved = restored(checkpoints, model, training)
    if not training.ema_decay:
        state = dataclasses.replace(state, average=None)
    elif state.average is None:
        state = dataclasses.replace(state, average=state.params)
    if state.skipped_in_a_row >= training.max_skipped and step < training.steps:  # Another try.
        state = dataclasses.replace(state, skipped_in_a_row=0 * state.skipped_in_a_row)
    data = inputs.training(training.seed)
    data.set_state(saved["position"])
    if jax.process_index() == 0:
        print(f"resumed from step {step}", flush=True)
        if changed:
            print(f"changed since then: {'; '.join(changed)}", flush=True)
    return _Begun(step, state, data, RunRecord.of(saved))


def restored(
    checkpoints: TrainingCheckpoints, model: Model, config: TrainingConfig
) -> tuple[int, TrainState, dict[str, Any]]:
    """The newest checkpoint: its step, the state on the host as it was saved, what was kept."""
    saved = checkpoints.record()
    as_saved = dataclasses.replace(config, ema_decay=0.5 if saved["has_average"] else 0.0)
    shapes = jax.eval_shape(functools.partial(init_state, model, as_saved))
    state = checkpoints.state(jax.tree.map(lambda s: np.empty(s.shape, s.dtype), shapes))
    return checkpoints.steps()[-1], state, saved


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
