"""Noise of systems that grows with the values, and how quantities count beside each other."""

import numpy as np
import pytest

from nsode_jax.discovery import discover
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.observations import Observations, Run
from nsode_jax.fitting.shooting import fit_system, refitted
from nsode_jax.fitting.system_noise import with_growing_noise
from nsode_jax.fitting.trajectory_fitting import FULL

SYSTEM = System(("x", "y"))
LAWS = tuple(
    Expression.from_infix(text, SYSTEM.variables) for text in ("1.1*x - 0.4*x*y", "0.1*x*y - 0.4*y")
)
ORIGINS = (Origin("test"),) * 2
TIMES = np.linspace(0.0, 20.0, 60)


@pytest.fixture(scope="module")
def clean():
    """Predator and prey over two periods, shape [time, 2]."""
    return integrate(SYSTEM.equations(LAWS), np.array([10.0, 5.0]), TIMES)


def fitted(values):
    data = Observations(SYSTEM, (Run(TIMES, values, np.empty((TIMES.size, 0))),))
    return data, refitted(data, fit_system(data, LAWS, ORIGINS, stopping=FULL), FULL)


def test_noise_that_grows_is_seen_and_weighs(clean):
    rng = np.random.default_rng(0)
    data, fit = fitted(clean * (1 + 0.05 * rng.normal(size=clean.shape)))
    weighted, names = with_growing_noise(data, fit)
    assert names == ("x", "y")
    weights = weighted.runs[0].weights
    assert np.mean(weights**2, axis=0) == pytest.approx([1.0, 1.0])
    low, high = np.argmin(clean[:, 0]), np.argmax(clean[:, 0])
    assert weights[low, 0] > 3 * weights[high, 0]


def test_noise_of_one_size_is_left_alone(clean):
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        data, fit = fitted(clean + 0.3 * rng.normal(size=clean.shape))
        alarms += with_growing_noise(data, fit) is not None
    assert alarms <= 4  # Of 80 series at 1%: five or more once in a thousand.


def test_constants_are_known_better_with_the_weights(clean):
    """Over 12 samples of noise, the constants are nearer to the true ones."""
    plain, weighted = [], []
    truth = np.concatenate([law.constants for law in LAWS])
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data, fit = fitted(clean * (1 + 0.1 * rng.normal(size=clean.shape)))
        seen = with_growing_noise(data, fit)
        again = fit if seen is None else refitted(seen[0], fit, FULL)
        for kept, one in ((plain, fit), (weighted, again)):
            found = np.concatenate([law.constants for law in one.laws])
            kept.append(np.abs(found / truth - 1))
    assert np.mean(weighted) < 0.8 * np.mean(plain)


def test_each_quantity_counts_by_the_noise_it_has(clean):
    """From a wrong guess of the noises the likeliest system is reached all the same."""
    rng = np.random.default_rng(1)
    values = clean + rng.normal(size=clean.shape) * [0.02, 1.0]
    data = Observations(SYSTEM, (Run(TIMES, values, np.empty((TIMES.size, 0))),))
    wrong = fit_system(data, LAWS, ORIGINS, stopping=FULL, noise=np.array([1.0, 0.02]))
    right = refitted(data, wrong, FULL)

    def likelihood(fit):
        return float(np.log(fit.residuals).sum())

    assert likelihood(right) < likelihood(wrong) - 0.1
    assert right.residuals == pytest.approx([0.02, 1.0], rel=0.25)


def test_a_discovery_says_that_noise_grows(clean):
    rng = np.random.default_rng(3)
    noisy = clean * (1 + 0.05 * rng.normal(size=clean.shape))
    found = discover(TIMES, noisy, effort="fast")
    assert any("grows with the values" in note for note in found.notes)
    assert found.best.r2 > 0.95
