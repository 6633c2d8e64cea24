"""Cross-entropy against two-hot targets (paper, section 2.2)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from nsode_jax.data.vocabulary import BOS, PAD


def decoder_inputs(
    low: Int[Array, "batch length"], fraction: Float[Array, "batch length"]
) -> tuple[Int[Array, "batch length"], Float[Array, "batch length"]]:
    """Targets shifted right by one position, bos in front."""
    return (
        jnp.pad(low[:, :-1], ((0, 0), (1, 0)), constant_values=BOS),
        jnp.pad(fraction[:, :-1], ((0, 0), (1, 0))),
    )


def two_hot_loss(
    logits: Float[Array, "batch length vocabulary"],
    low: Int[Array, "batch length"],
    fraction: Float[Array, "batch length"],
) -> dict[str, Float[Array, ""]]:
    """Loss and accuracies, averaged over the positions that are not padding.

    Returns:
      `loss`: cross-entropy less the entropy of the two-hot targets, so that 0 is
        a perfect prediction; its gradient is the cross-entropy's.
      `accuracy`: share of positions whose likeliest token carries weight in the
        target; `constant_accuracy`, `symbol_accuracy`: the same over constants
        that lie between grid points, and over all other positions.
    """
    log_p = jax.nn.log_softmax(logits)
    high = jnp.minimum(low + 1, logits.shape[-1] - 1)

    def pick(index):
        return jnp.take_along_axis(log_p, index[..., None], axis=-1)[..., 0]

    cross_entropy = -(1 - fraction) * pick(low) - fraction * pick(high)
    entropy = -jax.scipy.special.xlogy(1 - fraction, 1 - fraction) - jax.scipy.special.xlogy(
        fraction, fraction
    )
    weight = (low != PAD).astype(jnp.float32)
    between = (fraction > 0).astype(jnp.float32)
    best = jnp.argmax(logits, axis=-1)
    hit = ((best == low) | ((best == high) & (fraction > 0))).astype(jnp.float32)

    def mean(values, weights):
        return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1.0)

    return {
        "loss": mean(cross_entropy - entropy, weight),
        "accuracy": mean(hit, weight),
        "constant_accuracy": mean(hit, weight * between),
        "symbol_accuracy": mean(hit, weight * (1 - between)),
    }
