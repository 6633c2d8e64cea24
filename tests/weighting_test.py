"""Outliers are named, and a robust fit is not bent by them; growing noise is weighted."""

import numpy as np
import pytest

from nsode_jax.discovery.pipeline import discover
from nsode_jax.discovery.weighting import weighting
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import Fit, Origin

# Total pressure of a gas that dimerizes, after a published exercise; the third value was 592.
T = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70]
P = [632, 611, 552, 573.5, 558.5, 545, 533.5, 523, 514, 505, 497, 490, 484, 473]
SOURCES = ("named laws", "library")


@pytest.fixture(scope="module")
def as_typed():
    return discover(T, P, effort="fast", sources=SOURCES)


@pytest.fixture(scope="module")
def corrected():
    return discover(T, [*P[:2], 592, *P[3:]], effort="fast", sources=SOURCES)


def _outliers(found) -> list[str]:
    return [note for note in found.notes if "far from the law" in note]


def test_a_typing_error_is_named_by_point_and_value(as_typed):
    (note,) = _outliers(as_typed)
    assert "552 at t = 10." in note and "robust" in note
    assert all(series.noise is None for series in as_typed.trajectories)


def test_it_is_named_by_the_time_of_the_clock(as_typed):
    """Not by that since the first point, from which fits count."""
    best = as_typed.best
    data = Dataset.of([Trajectory(np.array(T) + 1900.0, P)])
    fit = Fit(best.expression, best.y0s, best.residual_rms, best.r2, True, Origin("test"))
    (note,) = weighting(data, [(fit, 0.0)], False, [1900.0]).notes
    assert "552 at t = 1910." in note


def test_without_it_nothing_is_named(corrected):
    assert not _outliers(corrected)


def test_a_robust_fit_is_near_that_of_the_corrected_data(as_typed, corrected):
    robust = discover(T, P, effort="fast", sources=SOURCES, robust=True)
    (note,) = _outliers(robust)
    assert "552 at t = 10. It was given little weight." in note
    (series,) = robust.trajectories
    assert series.noise is not None and series.noise.argmax() == 2
    later = np.linspace(0.0, 70.0, 50)
    truth = corrected.best.predict(later)
    errors = [np.abs(found.best.predict(later) - truth).max() for found in (robust, as_typed)]
    assert errors[0] < 0.5 * errors[1]


def test_several_outliers_are_counted():
    t = np.linspace(0.0, 6.0, 40)
    y = 5 * np.exp(-0.43 * t) + 0.02 * np.random.default_rng(0).standard_normal(40)
    y[[5, 20]] += (1.0, -0.8)
    (note,) = _outliers(discover(t, y, effort="fast", sources=("library",)))
    assert note.startswith("These values lie") and f"{y[5]:.6g} at t" in note


def test_growing_noise_is_weighted():
    t = np.linspace(0.0, 6.0, 60)
    y = 5 * np.exp(-0.7 * t) * (1 + 0.05 * np.random.default_rng(1).standard_normal(60))
    found = discover(t, y, effort="fast", sources=("library",))
    assert any("grows with the values" in note for note in found.notes)
    (series,) = found.trajectories
    assert series.noise is not None and series.noise[0] > 3 * series.noise[-1]
