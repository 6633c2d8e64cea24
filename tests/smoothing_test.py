"""The smooth curve, and what is clean."""

import numpy as np
import pytest

from nsode_jax.observed import splines
from nsode_jax.observed.smoothing import is_clean, monotone_curve, range_of, smooth_curves

T = np.linspace(0.0, 6.0, 150)
GROWTH = 0.2 * np.exp(0.7 * T)


def test_clean_data_are_interpolated():
    curve = monotone_curve(T, GROWTH)
    between = (T[1:] + T[:-1]) / 2
    np.testing.assert_allclose(curve(between), 0.2 * np.exp(0.7 * between), rtol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_smoothed_and_the_curve_is_monotone(seed):
    rng = np.random.default_rng(seed)
    noisy = GROWTH + 0.5 * rng.standard_normal(T.size)
    values = monotone_curve(T, noisy)(T)
    assert (np.diff(values) >= 0).all()
    assert np.sqrt(np.mean((values - GROWTH) ** 2)) < 0.2


@pytest.mark.parametrize("seed", range(5))
def test_noise_that_grows_with_the_values_is_smoothed(seed):
    """Most values are small and exact, which says nothing of the others."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.choice(np.linspace(0.0, 10.0, 150), 75, replace=False))
    pulse = np.exp(3 * np.cos(times))
    values = pulse * (1 + 0.05 * rng.standard_normal(times.size))
    (curve,) = smooth_curves(times, values[:, None])
    size = 0.05 * np.sqrt(np.mean(pulse**2))
    assert 0.3 * size < curve.noise < 1.5 * size
    assert np.sqrt(np.mean((curve(times) - pulse) ** 2)) < 0.85 * size


@pytest.mark.parametrize("seed", range(5))
def test_a_steep_beginning_does_not_make_the_rest_wiggle(seed):
    """One stiffness everywhere would miss the fall or follow the noise of the plateau."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0.0, 10.0, 60))
    times[0] = 0.0
    fall, slow = 3 * np.exp(-4 * times), np.cos(0.5 * times)
    noisy = np.stack([fall, slow], axis=1) + 0.05 * rng.standard_normal((60, 2))
    for curve, truth in zip(smooth_curves(times, noisy), (fall, slow), strict=True):
        assert 0.03 < curve.noise < 0.07
        assert np.sqrt(np.mean((curve(times) - truth) ** 2)) < 0.03


def test_the_derivative_of_a_curve_is_that_in_time():
    t = np.geomspace(0.1, 20.0, 80)
    values = np.exp(-2 * t) + 0.02 * np.random.default_rng(0).standard_normal(80)
    (curve,) = smooth_curves(t, values[:, None])
    at = np.linspace(0.3, 15.0, 50)
    differences = (curve(at + 1e-5) - curve(at - 1e-5)) / 2e-5
    np.testing.assert_allclose(curve(at, 1), differences, rtol=1e-5, atol=1e-7)


def test_clean_is_told_from_noisy():
    steep = np.where(T < 0.1, 50.0, 1.0) + np.exp(-T)  # Two regimes, no noise.
    assert is_clean(T, GROWTH) and is_clean(T, steep)
    for seed in range(5):
        xi = np.random.default_rng(seed).standard_normal(T.size)
        assert not is_clean(T, GROWTH + 1e-3 * GROWTH.std() * xi)
        assert is_clean(T, GROWTH + 1e-5 * GROWTH.std() * xi)


def test_bands_of_an_inverse_are_those_of_the_dense_one():
    rng = np.random.default_rng(0)
    matrices, factors = [], []
    for _ in range(3):
        upper = np.triu(rng.normal(size=(9, 9))) - np.triu(rng.normal(size=(9, 9)), 3)
        upper = np.triu(upper) * (np.subtract.outer(np.arange(9), np.arange(9)) >= -2)
        np.fill_diagonal(upper, 1 + rng.random(9))
        bands = [np.pad(upper.diagonal(band), (band, 0)) for band in (2, 1, 0)]
        matrices.append(np.linalg.inv(upper.T @ upper))
        factors.append(bands)
    found = splines.bands_of_inverse(np.array(factors))
    for matrix, bands in zip(matrices, found, strict=True):
        for band in range(3):
            expected = matrix.diagonal(band)
            np.testing.assert_allclose(bands[band, : expected.size], expected, rtol=1e-9, atol=1e-9)


def test_what_noise_puts_beyond_zero_is_next_to_it():
    """Laws such as Gompertz' growth have no value at 0."""
    y = np.array([-0.03, 0.02, 0.1, 0.5, 1.0])
    assert range_of(y, 0.05) == (0.01, 1.0)
    assert range_of(-y, 0.05) == (-1.0, -0.01)
    assert range_of(np.maximum(y, 0.0), 0.05) == (0.01, 1.0)  # Rounded, or cut there.
    assert range_of(np.array([-1e-9, 0.02, 1.0]), 0.0) == (1e-4, 1.0)
    assert range_of(np.maximum(y, 0.0), 0.0) == (0.0, 1.0)  # Without noise a 0 is one.
    assert range_of(y, 0.001) == (-0.03, 1.0)
