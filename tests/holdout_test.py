"""Prediction of what was left out: good for the law, bad for a flexible stand-in."""

import numpy as np
import pytest
from solved import canonical_law, solved

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.holdout import held_out_error

ORIGIN = Origin("test")


def _data(noise: float = 0.0) -> Dataset:
    series = solved("1.3*y - 0.7*y**2", 0.1, 6.0, 60)
    errors = noise * np.random.default_rng(0).standard_normal(60)
    return Dataset.of([Trajectory(series.t, series.y + errors)])


def test_the_law_of_clean_data_predicts_exactly():
    data = _data()
    fit = fit_trajectories(data, canonical_law("1.2*y - 0.6*y**2"), [0.1], ORIGIN)
    assert held_out_error(data, fit) < 1e-4


def test_in_noise_the_law_predicts_as_well_as_it_fits():
    data = _data(noise=0.02)
    fit = fit_trajectories(data, canonical_law("1.2*y - 0.6*y**2"), [0.1], ORIGIN)
    fitted = fit.residual_rms / data.y.std()
    assert 0.5 * fitted < held_out_error(data, fit) < 2.0 * fitted


def test_a_stand_in_that_fits_does_not_predict():
    data = _data(noise=0.02)
    law = fit_trajectories(data, canonical_law("1.2*y - 0.6*y**2"), [0.1], ORIGIN)
    stand_in = fit_trajectories(data, canonical_law("0.51*sqrt(y) - 0.3*y**2"), [0.1], ORIGIN)
    assert held_out_error(data, stand_in) > 2 * held_out_error(data, law)


def test_a_solution_that_ends_predicts_nothing():
    """Fitted to its first part, growth without a limit has no values at the end."""
    t = np.linspace(0.0, 2.0, 60)
    y = np.where(t < 1.5, 0.4 / (1 - 0.62 * np.minimum(t, 1.5)), 5.8)
    seen = Dataset.of([Trajectory(t[:45], y[:45])])
    fit = fit_trajectories(seen, canonical_law("1.6*y**2"), [0.3], ORIGIN)
    assert fit.r2 > 0.999
    assert held_out_error(Dataset.of([Trajectory(t, y)]), fit) == np.inf


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(unit):
    data = _data(noise=0.02)
    (series,) = data
    scaled = Dataset.of([Trajectory(series.t * 1e3, series.y * unit)])
    fit = fit_trajectories(data, canonical_law("1.2*y - 0.6*y**2"), [0.1], ORIGIN)
    again = fit_trajectories(
        scaled, canonical_law(f"{1.2e-3!r}*y - {0.6e-3 / unit!r}*y**2"), [0.1 * unit], ORIGIN
    )
    assert held_out_error(scaled, again) == pytest.approx(held_out_error(data, fit), rel=1e-3)
