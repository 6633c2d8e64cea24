"""Metrics of values against closed forms, and how they combine."""

import numpy as np
import pytest

from nsode_jax.evaluation.metrics import (
    METRICS,
    Score,
    allclose,
    evaluation_points,
    first_rank,
    r2,
    score,
)
from nsode_jax.expressions.expression import Expression


def test_r2_against_its_definition():
    truth = np.array([1.0, 2.0, 3.0, 4.0])
    assert r2(truth, truth) == 1.0
    assert r2(truth, np.full(4, 2.5)) == pytest.approx(0.0)
    # Residual 1 of total 5.
    assert r2(truth, truth + [0.5, -0.5, 0.5, -0.5]) == pytest.approx(0.8)


def test_r2_of_extreme_values():
    truth = np.array([0.0, 1.0, 2.0])
    assert r2(truth, np.array([0.0, np.nan, 2.0])) == -np.inf
    assert r2(truth, np.array([0.0, np.inf, 2.0])) == -np.inf
    assert r2(truth * 1e200, truth * 1e200) == 1.0
    assert r2(np.ones(3), np.ones(3)) == 1.0
    assert r2(np.zeros(3), np.zeros(3)) == 1.0
    assert r2(np.ones(3), np.array([1.0, 1.0, 1.1])) == -np.inf


def test_allclose_is_relative_to_the_truth():
    truth = np.array([100.0, -1.0])
    assert allclose(truth, np.array([104.9, -0.951]))
    assert not allclose(truth, np.array([105.1, -1.0]))
    # 5% of the truth, not of the prediction: 1.05 * 95.2 is 99.96.
    assert allclose(truth, np.array([95.1, -1.0]))
    assert not allclose(np.zeros(1), np.array([1e-9]))
    assert allclose(np.zeros(1), np.array([1e-11]))
    assert not allclose(truth, np.array([np.nan, -1.0]))


def test_evaluation_points_span_the_trajectory():
    points = evaluation_points(np.array([3.0, -1.0, 2.0]))
    assert (points.size, points[0], points[-1]) == (100, -1.0, 3.0)


def test_joint_metrics_never_exceed_their_parts():
    random = np.random.default_rng(0)
    for _ in range(200):
        scores = [
            Score(bool(s), float(r), bool(a))
            for s, r, a in zip(
                random.integers(0, 2, 5), random.choice([0.5, 1.0], 5), random.integers(0, 2, 5)
            )
        ]
        rank = {metric: first_rank(scores, metric) or 6 for metric in METRICS}
        assert rank["skeleton_and_r2"] >= max(rank["skeleton"], rank["r2_high"])
        assert rank["skeleton_and_allclose"] >= max(rank["skeleton"], rank["allclose"])


def test_first_rank_counts_from_one():
    wrong, right = Score(False, 0.9, False), Score(True, 0.999, False)
    assert first_rank([wrong, right], "skeleton_and_r2") == 2
    assert first_rank([wrong, right], "allclose") is None
    assert first_rank([], "skeleton") is None


def test_the_structure_of_one_candidate_does_not_decide_on_another():
    """A factor of 1 is no constant that could become 2; a power of 1 is none of 2.2."""
    y = np.linspace(0.1, 2.0, 50)
    for truth, candidates, right in (
        ("2*y", ("1.0*y", "3*y", "2*y"), [False, True, True]),
        ("2*y**2.2", ("1.5*y**1.0", "2*y**2.2"), [False, True]),
    ):
        law, *laws = (Expression.from_infix(text) for text in (truth, *candidates))
        assert [found.skeleton for found in score(law, law, y, laws, len(laws))] == right
