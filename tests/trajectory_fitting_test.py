"""Solutions fitted to the data: exact for clean data, for one series and several."""

import numpy as np
import pytest
from solved import canonical_law, solved

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting import trajectory_fitting
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import (
    FULL,
    NO_FIT,
    ROUGH,
    covariance,
    fit_trajectories,
    linearized,
    polished_fit,
)
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.noise import huber_noise

LOGISTIC = "1.3*y - 0.7*y**2"
NEARBY = "1.1*y - 0.51*y**2"
ORIGIN = Origin("network", -3.0)


def _data(text: str, y0: float, end: float = 4.0, points: int = 50) -> Dataset:
    return Dataset.of([solved(text, y0, end, points)])


def test_constants_and_first_value_are_found():
    fit = fit_trajectories(_data(LOGISTIC, 0.1), canonical_law(NEARBY), [0.13], ORIGIN)
    assert fit.converged and fit.origin == ORIGIN
    np.testing.assert_allclose(
        fit.expression.constants, canonical_law(LOGISTIC).constants, rtol=1e-6
    )
    assert fit.y0s == pytest.approx((0.1,), rel=1e-6)
    assert fit.residual_rms < 1e-7 and fit.r2 > 1 - 1e-12


def test_each_series_has_its_first_value():
    ends = ((0.1, 3.0), (1.2, 2.0), (4.0, 1.0))
    series = Dataset(tuple(s for y0, end in ends for s in _data(LOGISTIC, y0, end)))
    fit = fit_trajectories(series, canonical_law(NEARBY), [0.2, 1.0, 3.0], ORIGIN)
    np.testing.assert_allclose(
        fit.expression.constants, canonical_law(LOGISTIC).constants, rtol=1e-6
    )
    np.testing.assert_allclose(fit.y0s, (0.1, 1.2, 4.0), rtol=1e-6)


def test_whole_constants_stay():
    fit = fit_trajectories(
        _data("0.9*y**2.1 - y", 0.5), canonical_law("0.8*y**2 - y"), [0.5], ORIGIN
    )
    assert 2.0 in fit.expression.constants
    assert fit.residual_rms > 1e-5


def test_without_effort_nothing_moves():
    data = _data(LOGISTIC, 0.1)
    fit = fit_trajectories(data, canonical_law(NEARBY), [0.1], ORIGIN, NO_FIT)
    assert fit.expression == canonical_law(NEARBY) and not fit.converged
    solution = solve(canonical_law(NEARBY), 0.1, data.trajectories[0].t, rtol=1e-11, atol=1e-11)
    expected = np.sqrt(np.mean((solution - data.y) ** 2))
    assert fit.residual_rms == pytest.approx(expected, rel=1e-6)


def test_a_law_without_solution_says_so():
    fit = fit_trajectories(_data(LOGISTIC, 0.1), canonical_law("log(y - 5)"), [0.1], ORIGIN)
    assert fit.diverged and fit.r2 == -np.inf and not fit.converged
    blows_up = fit_trajectories(_data(LOGISTIC, 0.1), canonical_law("y**9 + 1e3"), [0.1], ORIGIN)
    assert blows_up.diverged


def test_a_smoothed_first_value_beyond_a_barrier_is_replaced():
    data = _data("0.9*sqrt(y)", 0.01)
    fit = fit_trajectories(data, canonical_law("0.7*sqrt(y)"), [-0.02], ORIGIN)
    assert fit.r2 > 1 - 1e-9


def test_polishing_never_makes_it_worse():
    data = _data(LOGISTIC, 0.1)
    rough = fit_trajectories(data, canonical_law(NEARBY), [0.13], ORIGIN, NO_FIT)
    assert polished_fit(data, rough).residual_rms < rough.residual_rms
    done = fit_trajectories(data, canonical_law(NEARBY), [0.13], ORIGIN, FULL)
    assert polished_fit(data, done).residual_rms <= done.residual_rms


def test_a_fit_ends_when_its_steps_are_spent(monkeypatch):
    """The limit is on the solver's steps, so that every machine finds the same."""
    spent = []
    integrate = trajectory_fitting.dop853.integrate

    def counted(*arguments, **options):
        solutions = integrate(*arguments, **options)
        spent.append(int(solutions.steps.sum()))
        return solutions

    monkeypatch.setattr(trajectory_fitting.dop853, "integrate", counted)
    data = _data(LOGISTIC, 0.1)
    full = fit_trajectories(data, canonical_law(NEARBY), [0.1], ORIGIN)
    needed, one = sum(spent), max(spent)
    assert full.converged
    for most in (1, needed // 2):
        spent.clear()
        monkeypatch.setattr(trajectory_fitting, "_MOST_STEPS", most)
        fit = fit_trajectories(data, canonical_law(NEARBY), [0.1], ORIGIN)
        assert not fit.converged and full.residual_rms < fit.residual_rms < np.inf
        # It is over with the solution that spends the last of them.
        assert sum(spent) <= most + 2 * one
        assert fit == fit_trajectories(data, canonical_law(NEARBY), [0.1], ORIGIN)


def test_covariance_of_a_straight_line():
    """dy/dt = c: the solution is a line, whose errors are known."""
    rng = np.random.default_rng(2)
    t = np.linspace(0.0, 5.0, 30)
    data = Dataset.of([Trajectory(t, 0.7 * t + 2.0 + 0.1 * rng.standard_normal(t.size))])
    fit = fit_trajectories(data, canonical_law("0.51"), [1.0], ORIGIN)
    (line, _), (expected, _) = np.polyfit(t, data.y, 1, cov=True)
    assert fit.expression.constants == pytest.approx((line,), rel=1e-6)
    np.testing.assert_allclose(covariance(data, fit), [[expected[0]]], rtol=1e-4)


@pytest.mark.parametrize("offset", [90.0, 290.0])
def test_values_far_from_zero_have_the_fit_and_the_errors_of_the_same_near_it(offset):
    """Terms nearly cancel there, and a small change of one constant is a large one of f."""
    t = np.linspace(0.0, 8.0, 60)
    y = 20.0 / (1.0 + 4.0 * np.exp(-t)) + 0.05 * np.random.default_rng(0).normal(size=60)
    near = Dataset.of([Trajectory(t, y)])
    law = Expression.from_infix("0.001 + 1.0001*y - 0.0501*y**2")
    fit = fit_trajectories(near, law, [4.0], ORIGIN)
    moved = np.array([[1, -offset, offset**2], [0, 1, -2 * offset], [0, 0, 1]])
    expected = moved @ covariance(near, fit)[:3, :3] @ moved.T

    far = Dataset.of([Trajectory(t, y + offset)])
    start = moved @ np.array(law.constants[:3])
    again = Expression.from_infix("{!r} + {!r}*y + ({!r})*y**2".format(*start.tolist()))
    found = fit_trajectories(far, again, [4.0 + offset], ORIGIN)
    assert found.residual_rms == pytest.approx(fit.residual_rms, rel=1e-6)
    errors = np.sqrt(np.diag(covariance(far, found))[:3])
    np.testing.assert_allclose(errors, np.sqrt(np.diag(expected)), rtol=0.02)


def test_no_covariance_of_what_the_data_do_not_determine():
    """Two factors of one product: only their product matters."""
    data = _data("-0.7*y", 2.0)
    law = Expression(("mul", 0.9, "mul", -0.8, "y"))
    fit = fit_trajectories(data, law, [2.0], ORIGIN)
    assert fit.r2 > 1 - 1e-9
    assert covariance(data, fit) is None


def test_the_same_fit_wherever_arrays_lie_in_memory():
    """Constants that the data hardly determine, and memory of another layout before each fit."""
    data = _data("1.3*sin(1.7*y)", 0.1, points=30)
    noise = 0.02 * data.spread * np.random.default_rng(0).standard_normal(30)
    data = Dataset.of([Trajectory(data.trajectories[0].t, data.y + noise)])
    law = Expression.from_infix(
        "-105.10749634604348*y**1.995457508358111 + 102.94000229640558*y**2.000000254390702"
        " + 3.549051957644558*y - 0.16219433894753676"
    )
    kept, found = [], set()
    for size in range(100):
        kept.append(np.ones(7 * size + 3))
        found.add(fit_trajectories(data, law, (0.10159709055347008,), ORIGIN, ROUGH).y0s)
    assert len(found) == 1


@pytest.mark.parametrize("far", [1e5, 1e6])
def test_values_far_from_0_are_fitted_as_near_it(far):
    """Where constants nearly compensate each other: exactly, and with the errors they have."""
    t = np.linspace(0.0, 5.0, 40)
    noise = 0.01 * np.random.default_rng(0).standard_normal(t.size)

    def rate_and_error(base, noise):
        data = Dataset.of([Trajectory(t, base + np.exp(-t) + noise)])
        law = Expression.from_infix(f"{0.9 * (base + 0.05)!r} - 0.9*y")
        fit = fit_trajectories(data, law, [float(data.y[0])], ORIGIN)
        return fit.expression.constants[1], np.sqrt(covariance(data, fit)[1, 1])

    assert rate_and_error(far, 0.0)[0] == pytest.approx(-1.0, abs=1e-6)
    assert rate_and_error(far, noise) == pytest.approx(rate_and_error(0.0, noise), rel=1e-3)


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_errors_of_robust_fits_are_what_their_constants_err_by(wrong):
    """Where all noise is normal, and where one value in ten is wrong by ten times as much."""
    t, squares, found = np.linspace(0.0, 4.0, 100), [], []
    for seed in range(100):
        random = np.random.default_rng(seed)
        noise = 0.1 * random.standard_normal(t.size)
        noise[random.random(t.size) < wrong] *= 10.0
        data = weighted = Dataset.of([Trajectory(t, 3.6 - 2.6 * np.exp(-t) + noise)])
        law, y0s = Expression.from_infix("3.5 - 0.95*y"), (1.0,)
        for _ in range(2):
            fit = fit_trajectories(weighted, law, y0s, ORIGIN, ROUGH)
            law, y0s = fit.expression, fit.y0s
            factors = huber_noise(linearized(data, fit))
            weighted = data.with_noise(factors)
        fit = fit_trajectories(weighted, law, y0s, ORIGIN, ROUGH)
        squares.append(np.diag(covariance(weighted, fit, factors)))
        found.append(fit.expression.constants)
    errors = np.array(found) - [3.6, -1.0]
    stated = np.sqrt(np.mean(squares, axis=0))
    np.testing.assert_allclose(stated / errors.std(axis=0), 1.0, atol=0.16)
    assert 0.92 <= np.mean(np.abs(errors) <= 1.98 * np.sqrt(squares)) <= 0.98
