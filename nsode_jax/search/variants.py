"""Laws near a law: with more coefficients, with rounder constants, with less in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.canonical import TimeLimitExceeded, canonicalize
from nsode_jax.expressions.constants import exponent_constants, is_plain
from nsode_jax.expressions.expression import (
    Expression,
    ExpressionError,
    Prefix,
    subtree_end,
)
from nsode_jax.expressions.operators import OPERATORS, VARIABLE
from nsode_jax.expressions.prefix import joined, with_one_term_less

_NEARBY = (0.9, 1.0, 1.1)
_ALL_BUT = 1e-4
"""Relative distance of a constant from a plain number that may be an error."""


def canonical_or_none(expression: Expression) -> Expression | None:
    """Canonical form, or None where there is none."""
    try:
        return canonicalize(expression)
    except (ExpressionError, TimeLimitExceeded):
        return None


def with_coefficients(expression: Expression) -> Expression:
    """The law with a factor before every term that has none: y - c*y**2 gets one.

    The network's units are not the data's, so a factor of 1 means little.
    """
    prefix = expression.prefix

    def walk(start: int, sign: float) -> Prefix:
        token, end = prefix[start], subtree_end(prefix, start)
        if token in ("add", "sub"):
            middle = subtree_end(prefix, start + 1)
            second = -sign if token == "sub" else sign
            return ("add", *walk(start + 1, sign), *walk(middle, second))
        if token == "neg":
            return walk(start + 1, -sign)
        if not isinstance(token, str):
            return (sign * token,)
        head = start
        while prefix[head] in ("mul", "div"):
            head += 1
        factor = prefix[head]
        if isinstance(factor, str) or prefix[start : head + 1] == ("div", 1.0):
            return ("mul", sign, *prefix[start:end])
        return (*prefix[start:head], sign * factor, *prefix[head + 1 : end])

    general = Expression(walk(0, 1.0), expression.variables)
    # A factor of exactly 1 would vanish in the canonical form.
    values = [1.001 * c if abs(c) == 1.0 else c for c in general.constants]
    return canonical_or_none(general.skeleton.with_constants(values)) or expression


def rounded_laws(expression: Expression) -> Iterator[Expression]:
    """The law with exponents, or nearly whole constants, made whole or half numbers.

    An exponent of 1 or 0 merges terms, as in y**1.00001 - 0.3*y.
    """
    skeleton, constants = expression.skeleton, np.array(expression.constants)
    exponents = exponent_constants(skeleton)
    near = np.array([not is_plain(c) and abs(c) < 10 for c in constants], bool)
    whole, half = np.round(constants), np.round(2 * constants) / 2
    options = []
    for i in np.flatnonzero(near & exponents):
        options += [(i, value) for value in sorted({whole[i], half[i]})]
    for i in np.flatnonzero(near & ~exponents):
        if 0 < abs(whole[i] - constants[i]) <= 1e-3 and whole[i] != 0:
            options.append((i, whole[i]))
    together = np.where(near & exponents, whole, constants)
    variants = [np.where(np.arange(constants.size) == i, value, constants) for i, value in options]
    if len(options) > 1:
        variants.append(together)
    for values in variants:
        rounded = canonical_or_none(skeleton.with_constants(values))
        if rounded is not None and rounded != expression:
            yield rounded


def plain_law(expression: Expression) -> Expression:
    """The law with every constant plain that all but is, in canonical form."""
    constants = np.array(expression.constants)
    half = np.round(2 * constants) / 2
    near = np.abs(half - constants) <= _ALL_BUT * np.abs(constants)
    plain = [n and is_plain(value) for n, value in zip(near, half, strict=True)]
    if (half == constants)[plain].all():
        return expression
    values = np.where(plain, half, constants)
    return canonical_or_none(expression.skeleton.with_constants(values)) or expression


def shortened_laws(expression: Expression) -> Iterator[Expression]:
    """Laws with one term, factor, constant or function left out, in canonical form."""
    prefix = expression.prefix
    for start, token in enumerate(prefix):
        operator = OPERATORS.get(token) if isinstance(token, str) else None
        if operator is None:
            continue
        spans, position = [], start + 1
        for _ in range(operator.arity):
            end = subtree_end(prefix, position)
            spans.append(prefix[position:end])
            position = end
        options: list[Prefix] = []
        if operator.arity == 1:
            options = [spans[0]] if token != "neg" else []
        elif token in ("add", "sub"):
            options = [spans[0], spans[1] if token == "add" else ("neg", *spans[1])]
        elif token == "mul":
            options = [_signed(spans[1], spans[0]), _signed(spans[0], spans[1])]
        elif token == "div":
            options = [spans[0]] if spans[0] != (1.0,) else []
            options.append(_signed(("div", 1.0, *spans[1]), spans[0]))
        elif token == "pow":
            options = [spans[0]]
        for option in options:
            shorter = canonical_or_none(Expression((*prefix[:start], *option, *prefix[position:])))
            if shorter is not None and shorter.complexity < expression.complexity:
                yield shorter


def without_negligible(
    law: Expression, nodes: Float[np.ndarray, " nodes"], tolerance: float
) -> Expression:
    """The law without the terms that change f by next to nothing at some values of y.

    Args:
      law: any law; terms inside of its functions count too.
      nodes: values of y, shape [nodes].
      tolerance: change of f that goes unnoticed, relative to its size there and nearby:
        values may span many decades, and f may be 0 at one of them.

    Returns:
      A law whose f differs by no more than that from the given one's at each node, in
      canonical form; the law itself if all of its terms matter.
    """
    with np.errstate(all="ignore"):
        around = np.abs([law.evaluate(factor * nodes) for factor in _NEARBY])
    rates, most = law.evaluate(nodes), tolerance * np.nanmax(around, axis=0, initial=0.0)
    shorter, changed = law, True
    while changed and np.isfinite(most).all():
        changed = False
        for option in with_one_term_less(shorter.prefix):
            candidate = Expression(option)
            with np.errstate(all="ignore"):
                change = np.abs(candidate.evaluate(nodes) - rates)
            if (change <= most).all():
                shorter, changed = candidate, True
                break
    if shorter is law:
        return law
    return canonical_or_none(shorter) or law


def factored_law(expression: Expression) -> Expression | None:
    """The law with a factor y taken out of all its terms, if it is shorter so.

    0.3*log(y)*y + 0.2*y becomes (0.3*log(y) + 0.2)*y.
    """
    parts: list[Prefix] = []
    for sign, term in _terms(expression.prefix, 1.0):
        rest = _without_y(term)
        if rest is None:
            return None
        parts.append(rest if sign > 0 else ("neg", *rest))
    inner = joined("add", parts)
    factored = canonical_or_none(Expression(("mul", *inner, VARIABLE)))
    if factored is None or factored.complexity >= expression.complexity:
        return None
    return factored


def _terms(prefix: Prefix, sign: float) -> Iterator[tuple[float, Prefix]]:
    """(sign, term) of a sum."""
    if prefix[0] == "neg":
        yield from _terms(prefix[1:], -sign)
    elif prefix[0] in ("add", "sub"):
        middle = subtree_end(prefix, 1)
        yield from _terms(prefix[1:middle], sign)
        yield from _terms(prefix[middle:], sign if prefix[0] == "add" else -sign)
    else:
        yield sign, prefix


def _without_y(term: Prefix) -> Prefix | None:
    """What is left of a product without one factor y; None if it has none."""
    if term == (VARIABLE,):
        return (1.0,)
    if term[0] not in ("mul", "div"):
        return None
    middle = subtree_end(term, 1)
    left, right = term[1:middle], term[middle:]
    rest = _without_y(left)
    if rest is not None:
        return (term[0], *rest, *right)
    rest = _without_y(right) if term[0] == "mul" else None
    return None if rest is None else ("mul", *left, *rest)


def _signed(kept: Prefix, dropped: Prefix) -> Prefix:
    """What stays of a product, with the sign of the constant that goes."""
    negative = not isinstance(dropped[0], str) and dropped[0] < 0
    return ("neg", *kept) if negative else kept
