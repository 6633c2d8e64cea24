"""All simple laws: every skeleton of so many symbols, each once.

A skeleton stands here for all laws that it can become when its constants are given any
values but 0, of either sign. So signs are left out of it, and a skeleton is left out
  - if another of as many symbols has the same canonical form,
  - if a constant is superfluous, for a shorter skeleton then has the same laws,
  - if it has no values, or always the same one.

Every part of a canonical expression is canonical itself. So the skeletons of n symbols
are among the operators of the table with all canonical skeletons of n - 1 symbols as
arguments, and none can be missing.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Complex, Float

from nsode_jax.expressions.algebra import normal_form
from nsode_jax.expressions.constants import exponent_constants
from nsode_jax.expressions.expression import Skeleton
from nsode_jax.expressions.operators import (
    CONSTANT,
    NEGATIVE_CONSTANT,
    OPERATORS,
    UNIT,
    VARIABLE,
)
from nsode_jax.expressions.prefix import NotRepresentable, Prefix

Tokens = tuple[str, ...]

_GOLDEN = (5**0.5 - 1) / 2
_GENERIC = tuple(1.1 + 3.7 * ((i + 1) * _GOLDEN % 1.0) for i in range(32))
"""Numbers between which nothing holds that does not hold for others."""
_PAIRS = tuple((number, 2.0 * (i + 1)) for i, number in enumerate(_GENERIC))
"""Of constants. Even exponents are of a kind of their own: sqrt(y**c) is a power of y unless
c is even."""

_MAGNITUDES = np.geomspace(0.043, 5.1, 24)
_POINTS = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])
_DRAWS = 6
_LARGEST = 1e6
"""Values and slopes beyond have lost digits to rounding."""
_INDEPENDENT = 1e-9
"""Singular values of the slopes, scaled to unit columns, below which a direction is none."""
_STEP = 1e-30  # Of a derivative in the direction of i, which is exact.


def enumerate_skeletons(
    max_symbols: int,
    operators: Sequence[str] = tuple(OPERATORS),
    report: Callable[[str], None] = lambda _: None,
) -> list[list[str]]:
    """Keys of all skeletons by their number of symbols, those of 1 symbol first.

    Args:
      max_symbols: operators, variables and constants (and the 1 of reciprocals).
      operators: those that may occur.
      report: called with what has been found so far.

    Returns:
      One list for each number of symbols from 1 on, in alphabetical order; signs are left
      out of the keys.
    """
    levels: list[list[Tokens]] = [[], [(VARIABLE,), (CONSTANT,), (NEGATIVE_CONSTANT,)]]
    while len(levels) <= max_symbols:
        symbols, found = len(levels), set()
        for candidate in _candidates(levels, operators):
            found.update(form for form in _canonical_forms(candidate) if len(form) == symbols)
        # What has a part with a superfluous constant has one too.
        allowed = {*operators, VARIABLE, CONSTANT, NEGATIVE_CONSTANT, UNIT}
        level = sorted(tokens for tokens in found if allowed.issuperset(tokens))
        levels.append([tokens for tokens in level if not is_redundant(unsigned(tokens))])
        report(f"{symbols} symbols: {len(levels[-1]):,} skeletons with signs")
    return [
        sorted({" ".join(unsigned(tokens)) for tokens in level if VARIABLE in tokens})
        for level in levels[1:]
    ]


def unsigned(tokens: Tokens) -> Tokens:
    """A skeleton whose constants may have either sign."""
    return tuple(CONSTANT if token == NEGATIVE_CONSTANT else token for token in tokens)


def _candidates(levels: Sequence[Sequence[Tokens]], operators: Sequence[str]) -> Iterator[Tokens]:
    """Operators with arguments of the levels, of one symbol more than the last level has.

    Those of numbers alone are left out, and one order of the arguments of sums and products.
    """
    symbols = len(levels)
    unary = [token for token in operators if OPERATORS[token].arity == 1]
    binary = [token for token in operators if OPERATORS[token].arity == 2]
    for argument in levels[symbols - 1]:
        if VARIABLE in argument:
            yield from ((token, *argument) for token in unary)
    if "div" in operators and symbols > 2:
        yield from (("div", UNIT, *a) for a in levels[symbols - 2] if VARIABLE in a)
    for size in range(1, symbols - 1):
        for left in levels[size]:
            for right in levels[symbols - 1 - size]:
                if VARIABLE not in left and VARIABLE not in right:
                    continue
                for token in binary:
                    if token not in ("add", "mul") or (len(left), left) >= (len(right), right):
                        yield (token, *left, *right)


def _canonical_forms(tokens: Tokens) -> set[Tokens]:
    """Canonical forms of a skeleton: with exponents of no kind, and with even ones."""
    forms = set()
    for constants in _constants(tokens):
        try:
            forms.add(_tokens(normal_form(_with_constants(tokens, constants))))
        except NotRepresentable:
            continue
    return forms


def _constants(tokens: Tokens) -> Iterator[tuple[float, ...]]:
    """Every exponent once even and once not, in all combinations."""
    if "pow" not in tokens:
        yield _GENERIC
        return
    exponents = exponent_constants(Skeleton(tokens))
    options = [pair if is_exponent else pair[:1] for pair, is_exponent in zip(_PAIRS, exponents)]
    yield from itertools.product(*options)


def _with_constants(tokens: Tokens, constants: Sequence[float]) -> Prefix:
    signs = {CONSTANT: 1.0, NEGATIVE_CONSTANT: -1.0}
    remaining = iter(constants)
    return tuple(
        signs[token] * next(remaining) if token in signs else 1.0 if token == UNIT else token
        for token in tokens
    )


def _tokens(prefix: Prefix) -> Tokens:
    """`Expression.skeleton` for prefixes that are known to be expressions."""
    return tuple(
        token
        if isinstance(token, str)
        else UNIT
        if token == 1.0 and i and prefix[i - 1] == "div"
        else CONSTANT
        if token >= 0
        else NEGATIVE_CONSTANT
        for i, token in enumerate(prefix)
    )


# --- what a skeleton adds to shorter ones -----------------------------------------


@functools.cache
def is_redundant(tokens: Tokens) -> bool:
    """Whether a constant is superfluous, or there are no values or always the same ones.

    A constant is superfluous if f can be changed in fewer directions than it has
    constants: then a skeleton with a number less has the same laws. Even exponents do not
    change. Where they allow values that others do not (y**2 is defined below 0), a
    skeleton may be there for them alone.
    """
    skeleton = Skeleton(tokens)
    if VARIABLE not in tokens:
        return False
    if not skeleton.num_constants:
        return not _is_function(_values(tokens, np.zeros(0)))
    exponents = exponent_constants(skeleton)
    random = np.random.default_rng(zlib.crc32(" ".join(tokens).encode()))
    defined = np.zeros(_POINTS.size, bool)
    for _ in range(_DRAWS):
        constants = _draw(skeleton.num_constants, random)
        values = _values(tokens, constants)
        defined |= np.isfinite(values)
        if _is_function(values) and _has_full_rank(
            tokens, constants, values, ~np.zeros_like(exponents)
        ):
            return False
    if not exponents.any():
        return True
    for _ in range(_DRAWS):
        constants = _draw(skeleton.num_constants, random)
        constants[exponents] = random.choice([2.0, 4.0, 1.37], exponents.sum())
        values = _values(tokens, constants)
        if (np.isfinite(values) & ~defined).sum() > skeleton.num_constants:
            if _is_function(values) and _has_full_rank(tokens, constants, values, ~exponents):
                return False
    return True


def _draw(number: int, random: np.random.Generator) -> Float[np.ndarray, " constants"]:
    magnitudes = np.exp(random.normal(0.0, 0.6, number))
    return magnitudes * random.choice([-1.0, 1.0], number)


def _values(tokens: Tokens, constants: Float[np.ndarray, " constants"]) -> Float[np.ndarray, " y"]:
    with np.errstate(all="ignore"):
        return np.broadcast_to(_evaluate(tokens, list(constants), _POINTS), _POINTS.shape)


def _is_function(values: Float[np.ndarray, " y"]) -> bool:
    """Whether there are values, and more than one."""
    usable = values[np.isfinite(values) & (np.abs(values) < _LARGEST)]
    return usable.size > 2 and np.ptp(usable) > 1e-9 * np.abs(usable).max()


def _has_full_rank(
    tokens: Tokens,
    constants: Float[np.ndarray, " constants"],
    values: Float[np.ndarray, " y"],
    varied: Bool[np.ndarray, " constants"],
) -> bool:
    """Whether f changes in as many directions as constants are varied."""
    number = int(varied.sum())
    if not number:
        return True
    directions = 1j * _STEP * np.eye(constants.size)[varied]
    # [constant, varied, 1]: each row moves one constant.
    moved = (constants + directions).T[:, :, None]
    with np.errstate(all="ignore"):
        slopes = np.imag(_evaluate(tokens, list(moved), _POINTS + 0j)) / _STEP
        slopes = np.broadcast_to(slopes, (number, _POINTS.size)) * constants[varied][:, None]
    usable = np.isfinite(slopes).all(axis=0) & (np.abs(values) < _LARGEST)
    usable &= np.abs(slopes).max(axis=0) < _LARGEST
    if usable.sum() < number:
        return False
    slopes = slopes[:, usable] / (np.abs(values[usable]) + 1e-3)
    norms = np.linalg.norm(slopes, axis=1, keepdims=True)
    slopes = slopes / np.where(norms == 0.0, 1.0, norms)
    return bool(np.linalg.svd(slopes, compute_uv=False)[-1] > _INDEPENDENT)


def _evaluate(
    tokens: Tokens,
    constants: list,
    y: Float[np.ndarray, " y"] | Complex[np.ndarray, " y"],
):
    """f at real or complex arguments; from the right, so that arguments come first."""
    stack, remaining = [], len(constants)
    for token in reversed(tokens):
        if token == CONSTANT:
            remaining -= 1
            stack.append(constants[remaining])
        elif token not in OPERATORS:
            stack.append(y if token == VARIABLE else 1.0)
        else:
            operator = OPERATORS[token]
            stack.append(_apply(operator.numpy, [stack.pop() for _ in range(operator.arity)]))
    return stack.pop()


def _apply(function: np.ufunc, arguments: list):
    """The value; functions that know no complex numbers are continued by their slopes."""
    try:
        return function(*arguments)
    except TypeError:
        real = [np.real(argument) for argument in arguments]
        value = function(*real) + 0j
        for i, argument in enumerate(arguments):
            step = 1e-3 * (1.0 + np.abs(real[i]))
            at = [function(*real[:i], real[i] + k * step, *real[i + 1 :]) for k in (-2, -1, 1, 2)]
            slope = (at[0] - 8.0 * at[1] + 8.0 * at[2] - at[3]) / (12.0 * step)
            value = value + 1j * np.imag(argument) * slope
        return value
