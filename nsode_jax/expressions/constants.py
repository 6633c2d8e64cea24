"""The paper's six rules for resampling the constants of a skeleton (appendix B.1)."""

from __future__ import annotations

import numpy as np

from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    from_sympy,
    time_limit,
    to_sympy,
)
from nsode_jax.expressions.expression import Expression, Skeleton, subtree_end
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT
from nsode_jax.expressions.sampling import EquationPrior, sample_exponent, sample_magnitude

_MAX_TRIES = 20
_SECONDS = 1.0


def constant_roles(skeleton: Skeleton) -> tuple[str, ...]:
    """What each constant is to its parent, in prefix order.

    One of `coefficient` (factor, numerator or denominator), `base`, `exponent`
    and `other` (a term of a sum, the argument of a function).
    """
    tokens, roles = skeleton.tokens, {}
    for i, token in enumerate(tokens):
        if token in ("mul", "div"):
            roles[i + 1] = roles[subtree_end(tokens, i + 1)] = "coefficient"
        elif token == "pow":
            roles[i + 1], roles[subtree_end(tokens, i + 1)] = "base", "exponent"
    return tuple(
        roles.get(i, "other")
        for i, token in enumerate(tokens)
        if token in (CONSTANT, NEGATIVE_CONSTANT)
    )


def is_allowed(value: float, sign: int, role: str) -> bool:
    """Whether a constant keeps the six rules.

    1. It is not 0. 2. It has the sign of the skeleton's constant. 3. A base is
    not 1. 4. An exponent is not 1 or -1 (nor 1/2, which would be a square
    root). 5. and 6. Coefficients and divisors are not 1 or -1.
    """
    if value == 0.0 or np.sign(value) != sign:
        return False
    if role == "base":
        return value != 1.0
    if role == "exponent":
        return abs(value) not in (0.5, 1.0)
    return not (role == "coefficient" and abs(value) == 1.0)


def resample_constants(
    skeleton: Skeleton, prior: EquationPrior, rng: np.random.Generator
) -> Expression | None:
    """The skeleton with new random constants that keep the six rules.

    A draw that would change the canonical skeleton all the same (two equal
    exponents, say) is drawn again. None when no draw out of 20 keeps it.
    """
    roles = constant_roles(skeleton)
    for _ in range(_MAX_TRIES):
        constants = []
        for role, sign in zip(roles, skeleton.signs, strict=True):
            sample = sample_exponent if role == "exponent" else sample_magnitude
            value = 0.0
            while not is_allowed(value, sign, role):
                value = sign * sample(prior, rng)
            constants.append(value)
        expression = skeleton.with_constants(constants)
        try:
            with time_limit(_SECONDS):
                if from_sympy(to_sympy(expression)).skeleton == skeleton:
                    return expression
        except (NotRepresentable, TimeLimitExceeded):
            continue
    return None
