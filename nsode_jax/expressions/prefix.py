"""Prefix notation: an expression as a flat tuple, each operator before its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from nsode_jax.expressions.operators import OPERATORS, arity

Prefix = tuple[str | float, ...]
"""Operators and variables as strings, constants as floats."""

_ARITIES: dict[str | float, int] = {token: operator.arity for token, operator in OPERATORS.items()}


class ExpressionError(ValueError):
    """The text or the tokens are not an expression of our grammar."""


class NotRepresentable(ExpressionError):
    """The simplified expression leaves our language (complex, infinite, other functions)."""


def subtree_end(prefix: Sequence[str | float], start: int) -> int:
    """Index just after the subtree whose root is at `start`.

    Raises:
      ExpressionError: if the subtree is incomplete.
    """
    open_slots, position = 1, start
    try:
        while open_slots:
            open_slots += _ARITIES.get(prefix[position], 0) - 1
            position += 1
    except IndexError:
        message = "the expression is incomplete: an operator lacks an argument"
        raise ExpressionError(message) from None
    return position


def argument_starts(prefix: Sequence[str | float], start: int) -> list[int]:
    """Index of the root of each argument of the operator at `start`."""
    starts, position = [], start + 1
    for _ in range(arity(prefix[start])):
        starts.append(position)
        position = subtree_end(prefix, position)
    return starts
