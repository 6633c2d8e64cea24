"""The language a decoder writes: prefix expressions, and constants as soft tokens.

Of a system of K quantities it writes K expressions with separators between them.

Nothing here knows a model or the vocabulary's class; a `TokenTable` of plain
integers says all that decoding must know about the tokens.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int


@dataclasses.dataclass(frozen=True)
class TokenTable:
    """What decoding must know about the tokens.

    Attributes:
      arities: number of arguments of each token; 0 for the variable, the
        constants of the grid and the three special tokens. At least one token
        that is not special has arity 0, or no expression could ever end.
      bos: fed before the first token, never written.
      eos: written after a complete expression.
      pad: fills the rest of a row, never written.
      grid_start: first of the `grid_size` contiguous tokens of the constant
        grid, in increasing order of value.
      grid_size: number of grid tokens; 0 for a language without constants.
      states: the tokens of the quantities that have an equation each, in their order;
        needed where there are several.
      separator: written between two equations; None where there is one.
    """

    arities: tuple[int, ...]
    bos: int
    eos: int
    pad: int
    grid_start: int
    grid_size: int
    states: tuple[int, ...] = ()
    separator: int | None = None

    def __post_init__(self) -> None:
        special = {self.bos, self.eos, self.pad}
        if len(special) != 3 or not special <= set(range(self.size)):
            raise ValueError(f"bos, eos and pad must be three tokens below {self.size}: {special}")
        if self.separator is not None and len(self.states) < 2:
            raise ValueError("a separator needs the tokens of several quantities")
        special |= {self.separator}
        if self.grid_size == 1 or not 0 <= self.grid_start <= self.size - self.grid_size:
            raise ValueError(
                f"the grid needs 0 or at least 2 tokens, all below {self.size}: "
                f"grid_start={self.grid_start}, grid_size={self.grid_size}"
            )
        if all(n > 0 or token in special for token, n in enumerate(self.arities)):
            raise ValueError("no token can end an expression: none but the special has arity 0")

    @property
    def size(self) -> int:
        """Number of tokens in the vocabulary."""
        return len(self.arities)

    @property
    def special(self) -> Bool[np.ndarray, " vocab"]:
        """Tokens that are no part of an expression."""
        special = [t for t in (self.pad, self.bos, self.eos, self.separator) if t is not None]
        return np.isin(np.arange(self.size), special)


def next_open_slots(
    open_slots: Int[Array, "*shape"], token: Int[Array, "*shape"], table: TokenTable
) -> Int[Array, "*shape"]:
    """Arguments still to be written once `token` has filled one slot.

    A decoder starts with one open slot, the root; a token of arity a fills one
    and opens a. At 0 the expression is complete. A separator opens the root of the next
    one. The other special tokens change nothing.
    """
    opened = np.where(table.special, 0, np.asarray(table.arities) - 1)
    if table.separator is not None:
        opened[table.separator] = 1
    return open_slots + jnp.asarray(opened, jnp.int32)[token]


def legal_tokens(
    open_slots: Int[Array, "*shape"],
    remaining_length: ArrayLike,
    table: TokenTable,
    separators: ArrayLike = 0,
) -> Bool[Array, "*shape vocab"]:
    """Tokens after which all prefix expressions can still be completed in time.

    After an incomplete expression a token of arity a is legal if it, one leaf
    for each slot then open, a separator and a leaf for each further expression, and
    <eos> fit in the remaining length. After a complete one only a separator is legal,
    or <eos> where no further one is to be written. <pad> and <bos> never are.

    Args:
      open_slots: arguments still to be written.
      remaining_length: tokens that may still be written, this one and <eos>
        included; a scalar or an array like `open_slots`.
      table: the tokens.
      separators: how many are still to be written; a scalar or an array like
        `open_slots`.
    """
    # [*shape] --> [*shape, 1], to be broadcast against [1, ..., 1, vocab].
    slots = open_slots[..., None]
    remaining = jnp.broadcast_to(jnp.asarray(remaining_length), open_slots.shape)[..., None]
    token = np.arange(table.size).reshape((1,) * open_slots.ndim + (-1,))
    arity = np.asarray(table.arities, np.int32)[token]

    shortest = slots - 1 + arity + 2  # this token, a leaf for each slot then open, and <eos>
    if table.separator is None:
        extends = (slots > 0) & (shortest <= remaining) & ~table.special[token]
        return extends | ((slots == 0) & (remaining > 0) & (token == table.eos))
    further = jnp.broadcast_to(jnp.asarray(separators), open_slots.shape)[..., None]
    shortest += 2 * further
    extends = (slots > 0) & (shortest <= remaining) & ~table.special[token]
    complete = (slots == 0) & (2 * further < remaining)
    closing = jnp.where(further > 0, table.separator, table.eos)
    return extends | (complete & (token == closing))


def variables_of(states: Int[Array, "*shape"], table: TokenTable) -> Bool[Array, "*shape vocab"]:
    """Tokens that equations of so many quantities may hold: no quantity beyond them."""
    place = np.zeros(table.size, np.int32)
    place[list(table.states)] = np.arange(len(table.states))
    return jnp.asarray(place).reshape((1,) * states.ndim + (-1,)) < states[..., None]


def writable_tokens(table: TokenTable) -> Bool[np.ndarray, " vocab"]:
    """All tokens but <pad> and <bos>: what may be written without a grammar.

    These two are never a target in training, and a written <pad> could not be
    told from padding.
    """
    return ~np.isin(np.arange(table.size), (table.pad, table.bos))


def constant_modes(
    log_probability: Float[Array, "*shape vocab"], table: TokenTable
) -> tuple[Float[Array, "*shape vocab"], Bool[Array, "*shape vocab"]]:
    """The modes of the distribution over the grid, with all tokens that lead up to each.

    A constant is read off two neighbouring tokens (`soft_token`), so choosing another
    token of the same mode gives nearly the same constant again. Taken together they are
    one constant, at the top of the mode, with the probability of all its tokens.

    Args:
      log_probability: log-probabilities.
      table: the tokens.

    Returns:
      The log-probability of each token, of a grid token that of its mode; and whether a
      token is the top of its mode, true of all that are not on the grid.
    """
    first, end = table.grid_start, table.grid_start + table.grid_size
    everywhere = jnp.ones(log_probability.shape, bool)
    if not table.grid_size:
        return log_probability, everywhere
    grid = log_probability[..., first:end]
    outside = jnp.full((*grid.shape[:-1], 1), -jnp.inf, grid.dtype)
    below = jnp.concatenate([outside, grid[..., :-1]], axis=-1)
    above = jnp.concatenate([grid[..., 1:], outside], axis=-1)
    # Upwards lies the likelier neighbour; of two equal tokens the upper one is the top.
    is_top = (grid >= below) & (grid > above)
    to_below = ~is_top & (below > above)
    to_above = ~is_top & ~to_below
    # A mode begins where neither of two neighbours leads to the other.
    begins = ~to_below[..., 1:] & ~to_above[..., :-1]
    mode = jnp.cumsum(begins, axis=-1)
    mode = jnp.concatenate([jnp.zeros_like(mode[..., :1]), mode], axis=-1)
    # [*shape, grid, grid]: whether two tokens are of one mode.
    together = mode[..., :, None] == mode[..., None, :]
    mass = jax.nn.logsumexp(jnp.where(together, grid[..., None, :], -jnp.inf), axis=-1)
    return (
        log_probability.at[..., first:end].set(mass),
        everywhere.at[..., first:end].set(is_top),
    )


def soft_token(
    log_probability: Float[Array, "*shape vocab"],
    token: Int[Array, "*shape"],
    table: TokenTable,
) -> tuple[Int[Array, "*shape"], Float[Array, "*shape"]]:
    """The soft token to feed back for a chosen one (paper, section 2.2, decoding constants).

    A grid token i is joined by its likelier neighbour j, i-1 or i+1 (at an end
    of the grid by its only one, at a tie by i-1), and their two probabilities
    are renormalized:

      low = min(i, j),   fraction = p(low + 1) / (p(low) + p(low + 1)).

    Its embedding is (1 - fraction) E[low] + fraction E[low + 1], and its value
    lies at the same place between the two grid points.

    Args:
      log_probability: log-probabilities, or logits, of the step that chose.
      token: the chosen tokens.
      table: the tokens.

    Returns:
      (low, fraction); (token, 0) for tokens that are not on the grid. A low of
      the last token only occurs with fraction 0.
    """
    if table.grid_size == 0:
        return token, jnp.zeros(token.shape, jnp.float32)
    first, last = table.grid_start, table.grid_start + table.grid_size - 1
    is_constant = (token >= first) & (token <= last)

    def at(index: Int[Array, "*shape"]) -> Float[Array, "*shape"]:
        index = jnp.clip(index, 0, table.size - 1)[..., None]
        return jnp.take_along_axis(log_probability, index, axis=-1)[..., 0]

    below = jnp.where(token > first, at(token - 1), -jnp.inf)
    above = jnp.where(token < last, at(token + 1), -jnp.inf)
    # At the ends of the grid the missing neighbour must lose even if the other has p = 0.
    joined_by_above = (token == first) | ((token < last) & (above > below))
    chosen = at(token)
    fraction = jax.nn.sigmoid(jnp.where(joined_by_above, above - chosen, chosen - below))
    low = jnp.where(joined_by_above, token, token - 1)
    return (
        jnp.where(is_constant, low, token),
        jnp.where(is_constant, fraction, 0.0).astype(jnp.float32),
    )
