"""Several coupled equations dy_k/dt = f_k(y_1, ..., y_K[, t]) as one sequence: f_1 | f_2.

Paper, appendix A: each equation may hold the symbols of all quantities, and of the time, and
a separator stands between two equations. One equation is the case of a single quantity.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import TypeVar

from nsode_jax.expressions.expression import Expression, ExpressionError, Skeleton
from nsode_jax.expressions.operators import TIME, VARIABLE

SEPARATOR = "|"
"""Stands between two equations."""

MOST_STATES = 4

_Token = TypeVar("_Token", str, str | float)


@dataclasses.dataclass(frozen=True)
class SystemConfig:
    """What the equations are about. The default is the paper's: one quantity, no time.

    Attributes:
      num_states: most quantities of a system, each with an equation of its own; there are
        systems of 1 to so many.
      explicit_time: whether equations may depend on the time.
    """

    num_states: int = 1
    explicit_time: bool = False

    def __post_init__(self):
        if not 1 <= self.num_states <= MOST_STATES:
            raise ValueError(f"num_states must be 1 to {MOST_STATES}, got {self.num_states}")

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the quantities: y, or y1, y2, ... where there may be several."""
        if self.num_states == 1:
            return (VARIABLE,)
        return tuple(f"{VARIABLE}{i + 1}" for i in range(self.num_states))

    def variables(self, states: int | None = None) -> tuple[str, ...]:
        """Variables of the equations of a system of so many quantities; by default of the most.

        Raises:
          ExpressionError: if there are no systems of so many.
        """
        if states is not None and not 1 <= states <= self.num_states:
            raise ExpressionError(f"{states} equations, but there are 1 to {self.num_states}")
        return (*self.states[:states], *((TIME,) if self.explicit_time else ()))

    def skeleton(self, key: str) -> SystemSkeleton:
        """The skeleton of a system from its key.

        Raises:
          ExpressionError: if it is no such key.
        """
        parts = key.split(f" {SEPARATOR} ")
        variables = self.variables(len(parts))
        return SystemSkeleton(tuple(Skeleton.from_key(part, variables) for part in parts))


SCALAR = SystemConfig()
"""One quantity whose equation does not depend on the time."""


@dataclasses.dataclass(frozen=True)
class SystemSkeleton:
    """The equations of a system without the values of their constants.

    Attributes:
      parts: of each equation, in the order of the quantities; all of the same variables.
    """

    parts: tuple[Skeleton, ...]

    @functools.cached_property
    def tokens(self) -> tuple[str, ...]:
        """All equations in prefix notation, with separators between them."""
        return joined(part.tokens for part in self.parts)

    @functools.cached_property
    def key(self) -> str:
        """The skeleton as text; that of one equation is its own key."""
        return " ".join(self.tokens)

    def with_constants(self, constants: Iterable[float]) -> tuple[Expression, ...]:
        """The equations with these constants, in the order of the tokens.

        Raises:
          ExpressionError: if there are too few or too many.
        """
        values = iter(constants)
        *first, last = self.parts
        laws = [part.with_constants(itertools.islice(values, part.num_constants)) for part in first]
        return (*laws, last.with_constants(values))


def skeleton_of(laws: Sequence[Expression]) -> SystemSkeleton:
    """The equations without the values of their constants."""
    return SystemSkeleton(tuple(law.skeleton for law in laws))


def joined(sequences: Iterable[Sequence[_Token]]) -> tuple[_Token, ...]:
    """Equations in prefix notation as one sequence."""
    tokens: list[_Token] = []
    for sequence in sequences:
        tokens += [*([SEPARATOR] if tokens else []), *sequence]
    return tuple(tokens)


def divided(tokens: Sequence[_Token]) -> list[tuple[_Token, ...]]:
    """The equations between the separators; the inverse of `joined`."""
    ends = [i for i, token in enumerate(tokens) if token == SEPARATOR]
    starts = [0, *(end + 1 for end in ends)]
    return [tuple(tokens[a:b]) for a, b in zip(starts, [*ends, len(tokens)], strict=True)]
