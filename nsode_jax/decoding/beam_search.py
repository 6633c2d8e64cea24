"""Beam search: the most probable expressions of each trajectory.

How tokens are decoded and scored is told in `steps`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from nsode_jax.decoding.grammar import TokenTable, constant_modes, next_open_slots, soft_token
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


class Finished(NamedTuple):
    """The best complete candidates so far, best first; -inf where there is none."""

    log_probability: Float[Array, "batch beams"]
    lengths: Int[Array, "batch beams"]
    written: Written


class BeamState(NamedTuple):
    """Everything the loop carries; `low` and `fraction` are what is fed at `position`."""

    position: Int[Array, ""]
    cache: Cache
    ancestors: Int[Array, "batch beams length"]
    low: Int[Array, "batch beams"]
    fraction: Float[Array, "batch beams"]
    open_slots: Int[Array, "batch beams"]
    log_probability: Float[Array, "batch beams"]
    written: Written
    finished: Finished


def gather_beams(tree: Any, index: Int[Array, "batch kept"]) -> Any:
    """Rows `index` of each trajectory, from every array [batch, beams, ...] of a tree."""
    # [batch, beams, ...] --> [batch, kept, ...]. Indexing the second axis alone moves whole rows;
    # take_along_axis does the same four times slower on a CPU. The indices come from top_k.
    take = jax.vmap(lambda rows, kept: rows.at[kept].get(mode="promise_in_bounds"))
    return jax.tree.map(lambda rows: take(rows, index), tree)


def beam_search(step_fn: StepFn, init_cache: Cache, decoding: Decoding, beams: int) -> BeamResult:
    """The `beams` most probable expressions of each trajectory, as far as a beam finds them.

    Each step extends every live beam by every allowed token. Those that end are
    held against the finished candidates so far, and the best `beams` are kept;
    the best `beams` of the others live on. Ending ones thus take no place from
    live ones (what taking the best 2 `beams` of all achieves elsewhere). The
    search ends when no live beam of any trajectory can still enter its finished
    candidates. Rows of a batch do not influence each other.

    Write `jax.jit` around a function that calls this; shapes are static.

    Args:
      step_fn: one step of the decoder.
      init_cache: its cache before the first step.
      decoding: what is decoded.
      beams: number of live beams, and of candidates in the result.

    Returns:
      The candidates, best first. Rows beyond the number of candidates found are
      empty with log-probability -inf.

    Raises:
      ValueError: for sizes that do not fit each other.
    """
    decoding.require(beams)
    table, batch, max_length = decoding.table, decoding.batch, decoding.max_length
    vocab = table.size
    nothing = Written.nothing(batch, beams, max_length, table)
    none = jnp.full((batch, beams), -jnp.inf, jnp.float32)
    zeros = jnp.zeros((batch, beams), jnp.int32)
    is_eos = (jnp.arange(vocab) == table.eos)[None, None, :]
    own = own_positions(batch, beams, max_length)

    def can_improve(state: BeamState) -> Bool[Array, ""]:
        # Each further token lowers log p.
        best_to_come = state.log_probability.max(axis=1)
        worst_kept = state.finished.log_probability.min(axis=1)
        return (state.position < max_length) & jnp.any(best_to_come > worst_kept)

    def finish(state: BeamState, total: Float[Array, "batch beams"]) -> Finished:
        length = state.position + 1
        eos = jnp.full((batch, beams), table.eos, jnp.int32)
        ended = Finished(
            log_probability=total,
            lengths=jnp.full((batch, beams), length, jnp.int32),
            written=state.written.write(state.position, eos, eos, jnp.zeros_like(total)),
        )
        # [batch, beam], [batch, beam] --> [batch, 2*beam]. The kept come first: they win ties.
        pool = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), state.finished, ended)
        _, best = jax.lax.top_k(pool.log_probability, beams)
        return gather_beams(pool, best)

    def step(state: BeamState) -> BeamState:
        position = state.position
        logits, cache = step_fn(state.cache, state.ancestors, state.low, state.fraction, position)
        log_p = log_softmax(logits, table)
        allowed = allowed_tokens(state.open_slots, state.written, position, decoding)
        gained = log_p
        if decoding.merge_constants:
            gained, is_top = constant_modes(log_p, table)
            allowed &= is_top
        total = jnp.where(allowed, state.log_probability[..., None] + gained, -jnp.inf)
        finished = finish(state, total[..., table.eos])

        # [batch, beam, vocab] --> [batch, beam*vocab]
        going_on = jnp.where(is_eos, -jnp.inf, total).reshape(batch, beams * vocab)
        log_probability, index = jax.lax.top_k(going_on, beams)
        parent, token = index // vocab, index % vocab
        ancestors, written, open_slots, log_p = gather_beams(
            (state.ancestors, state.written, state.open_slots, log_p), parent
        )
        low, fraction = soft_token(log_p, token, table)
        return BeamState(
            position=position + 1,
            cache=cache,
            ancestors=jnp.where(jnp.arange(max_length) <= position, ancestors, own),
            low=low,
            fraction=fraction,
            open_slots=next_open_slots(open_slots, token, table),
            log_probability=log_probability,
            written=written.write(position, token, low, fraction),
            finished=finished,
        )

    start = BeamState(
        position=jnp.zeros((), jnp.int32),
        cache=init_cache,
        ancestors=own,
        low=jnp.full((batch, beams), table.bos, jnp.int32),
        fraction=jnp.zeros((batch, beams), jnp.float32),
        open_slots=zeros + 1,
        # All beams start alike, so only one may live, or all would stay copies of it.
        log_probability=none.at[:, 0].set(0.0),
        written=nothing,
        finished=Finished(none, zeros, nothing),
    )
    finished = jax.lax.while_loop(can_improve, step, start).finished
    return as_result(finished, table)


def as_result(finished: Finished, table: TokenTable) -> BeamResult:
    """The finished candidates, with rows that are none emptied."""
    found = jnp.isfinite(finished.log_probability)
    written = finished.written
    return BeamResult(
        tokens=jnp.where(found[..., None], written.tokens, table.pad),
        low=jnp.where(found[..., None], written.low, table.pad),
        fraction=jnp.where(found[..., None], written.fraction, 0.0),
        log_probability=finished.log_probability,
        lengths=jnp.where(found, finished.lengths, 0),
    )
