"""Drawing expressions from the decoder: temperature, top-k and nucleus sampling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from nsode_jax.decoding.grammar import TokenTable
from nsode_jax.decoding.rows import decode_rows
from nsode_jax.decoding.steps import BeamResult, Cache, StepFn


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


def sample(
    step_fn: StepFn,
    init_cache: Cache,
    key: PRNGKeyArray,
    *,
    table: TokenTable,
    batch: int,
    samples: int,
    max_length: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    grammar: bool = True,
    merge_constants: bool = False,
    states: Int[Array, " batch"] | None = None,
) -> BeamResult:
    """Draws `samples` expressions for each trajectory, independently.

    At each step the grammar forbids tokens, then log p is divided by the
    temperature, then all but the `top_k` most probable tokens are dropped, then
    all outside the nucleus of `top_p`; the rest is renormalized and drawn from.
    What is reported is the model's own log p, as in a beam search: without
    temperature, truncation or renormalization.

    Args:
      step_fn: one step of the decoder, as for `beam_search`.
      init_cache: its cache before the first step.
      key: the same key gives the same samples.
      table: the tokens.
      batch: number of trajectories.
      samples: number of candidates of each.
      max_length: most tokens of a candidate, <eos> included.
      temperature: above 0; 1 draws from the model itself.
      top_k: tokens to draw from at most; 0 for all.
      top_p: probability to draw from, in (0, 1]; 1 for all.
      grammar: write only complete prefix expressions.
      merge_constants: report a constant with the probability of its mode, as
        `beam_search` does; what is drawn is the same.
      states: quantities of each trajectory, as for `beam_search`.

    Returns:
      The samples as drawn, unsorted, with duplicates. Without the grammar a row
      that has not ended after `max_length` tokens has log-probability -inf.

    Raises:
      ValueError: for settings out of range or sizes that do not fit each other.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0: {temperature}; use greedy for the limit")
    if top_k < 0 or not 0 < top_p <= 1:
        raise ValueError(
            f"top_k must not be negative, top_p must lie in (0, 1]: {top_k=}, {top_p=}"
        )

    def choose(
        log_p: Float[Array, "batch samples vocab"], position: Int[Array, ""]
    ) -> Int[Array, "batch samples"]:
        logits = log_p / temperature
        if top_k:
            logits = keep_top_k(logits, top_k)
        if top_p < 1:
            logits = keep_top_p(logits, top_p)
        drawn = jax.random.categorical(jax.random.fold_in(key, position), logits, axis=-1)
        return drawn.astype(jnp.int32)

    return decode_rows(
        step_fn,
        init_cache,
        choose,
        table=table,
        batch=batch,
        rows=samples,
        max_length=max_length,
        grammar=grammar,
        merge_constants=merge_constants,
        states=states,
    )
