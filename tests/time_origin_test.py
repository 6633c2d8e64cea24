"""Laws that depend on times far from 0, such as years."""

import numpy as np
import pytest
from solved import laws

from nsode_jax.discovery import discover
from nsode_jax.discovery.time_origin import (
    at_given_times,
    counted_from,
    in_given_times,
    origin_of,
)
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.results.system_result import SystemCandidate

TIMED = System(("x", "y"), explicit_time=True)


def of_times(*times, system=TIMED):
    runs = (Run(np.array(t), np.ones((len(t), 2)), np.empty((len(t), 0))) for t in times)
    return Observations(system, tuple(runs))


@pytest.mark.parametrize(
    ("times", "origin"),
    [
        (([0.0, 5.0],), 0.0),
        (([-4.0, 5.0],), 0.0),
        (([1900.0, 1920.0],), 1900.0),
        (([1987.25, 2004.0],), 1980.0),
        (([-2000.0, -1990.0],), -2000.0),
        (([43000.37, 43010.0],), 43000.0),
        (([0.00123, 0.00124],), 0.00123),
        (([1000.0, 1010.0], [0.0, 10.0]), 0.0),
        (([1010.0, 1020.0], [1000.0, 1010.0]), 1000.0),
    ],
)
def test_it_is_a_round_time_near_the_first(times, origin):
    assert origin_of(of_times(*times)) == origin
    assert origin_of(of_times(*times, system=System(("x", "y")))) == 0.0


def test_times_are_given_back_as_they_were():
    run = Run(
        np.array([1900.1, 1907.3]), np.ones((2, 1)), np.ones((3, 1)), None,
        np.array([1900.1, 1903.7, 1907.3]),
    )  # fmt: skip
    data = Observations(System(("x",), ("u",), True), (run,))
    moved = counted_from(data, 1900.0)
    np.testing.assert_allclose(moved.runs[0].t, [0.1, 7.3], rtol=1e-12)
    np.testing.assert_allclose(moved.runs[0].inputs.breaks, [0.1, 3.7, 7.3], rtol=1e-12)
    back = at_given_times(moved, data).runs[0]
    np.testing.assert_array_equal(back.t, run.t)
    np.testing.assert_array_equal(back.input_times, run.input_times)


@pytest.mark.parametrize("origin", [1900.0, 1.0, -3.5])
def test_a_law_is_the_same_at_the_given_times(origin):
    """Constants keep their errors and their partners, whatever number the origin is."""
    one = laws(TIMED.variables, "2.5*exp(-0.3*t) - 1*x*t", "0.7*x*t - 0.4*y")
    number = sum(len(law.constants) for law in one)
    before = SystemCandidate(
        TIMED, tuple(one), np.ones((1, 2)), (0.25,), (8.0,), 0.9, (0.9, 0.9), (0.1, 0.1), 3.0,
        covariance=np.diag(np.arange(1.0, number + 1.0)), shared=((number - 2, number - 1),),
    )  # fmt: skip
    after = in_given_times(before, origin)
    assert after.start_times == (0.25 + origin,) and after.end_times == (8.0 + origin,)
    errors = {c: e for c, e in zip(after.constants, after.standard_errors) if e > 0}
    assert errors == dict(zip(before.constants, before.standard_errors))
    (pair,) = after.shared
    assert [after.constants[i] for i in pair] == [before.constants[i] for i in before.shared[0]]
    t = np.linspace(0.5, 6.0, 9)
    np.testing.assert_allclose(
        after.predict(t + origin, [1.0, 2.0]), before.predict(t, [1.0, 2.0]), rtol=1e-6
    )


def test_the_origin_is_not_rounded():
    """To four digits 14687 would be another day."""
    (law,) = laws(("y", "t"), "0.5*(t - 14687) - 0.123456789*y")
    found = SystemCandidate(
        System(("y",), explicit_time=True), (law,), np.ones((1, 1)), (14687.0,), (14700.0,), 0.9,
        (0.9,), (0.1,), 3.0, covariance=np.diag([0.01, 0.0, 0.01]) ** 2,
    )  # fmt: skip
    assert found.rounded(3)[0].infix == "0.5*(t - 14687) - 0.123*y"
    assert "14687" in found.latex(3) and "0.123 " in found.latex(3)


def test_what_fades_in_years_is_found():
    system = System(("y",), explicit_time=True)
    t = np.linspace(0.0, 10.0, 50)
    (true,) = laws(system.variables, "2*exp(-0.3*t) - 0.8*y")
    y = integrate([true], [0.1], t)[:, 0]
    found = discover(1900 + t, y, explicit_time=True, effort="fast")
    # Of one run alone the two rates may be exchanged.
    assert {0.3, 0.8} <= {abs(round(constant, 4)) for constant in found.best.constants}
    assert "(t - 1900)" in str(found.best)
    np.testing.assert_array_equal(found.runs[0].t, 1900 + t)
    np.testing.assert_allclose(found.best.predict(1900 + t)[:, 0], y, atol=1e-4)
