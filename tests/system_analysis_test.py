"""Fixed points of systems: where they are, what they are, how sure that is."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import discovered, prey_discovery

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.observations import Run
from nsode_jax.results.system_analysis import (
    find_fixed_points,
    fixed_point_text,
    is_autonomous,
    kind_of,
    residual_remarks,
    residuals,
)
from nsode_jax.results.system_result import SystemCandidate, SystemResult

XY = System(("x", "y"))


def result_of(*equations, system=XY, low=-1.0, high=1.0, covariance=None):
    """A result in data that span a square."""
    laws = tuple(Expression.from_infix(text, system.variables) for text in equations)
    t, states = np.linspace(0.0, 1.0, 20), len(system.states)
    y = np.linspace(low, high, 20)[:, None] * np.ones(len(system.observed))
    run = Run(t, y, np.empty((20, 0)))
    best = SystemCandidate(
        system, laws, np.zeros((1, states)), (0.0,), (1.0,), 1.0, (1.0,) * states,
        (0.0,) * states, 0.0, covariance=covariance,
    )  # fmt: skip
    return SystemResult((best,), (run,), (), 0.0)


@pytest.mark.parametrize(
    ("equations", "kind", "eigenvalues"),
    [
        (("-x", "-2*y"), "stable node", (-1, -2)),
        (("x", "2*y + x"), "unstable node", (2, 1)),
        (("-x - 2*y", "2*x - y"), "stable focus", (-1 + 2j, -1 - 2j)),
        (("x - 2*y", "2*x + y"), "unstable focus", (1 + 2j, 1 - 2j)),
        (("x", "-3*y"), "saddle", (1, -3)),
        (("2*y", "-2*x"), "centre", (2j, -2j)),
        (("-2*x*exp(x)", "sin(-y)"), "stable node", (-1, -2)),
    ],
)
def test_the_kinds(equations, kind, eigenvalues):
    (point,) = find_fixed_points(result_of(*equations)).points
    assert (point.kind, point.observed) == (kind, True)
    assert_allclose(point.states, 0.0, atol=1e-9)
    assert_allclose(point.eigenvalues, eigenvalues, atol=1e-6)


def test_all_are_found_near_the_data_and_none_beyond():
    """The range of the data and half of it on either side: from -2 to 2."""
    found = find_fixed_points(result_of("(x - 1.5)*(x + 0.5)*(x - 3)", "y**2 - 1"))
    assert not found.curve
    assert sorted(point.states for point in found.points) == [
        pytest.approx((x, y), abs=1e-6) for x in (-0.5, 1.5) for y in (-1.0, 1.0)
    ]
    assert [point.observed for point in found.points] == [True, True, False, False]


def test_lorenz_has_three():
    system = System(("x", "y", "z"))
    equations = ("10*y - 10*x", "28*x - x*z - y", "x*y - 2.667*z")
    found = find_fixed_points(result_of(*equations, system=system, low=-20.0, high=30.0))
    root = np.sqrt(2.667 * 27)
    expected = [(-root, -root, 27.0), (0.0, 0.0, 0.0), (root, root, 27.0)]
    assert_allclose(sorted(point.states for point in found.points), expected, atol=1e-6)
    assert {point.kind for point in found.points} == {"saddle"}


def test_a_curve_of_fixed_points_is_said_to_be_one():
    """Nobody falls ill where nobody is: an epidemic rests wherever i = 0."""
    system = System(("s", "i"))
    found = find_fixed_points(result_of("-0.5*s*i", "0.5*s*i - 0.2*i", system=system, low=0.0))
    assert found.curve and not found.points


@pytest.mark.filterwarnings("error")
def test_laws_that_are_undefined_in_places_are_no_trouble():
    """A quotient with a pole, a logarithm, a root; and what is defined nowhere."""
    found = find_fixed_points(result_of("1/x - 2", "log(y) + sqrt(y) - 1"))
    assert [point.states for point in found.points] == [pytest.approx((0.5, 1.0), abs=1e-6)]
    assert not find_fixed_points(result_of("sqrt(-9 - x**2)", "y")).points


def test_laws_of_time_have_none():
    system = System(("x",), explicit_time=True)
    forced, free = (result_of(text, system=system) for text in ("sin(t) - x", "0.5 - x"))
    assert not is_autonomous(forced.best) and not find_fixed_points(forced).points
    assert is_autonomous(free.best)
    assert find_fixed_points(free).points[0].states == pytest.approx((0.5,))


def test_errors_follow_from_those_of_the_constants():
    """x' = a - b x rests at a/b, and its eigenvalue is -b."""
    covariance = np.diag([0.1, 0.02]) ** 2
    (point,) = find_fixed_points(
        result_of("1.5 - 2*x", system=System(("x",)), covariance=covariance)
    ).points
    assert point.states == pytest.approx((0.75,))
    expected = np.hypot(0.1 / 2, 1.5 * 0.02 / 4)
    assert point.standard_errors == pytest.approx((expected,), rel=1e-2)
    assert point.eigenvalue_errors == pytest.approx((0.02,), rel=1e-2)


def test_exponents_that_are_not_fitted_stay_whole():
    """A negative state has no power 2.0000000000000018."""
    root = np.random.default_rng(0).normal(size=(6, 6)) * 0.01
    root[2] = root[4] = 0.0  # The exponents.
    laws = "4.4 - 1.1*x**2", "-0.7*x**2 - 0.6*y"
    found = find_fixed_points(result_of(*laws, low=-6.0, covariance=root @ root.T))
    point = min(found.points)
    assert point.states == pytest.approx((-2.0, -14 / 3))
    assert np.isfinite(point.standard_errors).all() and point.kind == "saddle"


def test_errors_are_the_same_in_all_units():
    root = 0.01 * np.random.default_rng(0).normal(size=(7, 7))
    root[[1, 6]] = 0.0  # The exponents.
    points = []
    for unit in (1.0, 1e-9):
        laws = (
            f"{1.1 / unit**2}*x**2*y - 0.9*x + {0.12 * unit}",
            f"{0.7 * unit} - {1.1 / unit**2}*x**2*y",
        )
        sizes = np.array([unit**-2, 1.0, 1.0, unit, unit, unit**-2, 1.0])
        known = sizes[:, None] * root
        found = find_fixed_points(
            result_of(*laws, low=0.5 * unit, high=unit, covariance=known @ known.T)
        )
        points += found.points
    one, other = points
    assert one.kind == other.kind == "stable focus"
    assert other.standard_errors == pytest.approx(1e-9 * np.array(one.standard_errors), rel=1e-3)
    assert other.eigenvalue_errors == pytest.approx(one.eigenvalue_errors, rel=1e-3)


def test_what_the_data_do_not_determine_is_not_claimed():
    pair = np.array([0.01 + 2j, 0.01 - 2j])
    assert kind_of(pair, np.array([0.02, 0.02])) == "centre"
    assert kind_of(pair, np.array([0.001, 0.001])) == "unstable focus"
    assert kind_of(np.array([-0.14 + 0.9j, -0.14 - 0.9j]), np.full(2, 44.0)) == "undetermined"
    real = np.array([0.01, -2.0])
    assert kind_of(real, np.array([0.02, 0.1])) == "undetermined"
    assert kind_of(real, np.array([0.001, 0.1])) == "saddle"
    # With few degrees of freedom the interval of -0.3 holds 0 too.
    apart, errors = np.array([-0.3, -2.0]), np.array([0.14, 0.1])
    assert kind_of(apart, errors) == "stable node"
    assert kind_of(apart, errors, freedom=6) == "undetermined"


def test_prey_and_hunters_circle_a_centre():
    found = prey_discovery()
    centre = next(point for point in found.fixed_points().points if point.observed)
    assert centre.kind == "centre"
    for value, error, true in zip(centre.states, centre.standard_errors, (1.5, 1.375)):
        assert abs(value - true) < 4 * error < 0.1
    text = fixed_point_text(centre, found.system.states)
    assert text.startswith("prey = 1.49") and "(centre; eigenvalues ± 0.99" in text
    assert text in str(found)


def test_a_velocity_rests_too():
    found = discovered(System(("y",), order=2), ("-4.1*y - 0.4*v",), (1.0, 0.0))
    (point,) = found.fixed_points().points
    assert point.kind == "stable focus" and point.states == pytest.approx((0.0, 0.0))


def test_residuals_are_those_of_the_fit():
    found = prey_discovery(runs=2)
    left = np.concatenate(residuals(found))
    assert_allclose(np.sqrt(np.mean(left**2, axis=0)), found.best.residuals, rtol=1e-4)
    assert not any(remark.warns for _, remark in residual_remarks(found))
    wrong = dataclasses.replace(found, candidates=found.candidates[1:])
    assert all(remark.warns for _, remark in residual_remarks(wrong))


def test_residuals_are_judged_as_they_count():
    """What was measured a thousand times less precisely may be off by much, and run on."""
    found = prey_discovery()
    (run,) = found.runs
    off, sizes = run.y.copy(), np.ones_like(run.y)
    off[:4] += 5.0
    sizes[:4] = 1000.0
    plain, weighted = (
        dataclasses.replace(found, runs=(one,))
        for one in (Run(run.t, off, run.u), Run(run.t, off, run.u, sizes))
    )
    assert all(remark.warns for _, remark in residual_remarks(plain))
    assert not any(remark.warns for _, remark in residual_remarks(weighted))
