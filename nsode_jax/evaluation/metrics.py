"""Is a prediction right? In its structure, in its values, in both.

The definitions are those of the paper's section 2.3. The paper's tables break
one of them in places (a joint metric above its parts); here a joint metric
holds for one candidate at a time and can never exceed its parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.optimize
import sympy
from jaxtyping import Bool, Float

from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    Y,
    canonicalize,
    time_limit,
    to_sympy,
)
from nsode_jax.expressions.constants import constant_roles
from nsode_jax.expressions.expression import Expression, Skeleton

NUM_EVALUATION_POINTS = 100
R2_THRESHOLD = 0.999
ATOL, RTOL = 1e-10, 0.05


# --- values -----------------------------------------------------------------


def evaluation_points(y: Float[np.ndarray, "time"]) -> Float[np.ndarray, "points"]:
    """The 100 regular points of the interval that a trajectory traces out."""
    return np.linspace(np.min(y), np.max(y), NUM_EVALUATION_POINTS)


def r2(truth: Float[np.ndarray, "points"], prediction: Float[np.ndarray, "points"]) -> float:
    """R^2 = 1 - sum (y_i - p_i)^2 / sum (y_i - mean y)^2.

    Returns:
      At most 1. A prediction that is not finite everywhere gives -inf, and so
      does any error where the truth is constant.
    """
    if not np.isfinite(prediction).all():
        return -np.inf
    # Scaled first: squares of values near 1e200 would overflow.
    scale = max(np.abs(truth).max(), np.abs(prediction).max()) or 1.0
    truth, prediction = truth / scale, prediction / scale
    residual = float(((truth - prediction) ** 2).sum())
    total = float(((truth - truth.mean()) ** 2).sum())
    if total == 0.0:
        return 1.0 if residual == 0.0 else -np.inf
    return 1.0 - residual / total


def allclose(truth: Float[np.ndarray, "points"], prediction: Float[np.ndarray, "points"]) -> bool:
    """Whether |prediction - truth| <= 1e-10 + 0.05 |truth| at every point."""
    return bool(np.allclose(prediction, truth, atol=ATOL, rtol=RTOL))


# --- structure --------------------------------------------------------------
#
# A prediction is right if it can be made equal to the truth by modifying only its
# constants, which stay non-zero and keep their signs, so that its structure stays
# as it is. We read that as: no parts of it merge, no base of a power becomes 1.
# Three ways to look for such constants, cheapest first: equal canonical skeletons,
# SymPy's `match` (the paper's way), and a least-squares fit. What the last two
# find is checked on points over all of the truth's domain.

_MATCH_SECONDS = 0.5
_EQUAL_RTOL = 1e-7
_FIT_STARTS = 6
# Constants may leave the range of those at hand by this factor, but not without
# bound: with c near 0, sin(c*y)/c is y for all practical purposes.
_CONSTANT_RANGE = (1e-2, 1e2)
_CONSTANT_MARGIN = 10.0
# Both signs, small and large, and no round numbers: those may sit on a pole.
_MAGNITUDES = np.geomspace(0.0317, 21.3, 24)
_POINTS = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])


def skeleton_recovered(truth: Expression, prediction: Expression) -> bool:
    """Whether only the constants of the prediction separate it from the truth.

    Not symmetric: `2*y` can become `y`, but `y` has no constant to change. The
    answer depends on the prediction's structure and the signs of its constants,
    not on their values.
    """
    truth, prediction = _canonical(truth), _canonical(prediction)
    skeleton = prediction.skeleton
    if truth.skeleton.key == skeleton.key:
        return True
    target = _Target(truth)
    for constants in _proposals(target, prediction):
        if _makes_equal(skeleton, constants, target):
            return True
    return False


def _canonical(expression: Expression) -> Expression:
    try:
        return canonicalize(expression)
    except (NotRepresentable, TimeLimitExceeded):
        return expression  # Left as it stands, it can still be compared.


class _Target:
    """The truth, with its values on the points of comparison."""

    def __init__(self, expression: Expression):
        self.expression = expression
        values = expression.evaluate(_POINTS)
        # Beyond that a double cannot tell terms apart.
        self.usable = ~(np.abs(values) > 1e12)
        self.values = values[self.usable]
        self.points = _POINTS[self.usable]
        self.finite: Bool[np.ndarray, "points"] = np.isfinite(self.values)
        typical = np.median(np.abs(self.values[self.finite])) if self.finite.any() else 1.0
        self.tolerance = _EQUAL_RTOL * (np.abs(self.values) + 1e-3 * typical)


def _proposals(target: _Target, prediction: Expression) -> Iterator[Float[np.ndarray, "constants"]]:
    """Constants that might make the prediction equal to the truth."""
    skeleton = prediction.skeleton
    if skeleton.num_constants == 0:
        yield np.zeros(0)
        return
    yield from _matches(target.expression, skeleton)
    for constants in _fits(target, prediction):
        yield constants
        whole = np.rint(constants)
        near = np.abs(constants - whole) < 1e-5 * np.maximum(1.0, np.abs(whole))
        # y**2.0000001 is undefined below zero, where y**2 is not.
        yield np.where(near, whole, constants)


def _matches(truth: Expression, skeleton: Skeleton) -> Iterator[Float[np.ndarray, "constants"]]:
    """Constants found by SymPy's `match`, as written and expanded."""
    # Values that do not combine to anything, to be replaced by wildcards.
    signs = skeleton.signs
    markers = [s * (1.0 + (0.6180339887 * (i + 1)) % 1.0) for i, s in enumerate(signs)]
    wildcards = [
        sympy.Wild(f"w{i}", exclude=[Y], properties=[lambda k, s=s: (s * k).is_positive])
        for i, s in enumerate(signs)
    ]
    found: list[dict] = []
    try:
        with time_limit(_MATCH_SECONDS):
            target, marked = to_sympy(truth), to_sympy(skeleton.with_constants(markers))
            replacements = {}
            for marker, wildcard in zip(markers, wildcards):
                replacements[sympy.Float(marker)] = wildcard
                replacements[sympy.Float(-marker)] = -wildcard  # 1/y**c is y**(-c).
            pattern = marked.xreplace(replacements)
            if not set(wildcards) <= pattern.atoms(sympy.Wild):
                return
            for change in (lambda e: e, sympy.expand):
                match = change(target).match(change(pattern))
                if match:
                    found.append(match)
    except (NotRepresentable, TimeLimitExceeded):
        pass
    except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        pass  # `match` fails in its own ways on some patterns; the fit comes next.
    for match in found:
        try:
            yield np.array([float(match[wildcard]) for wildcard in wildcards])
        except (KeyError, TypeError):
            continue


def _fits(target: _Target, prediction: Expression) -> Iterator[Float[np.ndarray, "constants"]]:
    """Constants found by Levenberg-Marquardt from several starting points."""
    skeleton = prediction.skeleton
    signs = np.array(skeleton.signs, np.float64)
    points, values = target.points[target.finite], target.values[target.finite]
    weights = _EQUAL_RTOL / target.tolerance[target.finite]
    if points.size < signs.size + 2:
        return

    def residuals(logs: Float[np.ndarray, "constants"]) -> Float[np.ndarray, "points"]:
        constants = signs * np.exp(np.clip(logs, -30.0, 30.0))
        with np.errstate(over="ignore"):
            error = (skeleton.with_constants(constants).evaluate(points) - values) * weights
        return np.clip(np.where(np.isfinite(error), error, 0.0), -1e6, 1e6)

    random = np.random.default_rng(0)
    own = np.array(prediction.constants)
    others = np.resize(np.abs(target.expression.constants or (1.0,)), signs.size)
    starts = [np.where(own == 0.0, 1.0, np.abs(own)), others]
    while len(starts) < _FIT_STARTS:
        starts.append(np.exp(random.normal(0.0, 1.0, signs.size)))
    for start in starts:
        # With full_output an early stop is no warning; the check decides anyway.
        logs = scipy.optimize.leastsq(
            residuals,
            np.log(start),
            ftol=1e-14,
            xtol=1e-14,
            maxfev=60 * (signs.size + 1),
            full_output=True,
        )[0]
        if np.isfinite(logs).all() and np.abs(logs).max() < 30.0:
            yield signs * np.exp(logs)


def _makes_equal(
    skeleton: Skeleton, constants: Float[np.ndarray, "constants"], target: _Target
) -> bool:
    """Whether these constants are allowed and make the prediction the truth."""
    signs = np.array(skeleton.signs)
    if not np.isfinite(constants).all() or (constants * signs <= 0.0).any():
        return False
    known = np.abs([c for c in target.expression.constants if c] or [1.0])
    low = min(known.min(), _CONSTANT_RANGE[0]) / _CONSTANT_MARGIN
    high = max(known.max(), _CONSTANT_RANGE[1]) * _CONSTANT_MARGIN
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


def _rank(skeleton: Skeleton, constants: Float[np.ndarray, "constants"]) -> int:
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
            skeleton.with_constants(constants * np.exp(s * change)).evaluate(_POINTS)
            for s in (1.0, -1.0)
        )
        columns.append((up - down) / (2 * step))
    jacobian = np.stack(columns, axis=1)
    value = skeleton.with_constants(constants).evaluate(_POINTS)
    rows = np.isfinite(jacobian).all(axis=1) & (np.abs(value) < 1e12)
    if rows.sum() < constants.size:
        return constants.size  # Too few points to tell.
    jacobian = jacobian[rows] / (np.abs(value[rows]) + 1e-3)[:, None]
    norms = np.linalg.norm(jacobian, axis=0)
    jacobian = jacobian / np.where(norms == 0.0, 1.0, norms)
    return int((np.linalg.svd(jacobian, compute_uv=False) > 1e-7).sum())


# --- together ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Score:
    """What one candidate got right.

    Attributes:
      skeleton: the structure is right (`skeleton_recovered`).
      r2: R^2 of f on the evaluation points.
      allclose: f is within 5% on all evaluation points.
    """

    skeleton: bool
    r2: float
    allclose: bool

    @property
    def r2_high(self) -> bool:
        """R^2 is at least 0.999."""
        return self.r2 >= R2_THRESHOLD

    @property
    def skeleton_and_r2(self) -> bool:
        """Structure and R^2 are right in this one candidate."""
        return self.skeleton and self.r2_high

    @property
    def skeleton_and_allclose(self) -> bool:
        """Structure and values are right in this one candidate."""
        return self.skeleton and self.allclose


METRICS = ("skeleton", "r2_high", "allclose", "skeleton_and_r2", "skeleton_and_allclose")


def first_rank(scores: Sequence[Score], metric: str) -> int | None:
    """Rank (from 1) of the first candidate that satisfies a metric, or None."""
    return next((i for i, s in enumerate(scores, start=1) if getattr(s, metric)), None)
