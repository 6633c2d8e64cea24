"""Constants from the integral form: exact where the truth is known, whatever the units."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.integral import (
    IntegralForm,
    Start,
    fit_integrals,
    starts_of,
)

# Laws with their initial value and the end of the observation.
LAWS = {
    "logistic": ("1.3*y - 0.7*y**2", 0.1, 4.0),
    "linear": ("2.5 - 0.8*y", 0.1, 5.0),
    "sqrt": ("1.7*sqrt(y) - 0.6*y", 0.3, 6.0),
    "sin": ("1.3*sin(1.7*y)", 0.1, 4.0),
    "gompertz": ("-0.37*y*log(0.21*y)", 0.1, 6.0),
    "decay": ("-0.7*y", -2.0, 4.0),
}


def _law(text: str) -> Expression:
    return canonicalize(Expression.from_infix(text))


def _data(name: str, points: int = 60, y0: float | None = None) -> Trajectory:
    text, first, end = LAWS[name]
    t = np.linspace(0.0, end, points)
    return Trajectory(t, solve(_law(text), first if y0 is None else y0, t, rtol=1e-11, atol=1e-11))


def _fit(form: IntegralForm, *texts: str):
    starts = [starts_of(_law(text))[0] for text in texts]
    constants, errors = fit_integrals(form, starts)
    return [
        (start.expression.skeleton.with_constants(values), error)
        for start, values, error in zip(starts, constants, errors, strict=True)
    ]


@pytest.mark.parametrize("name", LAWS)
def test_the_truth_fits_and_stays(name):
    form = IntegralForm.from_trajectories([_data(name)])
    truth = _law(LAWS[name][0])
    ((fitted, error),) = _fit(form, LAWS[name][0])
    assert error < 1e-5
    np.testing.assert_allclose(fitted.constants, truth.constants, rtol=1e-3)


def test_all_at_once_from_afar():
    form = IntegralForm.from_trajectories([_data("gompertz")])
    fits = _fit(form, "-2*y*log(0.5*y)", "0.5*y", "1e3 - 1e3*y", "log(-y)", "sin(y)**9")
    expected = np.array(_law(LAWS["gompertz"][0]).constants)
    np.testing.assert_allclose(np.abs(fits[0][0].constants), np.abs(expected), rtol=1e-3)
    errors = [error for _, error in fits]
    assert errors[0] < 1e-5 < min(errors[1:])
    assert np.isinf(errors[3])


def test_a_fit_agrees_with_least_squares():
    """A law that is linear in its constants has a closed form."""
    data = _data("gompertz")
    form = IntegralForm.from_trajectories([data])
    ((fitted, error),) = _fit(form, "0.1 + 0.2*y + 0.3*y**3")
    columns = np.stack([np.ones(form.grid.size), form.grid, form.grid**3], axis=1)
    design = form.matrix @ columns
    best, *_ = np.linalg.lstsq(design, form.target, rcond=None)
    by_term = _law("{} + {}*y + {}*y**3".format(*best))
    np.testing.assert_allclose(fitted.constants, by_term.constants, rtol=1e-6)
    squares = np.sum((design @ best - form.target) ** 2) + form.remainder
    assert error == pytest.approx(np.sqrt(squares / len(data)), rel=1e-6)


def test_the_residual_is_that_of_the_integrated_rate():
    """For the smooth curve of clean data: y - integral of f, about its mean."""
    data = _data("logistic", points=200)
    form = IntegralForm.from_trajectories([data])
    wrong = _law("0.9*y - 0.4*y**2")
    _, errors = fit_integrals(form, [Start(wrong, np.zeros(3, bool))])
    rate = wrong.evaluate(data.y)
    steps = np.diff(data.t) * (rate[1:] + rate[:-1]) / 2
    residual = data.y - np.concatenate([[0.0], np.cumsum(steps)])
    expected = residual.std() / data.y.std()
    assert errors[0] == pytest.approx(expected, rel=1e-3)


def test_what_may_not_vary_stays():
    form = IntegralForm.from_trajectories([_data("logistic")])
    law = _law("0.9*y - 0.4*y**2")
    fixed = np.array([abs(c) == 0.4 for c in law.constants])
    constants, _ = fit_integrals(form, [Start(law, ~fixed)])
    assert constants[0][fixed] == np.array(law.constants)[fixed]
    assert (constants[0][~fixed] != np.array(law.constants)[~fixed]).any()


def test_several_trajectories_share_one_law():
    below, above = _data("logistic"), _data("logistic", points=400, y0=6.0)
    form = IntegralForm.from_trajectories([below, above])
    assert form.count == len(below) + len(above)
    assert form.grid[0] < 0.15 and form.grid[-1] > 5.5
    ((fitted, error),) = _fit(form, "1.1*y - 0.9*y**2 + 0.1")
    assert error < 1e-4
    np.testing.assert_allclose(fitted.evaluate(3.0), 1.3 * 3 - 0.7 * 9, rtol=1e-3)
    np.testing.assert_allclose(form.y0s, (0.1, 6.0), rtol=1e-3)


@pytest.mark.parametrize("unit_of_time", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_units_do_not_matter(unit, unit_of_time):
    data = _data("logistic")
    scaled = Trajectory(data.t * unit_of_time, data.y * unit)
    form = IntegralForm.from_trajectories([scaled])
    start = f"{1.1 / unit_of_time!r}*y - {0.3 / unit / unit_of_time!r}*y**2"
    ((fitted, error),) = _fit(form, start)
    assert error < 1e-5
    expected = _law(f"{1.3 / unit_of_time!r}*y - {0.7 / unit / unit_of_time!r}*y**2")
    np.testing.assert_allclose(fitted.constants, expected.constants, rtol=1e-4)


def test_a_view_has_the_form_of_its_variables():
    form = IntegralForm.from_trajectories([_data("logistic")])
    a, b, c = 0.5, 0.2, 3.0
    law = _law("0.9*y - 0.4*y**2")
    seen = form.rescaled(a, b, c)
    # dz/ds = (c/a) f(a z + b), where z = (y - b) / a.
    view = _law("6*(0.9*(0.5*y + 0.2) - 0.4*(0.5*y + 0.2)**2)")
    _, errors = fit_integrals(form, [Start(law, np.zeros(len(law.constants), bool))])
    _, seen_errors = fit_integrals(seen, [Start(view, np.zeros(len(view.constants), bool))])
    assert seen_errors[0] == pytest.approx(errors[0], rel=1e-9)


def test_whole_exponents_stay_and_others_are_tried_both_ways():
    (only,) = starts_of(_law("0.3*y**3"))
    assert sorted(only.free) == [False, True]
    rounded, free = starts_of(_law("0.3*y**2.8"))
    assert 3.0 in rounded.expression.constants and free.free.all()
    (free,) = starts_of(_law("0.3*y**1.3"))  # 1 would be no power.
    assert free.free.all()


def test_a_steep_transient_of_few_points():
    """Five of 1024 points hold a third of the range; a spline over time misses it by 0.02."""
    law = _law("y**2 + y**3 + y**4 + y")
    t = np.linspace(0.0, 4.0, 1024)
    y = solve(law, -3.9, t, rtol=1e-11, atol=1e-11)
    assert y[4] - y[0] > np.ptp(y) / 3
    form = IntegralForm.from_trajectories([Trajectory(t, y)])
    _, errors = fit_integrals(form, [Start(law, np.zeros(len(law.constants), bool))])
    assert errors[0] < 1e-3


@pytest.mark.parametrize("start", ["0.7*y**1.4", "-0.7*y**0.4", "-0.2*y**3.3"])
def test_a_power_is_found_from_afar(start):
    """c and p of c*y**p pull at each other over a narrow range; c is solved for exactly."""
    t = np.linspace(0.0, 4.0, 100)
    y = solve(_law("-0.67*y**(-1.5)"), 3.0, t, rtol=1e-11, atol=1e-11)
    form = IntegralForm.from_trajectories([Trajectory(t, y)])
    law = _law(start)
    constants, errors = fit_integrals(form, [Start(law, np.ones(2, bool))])
    np.testing.assert_allclose(constants[0], (-0.67, -1.5), rtol=1e-5)
    assert errors[0] < 1e-6
