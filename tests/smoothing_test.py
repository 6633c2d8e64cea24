"""The smooth curve, and what is clean."""

import numpy as np
import pytest

from nsode_jax.fitting import smoothing
from nsode_jax.fitting.smoothing import is_clean, monotone_curve, smooth_curve

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
    curve, noise = smooth_curve(times, pulse * (1 + 0.05 * rng.standard_normal(times.size)))
    size = 0.05 * np.sqrt(np.mean(pulse**2))
    assert noise == pytest.approx(size, rel=0.5)
    assert np.sqrt(np.mean((curve(times) - pulse) ** 2)) < 0.85 * size


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
    found = smoothing._bands_of_inverse(np.array(factors))
    for matrix, bands in zip(matrices, found, strict=True):
        for band in range(3):
            expected = matrix.diagonal(band)
            np.testing.assert_allclose(bands[band, : expected.size], expected, rtol=1e-9, atol=1e-9)
