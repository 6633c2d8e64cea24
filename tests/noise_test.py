"""What the residuals of a law tell of the noise: false alarms are few, true ones are seen."""

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.linearized import Linearized
from nsode_jax.fitting.trajectory_fitting import fit_trajectories, linearized
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.noise import growing_noise, huber_noise, likeliest_noise, outliers

DURATION = 7.0
CURVES = {
    "0.83*y - 0.28*y**2": lambda t: 2.964 / (1 + 20 * np.exp(-0.83 * t)),
    "-0.43*y": lambda t: 5 * np.exp(-0.43 * t),
    "3.17 - 0.62*y": lambda t: 5.113 - 3 * np.exp(-0.62 * t),
}


def _fitted(law: str, y: np.ndarray) -> tuple[np.ndarray, Linearized]:
    """(solution, linearized fit) of a law."""
    data = Dataset.of([Trajectory(np.linspace(0.0, DURATION, y.size), y)])
    fit = fit_trajectories(data, Expression.from_infix(law), [y[0]], Origin("test"))
    linear = linearized(data, fit)
    assert linear is not None
    return data.y + linear.residual * data.spread, linear


def _claims(points: int, draws: int, *, constant: float = 0.0, growing: float = 0.0) -> float:
    """Share of series in which growing noise is claimed."""
    claimed = []
    for law, curve in CURVES.items():
        exact = curve(np.linspace(0.0, DURATION, points))
        for seed in range(draws):
            xi = np.random.default_rng((points, seed)).standard_normal(points)
            y = exact + (constant * exact.std() + growing * exact) * xi
            solution, linear = _fitted(law, y)
            claimed.append(growing_noise(solution, linear, np.ones(points, bool)) is not None)
    return float(np.mean(claimed))


@pytest.mark.parametrize("points", [8, 9, 12, 20, 50, 200])
def test_constant_noise_is_seldom_taken_for_growing_noise(points):
    """The rate is 2%; 120 series show more than 5% of it once in 50 times."""
    assert _claims(points, 40, constant=0.01) <= 0.05


@pytest.mark.parametrize(("points", "power"), [(9, 0.2), (20, 0.5), (100, 0.6)])
def test_growing_noise_is_seen(points, power):
    assert _claims(points, 20, growing=0.05) >= power


@pytest.mark.parametrize("points", [9, 12, 20])
def test_exact_data_have_no_noise_that_grows(points):
    assert _claims(points, 1) == 0.0


def test_growing_noise_follows_the_values():
    law, curve = "-0.43*y", CURVES["-0.43*y"]
    exact = curve(np.linspace(0.0, DURATION, 100))
    y = exact * (1 + 0.05 * np.random.default_rng(0).standard_normal(100))
    solution, linear = _fitted(law, y)
    noise = growing_noise(solution, linear, np.ones(100, bool))
    assert noise is not None
    assert np.mean(noise**-2) == pytest.approx(1.0)
    slope = np.polyfit(np.log(np.abs(solution)), np.log(noise), 1)[0]
    assert 0.4 < slope < 1.1


@pytest.mark.parametrize(("sizes", "power"), [(np.sqrt, 0.5), (np.abs, 1.0), (np.ones_like, None)])
def test_noise_of_values_over_decades_is_that_of_counts_of_shares_or_constant(sizes, power):
    t = np.linspace(0.0, DURATION, 60)
    exact, found = 5000 * np.exp(-t), []
    for seed in range(10):
        xi = np.random.default_rng(seed).standard_normal(t.size)
        solution, linear = _fitted("-1.02*y", exact + 0.5 * sizes(exact) ** 0.999 * xi)
        noise = likeliest_noise(solution, linear)
        found.append(None if noise is None else noise.power)
        if noise is not None:
            assert np.mean(noise.sizes**-2) == pytest.approx(1.0)
    assert found.count(power) >= 8


@pytest.mark.parametrize("points", [12, 40])
def test_an_outlier_is_found_and_nothing_else(points):
    found, false = [], 0
    for law, curve in CURVES.items():
        exact = curve(np.linspace(0.0, DURATION, points))
        for seed in range(20):
            y = exact + 0.01 * exact.std() * np.random.default_rng(seed).standard_normal(points)
            false += bool(outliers(_fitted(law, y)[1]))
            y[points // 3] += 0.12 * exact.std()
            found.append([outlier.place for outlier in outliers(_fitted(law, y)[1])])
    assert false <= 3
    assert np.mean([places == [points // 3] for places in found]) > 0.85


def test_huber_weights_save_the_constants():
    exact = CURVES["-0.43*y"](np.linspace(0.0, DURATION, 20))
    y = exact + 0.02 * np.random.default_rng(1).standard_normal(20)
    y[4] += 1.5
    _, linear = _fitted("-0.43*y", y)
    noise = huber_noise(linear)
    assert noise.argmax() == 4 and noise[4] > 3
    assert np.median(noise) == 1.0
    data = Dataset.of([Trajectory(np.linspace(0.0, DURATION, 20), y)])
    laws = [
        fit_trajectories(d, Expression.from_infix("-0.43*y"), [5.0], Origin("test")).expression
        for d in (data, data.with_noise(noise))
    ]
    errors = [abs(law.constants[0] + 0.43) for law in laws]
    assert errors[1] < 0.3 * errors[0]


def test_noise_is_split_among_the_series():
    series = [Trajectory(np.arange(float(n)), np.arange(n) + 1.0) for n in (4, 6)]
    noisy = Dataset.of(series).with_noise(np.arange(1.0, 11.0))
    assert [s.noise.tolist() for s in noisy] == [[1, 2, 3, 4], [5, 6, 7, 8, 9, 10]]
