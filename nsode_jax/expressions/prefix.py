"""Prefix notation: an expression as a flat tuple, each operator before its arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

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


def exponent_places(prefix: Sequence[str | float]) -> set[int]:
    """Where the exponents of powers begin."""
    return {subtree_end(prefix, i + 1) for i, token in enumerate(prefix) if token == "pow"}


def substituted(prefix: Prefix, parts: Mapping[str, Prefix]) -> Prefix:
    """The expression with others in place of some of its variables."""
    return tuple(
        itertools.chain.from_iterable(
            parts.get(token, (token,)) if isinstance(token, str) else (token,) for token in prefix
        )
    )


def joined(operator: str, parts: Iterable[Prefix]) -> Prefix:
    """Parts joined by a binary operator, nested to the left; empty ones are left out."""
    whole: Prefix = ()
    for part in parts:
        whole = (operator, *whole, *part) if whole and part else whole or part
    return whole


def times(coefficient: float, term: Prefix) -> Prefix:
    """A term with a coefficient; the coefficient alone for an empty one."""
    return joined("mul", [(coefficient,), term])


def with_one_term_less(prefix: Prefix) -> Iterator[Prefix]:
    """The expression without one term of a sum in it, for each."""
    for start, token in enumerate(prefix):
        if token in ("add", "sub"):
            middle, end = subtree_end(prefix, start + 1), subtree_end(prefix, start)
            right = prefix[middle:end] if token == "add" else ("neg", *prefix[middle:end])
            for kept in (prefix[start + 1 : middle], right):
                yield (*prefix[:start], *kept, *prefix[end:])
