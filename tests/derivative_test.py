"""The derivative form: exact for clean data, none for others."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.evaluation.testsets import TEST_SETS
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form

LOGISTIC = Expression.from_infix("0.5*y*(1 - y/600)")


def _data(points: int, noise: float = 0.0) -> Dataset:
    t = np.linspace(0.0, 18.0, points)
    y = solve(LOGISTIC, 9.0, t, rtol=1e-10, atol=1e-10)
    return Dataset.of([Trajectory(t, y + noise * np.random.default_rng(0).standard_normal(points))])


@pytest.mark.parametrize("points", [150, 400])
def test_the_truth_is_below_its_floor_and_another_law_is_not(points):
    form = derivative_form(_data(points))
    assert form.exact and form.floor < 1e-3
    assert form.residual(LOGISTIC) < form.floor
    assert form.residual(Expression.from_infix("0.5*y*(1 - y/606)")) > form.floor


def test_there_is_none_of_noisy_or_sparse_data():
    assert derivative_form(_data(200, noise=1.0)) is None
    assert derivative_form(_data(8)) is None


@pytest.mark.parametrize("nodes", [24, 64])
def test_there_are_always_as_many_nodes(nodes):
    for points in (100, 150, 400):
        form = derivative_form(_data(points), nodes)
        assert form.nodes.shape == form.target.shape == (nodes,)
        assert form.operator.shape == (nodes, nodes)
        assert np.isfinite(form.residual(LOGISTIC))


def test_a_steep_piece_between_too_few_points_does_not_hide_the_others():
    problems = {str(problem.expression): problem for problem in TEST_SETS["iv-163-even"]()}
    problem = problems["exp(cos(y)) + y"]
    form = derivative_form(Dataset.of([Trajectory(problem.t, problem.solve())]))
    assert form is not None and form.exact and form.floor >= 1e-5
    assert form.residual(problem.expression) < form.floor
