"""Constants of a skeleton: what they are to f, and the paper's six rules for resampling them.

The rules are those of appendix B.1.
"""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Bool

from nsode_jax.expressions.canonical import NotRepresentable, canonicalize
from nsode_jax.expressions.expression import Expression, Skeleton, subtree_end
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT, OPERATORS
from nsode_jax.expressions.prefix import exponent_places
from nsode_jax.expressions.sampling import EquationPrior, sample_exponent, sample_magnitude

_MAX_TRIES = 20

_LARGEST_WHOLE = 10.0
_LARGEST_HALF = 2.5


def is_plain(constant: float) -> bool:
    """Whether a constant is a whole number to 10 or a half one to 2.5, as in exponents."""
    if constant == round(constant):
        return bool(abs(constant) <= _LARGEST_WHOLE)
    return bool(abs(constant) <= _LARGEST_HALF and 2 * constant == round(2 * constant))


def structure(law: Expression) -> str:
    """The skeleton as text without the signs of constants, but with exponents that are plain."""
    exponents = iter(exponent_constants(law.skeleton))
    found = []
    for kind, token in zip(law.skeleton.tokens, law.prefix, strict=True):
        fitted = kind in (CONSTANT, NEGATIVE_CONSTANT)
        kept = fitted and next(exponents) and is_plain(float(token))
        found.append(str(token) if kept else CONSTANT if fitted else kind)
    return " ".join(found)


@functools.lru_cache(maxsize=8192)
def exponent_constants(skeleton: Skeleton) -> Bool[np.ndarray, " constants"]:
    """Which constants are exponents of a power."""
    found, index = np.zeros(skeleton.num_constants, bool), 0
    exponents = exponent_places(skeleton.tokens)
    for i, token in enumerate(skeleton.tokens):
        if token in (CONSTANT, NEGATIVE_CONSTANT):
            found[index] = i in exponents
            index += 1
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=4096)
def constant_roles(skeleton: Skeleton) -> tuple[str, ...]:
    """What each constant is to its parent, in prefix order.

    One of `coefficient` (factor or numerator), `divisor`, `base`, `exponent` and
    `other` (a term of a sum, the argument of a function).
    """
    tokens, roles = skeleton.tokens, {}
    names = {
        "mul": ("coefficient", "coefficient"),
        "div": ("coefficient", "divisor"),
        "pow": ("base", "exponent"),
    }
    for i, token in enumerate(tokens):
        if token in names:
            roles[i + 1], roles[subtree_end(tokens, i + 1)] = names[token]
    return tuple(
        roles.get(i, "other")
        for i, token in enumerate(tokens)
        if token in (CONSTANT, NEGATIVE_CONSTANT)
    )


@functools.lru_cache(maxsize=8192)
def linear_constants(skeleton: Skeleton) -> Bool[np.ndarray, " constants"]:
    """Constants in which, jointly and with the others held, f is affine."""
    counter = iter(range(skeleton.num_constants))

    def walk(start: int) -> tuple[set[int], int]:
        token = skeleton.tokens[start]
        if token in (CONSTANT, NEGATIVE_CONSTANT):
            return {next(counter)}, start + 1
        operator = OPERATORS.get(token)
        if operator is None:  # A variable, or the 1 of a reciprocal.
            return set(), start + 1
        arguments, position = [], start + 1
        for _ in range(operator.arity):
            linear, position = walk(position)
            arguments.append(linear)
        if token in ("add", "sub", "neg"):
            return set().union(*arguments), position
        if token == "mul":  # Bilinear: one side at a time.
            return max(arguments, key=len), position
        return (arguments[0] if token == "div" else set()), position

    linear = np.zeros(skeleton.num_constants, bool)
    linear[list(walk(0)[0])] = True
    linear.flags.writeable = False
    return linear


def is_allowed(value: float, sign: int, role: str) -> bool:
    """Whether a constant keeps the six rules of the paper.

    An exponent 1/2 is refused with 1 and -1, since y**0.5 is a square root.
    """
    if value == 0.0:  # Rule 1.
        return False
    if (value < 0.0) != (sign < 0):  # Rule 2: the sign of the skeleton's constant.
        return False
    if role == "base":  # Rule 3.
        return value != 1.0
    if role == "exponent":  # Rule 4.
        return abs(value) not in (0.5, 1.0)
    if role == "coefficient":  # Rule 5.
        return abs(value) != 1.0
    if role == "divisor":  # Rule 6.
        return abs(value) != 1.0
    return True


def resample_constants(
    skeleton: Skeleton, prior: EquationPrior, rng: np.random.Generator
) -> Expression | None:
    """The skeleton with new random constants that keep the six rules, in canonical form.

    A draw that would change the canonical skeleton all the same (two equal
    exponents, say) is drawn again. None when no draw out of 20 keeps it.
    """
    slots = tuple(zip(constant_roles(skeleton), skeleton.signs, strict=True))
    for _ in range(_MAX_TRIES):
        constants = [_draw(role, sign, prior, rng) for role, sign in slots]
        try:
            expression = canonicalize(skeleton.with_constants(constants))
        except NotRepresentable:
            continue
        if expression.skeleton == skeleton:
            return expression
    return None


def _draw(role: str, sign: int, prior: EquationPrior, rng: np.random.Generator) -> float:
    sample = sample_exponent if role == "exponent" else sample_magnitude
    while True:
        value = sign * sample(prior, rng)
        if is_allowed(value, sign, role):
            return value
