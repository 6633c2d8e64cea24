"""Solutions against closed forms, and the quality check."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import SolverConfig, derivative_error, solve, trusted_solution
from nsode_jax.expressions.expression import Expression

T = np.linspace(0.0, 4.0, 1024)


@pytest.mark.parametrize(
    ("text", "y0", "solution"),
    [
        ("-0.7*y", 2.0, lambda t: 2.0 * np.exp(-0.7 * t)),
        ("3", -1.0, lambda t: -1.0 + 3.0 * t),
        ("2.4*y - 0.6*y**2", 0.5, lambda t: 4 / (1 + 7 * np.exp(-2.4 * t))),
        ("-y**2", 1.0, lambda t: 1 / (1 + t)),
        ("1/y", 1.0, lambda t: np.sqrt(1 + 2 * t)),
        ("cos(y)", 0.0, lambda t: 2 * np.arctan(np.tanh(t / 2))),
        ("exp(-y)", 0.0, lambda t: np.log(1 + t)),
        ("sqrt(y)", 1.0, lambda t: (1 + t / 2) ** 2),
    ],
)
def test_closed_forms(text, y0, solution):
    y = solve(Expression.from_infix(text), y0, T)
    np.testing.assert_allclose(y, solution(T), rtol=2e-7, atol=2e-8)


@pytest.mark.parametrize(
    ("text", "y0"),
    [
        ("y**2", 1.0),  # Blows up at t = 1.
        ("sqrt(y) - 3", 1.0),  # Leaves the domain.
        ("log(y)", -1.0),  # Starts outside it.
        ("1/y", 0.0),
        ("exp(exp(y))", 4.0),
    ],
)
def test_failure_is_none(text, y0):
    assert solve(Expression.from_infix(text), y0, T) is None


def test_finite_difference_is_exact_on_polynomials_of_degree_ten():
    t = np.linspace(0.0, 1.0, 41)
    y = t**10
    # f(y) = 10 t^9 = 10 y^0.9 along this solution.
    assert derivative_error(Expression.from_infix("10*y**0.9"), y, t[1]) < 1e-9


def test_quality_check_rejects_a_wrong_derivative():
    y = np.exp(-0.7 * T)
    assert derivative_error(Expression.from_infix("-0.7*y"), y, T[1]) < 1e-6
    assert derivative_error(Expression.from_infix("-0.7*y + 2"), y, T[1]) == pytest.approx(2.0)


def test_trusted_solution_keeps_what_fits_the_config():
    law = Expression.from_infix("0.7*y")
    assert trusted_solution(law, 2.0, SolverConfig()) is not None
    assert trusted_solution(law, 2.0, SolverConfig(max_value=10.0)) is None  # Reaches 33.
    assert trusted_solution(law, 1e-6, SolverConfig(min_range=1e-2)) is None
    # Around t = 1 this one moves faster than the grid can show.
    sudden = Expression.from_infix("1 + 1000*exp(-10000*(y - 1)**2)")
    assert solve(sudden, 0.0, SolverConfig().grid) is not None
    assert trusted_solution(sudden, 0.0, SolverConfig()) is None


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="max_time"):
        SolverConfig(max_time=0.0)
    with pytest.raises(ValueError, match="num_points"):
        SolverConfig(num_points=5)
