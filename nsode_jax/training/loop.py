"""The training loop: steps, validation, checkpoints, and the ways a run can end."""

from __future__ import annotations

import contextlib
import enum
import time
from pathlib import Path
from typing import NamedTuple

import jax

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.modeling.checkpoints import TrainingCheckpoints
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.config import Config, TrainingConfig
from nsode_jax.training.inputs import Inputs
from nsode_jax.training.interrupt import Interrupt
from nsode_jax.training.monitor import Monitor
from nsode_jax.training.parallel import on_each_device, shard, unreplicate
from nsode_jax.training.run import Run
from nsode_jax.training.step import Metrics, make_train_step
from nsode_jax.training.validation import make_validation_step, validate


class Stop(enum.IntEnum):
    """Why a run ends. Of the wishes of several processes the highest counts."""

    NO = 0
    TIME = 1
    SIGNAL = 2
    SKIPPED = 3
    STALE = 4
    DONE = 5


class End(NamedTuple):
    """How a run ended: why, and its last validation metrics."""

    stop: Stop
    validation: dict[str, float]


def train(config: Config, workdir: str | Path) -> End:
    """Trains to one of the ends below, going on from the workdir's newest checkpoint.

    It ends after `steps`, after `max_seconds`, after `patience` validations without
    improvement, or, saving a checkpoint, with the step that is running when SIGTERM
    or SIGINT comes.

    Args:
      config: all that defines the run.
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
      ValueError: if the config asks for what cannot be done here, which is said.
      FloatingPointError: after `max_skipped` skipped steps in a row; the last good
        state is in a checkpoint.
    """
    started, workdir = time.monotonic(), Path(workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    training = config.training
    _check_batch_size(training)
    model = Model(config.model)
    with contextlib.ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        inputs = stack.enter_context(Inputs(config, jax.process_index(), jax.process_count()))
        checkpoints = TrainingCheckpoints(workdir / "checkpoints", training.keep_last)
        stack.callback(checkpoints.close)
        run = Run.begin(config, workdir, model, inputs, checkpoints)
        if jax.process_index() == 0:
            print(f"examples are drawn from {inputs.source}", flush=True)
        if training.validation_batches:
            # What cannot be validated is refused here, not after hours.
            inputs.validation(training.seed, training.validation_batches)
        monitor = Monitor(workdir, training, config.model, run.step, run.record.samples_before)
        stack.callback(monitor.close)
        loop = _Loop(run, inputs, monitor, interrupt, started)
        stop = loop.to_its_end()

    if stop is Stop.SKIPPED:
        raise FloatingPointError(
            "the loss, its gradient or the update was not finite, or too large, in "
            f"{training.max_skipped} steps in a row; step {run.step} is saved with the last good "
            "parameters; lower training.learning_rate"
        )
    if jax.process_index() == 0:
        print(loop.farewell(stop), flush=True)
    return End(stop, run.record.validation)


def _check_batch_size(config: TrainingConfig) -> None:
    parts = jax.device_count() * config.accumulate
    if config.batch_size % parts:
        raise ValueError(
            f"{jax.device_count()} devices that accumulate {config.accumulate} parts "
            f"do not divide a batch of {config.batch_size}; set training.batch_size to a multiple "
            f"of {parts}"
        )


class _Unread(NamedTuple):
    """A step that has been dispatched, whose metrics have not been read."""

    step: int
    metrics: Metrics
    length: int


class _Loop:
    """Step after step, with pauses for validation and checkpoints, until a reason to stop."""

    def __init__(
        self, run: Run, inputs: Inputs, monitor: Monitor, interrupt: Interrupt, started: float
    ):
        self.run, self.inputs, self.monitor = run, inputs, monitor
        self.interrupt, self.started = interrupt, started
        vocabulary = Vocabulary.of(run.config.generation.system)
        self.train_step = make_train_step(run.model, run.config.training, vocabulary)
        self.validation_step = make_validation_step(run.model, vocabulary)

    def to_its_end(self) -> Stop:
        run, config = self.run, self.run.config.training
        stop, unread = self._finished(), None
        if stop and unreplicate(run.state.skipped_in_a_row) >= config.max_skipped:
            return Stop.SKIPPED  # So it has ended, and says so again.
        if stop is Stop.DONE and config.validation_batches and run.record.validated < run.step:
            # A signal in the last step left no time for that.
            return self._pause(stop, validates=False, saves=False)
        while not stop:
            last, unread = unread, self._dispatch(unread)
            # Metrics are read when the next step has been dispatched, so that reading
            # does not leave the devices idle; no more than two steps are in flight.
            if last:
                stop = self._read(last)
            # Several processes must agree, by the wish in the metrics.
            if not stop and jax.process_count() == 1:
                stop = self._own_wish()
            stop = stop or self._finished()

            validates = config.validation_batches and run.step % config.validate_every == 0
            saves = run.step % config.save_every == 0
            if stop or validates or saves:
                seen, unread = self._read(unread), None
                # Diverged at its end, or when its time was up, it has diverged first of all.
                stop = seen if seen is Stop.SKIPPED else stop or seen
                stop = self._pause(stop, bool(validates), saves)
        return stop

    def _dispatch(self, before: _Unread | None) -> _Unread:
        """The next step, which need not have ended."""
        asked = time.perf_counter()
        batch = shard(next(self.run.data))
        # It held the devices up only if they have finished the step before.
        if before is None or before.metrics["loss"].is_ready():
            self.monitor.waited(time.perf_counter() - asked)
        wish = on_each_device(self._own_wish())
        self.run.state, metrics = self.train_step(self.run.state, batch, wish)
        self.run.step += 1
        return _Unread(self.run.step, metrics, batch["low"].shape[-1])

    def _read(self, unread: _Unread) -> Stop:
        """Waits for a step and reads its metrics. Returns whether to stop after it."""
        read = unreplicate(unread.metrics)
        self.monitor.stepped(unread.step, read, unread.length)
        if read["skipped_in_a_row"] >= self.run.config.training.max_skipped:
            return Stop.SKIPPED
        return Stop(int(read["wish"]))

    def _own_wish(self) -> Stop:
        if self.interrupt.asked:
            return Stop.SIGNAL
        limit = self.run.config.training.max_seconds
        late = limit and time.monotonic() - self.started > limit
        return Stop.TIME if late else Stop.NO

    def _finished(self) -> Stop:
        config = self.run.config.training
        if config.patience and self.run.record.best.since >= config.patience:
            return Stop.STALE
        return Stop.DONE if self.run.step >= config.steps else Stop.NO

    def _pause(self, stop: Stop, validates: bool, saves: bool) -> Stop:
        """Validation and a checkpoint, where they are due. Returns whether to stop."""
        run, config = self.run, self.run.config.training
        paused, best = time.perf_counter(), False
        if validates or (config.validation_batches and stop in (Stop.DONE, Stop.TIME)):
            some = self.inputs.validation(config.seed, config.validation_batches)
            run.record.validation = validate(self.validation_step, run.state.inference_params, some)
            best = run.record.best.update(run.step, run.record.validation["loss"])
            run.record.validated = run.step
            self.monitor.validated(run.step, run.record.validation)
            stop = stop or self._finished()
        if stop or best or saves:
            run.save(best)
        self.monitor.paused(time.perf_counter() - paused)
        return stop

    def farewell(self, stop: Stop) -> str:
        """Why it ended, and its best validation, in one line."""
        run, patience = self.run, self.run.config.training.patience
        reason = {
            Stop.DONE: f"done: {run.step} steps",
            Stop.TIME: f"time is up: {run.step} steps",
            Stop.STALE: f"stopped early: {patience} validations without improvement",
            Stop.SIGNAL: (
                f"{self.interrupt.asked or 'signal'}: saved step {run.step}; "
                "the same command goes on"
            ),
        }[stop]
        best = run.record.best
        if best.loss is None:
            return reason
        return f"{reason}; best validation loss {best.loss:.4f} at step {best.step}"
