"""Cross-entropy against two-hot targets (paper, section 2.2), and what else to measure.

Everything is kept as a sum and a count until the sums of all micro-batches, devices
and processes have been added up, so that no mean depends on how a batch was split.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from nsode_jax.data.vocabulary import BOS, EOS, PAD, Vocabulary


class Sum(NamedTuple):
    """A sum over positions, and how many there were."""

    total: Float[Array, ""]
    count: Float[Array, ""]


def means(sums: Mapping[str, Sum]) -> dict[str, Float[Array, ""]]:
    """Totals by counts; 0 where nothing was counted."""
    return {name: s.total / jnp.maximum(s.count, 1.0) for name, s in sums.items()}


def decoder_inputs(
    low: Int[Array, "batch length"], fraction: Float[Array, "batch length"]
) -> tuple[Int[Array, "batch length"], Float[Array, "batch length"]]:
    """Targets shifted right by one position, bos in front."""
    return (
        jnp.pad(low[:, :-1], ((0, 0), (1, 0)), constant_values=BOS),
        jnp.pad(fraction[:, :-1], ((0, 0), (1, 0))),
    )


def decoded_constants(
    logits: Float[Array, "batch length vocabulary"], vocabulary: Vocabulary
) -> Float[Array, "batch length"]:
    """The constant that the model writes at each position, if it writes one.

    The likeliest grid point and its likelier neighbour are mixed by their
    renormalized probabilities (paper, section 2.2, decoding constants).
    """
    log_p = logits[..., vocabulary.grid_start :]
    grid = jnp.asarray(vocabulary.grid, logits.dtype)
    best = jnp.argmax(log_p, axis=-1)

    def at(index):
        inside = jnp.clip(index, 0, len(grid) - 1)
        value = jnp.take_along_axis(log_p, inside[..., None], axis=-1)[..., 0]
        return jnp.where(index == inside, value, -jnp.inf)

    other = jnp.where(at(best + 1) > at(best - 1), best + 1, best - 1)
    weight = jax.nn.sigmoid(at(other) - at(best))
    return (1 - weight) * grid[best] + weight * grid[other]


def two_hot_sums(
    logits: Float[Array, "batch length vocabulary"],
    low: Int[Array, "batch length"],
    fraction: Float[Array, "batch length"],
    vocabulary: Vocabulary,
) -> dict[str, Sum]:
    """Loss and accuracies, summed over the positions that are not padding.

    Returns:
      `loss`: cross-entropy less the entropy of the two-hot targets, so that 0 is
        a perfect prediction; its gradient is the cross-entropy's.
      `accuracy`: positions whose likeliest token carries weight in the target;
        `operator_accuracy`, `variable_accuracy`, `constant_accuracy`: the same over
        targets of one kind.
      `constant_error`: absolute error of the decoded constants, where the target is
        one (teacher forcing).
    """
    log_p = jax.nn.log_softmax(logits)
    high = jnp.minimum(low + 1, logits.shape[-1] - 1)

    def pick(index):
        return jnp.take_along_axis(log_p, index[..., None], axis=-1)[..., 0]

    cross_entropy = -(1 - fraction) * pick(low) - fraction * pick(high)
    entropy = -jax.scipy.special.xlogy(1 - fraction, 1 - fraction) - jax.scipy.special.xlogy(
        fraction, fraction
    )
    best = jnp.argmax(logits, axis=-1)
    hit = (best == low) | ((best == high) & (fraction > 0))

    written = low != PAD
    constant = low >= vocabulary.grid_start
    variable = functools.reduce(operator.or_, [low == v for v in vocabulary.variables])
    others = written & ~constant & ~variable & (low != EOS)
    step = vocabulary.grid[1] - vocabulary.grid[0]
    target = vocabulary.grid[0] + step * (low - vocabulary.grid_start + fraction)
    error = jnp.abs(decoded_constants(logits, vocabulary) - target)

    def over(values, where) -> Sum:
        return Sum(jnp.sum(jnp.where(where, values, 0.0)), jnp.sum(where, dtype=jnp.float32))

    return {
        "loss": over(cross_entropy - entropy, written),
        "accuracy": over(hit, written),
        "operator_accuracy": over(hit, others),
        "variable_accuracy": over(hit, variable),
        "constant_accuracy": over(hit, constant),
        "constant_error": over(error, constant),
    }
