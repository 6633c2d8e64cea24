"""Is a prediction right? In its values, in its structure (`structure.py`), in both.

The definitions are those of the paper's section 2.3. The paper's tables break
one of them in places (a joint metric above its parts); here a joint metric
holds for one candidate at a time and can never exceed its parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from nsode_jax.evaluation.structure import as_compared, skeleton_recovered
from nsode_jax.expressions.expression import Expression

NUM_EVALUATION_POINTS = 100
R2_THRESHOLD = 0.999
ATOL, RTOL = 1e-10, 0.05
GOOD_SOLUTION_R2 = 0.9
"""ODEBench's threshold for a solution."""


def evaluation_points(y: Float[np.ndarray, " time"]) -> Float[np.ndarray, " points"]:
    """The 100 regular points of the interval that a trajectory traces out."""
    return np.linspace(np.min(y), np.max(y), NUM_EVALUATION_POINTS)


def r2(truth: Float[np.ndarray, " points"], prediction: Float[np.ndarray, " points"]) -> float:
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


def allclose(truth: Float[np.ndarray, " points"], prediction: Float[np.ndarray, " points"]) -> bool:
    """Whether |prediction - truth| <= 1e-10 + 0.05 |truth| at every point."""
    return bool(np.allclose(prediction, truth, atol=ATOL, rtol=RTOL))


@dataclasses.dataclass(frozen=True)
class Score:
    """What one candidate got right.

    Attributes:
      skeleton: the structure is right (`skeleton_recovered`); None where that was not
        examined, as it changes no rank.
      r2: R^2 of f on the evaluation points.
      allclose: f is within 5% on all evaluation points.
    """

    skeleton: bool | None
    r2: float
    allclose: bool

    @property
    def r2_high(self) -> bool:
        """R^2 is at least 0.999."""
        return self.r2 >= R2_THRESHOLD

    @property
    def skeleton_and_r2(self) -> bool:
        """Structure and R^2 are right in this one candidate."""
        return bool(self.skeleton) and self.r2_high

    @property
    def skeleton_and_allclose(self) -> bool:
        """Structure and values are right in this one candidate."""
        return bool(self.skeleton) and self.allclose


_MISS = Score(skeleton=False, r2=-np.inf, allclose=False)

METRICS = ("skeleton", "r2_high", "allclose", "skeleton_and_r2", "skeleton_and_allclose")


@runtime_checkable
class Law(Protocol):
    """Anything with values f(y)."""

    def evaluate(self, y: Float[np.ndarray, " points"], /) -> Float[np.ndarray, " points"]:
        """f at each y."""
        ...


def score(
    law: Law,
    truth: Expression | None,
    points: Float[np.ndarray, " points"],
    candidates: Sequence[Expression | None],
    always: int = 0,
) -> list[Score]:
    """What each candidate got right, in their order.

    Structures take long to compare, so only those are that can change the first rank of
    a metric: of candidates before the first right one, and of those with the right values.

    Args:
      law: the true f.
      truth: the same as an expression, or None where our operators cannot express it;
        then no structure is right.
      points: values of y at which f is compared, shape [points]; see `evaluation_points`.
      candidates: the predictions, best first; None is no formula, and right in nothing.
      always: so many structures of the first candidates are compared in any case.
    """
    values = law.evaluate(points)
    recovered: dict[str, bool] = {}  # By skeleton: the values of constants do not matter.
    missing = {"skeleton", "skeleton_and_r2", "skeleton_and_allclose"}
    scores = []
    for place, candidate in enumerate(candidates):
        if candidate is None:
            scores.append(_MISS)
            continue
        predicted = candidate.evaluate(points)
        found = Score(True, r2(values, predicted), allclose(values, predicted))
        if place < always or any(getattr(found, metric) for metric in missing):
            key = as_compared(candidate).skeleton.key  # 1*y has no constant to change.
            if key not in recovered:
                recovered[key] = truth is not None and skeleton_recovered(truth, candidate)
            found = dataclasses.replace(found, skeleton=recovered[key])
            missing -= {metric for metric in missing if getattr(found, metric)}
        else:
            found = dataclasses.replace(found, skeleton=None)
        scores.append(found)
    return scores


def first_rank(scores: Sequence[Score], metric: str) -> int | None:
    """Rank (from 1) of the first candidate that satisfies a metric, or None."""
    return next((i for i, s in enumerate(scores, start=1) if getattr(s, metric)), None)
