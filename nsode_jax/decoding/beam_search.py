"""Beam search and greedy decoding over a step function; knows no model.

A decoded token is a pair of an id `low` and a `fraction`: the decoder is fed
(1 - fraction) E[low] + fraction E[low + 1], which is how constants off the grid
enter (`grammar.soft_token`); operators and the variable have fraction 0.

Scores are the model's own log-probabilities, the log-softmax over the whole
vocabulary. The grammar only forbids tokens; what it forbids is not renormalized
away, so that scoring a candidate again with teacher forcing gives the same
number.

The cache is never reordered. What a beam wrote stays where it was written, and
`ancestors` says where that is (elsewhere called cache indirection): a beam that takes
over the prefix of another one copies a row of small integers, not all of its keys
and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from nsode_jax.decoding.grammar import (
    TokenTable,
    constant_modes,
    legal_tokens,
    next_open_slots,
    soft_token,
    variables_of,
    writable_tokens,
)

Cache = Any
"""What a step function carries from step to step: self-attention keys and values.

Whatever belongs to a trajectory and not to a beam (the encoder's output, the
keys and values of cross-attention) is closed over by the step function, so that
there is one of it for all beams.
"""

StepFn = Callable[
    [
        Cache,
        Int[Array, "batch beams length"],
        Int[Array, "batch beams"],
        Float[Array, "batch beams"],
        Int[Array, ""],
    ],
    tuple[Float[Array, "batch beams vocab"], Cache],
]
"""`step_fn(cache, ancestors, low, fraction, position) -> (logits, cache)`.

Reads the soft token at `position` of each beam and gives the logits of the
next; at position 0 it is fed <bos>. Position p of what beam b has read was read by
beam `ancestors[..., b, p]`, at `position` and after it by b itself. It must work under
`jax.jit`.
"""


class BeamResult(NamedTuple):
    """Candidates of each trajectory.

    Attributes:
      tokens: the chosen ids with <eos>, then <pad>.
      low: lower id of each soft token.
      fraction: weight of `low + 1` in each soft token; 0 but for constants.
      log_probability: sum of the log-probabilities of the chosen tokens, <eos>
        included; -inf marks a row that is not a finished candidate.
      lengths: number of tokens written, <eos> included.
    """

    tokens: Int[Array, "batch beams length"]
    low: Int[Array, "batch beams length"]
    fraction: Float[Array, "batch beams length"]
    log_probability: Float[Array, "batch beams"]
    lengths: Int[Array, "batch beams"]


class Written(NamedTuple):
    """What each beam has written so far; <pad> from the current position on."""

    tokens: Int[Array, "batch beams length"]
    low: Int[Array, "batch beams length"]
    fraction: Float[Array, "batch beams length"]

    @classmethod
    def nothing(cls, batch: int, beams: int, max_length: int, table: TokenTable) -> Written:
        """Rows of <pad>."""
        padding = jnp.full((batch, beams, max_length), table.pad, jnp.int32)
        return cls(padding, padding, jnp.zeros(padding.shape, jnp.float32))

    def write(
        self,
        position: Int[Array, ""],
        token: Int[Array, "batch beams"],
        low: Int[Array, "batch beams"],
        fraction: Float[Array, "batch beams"],
    ) -> Written:
        """The same with one more soft token in each row."""
        new = Written(token, low, fraction)
        return jax.tree.map(
            lambda row, x: jax.lax.dynamic_update_index_in_dim(row, x, position, axis=2), self, new
        )


class Finished(NamedTuple):
    """The best complete candidates so far, best first; `score` -inf where there is none."""

    score: Float[Array, "batch beams"]
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


def own_positions(batch: int, beams: int, max_length: int) -> Int[Array, "batch beams length"]:
    """The ancestors of beams that never met: each beam itself, at all positions."""
    beam = jnp.arange(beams, dtype=jnp.int32)[None, :, None]
    return jnp.broadcast_to(beam, (batch, beams, max_length))


def check_sizes(batch: int, beams: int, max_length: int) -> None:
    """Raises ValueError for sizes that could only fail later, and less clearly."""
    if batch < 1 or beams < 1:
        raise ValueError(f"batch and beams must be at least 1: {batch=}, {beams=}")
    if max_length < 2:
        raise ValueError(f"max_length must be at least 2, one token and <eos>: {max_length=}")


def log_softmax(
    logits: Float[Array, "batch beams vocab"], table: TokenTable
) -> Float[Array, "batch beams vocab"]:
    """The model's log-probabilities, in float32 whatever the model computes in."""
    if logits.shape[-1] != table.size:
        raise ValueError(f"the step function gives {logits.shape[-1]} logits, not {table.size}")
    return jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)


def allowed_tokens(
    open_slots: Int[Array, "batch beams"],
    written: Written,
    remaining_length: Int[Array, ""],
    states: Int[Array, " batch"] | None,
    table: TokenTable,
    grammar: bool,
) -> Bool[Array, "batch beams vocab"]:
    """What may be written next: by the grammar, or all but <pad> and <bos> without it."""
    if not grammar:
        shape = (*open_slots.shape, table.size)
        return jnp.broadcast_to(writable_tokens(table)[None, None, :], shape)
    if table.separator is None:
        return legal_tokens(open_slots, remaining_length, table)
    if states is None:
        states = jnp.full(open_slots.shape[:1], len(table.states), jnp.int32)
    separators = states[:, None] - 1 - jnp.sum(written.tokens == table.separator, axis=-1)
    legal = legal_tokens(open_slots, remaining_length, table, separators)
    return legal & variables_of(states, table)[:, None, :]


def gather_beams(tree: Any, index: Int[Array, "batch kept"]) -> Any:
    """Rows `index` of each trajectory, from every array [batch, beams, ...] of a tree."""
    # [batch, beams, ...] --> [batch, kept, ...]. Indexing the second axis alone moves whole rows;
    # take_along_axis does the same four times slower on a CPU. The indices come from top_k.
    take = jax.vmap(lambda rows, kept: rows.at[kept].get(mode="promise_in_bounds"))
    return jax.tree.map(lambda rows: take(rows, index), tree)


def beam_search(
    step_fn: StepFn,
    init_cache: Cache,
    *,
    table: TokenTable,
    batch: int,
    beams: int,
    max_length: int,
    length_penalty: float = 0.0,
    grammar: bool = True,
    merge_constants: bool = False,
    states: Int[Array, " batch"] | None = None,
) -> BeamResult:
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
      table: the tokens.
      batch: number of trajectories.
      beams: number of live beams, and of candidates in the result.
      max_length: most tokens of a candidate, <eos> included.
      length_penalty: a >= 0; candidates are ranked by log p / length^a. At 0,
        the default, by log p.
      grammar: write only complete prefix expressions. Without it candidates
        may be incomplete or go on after a complete expression.
      merge_constants: of tokens of one mode of the distribution over the grid write
        only the top, with the probability of all (`grammar.constant_modes`). Without it
        the beam fills with near-copies of one formula, and a formula without constants
        is preferred to one whose probability is spread over many values.
      states: quantities of each trajectory, for which the grammar wants an equation
        each; by default all of the table.

    Returns:
      The candidates, best first. Rows beyond the number of candidates found are
      empty with log-probability -inf.

    Raises:
      ValueError: for sizes that do not fit each other.
    """
    check_sizes(batch, beams, max_length)
    if length_penalty < 0:
        raise ValueError(f"length_penalty must not be negative: {length_penalty}")
    vocab = table.size
    nothing = Written.nothing(batch, beams, max_length, table)
    none = jnp.full((batch, beams), -jnp.inf, jnp.float32)
    zeros = jnp.zeros((batch, beams), jnp.int32)
    is_eos = (jnp.arange(vocab) == table.eos)[None, None, :]
    own = own_positions(batch, beams, max_length)

    def can_improve(state: BeamState) -> Bool[Array, ""]:
        # Each further token lowers log p, and the longest candidate is divided by most.
        best_to_come = state.log_probability.max(axis=1) / max_length**length_penalty
        worst_kept = state.finished.score.min(axis=1)
        return (state.position < max_length) & jnp.any(best_to_come > worst_kept)

    def finish(state: BeamState, total: Float[Array, "batch beams"]) -> Finished:
        length = state.position + 1
        eos = jnp.full((batch, beams), table.eos, jnp.int32)
        ended = Finished(
            score=total / length.astype(jnp.float32) ** length_penalty,
            log_probability=total,
            lengths=jnp.full((batch, beams), length, jnp.int32),
            written=state.written.write(state.position, eos, eos, jnp.zeros_like(total)),
        )
        # [batch, beam], [batch, beam] --> [batch, 2*beam]. The kept come first: they win ties.
        pool = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), state.finished, ended)
        _, best = jax.lax.top_k(pool.score, beams)
        return gather_beams(pool, best)

    def step(state: BeamState) -> BeamState:
        position = state.position
        logits, cache = step_fn(state.cache, state.ancestors, state.low, state.fraction, position)
        log_p = log_softmax(logits, table)
        allowed = allowed_tokens(
            state.open_slots, state.written, max_length - position, states, table, grammar
        )
        gained = log_p
        if merge_constants:
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
        finished=Finished(none, none, zeros, nothing),
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
    *,
    table: TokenTable,
    batch: int,
    rows: int,
    max_length: int,
    grammar: bool,
    merge_constants: bool = False,
    states: Int[Array, " batch"] | None = None,
) -> BeamResult:
    """Writes each row to its end, one chosen token after another; rows never meet.

    Args:
      step_fn: one step of the decoder.
      init_cache: its cache before the first step.
      choose: from log-probabilities, -inf where a token is not allowed, and the
        position to one token per row.
      table: the tokens.
      batch: number of trajectories.
      rows: number of candidates of each.
      max_length: most tokens of a candidate, <eos> included.
      grammar: write only complete prefix expressions.
      merge_constants: a constant counts with the probability of its mode, as in
        `beam_search`.
      states: quantities of each trajectory, as in `beam_search`.

    Returns:
      The rows in the order they were written. A row without <eos> after
      `max_length` tokens keeps what it wrote and has log-probability -inf.

    Raises:
      ValueError: for sizes that do not fit each other.
    """
    check_sizes(batch, rows, max_length)
    own = own_positions(batch, rows, max_length)

    def unfinished(state: RowState) -> Bool[Array, ""]:
        return (state.position < max_length) & ~jnp.all(state.ended)

    def step(state: RowState) -> RowState:
        logits, cache = step_fn(state.cache, own, state.low, state.fraction, state.position)
        log_p = log_softmax(logits, table)
        allowed = allowed_tokens(
            state.open_slots, state.written, max_length - state.position, states, table, grammar
        )
        token = choose(jnp.where(allowed, log_p, -jnp.inf), state.position)
        low, fraction = soft_token(log_p, token, table)
        mass = constant_modes(log_p, table)[0] if merge_constants else log_p
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


def greedy(
    step_fn: StepFn,
    init_cache: Cache,
    *,
    table: TokenTable,
    batch: int,
    max_length: int,
    grammar: bool = True,
    states: Int[Array, " batch"] | None = None,
) -> BeamResult:
    """The most probable allowed token at each step; a result with one beam.

    With the grammar this is `beam_search` with one beam. Without it a beam
    search may find better, as it also weighs ending where <eos> is not the most
    probable token.

    Args and errors are those of `beam_search`; the cache has beams = 1. A row
    without <eos> after `max_length` tokens has log-probability -inf.
    """
    return decode_rows(
        step_fn,
        init_cache,
        lambda log_p, position: jnp.argmax(log_p, axis=-1).astype(jnp.int32),
        table=table,
        batch=batch,
        rows=1,
        max_length=max_length,
        grammar=grammar,
        states=states,
    )
