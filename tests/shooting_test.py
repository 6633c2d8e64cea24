"""Constants and initial values of systems from their solutions."""

import numpy as np
import pytest
from observing import observed
from solved import laws

from nsode_jax.dynamics.system import System, integrate
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import covariance, fit_system, least_freedom, refitted, uncertainty
from nsode_jax.fitting.system_problem import Tie
from nsode_jax.fitting.trajectory_fitting import FULL
from nsode_jax.observed.observations import Observations, Run

PREY = System(("x", "y"))
ORIGINS = (Origin("test"),) * 3


def test_constants_are_found_within_their_errors():
    data, truth = observed(PREY, ("1.1*x - 0.8*x*y", "0.6*x*y - 0.9*y"), (1.0, 1.3), noise=0.02)
    start = laws(PREY.variables, "1.0*x - 0.9*x*y", "0.5*x*y - 1.0*y")
    fit = fit_system(data, start, ORIGINS, stopping=FULL)
    assert fit.converged and fit.segments == 1
    errors = np.sqrt(np.diag(covariance(data, fit)))
    found = np.concatenate([law.constants for law in fit.laws])
    true = np.concatenate([law.constants for law in truth])
    assert (np.abs(found - true) < 4 * errors).all()
    assert (errors < 0.05).all()


def test_errors_of_a_noisy_quantity_do_not_shrink_beside_a_precise_one():
    """Two quantities without any coupling: each has the errors that it has alone."""
    t = np.linspace(0.0, 5.0, 60)
    rng = np.random.default_rng(4)
    x = np.exp(-0.7 * t) + 1e-6 * rng.standard_normal(t.size)
    z = np.exp(-0.4 * t) + 0.05 * rng.standard_normal(t.size)

    def error(columns, *texts):
        names = ("x", "z")[-len(texts) :]
        run = Run(t, np.stack(columns, axis=1), np.empty((t.size, 0)))
        data = Observations(System(names), (run,))
        fit = fit_system(data, laws(names, *texts), ORIGINS[: len(texts)], stopping=FULL)
        return np.sqrt(np.diag(covariance(data, fit)))

    alone = error([z], "-0.4*z")
    joint = error([x, z], "-0.7*x", "-0.4*z")
    assert joint[1] == pytest.approx(alone[0], rel=0.05)
    assert joint[0] < 1e-5


def test_noise_of_each_quantity_is_by_the_parameters_that_it_takes_itself():
    """Two quantities without any coupling, of three and of two parameters."""
    t, rng = np.linspace(0.0, 5.0, 7), np.random.default_rng(3)
    x = 2.0 - np.exp(-0.7 * t) + 0.02 * rng.standard_normal(t.size)
    z = np.exp(-0.4 * t) + 0.02 * rng.standard_normal(t.size)

    def known(columns, names, *texts):
        run = Run(t, np.stack(columns, axis=1), np.empty((t.size, 0)))
        data = Observations(System(tuple(names)), (run,))
        fit = fit_system(data, laws(names, *texts), ORIGINS[: len(texts)], stopping=FULL)
        return uncertainty(data, fit)

    alone = [known([x], "x", "1.4 - 0.7*x"), known([z], "z", "-0.4*z")]
    assert [each.freedom for each in alone] == pytest.approx([4.0, 5.0], abs=1e-6)
    joint = known([x, z], "xz", "1.4 - 0.7*x", "-0.4*z")
    expected = np.concatenate([np.diag(each.covariance) for each in alone])
    assert np.diag(joint.covariance) == pytest.approx(expected, rel=0.01)
    assert joint.freedom == pytest.approx(4.0, abs=1e-3)


def _decay_into(points: int, noise: tuple[float, float]):
    """x decays into a y of another noise, which decays; the data and the fit."""
    t, system = np.linspace(0.0, 6.0, points), System(("x", "y"))
    truth = laws(system.variables, "-0.8*x", "0.7*x - 0.3*y")
    y = integrate(truth, [5.0, 1.0], t)
    y += np.array(noise) * np.random.default_rng(5).standard_normal(y.shape)
    data = Observations(system, (Run(t, y, np.empty((t.size, 0))),))
    fit = fit_system(data, truth, ORIGINS[:2], stopping=FULL)
    return data, refitted(data, fit, FULL)


def test_a_precise_quantity_takes_nearly_all_parameters():
    """Of y's eight points four are taken by its three constants and its first value."""
    known = uncertainty(*_decay_into(8, (0.3, 0.003)))
    assert known.freedom == pytest.approx(4.0, abs=0.1)
    # With equal noise the eleven degrees of freedom are those of both.
    assert 4.5 < uncertainty(*_decay_into(8, (0.1, 0.1))).freedom < 11.0


def test_without_freedom_of_a_quantity_nothing_is_known():
    """y has as many points as it takes parameters, though x has many more."""
    data, fit = _decay_into(4, (0.3, 0.003))
    assert uncertainty(data, fit) is None and covariance(data, fit) is None


def test_constants_of_exact_data_are_not_known_better_than_the_solver():
    system, t = System(("x",), order=2), np.linspace(0.0, 15.0, 61)
    truth = laws(system.variables, "-0.3*v - 2*x")
    x = integrate(system.equations(truth), [1.0, 0.0], t, rtol=1e-13, atol=1e-14)[:, :1]
    data = Observations(system, (Run(t, x, np.empty((t.size, 0))),))
    fit = refitted(data, fit_system(data, truth, ORIGINS[:1], stopping=FULL), FULL)
    off = np.array(fit.laws[0].constants) - truth[0].constants
    errors = np.sqrt(np.diag(uncertainty(data, fit).covariance))
    assert (np.abs(off) < 2 * errors).all() and (errors < 1e-6).all()


def test_runs_in_which_a_quantity_rests_do_not_show_its_noise():
    """Controls without predators: exact zeros are no measurements of them."""
    rng = np.random.default_rng(2)
    truth = laws(PREY.variables, "0.6*x - 0.5*x*y", "0.4*x*y - 0.5*y")
    t, early = np.linspace(0.0, 12.0, 25), np.linspace(0.0, 3.0, 25)
    both = integrate(truth, [2.0, 1.0], t)
    alone = integrate(truth, [0.5, 0.0], early)
    squares = []
    for _ in range(30):
        noises = 0.05 * rng.standard_normal((4, 25, 2)) * ([[[1.0, 1.0]]] + 3 * [[[1.0, 0.0]]])
        columns = zip([t, early, early, early], [both, alone, alone, alone], noises)
        runs = tuple(Run(at, y + noise, np.empty((25, 0))) for at, y, noise in columns)
        data = Observations(PREY, runs)
        fit = fit_system(data, truth, ORIGINS[:2], stopping=FULL)
        off = np.array(fit.laws[1].constants) - truth[1].constants
        squares.append(off**2 / np.diag(uncertainty(data, fit).covariance)[2:])
    assert data.counts.tolist() == [100, 25]
    # It was 3.1, as their noise was taken for half of what it is.
    assert np.mean(squares) == pytest.approx(1.0, abs=0.6)


def test_freedom_is_that_of_the_constant_that_is_known_least():
    freedom = np.array([4.0, 10.0])
    one_each = np.array([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    assert least_freedom(one_each, freedom) == 4.0
    # (1 + 1)² / (1/4 + 1/10), of all constants that are fitted.
    assert least_freedom(np.array([[1.0, 0.0], [1.0, 0.0]]), freedom) == pytest.approx(80 / 7)
    assert least_freedom(np.zeros((2, 3)), freedom) == 4.0


def test_stiff_systems_are_fitted():
    """A fast exchange, of which the first points alone tell anything, and a slow loss."""
    t = np.r_[0.0, np.geomspace(1e-5, 4.0, 40)]
    truth = laws(PREY.variables, "5000*y - 5000*x", "-0.5*x")
    y = integrate(truth, [1.0, 0.2], t, rtol=1e-11, atol=1e-11)
    data = Observations(PREY, (Run(t, y, np.empty((t.size, 0))),))
    start = laws(PREY.variables, "4000*y - 4000*x", "-0.7*x")
    fit = fit_system(data, start, ORIGINS[:2], stopping=FULL)
    found = np.concatenate([law.constants for law in fit.laws])
    assert np.abs(found) == pytest.approx([5000.0, 5000.0, 0.5], rel=1e-3)
    assert (fit.residuals < 1e-4 * data.spread).all()


def test_tied_constants_stay_opposite():
    system = System(("x", "y"))
    data, _ = observed(system, ("-0.5*x*y", "0.5*x*y - 0.3*y"), (2.0, 0.1), noise=0.01)
    start = laws(system.variables, "-0.4*x*y", "0.6*x*y - 0.3*y")
    fit = fit_system(data, start, ORIGINS, ties=(Tie(1, 0),), stopping=FULL)
    assert fit.laws[1].constants[0] == -fit.laws[0].constants[0]
    assert fit.laws[1].constants[0] == pytest.approx(0.5, rel=0.05)
    errors = np.sqrt(np.diag(covariance(data, fit)))
    assert errors[0] == errors[1] > 0.0


def test_a_law_without_a_solution_diverges():
    data, _ = observed(PREY, ("1.1*x - 0.8*x*y", "0.6*x*y - 0.9*y"), (1.0, 1.3))
    fit = fit_system(data, laws(PREY.variables, "50*x**2", "0.1*y"), ORIGINS, stopping=FULL)
    assert fit.diverged
