"""Series that rise and fall, which no law dy/dt = f(y) explains, and such that only seem to."""

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.observed.turning import most_probably_none, rises_and_falls

HOURS = np.array([0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24])


def noisy(t, y, seed, relative=0.05):
    return Trajectory(t, y * (1 + relative * np.random.default_rng(seed).standard_normal(t.size)))


def doses(every, step, rate, until=72.0):
    """Doses that are given again and again, each of which fades."""
    t = np.arange(0.0, until, step)
    given = np.arange(0.0, until, every)[:, None]
    return t, np.where(t >= given, np.exp(-rate * np.maximum(t - given, 0.0)), 0.0).sum(axis=0)


TURNING = {
    "an oscillation": (np.linspace(0, 12, 60), np.sin(np.linspace(0, 12, 60)) + 2),
    "one oral dose": (HOURS, 60 * (np.exp(-0.2 * HOURS) - np.exp(-HOURS))),
    "a dose every 12 hours": doses(12, 2.0, 0.2),
    "a dose every 8 hours": doses(8, 1.0, 0.3),
    "a dose a day": doses(24, 4.0, 0.1),
}


@pytest.mark.parametrize("t, y", TURNING.values(), ids=TURNING)
def test_what_rises_and_falls_is_seen_to(t, y):
    assert all(rises_and_falls(noisy(t, y, seed)) for seed in range(10))
    assert most_probably_none([noisy(t, y, 0)])


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "outliers", "correlated"])
@pytest.mark.parametrize("count", [8, 20, 100])
def test_noise_on_a_monotone_curve_hardly_ever_is(kind, count):
    rng, t = np.random.default_rng(count), np.linspace(0.0, 1.0, count)
    curves = 1 / (1 + np.exp(5 - 10 * t)), np.exp(-4 * t), 0 * t, t
    told = 0
    for sigma in (0.02, 0.1, 0.3, 1.0):
        for curve in curves:
            for _ in range(25):
                told += rises_and_falls(Trajectory(t, curve + sigma * noise(kind, count, rng)))
    assert told <= 8  # Of 400.


@pytest.mark.parametrize("count", [25, 60, 200])
def test_drifting_noise_hardly_ever_does(count):
    rng, t = np.random.default_rng(count), np.linspace(0.0, 10.0, count)
    told = 0
    for _ in range(100):
        drift = rng.standard_normal(count)
        for i in range(1, count):
            drift[i] = 0.8 * drift[i - 1] + 0.6 * drift[i]
        told += rises_and_falls(Trajectory(t, 1 - np.exp(-0.5 * t) + 0.1 * drift))
    assert told <= 6  # It was 12 of 200 points.


def test_what_known_errors_account_for_is_no_turn():
    t = np.linspace(0.0, 10.0, 60)
    y = 1 - np.exp(-0.5 * t) + 0.1 * np.sin(t)
    assert rises_and_falls(Trajectory(t, y + 0.3 * np.sin(t)))
    assert not rises_and_falls(Trajectory(t, y + 0.3 * np.sin(t), sigma=0.3))


def noise(kind, count, rng):
    if kind == "heavy tails":
        return rng.standard_t(3, count) / np.sqrt(3)
    values = rng.standard_normal(count)
    if kind == "outliers":
        return np.where(rng.random(count) < 0.05, 10 * values, values)
    if kind == "correlated":
        for i in range(1, count):
            values[i] = 0.5 * values[i - 1] + np.sqrt(0.75) * values[i]
    return values


def test_of_many_series_one_may_by_chance():
    t = np.linspace(0.0, 3.0, 30)
    falling, turning = (noisy(t, y, 0, 0.01) for y in (np.exp(-t), np.sin(2 * t) + 2))
    assert not most_probably_none([falling] * 10 + [turning])
    assert most_probably_none([falling] * 8 + [turning, turning])
