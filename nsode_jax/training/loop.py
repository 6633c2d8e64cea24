"""The training loop: steps, validation, checkpoints, and the ways a run can end."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from nsode_jax.data.generate import GenerationConfig
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.modeling.checkpoints import TrainingCheckpoints
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.pretrained import export
from nsode_jax.modeling.transformer import Model, Params
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.inputs import Inputs
from nsode_jax.training.interrupt import Interrupt
from nsode_jax.training.like_length import Positioned
from nsode_jax.training.monitor import Monitor
from nsode_jax.training.parallel import on_each_device, replicate, shard, unreplicate
from nsode_jax.training.run_config import changes, pretrained_params, write_config
from nsode_jax.training.step import Metrics, TrainState, init_state, make_train_step
from nsode_jax.training.validation import BestValidation, make_validation_step, validate


class Stop(enum.IntEnum):
    """Why a run ends. Of the wishes of several processes the highest counts."""

    NO = 0
    TIME = 1
    SIGNAL = 2
    SKIPPED = 3
    STALE = 4
    DONE = 5


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


class End(NamedTuple):
    """How a run ended: why, and its last validation metrics."""

    stop: Stop
    validation: dict[str, float]


def train(
    generation: GenerationConfig,
    corruption: CorruptionConfig,
    model_config: ModelConfig,
    config: TrainingConfig,
    workdir: str | Path,
) -> dict[str, float]:
    """As `train_to_end`, for those who only want the last validation metrics."""
    return train_to_end(generation, corruption, model_config, config, workdir).validation


def train_to_end(
    generation: GenerationConfig,
    corruption: CorruptionConfig,
    model_config: ModelConfig,
    config: TrainingConfig,
    workdir: str | Path,
) -> End:
    """Trains to one of the ends below, going on from the workdir's newest checkpoint.

    It ends after `steps`, after `max_seconds`, after `patience` validations without
    improvement, or, saving a checkpoint, with the step that is running when SIGTERM
    or SIGINT comes.

    Args:
      generation: what is drawn, where the data set is a bank.
      corruption: what is done to the clean solutions.
      model_config: of the model.
      config: of the training.
      workdir: for the config, checkpoints, metrics and, in `weights/`, the exported
        weights of the best validation; on a disk that all processes share.

    Returns:
      Why it ended, the same in every process, and the last validation metrics.

    Raises:
      FileNotFoundError: if the data set has not been built, or there is no bank.
      ModelChanged: if the checkpoints, or the weights to start from, are of another
        model.
      TrainingChanged: if the checkpoints, or the run to branch off from, are those of
        another optimizer.
      FloatingPointError: after `max_skipped` skipped steps in a row; the last good
        state is in a checkpoint.
    """
    start = time.monotonic()
    workdir = Path(workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    _check_batch_size(config)
    first = jax.process_index() == 0
    vocabulary, model = Vocabulary.of(generation.system), Model(model_config)
    with contextlib.ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        inputs = stack.enter_context(
            Inputs(
                config.dataset,
                generation,
                corruption,
                model_config.example_format,
                data_dir=config.data_dir,
                batch_size=config.batch_size,
                workers=config.data_workers,
                length_multiple=config.length_multiple,
                process=jax.process_index(),
                processes=jax.process_count(),
            )
        )
        data = inputs.training(config.seed)
        if config.validation_batches:
            # What cannot be validated is refused here, not after hours.
            inputs.validation(config.seed, config.validation_batches)
        checkpoints = TrainingCheckpoints(workdir / "checkpoints", config.keep_last)
        stack.callback(checkpoints.close)
        sections = {
            "generation": generation,
            "corruption": corruption,
            "model": model_config,
            "training": config,
        }
        step, state, record = _begin(checkpoints, sections, model, data, workdir)
        if first:
            write_config(workdir, sections)
        monitor = Monitor(workdir, config, model_config, step, record.samples_before)
        stack.callback(monitor.close)
        train_step = make_train_step(model, config, vocabulary)
        validation_step = make_validation_step(model, vocabulary)
        state = replicate(state)

        def own_wish() -> Stop:
            if interrupt.asked:
                return Stop.SIGNAL
            late = config.max_seconds and time.monotonic() - start > config.max_seconds
            return Stop.TIME if late else Stop.NO

        def look(step: int, metrics: Metrics, length: int) -> Stop:
            """Reads the metrics of a step. Returns whether to stop after it."""
            read = unreplicate(metrics)  # Waits for the end of the step.
            monitor.stepped(step, read, length)
            if read["skipped_in_a_row"] >= config.max_skipped:
                return Stop.SKIPPED
            return Stop(int(read["wish"]))

        def finished() -> Stop:
            if config.patience and record.best.since >= config.patience:
                return Stop.STALE
            return Stop.DONE if step >= config.steps else Stop.NO

        stop, unread = finished(), None
        while not stop:
            asked = time.perf_counter()
            batch = shard(next(data))
            # It held the devices up only if they have finished the step before.
            if unread is None or unread[1]["loss"].is_ready():
                monitor.waited(time.perf_counter() - asked)
            state, metrics = train_step(state, batch, on_each_device(own_wish()))
            step += 1
            # Metrics are read when the next step has been dispatched, so that reading
            # does not leave the devices idle; no more than two steps are in flight.
            if unread:
                stop = look(*unread)
            unread = (step, metrics, batch["low"].shape[-1])
            # Several processes must agree, by the wish in the metrics.
            if not stop and jax.process_count() == 1:
                stop = own_wish()
            stop = stop or finished()

            validates = config.validation_batches and step % config.validate_every == 0
            saves = step % config.save_every == 0
            if not (stop or validates or saves):
                continue
            seen, unread = look(*unread), None
            # From here on: the step that was looked at belongs to the time before.
            paused, best = time.perf_counter(), False
            stop = stop or seen
            if validates or (config.validation_batches and stop in (Stop.DONE, Stop.TIME)):
                some = inputs.validation(config.seed, config.validation_batches)
                record.validation = validate(validation_step, state.inference_params, some)
                best = record.best.update(step, record.validation["loss"])
                monitor.validated(step, record.validation)
                stop = stop or finished()
            if stop or best or saves:
                on_host = unreplicate(state)
                if first and (best or not config.validation_batches):
                    # Before the checkpoint that says so: a run killed between the two
                    # does it again.
                    card = _card(config, record, step)
                    weights = on_host.inference_params, model_config, vocabulary
                    _export(workdir / "weights", *weights, card)
                saved = _to_json(record, on_host, data)
                checkpoints.save(step, on_host, saved, best_step=record.best.step)
            monitor.paused(time.perf_counter() - paused)

    if stop is Stop.SKIPPED:
        raise FloatingPointError(
            f"the loss or its gradient was not finite, or too large, in {config.max_skipped} "
            f"steps in a row; step {step} is saved with the last good parameters; lower "
            "training.learning_rate"
        )
    if first:
        print(_farewell(stop, step, interrupt, config, record), flush=True)
    return End(stop, record.validation)


def _check_batch_size(config: TrainingConfig) -> None:
    parts = jax.device_count() * config.accumulate
    if config.batch_size % parts:
        raise ValueError(
            f"{jax.device_count()} devices that accumulate {config.accumulate} parts "
            f"do not divide a batch of {config.batch_size}; set training.batch_size to a multiple "
            f"of {parts}"
        )


def _begin(
    checkpoints: TrainingCheckpoints,
    sections: Mapping[str, Any],
    model: Model,
    data: Positioned,
    workdir: Path,
) -> tuple[int, TrainState, RunRecord]:
    """The state to go on from, from the newest checkpoint if there is one."""
    config: TrainingConfig = sections["training"]
    if (step := checkpoints.latest_step()) is not None:
        return step, *_go_on(checkpoints, sections, model, data, workdir)
    if config.branch_from:
        trunk = Path(config.branch_from)
        others = TrainingCheckpoints(trunk / "checkpoints", read_only=True)
        with contextlib.closing(others):
            if (step := others.latest_step()) is None:
                raise ValueError(f"branch_from: {trunk} has no checkpoint")
            state, record = _go_on(others, sections, model, data, trunk)
        record.best = BestValidation()
        return step, state, record
    record, params = RunRecord(), None
    if config.init_from:
        vocabulary = Vocabulary.of(sections["generation"].system)
        params, card = pretrained_params(config.init_from, model.config, vocabulary)
        record.samples_before = int(card.get("samples_seen", 0))
        if jax.process_index() == 0:
            print(f"starts from the weights {config.init_from}", flush=True)
    return 0, init_state(model, config, params), record


def _go_on(
    checkpoints: TrainingCheckpoints,
    sections: Mapping[str, Any],
    model: Model,
    data: Positioned,
    workdir: Path,
) -> tuple[TrainState, RunRecord]:
    """The state of the newest checkpoint of a run in a workdir."""
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
    data.set_state(saved["position"])
    if jax.process_index() == 0:
        print(f"resumed from step {checkpoints.latest_step()}", flush=True)
        if changed:
            print(f"changed since then: {'; '.join(changed)}", flush=True)
    record = RunRecord(
        BestValidation(**saved["best"]), saved["validation"], saved["samples_before"]
    )
    return state, record


def _to_json(record: RunRecord, state: TrainState, data: Positioned) -> dict[str, Any]:
    has_average = state.average is not None
    return {
        **dataclasses.asdict(record), "position": data.get_state(), "has_average": has_average
    }  # fmt: skip


def _card(config: TrainingConfig, record: RunRecord, step: int) -> dict[str, Any]:
    return {
        "dataset": config.dataset,
        "init_from": config.init_from,
        "samples_seen": record.samples_before + step * config.batch_size,
        "validation": record.validation,
    }


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


def _farewell(
    stop: Stop, step: int, interrupt: Interrupt, config: TrainingConfig, record: RunRecord
) -> str:
    reason = {
        Stop.DONE: f"done: {step} steps",
        Stop.TIME: f"time is up: {step} steps",
        Stop.STALE: f"stopped early: {config.patience} validations without improvement",
        Stop.SIGNAL: f"{interrupt.asked or 'signal'}: saved step {step}; the same command goes on",
    }[stop]
    if record.best.loss is None:
        return reason
    return f"{reason}; best validation loss {record.best.loss:.4f} at step {record.best.step}"
