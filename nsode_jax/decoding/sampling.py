"""Drawing expressions from the decoder: temperature, top-k and nucleus sampling."""

from __future__ import annotations

import dataclasses
import numbers

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from nsode_jax.decoding.rows import decode_rows
from nsode_jax.decoding.steps import BeamResult, Cache, Decoding, StepFn


def keep_top_k(logits: Float[Array, "*shape vocab"], top_k: int) -> Float[Array, "*shape vocab"]:
    """-inf for all but the `top_k` largest (and any equal to the smallest of these)."""
    least = jax.lax.top_k(logits, min(top_k, logits.shape[-1]))[0][..., -1:]
    return jnp.where(logits >= least, logits, -jnp.inf)


def keep_top_p(logits: Float[Array, "*shape vocab"], top_p: float) -> Float[Array, "*shape vocab"]:
    """-inf outside the smallest set of most probable tokens that hold at least `top_p`.

    The nucleus of Holtzman et al., "The curious case of neural text
    degeneration", 2020. The most probable token is always kept.
    """
    descending = jax.lax.top_k(logits, logits.shape[-1])[0]
    probability = jax.nn.softmax(descending, axis=-1)
    held_by_more_probable = jnp.cumsum(probability, axis=-1) - probability
    is_kept = (held_by_more_probable < top_p).at[..., 0].set(True)
    least = jnp.where(is_kept, descending, jnp.inf).min(axis=-1, keepdims=True)
    return jnp.where(logits >= least, logits, -jnp.inf)


_HOTTEST = 1e30
"""Beyond it and below its inverse the quotients would leave the range of float32."""


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; the default draws from the model itself.

    At each step the grammar forbids tokens, then log p is divided by the temperature, then
    all but the `top_k` most probable tokens are dropped, then all outside the nucleus of
    `top_p`; the rest is renormalized and drawn from.

    Attributes:
      temperature: above 0 and finite; lower ones draw what is more probable more often.
      top_k: tokens to draw from at most; 0 for all.
      top_p: probability to draw from, in (0, 1]; 1 for all.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self):
        if not 1 / _HOTTEST <= self.temperature <= _HOTTEST:
            raise ValueError(
                f"temperature must be above 0 and finite, from {1 / _HOTTEST:g} to {_HOTTEST:g}, "
                f"got {self.temperature}; top_k=1 always takes the most probable token"
            )
        if not isinstance(self.top_k, numbers.Integral) or self.top_k < 0:
            raise ValueError(f"top_k must be a whole number, not negative, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p}")

    def logits(self, log_p: Float[Array, "*shape vocab"]) -> Float[Array, "*shape vocab"]:
        """What is drawn from, up to a constant, from log-probabilities."""
        logits = log_p / self.temperature
        if self.top_k:
            logits = keep_top_k(logits, self.top_k)
        return keep_top_p(logits, self.top_p) if self.top_p < 1 else logits


PLAIN = Sampling()
"""Draws from the model itself."""


def sample(
    step_fn: StepFn,
    init_cache: Cache,
    key: PRNGKeyArray,
    decoding: Decoding,
    samples: int,
    sampling: Sampling = PLAIN,
) -> BeamResult:
    """Draws `samples` expressions for each trajectory, independently.

    What is reported is the model's own log p, as in a beam search: without
    temperature, truncation or renormalization.

    Args:
      step_fn: one step of the decoder, as for `beam_search`.
      init_cache: its cache before the first step.
      key: the same key gives the same samples.
      decoding: what is decoded. Merging constants changes what is reported, not what is
        drawn.
      samples: number of candidates of each trajectory.
      sampling: how they are drawn.

    Returns:
      The samples as drawn, unsorted, with duplicates. Without the grammar a row
      that has not ended after `max_length` tokens has log-probability -inf.

    Raises:
      ValueError: for sizes that do not fit each other.
    """

    def choose(
        log_p: Float[Array, "batch samples vocab"], position: Int[Array, ""]
    ) -> Int[Array, "batch samples"]:
        step_key = jax.random.fold_in(key, position)
        drawn = jax.random.categorical(step_key, sampling.logits(log_p), axis=-1)
        return drawn.astype(jnp.int32)

    return decode_rows(step_fn, init_cache, choose, decoding, samples)
