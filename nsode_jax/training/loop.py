"""The training loop: data, optimizer, steps, validation, checkpoints."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from nsode_jax.data.generate import GenerationConfig
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.modeling.checkpoints import TrainingCheckpoints
from nsode_jax.modeling.pretrained import export
from nsode_jax.modeling.transformer import Model, ModelConfig, Params
from nsode_jax.training.inputs import Inputs
from nsode_jax.training.logging import ProgressLine, RunLogger
from nsode_jax.training.loss import decoder_inputs, two_hot_loss
from nsode_jax.training.parallel import (
    mean_over_devices,
    parallel,
    replicate,
    shard,
    unreplicate,
)

Batch = dict[str, Any]
Metrics = dict[str, Float[Array, ""]]


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Training. The defaults are the paper's (appendix B.3) where it gives one.

    Attributes:
      dataset: name of a TFDS data set, or `online:` and the name or the file of a
        skeleton bank, for examples that are drawn as training goes.
      data_dir: folder of the TFDS data set.
      data_workers: processes that draw from a bank; threads that read a data set.
      steps: optimizer steps.
      batch_size: examples per step, over all devices.
      learning_rate: its peak, reached after the warm-up.
      warmup_steps: steps over which the learning rate rises linearly from 0.
      schedule: `constant` after the warm-up, or `cosine` decay to 0 at `steps`.
      clip_norm: largest norm of a gradient; 0 leaves gradients as they are.
      adam_b2: second-moment decay of AdamW.
      weight_decay: of AdamW.
      log_every: steps between two lines of metrics.
      validate_every: steps between two validations.
      validation_batches: batches of each.
      save_every: steps between two checkpoints.
      max_seconds: end cleanly after so long; 0 means no limit.
      seed: of the parameters and of the order of the data.
    """

    dataset: str = "nsode/paper"
    data_dir: str = "~/nsode_data"
    data_workers: int = 1
    steps: int = 1_000_000
    batch_size: int = 600
    learning_rate: float = 1e-4
    warmup_steps: int = 10_000
    schedule: str = "constant"
    clip_norm: float = 0.0
    adam_b2: float = 0.999
    weight_decay: float = 0.0
    log_every: int = 100
    validate_every: int = 2000
    validation_batches: int = 20
    save_every: int = 2000
    max_seconds: float = 0.0
    seed: int = 0

    def __post_init__(self):
        if self.schedule not in ("constant", "cosine"):
            raise ValueError(f"schedule must be 'constant' or 'cosine', got {self.schedule!r}")
        for name in ("steps", "batch_size", "log_every", "validate_every", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """All that an optimizer step changes."""

    step: Int[Array, ""]
    params: Params
    optimizer: optax.OptState


def learning_rate(config: TrainingConfig) -> optax.Schedule:
    """Linear warm-up, then constant (the paper's) or a cosine down to 0."""
    warmup = optax.linear_schedule(0.0, config.learning_rate, config.warmup_steps)
    if config.schedule == "constant":
        rest = optax.constant_schedule(config.learning_rate)
    else:
        decay_steps = max(config.steps - config.warmup_steps, 1)
        rest = optax.cosine_decay_schedule(config.learning_rate, decay_steps)
    return optax.join_schedules([warmup, rest], [config.warmup_steps])


def make_optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """AdamW with clipping and the learning-rate schedule."""
    adam = optax.adamw(learning_rate(config), b2=config.adam_b2, weight_decay=config.weight_decay)
    if config.clip_norm:
        return optax.chain(optax.clip_by_global_norm(config.clip_norm), adam)
    return adam


def _metrics(model: Model, params: Params, batch: Batch) -> Metrics:
    memory = model.encode(params, batch["words"], batch["mask"])
    inputs = decoder_inputs(batch["low"], batch["fraction"])
    logits = model.decode(params, memory, *inputs)
    return two_hot_loss(logits, batch["low"], batch["fraction"])


def make_train_step(model: Model, optimizer: optax.GradientTransformation):
    """One optimizer step over all devices: (state, batch) -> (state, metrics).

    The state is replicated, the batch sharded; the gradient is the mean over all
    devices, so that the result does not depend on their number.
    """

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        def loss(params):
            metrics = _metrics(model, params, batch)
            return metrics["loss"], metrics

        gradients, metrics = jax.grad(loss, has_aux=True)(state.params)
        gradients, metrics = mean_over_devices((gradients, metrics))
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.params)
        params = optax.apply_updates(state.params, updates)
        metrics["gradient_norm"] = optax.tree.norm(gradients)
        return TrainState(state.step + 1, params, optimizer_state), metrics

    return parallel(step, donate=(0,))


def make_validation_step(model: Model):
    """Metrics of a sharded batch over all devices: (params, batch) -> metrics."""
    return parallel(lambda params, batch: mean_over_devices(_metrics(model, params, batch)))


def init_state(model: Model, optimizer: optax.GradientTransformation, seed: int) -> TrainState:
    """A fresh state on one device."""
    params = model.init(seed)
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params))


def validate(step, params: Params, data: Iterator[Batch]) -> dict[str, float]:
    """Mean metrics over batches; `params` replicated."""
    results = [unreplicate(step(params, shard(batch))) for batch in data]
    return (
        {name: float(np.mean([float(r[name]) for r in results])) for name in results[0]}
        if results
        else {}
    )


def train(
    generation: GenerationConfig,
    corruption: CorruptionConfig,
    model_config: ModelConfig,
    config: TrainingConfig,
    workdir: str | Path,
) -> dict[str, float]:
    """Trains until `steps` or `max_seconds`, resuming from the workdir's checkpoint.

    Args:
      generation: what is drawn, where the data set is a bank.
      corruption: what is done to the clean solutions.
      model_config: of the model.
      config: of the training.
      workdir: for checkpoints, metrics and, with each checkpoint, the exported
        weights in `weights/`.

    Returns:
      The last validation metrics.

    Raises:
      FileNotFoundError: if the data set has not been built, or there is no bank.
      FloatingPointError: if the loss is not finite.
    """
    workdir = Path(workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    vocabulary = Vocabulary()
    model = Model(model_config)
    optimizer = make_optimizer(config)
    inputs = Inputs(
        config.dataset,
        generation,
        corruption,
        model_config.example_format,
        data_dir=config.data_dir,
        batch_size=config.batch_size,
        workers=config.data_workers,
    )
    # Every process reads its own part of the data's random order.
    train_data = inputs.training(config.seed + 1_000_003 * jax.process_index())
    train_step, validation_step = make_train_step(model, optimizer), make_validation_step(model)

    state = init_state(model, optimizer, config.seed)
    checkpoints = TrainingCheckpoints(workdir / "checkpoints")
    first_step = 0
    if checkpoints.latest_step() is not None:
        first_step, state, position = checkpoints.restore(state)
        train_data.set_state(position)
        print(f"resumed from step {first_step}", flush=True)
    state = replicate(state)

    logger = RunLogger(workdir) if jax.process_index() == 0 else None
    progress = ProgressLine(first_step, config.steps, config.batch_size, config.max_seconds)
    start, validation, pending = time.monotonic(), {}, None
    out_of_time = False
    for step in range(first_step + 1, config.steps + 1):
        state, metrics = train_step(state, shard(next(train_data)))
        if pending is not None:
            _log_training(*pending, logger, progress)
            pending = None
        if step % config.log_every == 0:
            # Logged after the next step has been dispatched, so that reading the
            # values does not leave the device idle.
            pending = (step, metrics)
        out_of_time = bool(config.max_seconds) and time.monotonic() - start > config.max_seconds
        last = step == config.steps or out_of_time
        if step % config.validate_every == 0 or last:
            some = inputs.validation(config.seed, config.validation_batches)
            validation = validate(validation_step, state.params, some)
            if logger:
                logger.write(step, "validation", validation)
                print(f"validation at {step}: " + _text(validation), flush=True)
        if step % config.save_every == 0 or last:
            on_host = unreplicate(state)
            checkpoints.save(step, on_host, train_data.get_state())
            if logger:
                card = {
                    "dataset": config.dataset,
                    "samples_seen": step * config.batch_size * jax.process_count(),
                    "validation": validation,
                }
                export(workdir / "weights", on_host.params, model_config, vocabulary, card)
        if last:
            break
    if pending is not None:
        _log_training(*pending, logger, progress)
    checkpoints.close()
    inputs.close()
    if logger:
        logger.close()
    return validation


def _log_training(
    step: int, metrics: Metrics, logger: RunLogger | None, progress: ProgressLine
) -> None:
    values = {name: float(value) for name, value in unreplicate(metrics).items()}
    if not np.isfinite(values["loss"]):
        raise FloatingPointError(f"the loss is {values['loss']} at step {step}")
    if logger:
        values["samples_per_second"] = progress.show(step, values["loss"])
        logger.write(step, "train", values)


def _text(metrics: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
