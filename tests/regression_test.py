"""The regression that constants are fitted to: in other units, and at fewer nodes."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.observed.regression import interpolation, reduced

LAW, OTHER = Expression.from_infix("y - y**2"), Expression.from_infix("0.5*y")
T = np.linspace(0.0, 6.0, 60)
FORM = integral_form(Dataset.of([Trajectory(T, solve(LAW, 0.1, T))]))


@pytest.mark.parametrize("law", [LAW, OTHER])
def test_coarser_nodes_keep_residuals(law):
    coarse = FORM.coarsened(24)
    assert coarse.nodes.shape == (24,)
    assert coarse.nodes[[0, -1]] == pytest.approx(FORM.nodes[[0, -1]])
    assert coarse.residual(law) == pytest.approx(FORM.residual(law), rel=1e-3, abs=1e-4)
    assert FORM.coarsened(FORM.nodes.size) is FORM


def test_a_law_in_other_units_has_the_same_residual():
    """With z = y / 2 and time c times slower, dz/ds = c f(2 z) / 2."""
    for c in (3.0, 1 / 3):
        form = FORM.rescaled(2.0, 0.0, c)
        law = Expression.from_infix(f"{c / 2}*0.5*(2*y)")
        assert form.residual(law) == pytest.approx(FORM.residual(OTHER), rel=1e-9)
        assert form.y0s[0] == pytest.approx(FORM.y0s[0] / 2)


def test_an_undefined_law_has_no_residual():
    assert FORM.residual(Expression.from_infix("log(-y)")) == np.inf


def test_reduction_keeps_the_sum_of_squares():
    rng = np.random.default_rng(0)
    operator, target, f = rng.normal(size=(20, 5)), rng.normal(size=20), rng.normal(size=5)
    square, inside, left = reduced(operator, target)
    assert square.shape == (5, 5)
    before = np.sum((target - operator @ f) ** 2)
    assert np.sum((inside - square @ f) ** 2) + left == pytest.approx(before)


def test_interpolation_is_exact_for_cubics():
    grid, at = np.linspace(0.0, 1.0, 7) ** 2, np.linspace(0.0, 1.0, 30)
    np.testing.assert_allclose(interpolation(grid, at) @ grid**3, at**3, atol=1e-12)
