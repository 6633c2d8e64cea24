"""What is asked of all series at once, and that times are counted from the first."""

import math

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.observed.dataset import Dataset

T = np.linspace(0.0, 4.0, 50)
DATA = Trajectory(T, 0.3 + np.exp(-T) * math.pi)
SPREAD = DATA.y.std()


def test_spread_is_about_the_mean_of_each_trajectory():
    shifted = Trajectory(T, DATA.y + 100.0)
    assert Dataset.of([DATA]).spread == pytest.approx(SPREAD)
    assert Dataset.of([DATA, shifted]).spread == pytest.approx(SPREAD)


def test_precise_values_count_more():
    doubled = Trajectory(T, DATA.y, noise=np.where(T < 2, 1.0, 2.0))
    early = np.average(
        (DATA.y - np.average(DATA.y, weights=doubled.weights**2)) ** 2, weights=doubled.weights**2
    )
    assert Dataset.of([doubled]).spread == pytest.approx(
        np.sqrt(early * np.mean(doubled.weights**2))
    )


def test_times_are_counted_from_the_first_of_each_series():
    noise = np.full(T.size, 2.0)
    data = Dataset.of([Trajectory(T + 1.7e9, DATA.y), Trajectory(T - 3.0, DATA.y, noise)])
    for series in data:
        assert series.t[0] == 0.0
        np.testing.assert_allclose(series.t, T, atol=1e-6)
    assert len(data) == 2
    np.testing.assert_array_equal(data.trajectories[1].noise, noise)


def test_all_observations_one_after_the_other():
    noise = np.full(5, 2.0)
    series = [Trajectory(T, DATA.y), Trajectory(np.arange(5.0), -np.arange(5.0), noise)]
    data = Dataset.of(series)
    np.testing.assert_array_equal(data.y, np.concatenate([DATA.y, -np.arange(5.0)]))
    np.testing.assert_array_equal(data.weights, [1.0] * 50 + [0.5] * 5)
    assert data.count == 55
    assert (data.low, data.high) == (-4.0, DATA.y.max())
    assert data.size == 4.0
    np.testing.assert_array_equal(data.values(3), [-4.0, (DATA.y.max() - 4) / 2, DATA.y.max()])


def test_a_spread_of_nothing_is_one():
    assert Dataset.of([Trajectory(np.arange(3.0), np.full(3, 2.0))]).spread == 1.0


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_rounding_is_found_in_any_unit(unit):
    y = np.array([9.6, 18.3, 29.0, 47.2, 661.8])
    data = Dataset.of([Trajectory(np.arange(5.0), y * unit)])
    assert data.rounding == pytest.approx(0.1 * unit / math.sqrt(12))
    assert Dataset.of([DATA]).rounding == 0.0
