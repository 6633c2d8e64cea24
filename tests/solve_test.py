"""Solutions against closed forms, and the quality check."""

import subprocess
import sys

import numpy as np
import pytest
from solved import CLOSED_FORMS

from nsode_jax.dynamics.solve import (
    Budget,
    SolverConfig,
    derivative_error,
    solutions,
    solve,
    solve_system,
    trusted_solutions,
)
from nsode_jax.expressions.expression import Expression

T = np.linspace(0.0, 4.0, 1024)


@pytest.mark.parametrize(
    ("text", "y0", "solution"),
    CLOSED_FORMS,
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


def test_errors_of_several_solutions_are_those_of_each():
    law = Expression.from_infix("-0.7*y")
    y = np.exp([[-0.7], [-0.6], [0.1]] * T) * [[1.0], [2.0], [3.0]]
    together = derivative_error(law, y, T[1])
    assert together.shape == (3,)
    for row, error in zip(y, together):
        assert derivative_error(law, row, T[1]) == error
    assert together[0] < 1e-6 < together[1]


@pytest.mark.parametrize("method", ["lsoda", "dop853"])
def test_solutions_of_several_initial_values(method):
    law = Expression.from_infix("y**2")
    y = solutions(law, [-1.0, 1.0, 0.0], T, method=method)
    np.testing.assert_allclose(y[0], -1 / (1 + T), rtol=2e-7)
    assert np.isnan(y[1]).all()  # Blows up.
    assert (y[2] == 0.0).all()
    assert solutions(law, [], T, method=method).shape == (0, T.size)


def test_the_step_limit_of_dop853():
    fast = Expression.from_infix("2 + cos(40*y)")
    assert np.isnan(solutions(fast, [0.0], T, method="dop853", max_steps=20)).all()
    assert np.isfinite(solutions(fast, [0.0], T, method="dop853")).all()
    config = SolverConfig(method="dop853", max_steps=20)
    assert trusted_solutions(fast, [0.0], config) == [None]


def test_impossible_calls_are_refused():
    law = Expression.from_infix("-y")
    with pytest.raises(ValueError, match="lsoda or dop853"):
        solutions(law, [1.0], T, method="euler")
    with pytest.raises(ValueError, match="times"):
        solutions(law, [1.0], T[::-1])


@pytest.mark.parametrize("method", ["lsoda", "dop853"])
def test_trusted_solutions_keep_what_fits_the_config(method):
    def is_kept(text, y0, **fields):
        config = SolverConfig(method=method, **fields)
        (y,) = trusted_solutions(Expression.from_infix(text), [y0], config)
        return y is not None

    assert is_kept("0.7*y", 2.0)
    assert not is_kept("0.7*y", 2.0, max_value=10.0)  # Reaches 33.
    assert not is_kept("0.7*y", -2.0, max_value=10.0)
    assert not is_kept("0.7*y", 1e-6, min_range=1e-2)
    # Around t = 1 this one moves faster than the grid can show.
    sudden = "1 + 1000*exp(-10000*(y - 1)**2)"
    config = SolverConfig()
    assert solve(Expression.from_infix(sudden), 0.0, config.grid) is not None
    assert not is_kept(sudden, 0.0)


@pytest.mark.parametrize("method", ["lsoda", "dop853"])
def test_trusted_solutions_answer_in_order_and_on_any_regular_grid(method):
    t = np.linspace(0.0, 1.5, 100)
    config = SolverConfig(method=method)
    law = Expression.from_infix("y**2")
    first, second, third = trusted_solutions(law, [-1.0, 3.0, 0.5], config, t)
    np.testing.assert_allclose(first, -1 / (1 + t), rtol=2e-7)
    assert second is None
    np.testing.assert_allclose(third, 1 / (2 - t), rtol=2e-7)
    assert trusted_solutions(law, [3.0, 2.0], config, t) == [None, None]
    assert trusted_solutions(law, [], config) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("method", "euler"),
        ("tolerance", 0.0),
        ("max_steps", 0),
        ("max_time", 0.0),
        ("max_time", float("nan")),
        ("num_points", 10),
        ("max_initial_value", -1.0),
        ("max_derivative_error", 0.0),
        ("max_value", 0.0),
        ("min_range", -1.0),
    ],
)
def test_impossible_settings_are_refused(field, value):
    with pytest.raises(ValueError, match=field) as refusal:
        SolverConfig(**{field: value})
    assert "\n" not in str(refusal.value)


def test_lsoda_does_not_wait_for_numba():
    code = "import sys, nsode_jax.dynamics.solve; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_an_equation_that_takes_lsoda_too_long_is_given_up():
    wild = Expression.from_infix("20*sin(20*y) + 21")
    assert solve(wild, 0.0, T) is not None
    budget = Budget(2_000)
    assert solve(wild, 0.0, T, budget=budget) is None
    assert budget.evaluations < 0
    # What was solved before the budget was spent is kept.
    y = solutions(wild, np.zeros(3), T, max_evaluations=400)
    assert np.isnan(y).all()
    slow = Expression.from_infix("-y")
    one = Budget(10**6)
    solve(slow, 1.0, T, budget=one)
    used = 10**6 - one.evaluations
    y = solutions(slow, np.ones(3), T, max_evaluations=2.5 * used)
    assert np.isfinite(y).all(axis=1).tolist() == [True, True, False]


def test_a_system_with_a_closed_form():
    """A turning point, and the same with time in the equations."""
    t = np.linspace(0.0, 5.0, 40)
    turning = [Expression.from_infix(text, ("y1", "y2")) for text in ("-2*y2", "2*y1")]
    y = solve_system(turning, [1.0, 0.0], t)
    np.testing.assert_allclose(y, np.stack([np.cos(2 * t), np.sin(2 * t)], axis=1), atol=1e-7)
    driven = [Expression.from_infix("y1 + t", ("y1", "t"))]
    y = solve_system(driven, [1.0], t)
    np.testing.assert_allclose(y[:, 0], 2 * np.exp(t) - t - 1, rtol=1e-7)


def test_systems_that_fail_or_make_no_sense():
    names, t = ("y1", "y2"), np.linspace(0.0, 3.0, 9)
    blow_up = [Expression.from_infix(text, names) for text in ("y1**2", "y2")]
    assert solve_system(blow_up, [1.0, 1.0], t) is None
    outside = [Expression.from_infix(text, names) for text in ("log(y1)", "y2")]
    assert solve_system(outside, [-1.0, 1.0], t) is None
    with pytest.raises(ValueError, match="2 equations of 2 variables and 1 initial values"):
        solve_system(blow_up, [1.0], t)
    with pytest.raises(ValueError, match="same variables"):
        solve_system([*blow_up[:1], Expression.from_infix("y2", ("y2", "y1"))], [1.0, 1.0], t)


@pytest.mark.parametrize("method", ["lsoda", "dop853"])
class TestTrustedSolutionsOfSystems:
    def test_are_those_of_coupled_equations_that_depend_on_time(self, method):
        """A rotation around what solves the forced equations, a polynomial of the time."""
        names = ("y1", "y2", "t")
        laws = [Expression.from_infix(text, names) for text in ("-2*y2", "2*y1 + 3*t**2")]
        config = SolverConfig(method=method, num_points=200)
        (y,) = trusted_solutions(laws, np.array([[1.0, 0.5]]), config)
        t = config.grid
        forced = np.stack([0.75 - 1.5 * t**2, 1.5 * t], axis=1)
        cosine, sine = np.cos(2 * t), np.sin(2 * t)
        turned = np.stack([0.25 * cosine - 0.5 * sine, 0.25 * sine + 0.5 * cosine], axis=1)
        np.testing.assert_allclose(y, forced + turned, rtol=1e-6, atol=1e-6)

    def test_every_quantity_must_pass(self, method):
        laws = [Expression.from_infix(text, ("y1", "y2")) for text in ("-y1", "y2*(1 - y2)")]
        starts = np.array([[1.0, 0.5], [1.0, 1.0], [0.0, 0.5], [1.0, -3.0], [2.0, 0.1]])
        config = SolverConfig(method=method, num_points=100, min_range=1e-3)
        kept = trusted_solutions(laws, starts, config)
        # The second rests at 1; the first at 0; -3 blows up.
        assert [y is not None for y in kept] == [True, False, False, False, True]
        np.testing.assert_allclose(kept[4][:, 0], 2.0 * np.exp(-config.grid), rtol=1e-6)
        small = SolverConfig(method=method, num_points=100, max_value=1.5)
        assert trusted_solutions(laws, starts, small)[4] is None

    def test_one_quantity_that_depends_on_time(self, method):
        law = Expression.from_infix("-0.7*y + 1.3*cos(2.1*t)", ("y", "t"))
        config = SolverConfig(method=method, num_points=150)
        (y,) = trusted_solutions(law, [2.0], config)
        t, size = config.grid, 0.7**2 + 2.1**2
        steady = 1.3 * (0.7 * np.cos(2.1 * t) + 2.1 * np.sin(2.1 * t)) / size
        exact = steady + (2.0 - steady[0]) * np.exp(-0.7 * t)
        np.testing.assert_allclose(y, exact, rtol=1e-6, atol=1e-6)
