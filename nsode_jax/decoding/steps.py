"""One step of decoding, whatever chooses the tokens; knows no model.

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

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from nsode_jax.decoding.grammar import (
    TokenTable,
    legal_tokens,
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


@dataclasses.dataclass(frozen=True)
class Decoding:
    """What is decoded, however the tokens are chosen.

    Attributes:
      table: the tokens.
      batch: number of trajectories.
      max_length: most tokens of a candidate, <eos> included.
      grammar: write only complete prefix expressions. Without it candidates may be
        incomplete, or go on after a complete expression.
      merge_constants: a constant counts with the probability of all tokens of its mode of
        the distribution over the grid (`grammar.constant_modes`), and a beam search
        writes only the top of each. Without it a beam fills with near-copies of one formula,
        and a formula without constants is preferred to one whose probability is spread
        over many values.
      states: quantities of each trajectory, for which the grammar wants an equation
        each; by default all of the table.
    """

    table: TokenTable
    batch: int
    max_length: int
    grammar: bool = True
    merge_constants: bool = False
    states: Int[Array, " batch"] | None = None

    def require(self, rows: int) -> None:
        """Raises ValueError for sizes that could only fail later, and less clearly."""
        if self.batch < 1 or rows < 1:
            raise ValueError(
                f"batch and beams must be at least 1: batch={self.batch}, beams={rows}"
            )
        if self.max_length < 2:
            raise ValueError(
                f"max_length must be at least 2, one token and <eos>: max_length={self.max_length}"
            )


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


def own_positions(batch: int, beams: int, max_length: int) -> Int[Array, "batch beams length"]:
    """The ancestors of beams that never met: each beam itself, at all positions."""
    beam = jnp.arange(beams, dtype=jnp.int32)[None, :, None]
    return jnp.broadcast_to(beam, (batch, beams, max_length))


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
    position: Int[Array, ""],
    decoding: Decoding,
) -> Bool[Array, "batch beams vocab"]:
    """What may be written at `position`: by the grammar, or all but <pad> and <bos> without it."""
    table, states = decoding.table, decoding.states
    remaining_length = decoding.max_length - position
    if not decoding.grammar:
        shape = (*open_slots.shape, table.size)
        return jnp.broadcast_to(writable_tokens(table)[None, None, :], shape)
    if table.separator is None:
        return legal_tokens(open_slots, remaining_length, table)
    if states is None:
        states = jnp.full(open_slots.shape[:1], len(table.states), jnp.int32)
    separators = states[:, None] - 1 - jnp.sum(written.tokens == table.separator, axis=-1)
    legal = legal_tokens(open_slots, remaining_length, table, separators)
    return legal & variables_of(states, table)[:, None, :]
