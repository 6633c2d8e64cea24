"""Constants from the integral form: exact where the truth is known, whatever the units."""

import numpy as np
import pytest
from solved import LAWS, canonical_law, fitted_laws, form_of, solved_law

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.fitting.guesses import InitialGuess
from nsode_jax.fitting.least_squares import fit_laws


@pytest.mark.parametrize("name", LAWS)
def test_the_truth_fits_and_stays(name):
    form = form_of(solved_law(name))
    truth = canonical_law(LAWS[name][0])
    ((fitted, error),) = fitted_laws(form, LAWS[name][0])
    assert error < 1e-5
    np.testing.assert_allclose(fitted.constants, truth.constants, rtol=1e-3)


def test_the_residual_is_that_of_the_integrated_rate():
    """For the smooth curve of clean data: y - integral of f, about its mean."""
    data = solved_law("logistic", points=200)
    form = form_of(data)
    wrong = canonical_law("0.9*y - 0.4*y**2")
    _, errors = fit_laws(form, [InitialGuess(wrong, np.zeros(3, bool))])
    rate = wrong.evaluate(data.y)
    steps = np.diff(data.t) * (rate[1:] + rate[:-1]) / 2
    residual = data.y - np.concatenate([[0.0], np.cumsum(steps)])
    expected = residual.std() / data.y.std()
    assert errors[0] == pytest.approx(expected, rel=1e-3)


def test_several_trajectories_share_one_law():
    below, above = solved_law("logistic"), solved_law("logistic", points=400, y0=6.0)
    form = form_of(below, above)
    assert form.count == len(below) + len(above)
    assert form.nodes[0] < 0.15 and form.nodes[-1] > 5.5
    ((fitted, error),) = fitted_laws(form, "1.1*y - 0.9*y**2 + 0.1")
    assert error < 1e-4
    np.testing.assert_allclose(fitted.evaluate(3.0), 1.3 * 3 - 0.7 * 9, rtol=1e-3)
    np.testing.assert_allclose(form.y0s, (0.1, 6.0), rtol=1e-3)


@pytest.mark.parametrize("unit_of_time", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_units_do_not_matter(unit, unit_of_time):
    data = solved_law("logistic")
    scaled = Trajectory(data.t * unit_of_time, data.y * unit)
    form = form_of(scaled)
    start = f"{1.1 / unit_of_time!r}*y - {0.3 / unit / unit_of_time!r}*y**2"
    ((fitted, error),) = fitted_laws(form, start)
    assert error < 1e-5
    expected = canonical_law(f"{1.3 / unit_of_time!r}*y - {0.7 / unit / unit_of_time!r}*y**2")
    np.testing.assert_allclose(fitted.constants, expected.constants, rtol=1e-4)


def test_a_view_has_the_form_of_its_variables():
    form = form_of(solved_law("logistic"))
    a, b, c = 0.5, 0.2, 3.0
    law = canonical_law("0.9*y - 0.4*y**2")
    seen = form.rescaled(a, b, c)
    # dz/ds = (c/a) f(a z + b), where z = (y - b) / a.
    view = canonical_law("6*(0.9*(0.5*y + 0.2) - 0.4*(0.5*y + 0.2)**2)")
    _, errors = fit_laws(form, [InitialGuess(law, np.zeros(len(law.constants), bool))])
    _, seen_errors = fit_laws(seen, [InitialGuess(view, np.zeros(len(view.constants), bool))])
    assert seen_errors[0] == pytest.approx(errors[0], rel=1e-9)


def test_a_steep_transient_of_few_points():
    """Five of 1024 points hold a third of the range; a spline over time misses it by 0.02."""
    law = canonical_law("y**2 + y**3 + y**4 + y")
    t = np.linspace(0.0, 4.0, 1024)
    y = solve(law, -3.9, t, rtol=1e-11, atol=1e-11)
    assert y[4] - y[0] > np.ptp(y) / 3
    form = form_of(Trajectory(t, y))
    _, errors = fit_laws(form, [InitialGuess(law, np.zeros(len(law.constants), bool))])
    assert errors[0] < 1e-3
