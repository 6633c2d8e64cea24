"""Token ids of the target sequence, and two-hot constants (paper, section 2.2).

A constant c between the grid points x_i and x_{i+1} is the distribution
(1 - fraction) on x_i and fraction on x_{i+1}, with
(1 - fraction) x_i + fraction x_{i+1} = c. Every position of a target is stored
as such a pair (low, fraction); operators and the variable have fraction 0.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS, VARIABLE, arity

PAD, BOS, EOS = 0, 1, 2
_SPECIAL = ("<pad>", "<bos>", "<eos>")
SYMBOLS = (*_SPECIAL, VARIABLE, *OPERATORS)
"""What a network that is trained today writes beside constants."""


class NotEncodable(ValueError):
    """The expression is too long, or holds what the vocabulary has not."""


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Tokens: pad, bos, eos, the variable, the operators, the constant grid.

    Attributes:
      max_constant: the grid covers [-max_constant, max_constant].
      grid_size: number of equidistant grid points (paper, appendix B.3: 21).
      symbols: all tokens that are not grid points, in the order of their ids. They are
        stored with a network's weights, as the table of operators may grow.

    Raises:
      ValueError: if the grid is none, or a symbol is unknown here.
    """

    max_constant: float = 10.0
    grid_size: int = 21
    symbols: tuple[str, ...] = SYMBOLS

    def __post_init__(self):
        if self.grid_size < 2 or self.max_constant <= 0:
            raise ValueError("the constant grid needs two points and a positive range")
        if self.symbols[:3] != _SPECIAL or len(set(self.symbols)) != len(self.symbols):
            raise ValueError(f"symbols must begin with {', '.join(_SPECIAL)} and differ")
        for symbol in self.symbols[3:]:
            if symbol not in OPERATORS and symbol != VARIABLE:
                raise ValueError(f"the symbol {symbol!r} is no operator of the table")

    pad = PAD
    bos = BOS
    eos = EOS

    @property
    def grid_start(self) -> int:
        """Id of the lowest grid point; the grid is the end of the vocabulary."""
        return len(self.symbols)

    @functools.cached_property
    def grid(self) -> Float[np.ndarray, " grid"]:
        """Values of the grid points."""
        return np.linspace(-self.max_constant, self.max_constant, self.grid_size)

    @property
    def size(self) -> int:
        """Number of tokens."""
        return len(self.symbols) + self.grid_size

    @functools.cached_property
    def arities(self) -> tuple[int, ...]:
        """Number of arguments of each token; 0 for all that are not operators."""
        return tuple(arity(token) for token in self.symbols) + (0,) * self.grid_size

    def two_hot(self, constant: float) -> tuple[int, float]:
        """Token id of the grid point below a constant, and the upper one's weight.

        Raises:
          NotEncodable: if the constant lies outside the grid.
        """
        if not -self.max_constant <= constant <= self.max_constant:
            raise NotEncodable(f"the constant {constant} lies outside the grid")
        position = (constant + self.max_constant) / (2 * self.max_constant) * (self.grid_size - 1)
        index = int(position)
        return self.grid_start + index, position - index

    def constant(self, low: int, fraction: float) -> float:
        """The constant of a two-hot pair; the inverse of `two_hot`."""
        index = low - self.grid_start
        step = 2 * self.max_constant / (self.grid_size - 1)
        return float(self.grid[index] + fraction * step)

    def encode(
        self, expression: Expression, max_length: int
    ) -> tuple[Int[np.ndarray, " length"], Float[np.ndarray, " length"]]:
        """Target of an expression: (low, fraction), eos at its end, then pad.

        Raises:
          NotEncodable: if it needs more than `max_length` positions with eos, a
            constant lies outside the grid, or an operator or variable is not among the
            symbols.
        """
        if len(expression.prefix) >= max_length:
            raise NotEncodable(f"{len(expression.prefix)} tokens and eos exceed {max_length}")
        low = np.full(max_length, PAD, np.int32)
        fraction = np.zeros(max_length, np.float32)
        for i, token in enumerate(expression.prefix):
            if isinstance(token, str):
                if token not in self._ids:
                    raise NotEncodable(f"the vocabulary has no symbol {token!r}")
                low[i] = self._ids[token]
            else:
                low[i], fraction[i] = self.two_hot(token)
        low[len(expression.prefix)] = EOS
        return low, fraction

    def decode(
        self,
        low: Iterable[int] | Int[np.ndarray, " length"],
        fraction: Iterable[float] | Float[np.ndarray, " length"],
    ) -> Expression:
        """The expression of a sequence of pairs, up to eos or the end.

        Raises:
          ExpressionError: if it is not one complete expression.
        """
        prefix: list[str | float] = []
        for token, weight in zip(low, fraction, strict=True):
            if token == EOS:
                break
            if token >= self.grid_start:
                prefix.append(self.constant(int(token), float(weight)))
            else:
                prefix.append(self.symbols[token])
        return Expression(tuple(prefix))

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.symbols)}
