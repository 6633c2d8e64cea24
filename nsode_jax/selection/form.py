"""The form of a law: what is left of it when units are arbitrary and constants are not told.

With y and t in other units the law f is m f(k y): y - y**2 becomes c*y - c*y**2, and
sqrt(y) c*sqrt(y). Laws that differ by units only have one form. Where y is an angle,
inside sin or cos with a whole factor, its unit is not arbitrary.
"""

from __future__ import annotations

import functools
from itertools import pairwise

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import exponent_constants, is_plain
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.operators import (
    CONSTANT,
    NEGATIVE_CONSTANT,
    OPERATORS,
    UNIT,
    VARIABLE,
    arity,
)
from nsode_jax.expressions.prefix import (
    Prefix,
    exponent_places,
    joined,
    substituted,
    subtree_end,
    times,
)
from nsode_jax.selection.complexity import generic

Form = tuple[str, ...]
"""A canonical skeleton in prefix notation, signs kept, in which exponents that are plain
numbers stand as they are: ("mul", "-c", "pow", "y", "2")."""

_RATE_UNIT, _VALUE_UNIT = 1.3819660112501051, 1.2360679774997898


def form_of(law: Expression | Skeleton) -> Form:
    """The form of a law.

    Args:
      law: an expression, or a skeleton, whose exponents count as fitted ones.

    Raises:
      NotRepresentable: if the law has no canonical form.
    """
    if isinstance(law, Skeleton):
        law = law.with_constants([sign * 0.7 for sign in law.signs])
    if any(pair[0] == "pow" and not isinstance(pair[1], str) for pair in pairwise(law.prefix)):
        law = canonicalize(law)  # The sign of log(2) is in 2**y.
    exponents = exponent_constants(law.skeleton)
    kept = iter(exponents)
    units = _units(law.prefix)
    changed: list[str | float] = []
    for i, token in enumerate(law.prefix):
        if isinstance(token, str) or i in units:
            changed.append(token)
        elif (next(kept) and is_plain(token)) or token == 0.0:
            changed.append(token)
        else:
            changed.append(generic(i, token))
    return _form(tuple(changed))


def _units(prefix: Prefix) -> set[int]:
    return {i + 1 for i in range(len(prefix) - 1) if prefix[i : i + 2] == ("div", 1.0)}


@functools.lru_cache(maxsize=200_000)
def _form(prefix: Prefix) -> Form:
    inside = {} if _is_angle(prefix) else {VARIABLE: times(_VALUE_UNIT, (VARIABLE,))}
    scaled = times(_RATE_UNIT, substituted(prefix, inside))
    canonical = canonicalize(Expression(_without_inverse_logarithms(scaled)))
    exponents = exponent_places(canonical.prefix)
    units = _units(canonical.prefix)
    form = []
    for i, token in enumerate(canonical.prefix):
        if isinstance(token, str):
            form.append(token)
        elif i in units:
            form.append(UNIT)
        elif i in exponents and is_plain(token):
            form.append(f"{token:g}")
        else:
            form.append(CONSTANT if token >= 0 else NEGATIVE_CONSTANT)
    return _ordered(tuple(form))


def _without_inverse_logarithms(prefix: Prefix) -> Prefix:
    """log(2/y) as -log(0.5*y): one law, written in two ways."""
    written: list[str | float] = []
    for i, token in enumerate(prefix):
        written.append(token)
        if prefix[i - 2 : i] == ("log", "div") and not isinstance(token, str):
            written[-3:] = ["mul", -1.0, "log", "mul", 1.0 / token]
    return tuple(written)


def _ordered(form: Form) -> Form:
    """The form with terms and factors in one order, also where they differ by numbers only.

    The canonical form orders by structure, without a look at exponents and signs.
    """
    token, starts, position = form[0], [], 1
    for _ in range(arity(token)):
        starts.append(position)
        position = subtree_end(form, position)
    if token not in ("add", "mul"):
        return (token, *(t for start in starts for t in _ordered(form[start:])))
    parts: list[Form] = []
    rest = form[:position]
    while rest[0] == token:  # Sums and products of several parts are nested to the left.
        middle = subtree_end(rest, 1)
        parts.append(_ordered(rest[middle:]))
        rest = rest[1:middle]
    parts.append(_ordered(rest))
    parts.reverse()
    first: dict[Form, int] = {}
    for i, part in enumerate(parts):
        first.setdefault(_without_numbers(part), i)
    parts.sort(key=lambda part: (first[_without_numbers(part)], part))
    return tuple(map(str, joined(token, parts)))


def _without_numbers(form: Form) -> Form:
    known = (*OPERATORS, VARIABLE, UNIT)
    return tuple(token if token in known else CONSTANT for token in form)


def _is_angle(prefix: Prefix) -> bool:
    """Whether y stands as it is inside every sin and cos, and there is one."""
    found = False
    for i, token in enumerate(prefix):
        if token in ("sin", "cos"):
            inside = prefix[i + 1 : subtree_end(prefix, i + 1)]
            if VARIABLE not in inside or "mul" in inside or "div" in inside:
                return False
            found = True
    return found
