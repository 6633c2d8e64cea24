"""How residuals follow one another, against noise and against what is systematic."""

import numpy as np
import pytest

from nsode_jax.residuals.pattern import pattern_of


def test_the_runs_test_by_hand():
    found = pattern_of([np.array([1.0, 2.0, -1.0, -2.0, -1.0, 3.0, 0.0])])
    assert found.changes == 2
    assert found.expected == pytest.approx(2 * 3 * 3 / 6)
    assert found.deviation == pytest.approx((2 - 3) / np.sqrt(18 * 12 / (36 * 5)))
    assert found.pairs == 6


def test_it_is_said_in_words():
    said = pattern_of([np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])]).counted
    assert said == "they change sign 1 time where chance would give about 3 (autocorrelation 0.50)"


def test_independent_noise_has_hardly_ever_a_pattern():
    rng = np.random.default_rng(0)
    found = [pattern_of(list(rng.standard_normal((2, 30)))) for _ in range(400)]
    assert sum(one.is_systematic for one in found) <= 10
    assert sum(one.alternates for one in found) <= 10


@pytest.mark.parametrize("outlier", [0.0, 100.0])
def test_long_runs_are_systematic_also_beside_an_outlier(outlier):
    """The autocorrelation of one large value among small ones is next to none."""
    wave = np.sin(np.linspace(0.0, 3 * np.pi, 40))
    wave[20] += outlier
    found = pattern_of([wave])
    assert found.is_systematic and not found.alternates
    assert pattern_of([(-1.0) ** np.arange(40)]).alternates


def test_of_nothing_there_is_none():
    for series in ([], [np.zeros(0)], [np.zeros(9)], [np.ones(1)]):
        found = pattern_of(series)
        assert not found.is_systematic and not found.alternates
