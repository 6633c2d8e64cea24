"""Expressions written one token after another, each row by itself, tokens chosen as one likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from nsode_jax.decoding.grammar import constant_modes, next_open_slots, soft_token
from nsode_jax.decoding.steps import (
    BeamResult,
    Cache,
    Decoding,
    StepFn,
    Written,
    allowed_tokens,
    log_softmax,
    own_positions,
)


class RowState(NamedTuple):
    """What `decode_rows` carries; `low` and `fraction` are what is fed at `position`."""

    position: Int[Array, ""]
    cache: Cache
    low: Int[Array, "batch rows"]
    fraction: Float[Array, "batch rows"]
    open_slots: Int[Array, "batch rows"]
    log_probability: Float[Array, "batch rows"]
    lengths: Int[Array, "batch rows"]
    ended: Bool[Array, "batch rows"]
    written: Written


def decode_rows(
    step_fn: StepFn,
    init_cache: Cache,
    choose: Callable[[Float[Array, "batch rows vocab"], Int[Array, ""]], Int[Array, "batch rows"]],
    decoding: Decoding,
    rows: int,
) -> BeamResult:
    """Writes each row to its end, one chosen token after another; rows never meet.

    Args:
      step_fn: one step of the decoder.
      init_cache: its cache before the first step.
      choose: from log-probabilities, -inf where a token is not allowed, and the
        position to one token per row.
      decoding: what is decoded.
      rows: number of candidates of each trajectory.

    Returns:
      The rows in the order they were written. A row without <eos> after
      `max_length` tokens keeps what it wrote and has log-probability -inf.

    Raises:
      ValueError: for sizes that do not fit each other.
    """
    decoding.require(rows)
    table, batch, max_length = decoding.table, decoding.batch, decoding.max_length
    own = own_positions(batch, rows, max_length)

    def unfinished(state: RowState) -> Bool[Array, ""]:
        return (state.position < max_length) & ~jnp.all(state.ended)

    def step(state: RowState) -> RowState:
        logits, cache = step_fn(state.cache, own, state.low, state.fraction, state.position)
        log_p = log_softmax(logits, table)
        allowed = allowed_tokens(state.open_slots, state.written, state.position, decoding)
        token = choose(jnp.where(allowed, log_p, -jnp.inf), state.position)
        low, fraction = soft_token(log_p, token, table)
        mass = constant_modes(log_p, table)[0] if decoding.merge_constants else log_p
        gained = jnp.take_along_axis(mass, token[..., None], axis=-1)[..., 0]

        # Rows that have ended are still computed, but write <pad> and gain nothing.
        ended = state.ended
        token = jnp.where(ended, table.pad, token)
        low = jnp.where(ended, table.pad, low)
        fraction = jnp.where(ended, 0.0, fraction)
        return RowState(
            position=state.position + 1,
            cache=cache,
            low=low,
            fraction=fraction,
            open_slots=next_open_slots(state.open_slots, token, table),
            log_probability=state.log_probability + jnp.where(ended, 0.0, gained),
            lengths=state.lengths + ~ended,
            ended=ended | (token == table.eos),
            written=state.written.write(state.position, token, low, fraction),
        )

    zeros = jnp.zeros((batch, rows), jnp.int32)
    start = RowState(
        position=jnp.zeros((), jnp.int32),
        cache=init_cache,
        low=jnp.full((batch, rows), table.bos, jnp.int32),
        fraction=jnp.zeros((batch, rows), jnp.float32),
        open_slots=zeros + 1,
        log_probability=jnp.zeros((batch, rows), jnp.float32),
        lengths=zeros,
        ended=zeros > 0,
        written=Written.nothing(batch, rows, max_length, table),
    )
    state = jax.lax.while_loop(unfinished, step, start)
    return BeamResult(
        *state.written,
        log_probability=jnp.where(state.ended, state.log_probability, -jnp.inf),
        lengths=state.lengths,
    )
