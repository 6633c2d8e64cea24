"""The regression of each equation, and the smooth curves that it follows."""

import dataclasses

import numpy as np
import pytest
from observing import observed

from nsode_jax.dynamics.measured_inputs import measured_inputs
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.components import component_forms
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.trajectory_fitting import FULL, NO_FIT
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.observed.smoothing import smooth_curves

CASES = [
    (System(("x", "y")), ("1.1*x - 0.8*x*y", "0.6*x*y - 0.9*y"), (1.0, 1.3)),
    (System(("y",), order=2), ("-2.1*y - 0.3*v",), (1.0, 0.0)),
    (System(("y",), explicit_time=True), ("cos(1.7*t) - 0.4*y",), (1.0,)),
]


@pytest.mark.parametrize(("system", "equations", "start"), CASES)
@pytest.mark.parametrize("runs", [1, 2])
def test_true_laws_leave_nothing_in_exact_data(system, equations, start, runs):
    data, laws = observed(system, equations, start, runs=runs)
    for form, law in zip(component_forms(data), laws, strict=True):
        assert form.residual(law) < 1e-4


@pytest.mark.parametrize(("system", "equations", "start"), CASES)
def test_true_laws_leave_the_noise_in_noisy_data(system, equations, start):
    data, laws = observed(system, equations, start, noise=0.02)
    for form, law, spread in zip(component_forms(data), laws, data.spread, strict=True):
        assert form.residual(law) * spread == pytest.approx(0.02, rel=0.4)


@pytest.mark.parametrize(("system", "equations", "start"), CASES)
@pytest.mark.parametrize(("segments", "margin"), [(1, 0.03), (3, 0.15)])
def test_along_the_solution_of_a_system_its_laws_leave_the_noise(
    system, equations, start, segments, margin
):
    data, laws = observed(system, equations, start, noise=0.05, runs=2)
    origins = (Origin("test"),) * len(laws)
    fit = fit_system(data, laws, origins, stopping=FULL, segments=segments)
    lefts = fit.residuals / data.spread
    for form, law, left in zip(component_forms(data, fit), fit.laws, lefts, strict=True):
        assert form.residual(law) == pytest.approx(left, rel=margin)


def test_solutions_are_followed_as_exactly_in_small_units():
    t, nodes = np.linspace(0.0, 60.0, 120), []
    for unit in (1.0, 1e-9):
        equations = f"1.1*x - {0.8 / unit}*x*y", f"{0.6 / unit}*x*y - 0.9*y"
        laws = [Expression.from_infix(text, ("x", "y")) for text in equations]
        y = integrate(laws, [1.0 * unit, 1.3 * unit], t, atol=1e-9 * unit)
        data = Observations(System(("x", "y")), (Run(t, y, np.empty((t.size, 0))),))
        fit = fit_system(data, laws, (Origin("test"),) * 2, stopping=NO_FIT)
        nodes.append(component_forms(data, fit)[0].nodes)
    np.testing.assert_allclose(nodes[1], 1e-9 * nodes[0], rtol=1e-4)


def test_what_an_input_did_between_the_observations_counts():
    """A voltage that changes every 40 ms, and a speed that is seen every 50 ms."""
    system, t = System(("speed",), ("volt",), held=("volt",)), np.linspace(0.0, 15.0, 3000)
    volt = np.repeat(np.random.default_rng(1).choice(4, size=375), 8).astype(float)[:, None]
    law = Expression.from_infix("2*volt - 1.5*speed - 0.8*speed**2", system.variables)
    speed = integrate([law], [0.1], t, measured_inputs(t, volt, (True,)))
    data = Observations(system, (Run(t[::10], speed[::10], volt, None, t, (True,)),))
    fit = fit_system(data, [law], (Origin("test"),), stopping=FULL)
    assert fit.residuals[0] < 1e-3 * data.spread[0]
    (form,) = component_forms(data, fit)
    assert form.residual(law) < 0.01 and form.nodes.shape[1] < 2 * t.size


def test_exact_data_are_interpolated_and_noisy_ones_smoothed():
    t = np.linspace(0.0, 6.0, 100)
    (curve,) = smooth_curves(t, np.sin(t)[:, None])
    assert curve.noise < 1e-6
    np.testing.assert_allclose(curve(t, 1), np.cos(t), atol=1e-5)
    noisy = np.sin(t) + 0.05 * np.random.default_rng(0).standard_normal(t.size)
    (curve,) = smooth_curves(t, noisy[:, None])
    assert curve.noise == pytest.approx(0.05, rel=0.3)
    assert np.sqrt(np.mean((curve(t) - np.sin(t)) ** 2)) < 0.03


def test_where_a_system_has_no_solution_the_curves_are_followed():
    """x' = x^2 from 1 runs away at t = 1; regressions are finite all the same."""
    data, _ = observed(System(("x", "y")), ("-0.5*x", "x - y"), (1.0, 0.2), noise=0.01)
    law, other = (Expression.from_infix(text, ("x", "y")) for text in ("x**2", "x - y"))
    fit = fit_system(data, [law, other], (Origin("test"),) * 2, stopping=NO_FIT)
    fit = dataclasses.replace(fit, states=np.array([[1.0, 0.2]]))
    forms, smooth = component_forms(data, fit), component_forms(data)
    for form, curve in zip(forms, smooth, strict=True):
        assert np.isfinite(form.nodes).all() and np.isfinite(form.operator).all()
        np.testing.assert_array_equal(form.nodes[:, -1], curve.nodes[:, -1])
        assert (form.nodes[:, 0] != curve.nodes[:, 0]).any()
