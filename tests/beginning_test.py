"""A lag phase is told of where there is one, and hardly ever where there is none."""

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories, linearized
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.beginning import odd_beginning

LAW = Expression.from_infix("0.6*y - 0.06*y**2")
NOISE = 0.15


def growth(t):
    return 9.7 / (1 + (9.7 / 0.83 - 1) * np.exp(-0.63 * t))


def observed(n, seed, lag=0.0, noise=NOISE):
    t = np.linspace(0.0, 12.0, n)
    errors = noise * np.random.default_rng((n, seed)).standard_normal(n)
    return t, growth(np.maximum(t - lag, 0.0)) + errors


def beginning(*series, law=LAW):
    data = Dataset.of([Trajectory(t, y) for t, y in series])
    fit = fit_trajectories(data, law, [y[0] for _, y in series], Origin("test"))
    return odd_beginning(linearized(data, fit), np.concatenate([t for t, _ in series]))


def test_false_alarms_are_rare_at_every_length():
    found = {n: [beginning(observed(n, seed)) for seed in range(60)] for n in (10, 15, 25, 50, 100)}
    alarms = {n: sum(each is not None for each in of_length) for n, of_length in found.items()}
    assert max(alarms.values()) <= 4 and sum(alarms.values()) <= 10  # 2% are 1.2, and 6.


def test_a_lag_is_found():
    found = [beginning(observed(40, seed, lag=3.2)) for seed in range(20)]
    found = [each for each in found if each is not None]
    assert len(found) >= 18
    assert all(1.0 < each.until < 4.0 and each.side == 1.0 for each in found)


def test_replicates_lag_together():
    """The beginning ends at one time of all series."""
    series = [observed(20, seed, lag=3.2) for seed in range(3)]
    found = beginning(*series)
    assert found is not None and 1.0 < found.until < 4.0
    assert beginning(*[observed(20, seed) for seed in range(3)]) is None


def test_a_single_outlier_is_no_beginning():
    for seed in range(10):
        t, y = observed(40, seed)
        y[1] += 10 * NOISE
        assert beginning((t, y)) is None


def test_where_the_law_is_wrong_everywhere_nothing_is_said_of_the_beginning():
    for seed in range(10):
        assert beginning(observed(40, seed), law=Expression.from_infix("0.11*y")) is None


def test_clean_data_and_short_series_do_not_tell():
    assert beginning(observed(40, 0, noise=1e-9)) is None
    assert beginning(observed(8, 0, lag=3.2)) is None
