"""Variances of many series: drawn together as far as they are alike."""

import numpy as np
import pytest
from scipy import stats

from nsode_jax.fitting.moderated import moderated


def test_what_differs_by_chance_is_pooled():
    freedom = np.array([2.0, 4.0, 6.0])
    variance, known = moderated(3.0 * freedom, freedom)
    np.testing.assert_allclose(variance, 3.0)
    np.testing.assert_allclose(known, 12.0)


def test_what_differs_by_far_stays_its_own():
    freedom = np.full(6, 200.0)
    own = np.array([1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3])
    variance, known = moderated(own * freedom, freedom)
    np.testing.assert_allclose(variance, own, rtol=0.05)
    assert (known < 202).all()


def test_few_degrees_of_freedom_are_drawn_more_than_many():
    freedom = np.array([3.0, 3.0, 3.0, 3.0, 300.0, 300.0])
    own = np.array([0.05, 20.0, 0.3, 5.0, 0.3, 5.0])
    variance, _ = moderated(own * freedom, freedom)
    drawn = np.abs(np.log(variance / own))
    assert (drawn[2:4] > 10 * drawn[4:]).all()


def test_a_series_that_tells_nothing_has_what_is_usual():
    squares, freedom = np.array([8.0, np.inf, 0.0, 12.0]), np.array([4.0, 4.0, 0.0, 6.0])
    variance, known = moderated(squares, freedom)
    np.testing.assert_allclose(variance, 2.0)
    np.testing.assert_allclose(known, 10.0)
    variance, known = moderated(np.zeros(3), np.zeros(3))
    assert np.isnan(variance).all() and not known.any()
    variance, known = moderated(np.array([5.0]), np.array([5.0]))
    assert variance == known / 5 == 1.0


def test_exact_series_have_no_variance():
    variance, _ = moderated(np.zeros(4), np.full(4, 3.0))
    assert not variance.any()


@pytest.mark.parametrize("unequal", [0.0, 0.7])
def test_intervals_by_them_hold_at_the_stated_rate(unequal):
    """Means of 4 values of each of 12 series, whose noise is alike or differs by a factor of 2."""
    rng, held = np.random.default_rng(0), []
    for _ in range(200):
        sigma = np.exp(unequal * rng.standard_normal(12))
        values = sigma[:, None] * rng.standard_normal((12, 4))
        mean = values.mean(axis=1)
        squares = ((values - mean[:, None]) ** 2).sum(axis=1)
        variance, known = moderated(squares, np.full(12, 3.0))
        half = stats.t.ppf(0.975, known) * np.sqrt(variance / 4)
        held.append(np.mean(np.abs(mean) < half))
    assert 0.935 < np.mean(held) < 0.965
