"""Replicates tell whether a law misses what they have in common."""

import numpy as np
import pytest
from scipy import stats

from nsode_jax.discovery.pipeline import discover
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories, linearized
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.goodness import constants_differ, lack_of_fit

LAW = Expression.from_infix("0.6*y - 0.06*y**2")
WRONG = Expression.from_infix("4.7 - 0.5*y")
T = np.linspace(0.0, 12.0, 12)
STARTS = (0.5, 0.83, 1.4)


def replicates(seed, noise=0.2):
    """Three series at the same times, each from a first value of its own."""
    random = np.random.default_rng(seed)
    solutions = [9.7 / (1 + (9.7 / y0 - 1) * np.exp(-0.63 * T)) for y0 in STARTS]
    return [y + noise * random.standard_normal(T.size) for y in solutions]


def judged(series, law=LAW, times=None, weights=None):
    data = Dataset.of([Trajectory(T, y, weights) for y in series])
    fit = fit_trajectories(data, law, [y[0] for y in series], Origin("test"))
    times = np.tile(T, len(series)) if times is None else times
    return lack_of_fit(linearized(data, fit), times, data.weights), data.spread


def test_of_the_right_law_the_probability_is_uniform_though_starts_differ():
    found = [judged(replicates(seed))[0] for seed in range(40)]
    assert stats.kstest([each.probability for each in found], "uniform").pvalue > 0.01


def test_the_scatter_is_the_error_of_measurement():
    found = [judged(replicates(seed)) for seed in range(40)]
    # Of 36, less two constants, three first values, and what the twelve times have in common.
    assert {each.freedom for each, _ in found} == {19}
    variance = np.mean([(each.scatter * spread) ** 2 for each, spread in found])
    assert variance == pytest.approx(0.04, rel=0.15)


def test_a_wrong_law_misses_what_all_have_in_common():
    assert max(judged(replicates(seed), WRONG)[0].probability for seed in range(5)) < 1e-4


def test_weights_count():
    """Noise of known relative size, most of it at the end."""
    size = np.linspace(0.1, 2.0, T.size)
    random = np.random.default_rng(0)
    series = [y + 0.1 * size * random.standard_normal(T.size) for y in replicates(0, 0.0)]
    assert 0.01 < judged(series, weights=size)[0].probability < 1.0


def test_too_little_is_no_test():
    assert judged(replicates(0)[:1])[0] is None  # Nothing is shared.
    apart = np.concatenate([T, T + 0.1, T + 0.2])
    assert judged(replicates(0), times=apart)[0] is None
    assert judged([y[:] for y in replicates(0, noise=1e-9)])[0] is None
    copies = replicates(0)[:1] * 2
    assert judged(copies)[0] is None  # They do not scatter.
    assert discover([T] * 2, copies, effort="fast", sources=("library",)).candidates


def test_a_discovery_says_what_the_replicates_tell():
    series = replicates(1)
    found = discover([T] * 3, series, effort="fast", sources=("library",))
    assert 0.01 < found.best.goodness_of_fit <= 1
    (note,) = [note for note in found.notes if "times that they share" in note]
    assert "it accounts for" in note and "goodness of fit" in str(found)


# --- constants of each series' own -----------------------------------------------


def _several(rates, noise, seed, sigma=None):
    """Decays from 3 with such rates, and the fit of one rate to them."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 4.0, 12)
    values = [3.0 * np.exp(-rate * t) + noise * rng.normal(size=t.size) for rate in rates]
    data = Dataset.of([Trajectory(t, y, None, sigma) for y in values])
    fit = fit_trajectories(data, Expression.from_infix("-0.55*y"), [3.0] * len(rates), Origin(""))
    return data, linearized(data, fit)


@pytest.mark.parametrize("known", [False, True])
def test_series_of_one_law_differ_as_seldom_as_stated(known):
    noise, alarms = 0.1, []
    for seed in range(200):
        data, linear = _several([0.5, 0.5, 0.5], noise, seed, noise if known else None)
        alarms.append(constants_differ(linear, [12] * 3, noise / data.spread if known else None))
    # Of 200 probabilities that are even in (0, 1), as many are below 0.1 once in 10,000.
    assert np.mean(np.array(alarms) < 0.1) < 0.19
    assert 0.35 < np.mean(alarms) < 0.65


def test_series_with_rates_of_their_own_differ():
    _, linear = _several([0.4, 0.5, 0.7], 0.1, 0)
    assert constants_differ(linear, [12] * 3) < 1e-4


def test_one_series_and_clean_data_cannot_differ():
    _, linear = _several([0.5], 0.1, 0)
    assert np.isnan(constants_differ(linear, [12]))
    _, linear = _several([0.5, 0.5], 0.0, 0)
    assert np.isnan(constants_differ(linear, [12] * 2))
