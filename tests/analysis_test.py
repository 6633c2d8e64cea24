"""Slopes, fixed points and residuals: exact where they can be, and true to what noise is."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import candidate_of
from solved import logistic

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results.analysis import (
    find_fixed_points,
    fixed_points,
    grid,
    relative_slopes,
    residual_remark,
    residuals,
    slopes,
)
from nsode_jax.results.result import Candidate

T = np.linspace(0, 10, 40)


def law_of(formula, y0s=(0.1,), errors=None):
    covariance = None if errors is None else np.diag(np.square(errors))
    expression, starts = Expression.from_infix(formula), (0.0,) * len(y0s)
    return Candidate(expression, tuple(y0s), starts, 0.995, 0.05, 0.0, covariance=covariance)


def noise(seed=0, size=T.size):
    return 0.05 * np.random.default_rng(seed).normal(size=size)


def discovery_of(*noises):
    starts = (0.1, 3.0, 1.0)[: len(noises)]
    series = tuple(Trajectory(T, logistic(T, y0=y0) + e) for y0, e in zip(starts, noises))
    return Discovery((law_of("y - 0.5*y**2", starts, (0.0034, 0.0)),), series, (), 1.0)


def without_solution():
    series = Trajectory([1.0, 2.0, 3.0], [0.0, 1.0, 0.5])
    return Discovery((law_of("100 + y**5"),), (series,), (), 1.0)


def test_the_range_of_the_law_reaches_zero_if_that_is_near():
    assert grid(np.array([0.1, 2.0]))[0] == 0.0
    assert_allclose(grid(np.array([1.0, 2.0]))[[0, -1]], [0.95, 2.05])
    assert_allclose(grid(np.array([-3.0, -0.1]))[[0, -1]], [-3.145, 0.0])
    assert_allclose(grid(np.array([0.0, 2.0]), 0.5)[[0, -1]], [0.0, 3.0])


class TestSlopes:
    def test_of_a_parabola_are_exact(self):
        t = np.linspace(-1, 2, 50)
        y, slope = slopes(Trajectory(t, t**2))
        assert_allclose(y, t[1:-1] ** 2, atol=1e-15)
        assert_allclose(slope, 2 * t[1:-1], atol=1e-12)

    def test_noise_is_averaged_in_long_series(self):
        t = np.linspace(0, 1, 20_000)
        noise = 0.01 * np.random.default_rng(0).normal(size=t.size)
        y, slope = slopes(Trajectory(t, 3 * t + noise))
        assert len(y) <= 100
        assert np.abs(slope - 3).max() < 0.3

    def test_of_growth_in_decades_are_its_rate(self):
        t = np.arange(0.0, 16.0, 2.0)
        y, rate = relative_slopes(Trajectory(t, 1e3 * np.exp(0.9 * t)))
        assert_allclose(y, 1e3 * np.exp(0.9 * t[1:-1]))
        assert_allclose(rate, 0.9)


class TestFixedPoints:
    def test_stability(self):
        roots = fixed_points(Expression.from_infix("y*(1 - y)*(y - 0.4)"), np.linspace(-1, 2, 300))
        assert_allclose([y for y, _ in roots], [0.0, 0.4, 1.0], atol=1e-8)
        assert [stable for _, stable in roots] == [True, False, True]

    def test_on_the_grid_and_on_its_ends(self):
        roots = fixed_points(Expression.from_infix("y*(1 - y)"), np.linspace(0, 1, 11))
        assert roots == [(0.0, False), (1.0, True)]
        assert fixed_points(Expression.from_infix("y"), np.linspace(-1, 1, 3)) == [(0.0, False)]

    def test_a_pole_is_none(self):
        assert fixed_points(Expression.from_infix("1/(y - 0.55)"), np.linspace(0, 1, 11)) == []

    def test_zero_everywhere_is_no_point(self):
        assert fixed_points(Expression.from_infix("0*y"), np.linspace(0, 1, 11)) == []

    def test_where_f_is_undefined(self):
        roots = fixed_points(Expression.from_infix("log(y)"), np.linspace(-3, 3, 100))
        assert_allclose([y for y, _ in roots], [1.0])


def test_fixed_points_with_their_errors():
    found = discovery_of(noise())
    lower, upper = find_fixed_points(found)
    assert found.fixed_points() == [lower, upper]
    at_rest = found.vector_field()(0.0, np.array([upper.y]), None)
    assert_allclose(at_rest, 0.0, atol=1e-5)
    assert lower.y == 0.0 and not lower.stable and not lower.observed
    # y* = 1/b, so that its error is that of b over b squared.
    assert upper.stable and upper.observed
    assert upper.y == pytest.approx(2.0) and upper.standard_error == pytest.approx(0.0136, 1e-3)


def test_zero_is_exact_where_a_power_of_y_ends_too():
    law = candidate_of("0.75*y - 0.17*y**1.8", np.diag([0.01, 0.003, 0.01]) ** 2)
    series = Trajectory(T, np.linspace(0.5, 5.0, T.size))
    zero, rest = find_fixed_points(Discovery((law,), (series,), (), 1.0))
    assert (zero.y, zero.standard_error) == (0.0, 0.0) and rest.standard_error > 0.0


class TestFixedPointsOverDecades:
    def found(self, formula, low, high, size=30):
        """By a law with exact constants, and data between two values."""
        series = Trajectory(np.linspace(0, 10, size), np.geomspace(low, high, size))
        law = Expression.from_infix(formula)
        best = candidate_of(formula, np.zeros((len(law.constants),) * 2))
        return find_fixed_points(Discovery((best,), (series,), (), 1.0))

    def test_where_a_decline_ends(self):
        zero, rest = self.found("0.526*y - 0.01052*y**2", 50.5, 1e6)
        assert (zero.y, zero.stable) == (0.0, False)
        assert rest.y == pytest.approx(50.0) and rest.stable and not rest.observed

    def test_thresholds_far_below_the_largest_value(self):
        law = "0.9*y*(y/1e5 - 1)/(y/1e5 + 1)*(1 - y/1e9)"
        zero, threshold, capacity = self.found(law, 1.5e5, 1e9)
        assert (zero.y, zero.stable) == (0.0, True)
        assert threshold.y == pytest.approx(1e5) and not threshold.stable
        assert capacity.y == pytest.approx(1e9) and capacity.stable

    def test_their_errors(self):
        law = candidate_of("0.526*y - 0.01052*y**2", np.diag([0.0, 1e-4, 0.0]) ** 2)
        series = Trajectory(T, np.geomspace(1e9, 51.0, T.size))
        _, rest = find_fixed_points(Discovery((law,), (series,), (), 1.0))
        assert rest.standard_error == pytest.approx(0.526 / 0.01052**2 * 1e-4, rel=1e-3)

    def test_negative_values_too(self):
        series = Trajectory(T, -np.geomspace(1e6, 50.5, T.size))
        law = candidate_of("0.526*y + 0.01052*y**2", np.zeros((3, 3)))
        rest, zero = find_fixed_points(Discovery((law,), (series,), (), 1.0))
        assert rest.y == pytest.approx(-50.0) and rest.stable and zero.y == 0.0


class TestResiduals:
    def test_are_data_minus_solution(self):
        left = residuals(discovery_of(noise(0), noise(1)))
        assert_allclose(left, [noise(0), noise(1)], atol=1e-5)

    def test_where_there_is_no_solution(self):
        assert np.isnan(residuals(without_solution())).all()


class TestResidualRemark:
    @pytest.mark.parametrize("seed", range(5))
    def test_of_noise(self, seed):
        remark = residual_remark(discovery_of(noise(seed), noise(seed + 50)))
        assert not remark.warns and "no pattern" in remark.text

    def test_of_a_wave(self):
        remark = residual_remark(discovery_of(0.1 * np.sin(T)))
        assert remark.warns and "they change sign 3 times" in remark.text
        assert "chance would give about 18 " in remark.text and "systematic" in remark.text

    def test_of_what_alternates(self):
        remark = residual_remark(discovery_of(0.1 * (-1.0) ** np.arange(T.size)))
        assert remark.warns and "opposite directions" in remark.text

    def test_of_noise_that_grows_with_the_values(self):
        """Ten of these series would be called not random by residuals that are not weighed."""
        warned = 0
        t = np.linspace(0.0, 16.0, 40)
        law = dataclasses.replace(law_of("0.9*y", (1e3,)), end_times=(16.0,))
        y = 1e3 * np.exp(0.9 * t)
        for seed in range(100):
            noisy = y * (1 + 0.1 * np.random.default_rng(seed).normal(size=t.size))
            found = Discovery((law,), (Trajectory(t, noisy, y / y.mean()),), (), 1.0)
            warned += residual_remark(found).warns
        assert warned <= 5

    def test_without_a_solution(self):
        remark = residual_remark(without_solution())
        assert remark.warns and "no solution" in remark.text

    def test_of_an_exact_fit(self):
        remark = residual_remark(discovery_of(1e-9 * np.sin(T)))
        assert not remark.warns and "numerical errors" in remark.text


@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e12, 1e140])
def test_any_unit(scale):
    series = (Trajectory(T, scale * (logistic(T) + noise())),)
    law = law_of(f"y - {0.5 / scale!r}*y**2", (0.1 * scale,), (0.003 / scale, 0))
    found = Discovery((law,), series, (), 1.0)
    assert [point.y for point in find_fixed_points(found)] == pytest.approx([0.0, 2 * scale])
    assert "no pattern" in residual_remark(found).text
