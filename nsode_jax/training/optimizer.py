"""AdamW or Muon, and the learning rate."""

from __future__ import annotations

from typing import Any

import jax
import optax

from nsode_jax.training.config import TrainingConfig

_MATRICES = ("patch_projection", "encoder", "decoder")
"""Parts of the network whose kernels Muon updates; AdamW has embeddings and output."""
_CONSISTENT_RMS = 0.2
"""Updates as large as AdamW's, whatever the shape of a matrix, so that both can share a
learning rate (Liu et al., "Muon is scalable for LLM training", 2025)."""


def learning_rate(config: TrainingConfig) -> optax.Schedule:
    """Linear warm-up, then constant (the paper's) or a cosine down to 0.

    A constant rate may go down to 0 in a line over the last `decay_steps`, so that a trunk
    without an end can be branched off from at any of its steps (warm-up, stable, decay: Hu
    et al., "MiniCPM", 2024).
    """
    peak, warmup_steps = config.learning_rate, config.warmup_steps
    schedules, ends = [optax.linear_schedule(0.0, peak, warmup_steps)], [warmup_steps]
    if config.schedule == "cosine":
        schedules.append(optax.cosine_decay_schedule(peak, max(config.steps - warmup_steps, 1)))
    else:
        schedules.append(optax.constant_schedule(peak))
    if config.decay_steps:
        # Of a branch from a trunk that is young, fewer: at the end the rate is 0.
        begin = max(config.steps - config.decay_steps, warmup_steps)
        schedules.append(optax.linear_schedule(peak, 0.0, max(config.steps - begin, 1)))
        ends.append(begin)
    return optax.join_schedules(schedules, ends)


def make_optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """AdamW or Muon with clipping and the learning-rate schedule.

    Beside Muon, AdamW has Nesterov momentum, as Optax has it. For either the structure of the
    state is the same whatever the other settings are, so that a run can go on with others.
    """
    clip = optax.clip_by_global_norm(config.clip_norm) if config.clip_norm else optax.identity()
    rate = learning_rate(config)
    if config.optimizer == "muon":
        update = optax.contrib.muon(
            rate,
            weight_decay=config.weight_decay,
            adam_b2=config.adam_b2,
            adam_weight_decay=config.weight_decay,
            muon_weight_dimension_numbers=_matrices,
            consistent_rms=_CONSISTENT_RMS,
        )
    else:
        update = optax.adamw(rate, b2=config.adam_b2, weight_decay=config.weight_decay)
    return optax.chain(clip, update)


def _matrices(params: Any) -> Any:
    """Marks the kernels that Muon updates, as Optax asks for it."""

    def mark(path, _):
        names = [str(entry.key) for entry in path]
        is_one = names[0] in _MATRICES and names[-1] == "kernel"
        return optax.contrib.MuonDimensionNumbers() if is_one else None

    return jax.tree_util.tree_map_with_path(mark, params)
