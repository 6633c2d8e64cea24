"""The smooth curve, and how noise varies with the values."""

import numpy as np
import pytest

from nsode_jax.fitting.smoothing import is_clean, monotone_curve, noise_profile

T = np.linspace(0.0, 6.0, 150)
GROWTH = 0.2 * np.exp(0.7 * T)


def _slope(noise: np.ndarray) -> float:
    """Power of the values that the noise is proportional to."""
    return float(np.polyfit(np.log(GROWTH), np.log(noise), 1)[0])


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
def test_proportional_noise_is_recognized(seed):
    rng = np.random.default_rng(seed)
    noise = noise_profile(T, GROWTH * (1 + 0.05 * rng.standard_normal(T.size)))
    assert noise is not None
    assert 0.4 < _slope(noise) < 1.1
    assert np.mean(noise**-2) == pytest.approx(1.0)


def test_equal_noise_and_no_noise_are_left_alone():
    found = [
        noise_profile(T, GROWTH + 0.3 * np.random.default_rng(seed).standard_normal(T.size))
        for seed in range(20)
    ]
    assert sum(noise is not None for noise in found) <= 2
    assert noise_profile(T, GROWTH) is None


def test_values_that_change_sign_do_no_harm():
    rng = np.random.default_rng(0)
    y = GROWTH - 1.0
    noise = noise_profile(T, y * (1 + 0.1 * rng.standard_normal(T.size)))
    assert noise is None or (np.isfinite(noise).all() and noise.min() > 0)


def test_clean_is_told_from_noisy():
    steep = np.where(T < 0.1, 50.0, 1.0) + np.exp(-T)  # Two regimes, no noise.
    assert is_clean(T, GROWTH) and is_clean(T, steep)
    for seed in range(5):
        xi = np.random.default_rng(seed).standard_normal(T.size)
        assert not is_clean(T, GROWTH + 1e-3 * GROWTH.std() * xi)
        assert is_clean(T, GROWTH + 1e-5 * GROWTH.std() * xi)
