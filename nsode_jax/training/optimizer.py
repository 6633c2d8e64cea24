"""AdamW and its learning rate."""

from __future__ import annotations

import optax

from nsode_jax.training.config import TrainingConfig


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
    """AdamW with clipping and the learning-rate schedule.

    The structure of its state is the same for every config, so that a run can go
    on with other settings.
    """
    clip = optax.clip_by_global_norm(config.clip_norm) if config.clip_norm else optax.identity()
    adam = optax.adamw(learning_rate(config), b2=config.adam_b2, weight_decay=config.weight_decay)
    return optax.chain(clip, adam)
