"""Token ids of the target sequence, and two-hot constants (paper, section 2.2).

A constant c between the grid points x_i and x_{i+1} is the distribution
(1 - fraction) on x_i and fraction on x_{i+1}, with
(1 - fraction) x_i + fraction x_{i+1} = c. Every position of a target is stored
as such a pair (low, fraction); operators and variables have fraction 0.

Several equations are one sequence, with a separator between two (appendix A).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import SupportsFloat, SupportsIndex

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.expressions.coupled import SEPARATOR, SystemConfig, divided, joined
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import OPERATORS, TIME, VARIABLE, arity

PAD, BOS, EOS = 0, 1, 2
_SPECIAL = ("<pad>", "<bos>", "<eos>")
SYMBOLS = (*_SPECIAL, VARIABLE, *OPERATORS)
"""What a network for one quantity that is trained today writes beside constants."""


class NotEncodable(ValueError):
    """The expression is too long, or holds what the vocabulary has not."""


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Tokens: pad, bos, eos, the variables, the operators, a separator, the constant grid.

    There is a separator where there are several quantities.

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
        if self.grid_size < 2 or not 0 < self.max_constant < math.inf:
            raise ValueError("the constant grid needs two points and a positive, finite range")
        if self.symbols[:3] != _SPECIAL or len(set(self.symbols)) != len(self.symbols):
            raise ValueError(f"symbols must begin with {', '.join(_SPECIAL)} and differ")
        known = {*OPERATORS, SEPARATOR, *self.system.variables()}
        for symbol in self.symbols[3:]:
            if symbol not in known:
                raise ValueError(f"the symbol {symbol!r} is no operator of the table")
        if (SEPARATOR in self.symbols) != (self.system.num_states > 1):
            raise ValueError(f"a separator {SEPARATOR!r} stands between several equations")

    pad = PAD
    bos = BOS
    eos = EOS

    @classmethod
    @functools.lru_cache(maxsize=16)
    def of(cls, system: SystemConfig) -> Vocabulary:
        """What a network for such systems that is trained today writes."""
        separator = (SEPARATOR,) if system.num_states > 1 else ()
        return cls(symbols=(*_SPECIAL, *system.variables(), *OPERATORS, *separator))

    @functools.cached_property
    def system(self) -> SystemConfig:
        """What the equations are about."""
        several = sum(symbol.removeprefix(VARIABLE).isdecimal() for symbol in self.symbols)
        return SystemConfig(max(several, 1), TIME in self.symbols)

    @functools.cached_property
    def variables(self) -> tuple[int, ...]:
        """Ids of the quantities in their order, and of the time."""
        return tuple(self._ids[name] for name in self.system.variables() if name in self._ids)

    @property
    def separator(self) -> int | None:
        """Id of the token between two equations; None where there is one equation."""
        return self._ids.get(SEPARATOR)

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
        """`encode_system` of a single equation."""
        return self.encode_system((expression,), max_length)

    def encode_system(
        self, laws: Sequence[Expression], max_length: int
    ) -> tuple[Int[np.ndarray, " length"], Float[np.ndarray, " length"]]:
        """Target of the equations of a system: (low, fraction), eos at its end, then pad.

        Raises:
          NotEncodable: if it needs more than `max_length` positions with eos, a
            constant lies outside the grid, or an operator, a variable or the separator is
            not among the symbols.
        """
        tokens = joined(law.prefix for law in laws)
        if len(tokens) >= max_length:
            raise NotEncodable(f"{len(tokens)} tokens and eos exceed {max_length}")
        low = np.full(max_length, PAD, np.int32)
        fraction = np.zeros(max_length, np.float32)
        for i, token in enumerate(tokens):
            if isinstance(token, str):
                if token not in self._ids:
                    raise NotEncodable(f"the vocabulary has no symbol {token!r}")
                low[i] = self._ids[token]
            else:
                low[i], fraction[i] = self.two_hot(token)
        low[len(tokens)] = EOS
        return low, fraction

    def decode(
        self,
        low: Iterable[SupportsIndex] | Int[np.ndarray, " length"],
        fraction: Iterable[SupportsFloat] | Float[np.ndarray, " length"],
    ) -> Expression:
        """`decode_system` of a single equation.

        Raises:
          ExpressionError: if it is not one complete expression.
        """
        laws = self.decode_system(low, fraction)
        if len(laws) != 1:
            raise ExpressionError(f"{len(laws)} equations, where one is expected")
        (law,) = laws
        return law

    def decode_system(
        self,
        low: Iterable[SupportsIndex] | Int[np.ndarray, " length"],
        fraction: Iterable[SupportsFloat] | Float[np.ndarray, " length"],
    ) -> tuple[Expression, ...]:
        """The equations of a sequence of pairs, up to eos or the end.

        Raises:
          ExpressionError: if they are not complete equations, in as many quantities.
        """
        prefix: list[str | float] = []
        for token, weight in zip(map(operator.index, low), map(float, fraction), strict=True):
            if token == EOS:
                break
            if token >= self.grid_start:
                prefix.append(self.constant(token, weight))
            else:
                prefix.append(self.symbols[token])
        parts = divided(prefix)
        variables = self.system.variables(len(parts))
        return tuple(Expression(part, variables) for part in parts)

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        return {token: i for i, token in enumerate(self.symbols)}
