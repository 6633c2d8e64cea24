"""Solutions that come to rest at the edge of their law's domain: empty tanks, dried drops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from nsode_jax.discovery.dispatch import discover as discover_system
from nsode_jax.discovery.pipeline import discover
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.results import prediction

T = np.linspace(0.0, 12.0, 25)


def level(t):
    """Of water in a tank: dh/dt = -sqrt(20) / 4 sqrt(h), empty at t = 8."""
    return 20.0 * np.clip(1.0 - t / 8.0, 0.0, None) ** 2


@pytest.mark.parametrize(
    ("noise", "relative_error"), [(0.0, 1e-6), (0.02, 0.05)], ids=["exact", "noisy"]
)
def test_a_tank_that_empties_while_it_is_observed(noise, relative_error):
    measured = level(T) + noise * 20.0 * np.random.default_rng(1).normal(size=T.size)
    best = discover(T, measured, sources=["named laws", "library"], effort="fast").best
    assert str(best.name).startswith("outflow from a tank")
    assert best.expression.constants[0] == pytest.approx(-np.sqrt(20.0) / 4, rel=relative_error)
    later = np.array([4.0, 9.0, 30.0])
    assert_allclose(best.predict(later), level(later), atol=20.0 * relative_error)


def test_two_tanks_of_which_one_is_soon_empty():
    t = np.linspace(0.0, 14.0, 71)
    upper = np.clip(2.0 - t / 4.0, 0.0, None) ** 2  # dx/dt = -sqrt(x) / 2, empty at t = 8.
    rising = solve_ivp(
        lambda t, y: np.clip(1.0 - t / 8.0, 0.0, None) - 0.3 * np.sqrt(y),
        (0.0, 14.0), [1.0], t_eval=t, rtol=1e-10, atol=1e-12, max_step=0.1,
    )  # fmt: skip
    found = discover_system(t, np.stack([upper, rising.y[0]], axis=1), effort="fast").best
    x, y = (law.evaluate(np.array([4.0, 0.0]), np.array([1.0, 1.0])) for law in found.laws)
    assert_allclose(x, [-1.0, 0.0], atol=1e-4)
    assert_allclose(y, [0.7, -0.3], atol=1e-4)


def test_predictions_rest_and_go_on_and_back():
    law = Expression.from_infix("-1.118033988749895*sqrt(y)")
    times = np.array([30.0, 9.0, 3.0, 0.0, -2.0])
    assert_allclose(prediction.solution(law, 0.0, 20.0, times), level(times), atol=1e-7)
    # Where f is not 0 the solution ends.
    ends = prediction.solution(Expression.from_infix("-1 - sqrt(y)"), 0.0, 20.0, times)
    assert np.isnan(ends[:2]).all() and np.isfinite(ends[3:]).all()


def test_values_that_noise_puts_beyond_0():
    y = np.linspace(-0.3, 20.0, 30)
    noisy = y + 0.3 * (-1.0) ** np.arange(30)
    # Next to 0: half of the smallest value above it, which is less than the noise.
    for values, low in ((noisy, 0.05), (y, -0.3), (noisy - 5.0, None), (noisy / 20.0, 0.0025)):
        data = Dataset.of([Trajectory(np.arange(30.0), values)])
        assert data.low == pytest.approx(values.min() if low is None else low)
        assert data.high == values.max()
        mirrored = Dataset.of([Trajectory(np.arange(30.0), -values)])
        assert (mirrored.low, mirrored.high) == (-data.high, -data.low)
