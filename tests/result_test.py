"""Candidates and discoveries: their numbers, rounded and not, and their solutions."""

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results.result import Candidate

T = np.linspace(0.0, 5.0, 21)


def candidate(formula, errors=None, **fields):
    fit = {"y0s": (1.0,), "start_times": (0.0,), "r2": 1.0, "residual_rms": 0.0, "score": 0.0}
    covariance = None if errors is None else np.diag(errors) ** 2
    return Candidate(Expression.from_infix(formula), covariance=covariance, **fit | fields)


class TestRounding:
    @pytest.mark.parametrize(
        ("value", "error", "shown"),
        [
            (0.5321456, 0.0034, 0.5321),
            (0.5321456, 0.034, 0.532),
            (0.5321456, 0.34, 0.53),
            (0.5321456, 34.0, 0.53),  # At least two digits,
            (0.5321456, 1e-9, 0.532146),  # at most six,
            (0.5321456, math.nan, 0.5321),  # four where nobody knows,
            (0.5321456, math.inf, 0.53),
            (0.5321456, 0.0, 0.532146),
            (0.5321456, 0.00996, 0.532),  # 0.00996 is 0.010 in two digits.
            (0.9964321, 0.0034, 0.9964),
            (0.9999999, 0.0034, 1.0),
            (-661234.5, 120.0, -661230.0),
            (1.234567e-9, 3.4e-12, 1.2346e-9),
            (0.0, 0.1, 0.0),
        ],
    )
    def test_to_the_second_digit_of_the_error(self, value, error, shown):
        law = Candidate(
            Expression((value,)), (1.0,), (0.0,), 1.0, 0.0, 0.0, covariance=np.array([[error**2]])
        )
        assert law.rounded_constants == (shown,)

    def test_unknown_errors(self):
        assert candidate("0.5321456*y").rounded().infix == "0.5321*y"

    def test_each_constant_by_its_own_error(self):
        law = candidate("-0.00082345*y**2 + 0.547123*y", [2e-6, 0.0, 0.034])
        assert law.rounded_constants == (-0.0008234, 2.0, 0.547)
        assert law.rounded().infix == "0.547*y - 0.0008234*y**2"
        assert law.expression.constants == (-0.00082345, 2.0, 0.547123)

    def test_plain_exponents_stay(self):
        for errors in (None, [0.1, 0.0], [0.1, 0.01]):
            assert candidate("0.53*y**1.5", errors).rounded().infix == "0.53*y**1.5"
            assert candidate("0.53*y**3", errors).rounded().infix == "0.53*y**3"


class TestSolution:
    def test_any_times_in_any_order(self):
        law = candidate("-0.5*y", start_times=(10.0,), y0s=(3.0,))
        t = np.array([12.0, 4.0, 10.0, 12.0, 700.0, 9.5])
        exact = 3 * np.exp(-0.5 * (t - 10))
        assert_allclose(law.solution(t), exact, rtol=1e-6, atol=1e-8)
        assert law.solution([]).shape == (0,)

    def test_agrees_with_predict(self):
        law = candidate("1.1*y - 0.4*y**2", y0s=(0.2,))
        assert_allclose(law.solution(T), law.predict(T), rtol=1e-12)

    def test_nan_where_there_is_none(self):
        law = candidate("y**2", y0s=(1, -1), start_times=(0.0, 0.0))
        t = np.array([2.0, -3.0, 0.5])
        assert_allclose(law.solution(t), [math.nan, 0.25, 2.0], rtol=1e-6)
        assert_allclose(law.solution(t, trajectory=1), [-1 / 3, math.nan, -1 / 1.5], rtol=1e-6)
        with pytest.raises(ValueError, match="finite times"):
            law.solution([math.nan])

    @pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
    def test_a_start_at_zero_in_any_unit(self, unit):
        law = candidate(f"{2.0 * unit!r} - y", y0s=(0.0,))
        assert_allclose(law.predict(T[1:]), 2 * unit * (1 - np.exp(-T[1:])), rtol=1e-6)
        assert_array_equal(candidate("0.5*y", y0s=(0.0,)).predict(T), 0.0)

    def test_steps_lost_in_the_rounding_of_large_times(self):
        start = 1e9
        law = candidate("-y", start_times=(start,))
        t = [start, np.nextafter(start, np.inf), start + 1]
        assert_allclose(law.predict(t), np.exp(start - np.array(t)), rtol=1e-8)
        assert_allclose(law.predict(t[1:]), np.exp(start - np.array(t[1:])), rtol=1e-8)


class TestCandidate:
    def test_equality_and_hash_leave_the_covariance_out(self):
        one, other = (
            candidate("0.5*y", [0.1], probability=1.0),
            candidate("0.5*y", [0.2], probability=1.0),
        )
        one, other = (dataclasses.replace(c, log_probability=-1.0) for c in (one, other))
        assert one == other and hash(one) == hash(other)
        assert one != dataclasses.replace(one, r2=0.5)

    def test_other_forms(self):
        law = candidate("0.5*y - 2*y**2")
        assert float(law.to_sympy().subs("y", 3)) == 1.5 - 18
        assert law.latex() == "0.5 y - 2 y^{2}"
        assert_array_equal(law.to_callable()(np.array([1.0, 3.0])), [-1.5, -16.5])

    def test_uncertainty(self):
        law = candidate("0.5*y - 2*y**2", [0.1, 0.2, 0.0])
        assert law.standard_errors == pytest.approx((0.1, 0.2, 0.0))
        assert law.confidence_intervals[0] == pytest.approx((0.3040036, 0.6959964))
        # Of independent constants the errors of f add as squares.
        y = np.array([0.0, 1.0, -2.0])
        assert_allclose(law.rate_standard_error(y), np.hypot(0.1 * y, 0.2 * y**2), rtol=1e-6)
        assert np.isnan(candidate("0.5*y").rate_standard_error(y)).all()


class TestDiscovery:
    DATA = Trajectory(T, np.exp(-0.5 * T))
    FOUND = Discovery(
        (candidate("-0.5*y", [0.034]), candidate("-0.4321*y", residual_rms=0.2)), (DATA,), (), 1.0
    )

    def test_speaks_for_its_best(self):
        assert_allclose(self.FOUND.predict(T), self.DATA.y, rtol=1e-7)
        assert_allclose(self.FOUND.predict([3.0], y0=2.0), [2.0])
        assert self.FOUND.to_latex() == "-0.5 y"
        assert float(self.FOUND.to_sympy().subs("y", 4)) == -2.0
        assert self.FOUND.to_callable("numpy")(4.0) == -2.0
        assert self.FOUND.to_callable("jax")(4.0) == -2.0

    def test_picture(self, tmp_path):
        path = tmp_path / "law.png"
        figure = self.FOUND.plot(path, "hours", "mass")
        assert path.read_bytes().startswith(b"\x89PNG")
        assert figure.axes[0].get_xlabel() == "hours"

    def test_saves_and_loads(self, tmp_path):
        self.FOUND.save(tmp_path / "law.json")
        assert str(Discovery.load(tmp_path / "law.json")) == str(self.FOUND)


def test_a_law_is_shown_as_a_line():
    law = candidate("0.5321456*y", [0.0034], probability=0.75)
    assert str(law) == "dy/dt = 0.5321*y"
    assert repr(law) == "<Candidate: dy/dt = 0.5321*y, probability 75.0%>"


def test_a_law_is_called_by_its_name():
    law = Candidate(
        Expression.from_infix("0.5*y - 0.001*y**2"),
        (9.0,),
        (0.0,),
        0.9,
        1.0,
        1.0,
        covariance=np.diag([0.01, 0.00002, 0.0]) ** 2,
        observed=(9.0, 480.0),
    )
    assert law.name is not None and law.name.law.name == "logistic growth (Verhulst)"
    r, capacity = law.parameters
    assert (r.value, capacity.value) == (pytest.approx(0.5), pytest.approx(500.0))
    # K = a/b, so its relative errors add in squares.
    assert r.standard_error == pytest.approx(0.01, rel=1e-3)
    assert capacity.standard_error == pytest.approx(500 * math.hypot(0.02, 0.02), rel=1e-2)
    assert str(law.named("g", "h")) == (
        "logistic growth (Verhulst): r = 0.500 ± 0.010 /h, K = 500 ± 14 g"
    )
    strange = Expression.from_infix("exp(sin(y))")
    nameless = dataclasses.replace(law, expression=strange, covariance=None)
    assert nameless.name is None and nameless.parameters == ()
