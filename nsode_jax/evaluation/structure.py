"""Is the structure of a prediction right? The paper's skeleton recovery (section 2.3).

A prediction is right if it can be made equal to the truth by modifying only its
constants, which stay non-zero and keep their signs, so that its structure stays as it
is. We read that as: no parts of it merge, no base of a power becomes 1.

Equal canonical skeletons decide at once, and so do functions that only one of the two
contains and places where only one is defined. Else `equating` looks for such constants, and
what it finds is checked here on points over all of the truth's domain.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from nsode_jax.evaluation.equating import POINTS, Target, proposals, target_of
from nsode_jax.expressions.canonical import NotRepresentable, canonicalize
from nsode_jax.expressions.constants import constant_roles
from nsode_jax.expressions.expression import Expression, Skeleton, subtree_end
from nsode_jax.expressions.operators import FUNCTIONS, VARIABLE

_MERGED = 1e-4
"""Singular values below count as none; where parts merge, errors vanish with the square."""
_DOMAIN_DRAWS = 24
# Constants may leave the range of those at hand by this factor, but not without
# bound: with c near 0, sin(c*y)/c is y for all practical purposes.
_CONSTANT_RANGE = (1e-2, 1e2)
_CONSTANT_MARGIN = 10.0


def skeleton_recovered(truth: Expression, prediction: Expression) -> bool:
    """Whether only the constants of the prediction separate it from the truth.

    Not symmetric: `2*y` can become `y`, but `y` has no constant to change. The
    answer depends on the prediction's structure and the signs of its constants,
    not on their values.
    """
    truth, prediction = as_compared(truth), as_compared(prediction)
    skeleton = prediction.skeleton
    if truth.skeleton.key == skeleton.key:
        return True
    target = target_of(truth)
    if not (_may_share_functions(truth, prediction) and _may_share_domain(target, skeleton)):
        return False
    for constants in proposals(target, prediction):
        if _makes_equal(skeleton, constants, target):
            return True
    return False


def as_compared(expression: Expression) -> Expression:
    """The canonical form; the expression as it stands where there is none."""
    try:
        return canonicalize(expression)
    except NotRepresentable:
        return expression  # Left as it stands, it can still be compared.


# --- what constants cannot change ---------------------------------------------


def _may_share_functions(truth: Expression, prediction: Expression) -> bool:
    """Whether both contain sines, both exponentials and both logarithms of y, or neither.

    Constants cannot make one of these vanish. Sine and cosine are one kind, as a phase
    turns one into the other; powers of y to a power of y are exponentials of logarithms,
    so with both at hand anything is possible. Other functions of the table are kinds of
    their own.
    """
    ours, theirs = _functions(truth), _functions(prediction)
    if any({"exp", "log"} <= found for found in (ours, theirs)):
        ours, theirs = ours - {"exp", "log"}, theirs - {"exp", "log"}
    return ours == theirs


def _functions(expression: Expression) -> set[str]:
    prefix, found = expression.prefix, set()

    def moves(start: int) -> bool:
        return VARIABLE in prefix[start : subtree_end(prefix, start)]

    for i, token in enumerate(prefix):
        if token in FUNCTIONS and token != "sqrt" and moves(i + 1):
            found.add("sin" if token == "cos" else token)
        elif token == "pow" and moves(subtree_end(prefix, i + 1)):
            found |= {"exp", "log"} if moves(i + 1) else {"exp"}
    return found


def _may_share_domain(target: Target, skeleton: Skeleton) -> bool:
    """Whether no point is outside the prediction's domain, or inside, whatever its constants."""
    signs, random = np.array(skeleton.signs), np.random.default_rng(2)
    spread = np.log(_CONSTANT_RANGE[1])
    finite = []
    for draw in range(_DOMAIN_DRAWS if signs.size else 1):
        magnitudes = np.exp(random.uniform(-spread, spread, signs.size))
        multiple = draw % 3  # Of real, whole and even numbers: powers to these differ in domain.
        if multiple:
            magnitudes = multiple * np.ceil(magnitudes / multiple)
        values = skeleton.with_constants(signs * magnitudes).evaluate(target.points)
        finite.append(np.isfinite(values))
    never, always = ~np.any(finite, axis=0), np.all(finite, axis=0)
    return not (never & target.finite).any() and not (always & ~target.finite).any()


# --- the check ----------------------------------------------------------------


def _makes_equal(
    skeleton: Skeleton, constants: Float[np.ndarray, " constants"], target: Target
) -> bool:
    """Whether these constants are allowed and make the prediction the truth."""
    signs = np.array(skeleton.signs)
    if not np.isfinite(constants).all() or (constants * signs <= 0.0).any():
        return False
    known = np.log(np.abs([c for c in target.expression.constants if c] or [1.0]))
    # As written otherwise, constants are products and ratios of those.
    low = min(np.exp(np.minimum(known, 0.0).sum()), _CONSTANT_RANGE[0]) / _CONSTANT_MARGIN
    high = max(np.exp(np.maximum(known, 0.0).sum()), _CONSTANT_RANGE[1]) * _CONSTANT_MARGIN
    if ((np.abs(constants) < low) | (np.abs(constants) > high)).any():
        return False
    bases = np.array([role == "base" for role in constant_roles(skeleton)], bool)
    if (np.abs(constants[bases] - 1.0) < 1e-4).any():  # 1**y is no function of y any more.
        return False
    values = skeleton.with_constants(constants).evaluate(target.points)
    finite = np.isfinite(values)
    if not finite.any() or (finite != target.finite).any():
        return False
    error = np.abs(values[finite] - target.values[finite])
    if (error > target.tolerance[finite]).any():
        return False
    return _rank(skeleton, constants) >= _generic_rank(skeleton)


def _generic_rank(skeleton: Skeleton) -> int:
    random = np.random.default_rng(1)
    signs = np.array(skeleton.signs)
    draws = [signs * np.exp(random.normal(0.0, 0.5, signs.size)) for _ in range(2)]
    return min(_rank(skeleton, draw) for draw in draws)


def _rank(skeleton: Skeleton, constants: Float[np.ndarray, " constants"]) -> int:
    """How many directions of change the constants offer.

    Fewer than elsewhere means that parts of the structure have merged, as in
    a*y + b*y**c at c = 1: the constants have altered the structure.
    """
    if constants.size == 0:
        return 0
    step = 1e-5
    columns = []
    for i in range(constants.size):
        change = np.zeros(constants.size)
        change[i] = step
        up, down = (
            skeleton.with_constants(constants * np.exp(s * change)).evaluate(POINTS)
            for s in (1.0, -1.0)
        )
        with np.errstate(invalid="ignore"):
            columns.append((up - down) / (2 * step))
    jacobian = np.stack(columns, axis=1)
    value = skeleton.with_constants(constants).evaluate(POINTS)
    rows = np.isfinite(jacobian).all(axis=1) & (np.abs(value) < 1e12)
    if rows.sum() < constants.size:
        return constants.size  # Too few points to tell.
    jacobian = jacobian[rows] / (np.abs(value[rows]) + 1e-3)[:, None]
    norms = np.linalg.norm(jacobian, axis=0)
    jacobian = jacobian / np.where(norms == 0.0, 1.0, norms)
    return int((np.linalg.svd(jacobian, compute_uv=False) > _MERGED).sum())
