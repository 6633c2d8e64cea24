"""One optimizer step, compiled for all devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.modeling.transformer import Model, Params
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.loss import Sum, decoder_inputs, means, two_hot_sums
from nsode_jax.training.optimizer import learning_rate, make_optimizer
from nsode_jax.training.parallel import max_over_devices, parallel, sum_over_devices

Batch = dict[str, Any]
Metrics = dict[str, Any]
"""Scalars by name; on the way from the devices with a leading axis for these."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """All arrays that an optimizer step changes.

    Attributes:
      step: steps so far, skipped ones included.
      params: of the model.
      optimizer: its state.
      average: moving average of the parameters, None where the config has none.
      skipped: steps that have been skipped.
      skipped_in_a_row: of these the latest, up to a step that was not skipped.
    """

    step: Int[Array, ""]
    params: Params
    optimizer: optax.OptState
    average: Params | None
    skipped: Int[Array, ""]
    skipped_in_a_row: Int[Array, ""]

    @property
    def inference_params(self) -> Params:
        """The parameters to validate and to export."""
        return self.params if self.average is None else self.average


def init_state(model: Model, config: TrainingConfig, params: Params | None = None) -> TrainState:
    """A fresh state on one device, with random parameters unless given."""
    start = model.init(config.seed) if params is None else jax.tree.map(jnp.asarray, params)
    zero = jnp.zeros((), jnp.int32)
    average = start if config.ema_decay else None
    return TrainState(zero, start, make_optimizer(config).init(start), average, zero, zero)


def batch_sums(
    model: Model, params: Params, batch: Batch, vocabulary: Vocabulary
) -> dict[str, Sum]:
    """Loss and accuracies of a model on examples, as sums and counts."""
    memory = model.encode(params, batch["words"], batch["mask"])
    inputs = decoder_inputs(batch["low"], batch["fraction"])
    logits = model.decode(params, memory, *inputs)
    return two_hot_sums(logits, batch["low"], batch["fraction"], vocabulary)


def make_train_step(
    model: Model, config: TrainingConfig, vocabulary: Vocabulary
) -> Callable[[TrainState, Batch, Int[np.ndarray, " devices"]], tuple[TrainState, Metrics]]:
    """One optimizer step over all devices: (state, batch, wish) -> (state, metrics).

    The state is replicated, the batch sharded. The loss is the mean over all
    positions of the whole batch, however it is split over micro-batches, devices
    and processes. A step whose loss, gradient (or one too large) or update is not finite
    leaves parameters and optimizer as they are, and is counted.

    `wish` is a number from every process, and the metric `wish` the largest of them:
    so all processes learn in the same step that one of them wants to stop.
    """
    optimizer, rate = make_optimizer(config), learning_rate(config)

    def loss(params: Params, batch: Batch):
        sums = batch_sums(model, params, batch, vocabulary)
        return sums["loss"].total, sums

    def gradients_and_sums(params: Params, batch: Batch):
        gradient = jax.grad(loss, has_aux=True)
        if config.accumulate == 1:
            return gradient(params, batch)
        # [each, ...] --> [accumulate, each/accumulate, ...]
        parts = jax.tree.map(lambda x: x.reshape(config.accumulate, -1, *x.shape[1:]), batch)
        shapes = jax.eval_shape(gradient, params, jax.tree.map(lambda x: x[0], parts))

        def add(total, part):
            return jax.tree.map(jnp.add, total, gradient(params, part)), None

        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        return jax.lax.scan(add, zeros, parts)[0]

    def step(state: TrainState, batch: Batch, wish: Int[Array, ""]) -> tuple[TrainState, Metrics]:
        gradients, sums = sum_over_devices(gradients_and_sums(state.params, batch))
        gradients = jax.tree.map(lambda g: g / jnp.maximum(sums["loss"].count, 1.0), gradients)
        metrics = means(sums)
        norm = optax.tree.norm(gradients)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.params)
        # Of a finite gradient too high a rate makes an update that is not.
        size = optax.tree.norm(updates)
        good = jnp.isfinite(metrics["loss"]) & jnp.isfinite(norm) & jnp.isfinite(size)
        if config.max_gradient_norm:
            good &= norm <= config.max_gradient_norm

        def unless_skipped(new, old):
            return jax.tree.map(lambda n, o: jnp.where(good, n, o), new, old)

        params = unless_skipped(optax.apply_updates(state.params, updates), state.params)
        average = state.average
        if average is not None:
            decay = _ramped(config.ema_decay, state.step)
            average = unless_skipped(
                jax.tree.map(lambda a, p: decay * a + (1 - decay) * p, average, params), average
            )
        new_state = TrainState(
            step=state.step + 1,
            params=params,
            optimizer=unless_skipped(optimizer_state, state.optimizer),
            average=average,
            skipped=state.skipped + ~good,
            skipped_in_a_row=jnp.where(good, 0, state.skipped_in_a_row + 1),
        )
        return new_state, {
            **metrics,
            "gradient_norm": norm,
            "learning_rate": rate(state.step - state.skipped),
            "skipped": new_state.skipped,
            "skipped_in_a_row": new_state.skipped_in_a_row,
            "wish": max_over_devices(wish),
        }

    return parallel(step, donate=(0,))


def _ramped(decay: float, step: Int[Array, ""]) -> Float[Array, ""]:
    """A shorter average at first, so that the random initial weights are soon forgotten."""
    return jnp.minimum(decay, (1.0 + step) / (10.0 + step))
