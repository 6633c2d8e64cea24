"""How well parameters are known from a fit to first order."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.linearized import Linearized, autocorrelation
from nsode_jax.fitting.trajectory_fitting import covariance, fit_trajectories
from nsode_jax.observed.dataset import Dataset

ALTERNATING = np.array([1.0, -1.0, 1.0, -1.0])


def _jacobian(rows: int, parameters: int = 2) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, parameters))


def test_autocorrelation_is_within_series():
    assert autocorrelation([ALTERNATING]) == -0.75
    assert autocorrelation([np.ones(4)]) == 0.75
    assert autocorrelation([np.ones(2), -np.ones(2)]) == 0.5
    assert autocorrelation([np.zeros(3)]) == 0.0


def test_only_likeness_widens_and_not_beyond_one_observation():
    rows = [np.arange(4)]
    assert Linearized(ALTERNATING, np.zeros((4, 0))).dependence(rows) == 1.0
    assert Linearized(np.ones(4), np.zeros((4, 0))).dependence(rows) == pytest.approx(4.0)
    # Eight pairs of neighbours are alike, three are not: a = 5/12.
    residual, rows = np.repeat(ALTERNATING, 3), [np.arange(12)]
    assert Linearized(residual, np.zeros((12, 0))).dependence(rows) == pytest.approx(17 / 7)
    # Every parameter takes some of the likeness away: a = 5/12 + 17/144.
    assert Linearized(residual, np.zeros((12, 1))).dependence(rows) == pytest.approx(221 / 67)


def test_independent_residuals_give_the_usual_covariance():
    linear = Linearized(np.tile(ALTERNATING, 5), _jacobian(20))
    root = linear.root_of_covariance([[np.arange(20)]], 1e-6)
    usual = np.linalg.inv(linear.jacobian.T @ linear.jacobian)
    np.testing.assert_allclose(root @ root.T, usual, rtol=1e-10)
    assert (
        Linearized(np.ones(3), np.ones((3, 2))).root_of_covariance([[np.arange(3)]], 1e-6) is None
    )


def test_each_quantity_has_a_likeness_of_its_own():
    jacobian = np.kron(np.eye(2), np.ones((10, 1)))  # A parameter for each quantity.
    residual = np.concatenate([np.tile([1.0, -1.0], 5), np.repeat([1.0, -1.0], 5)])
    linear, groups = Linearized(residual, jacobian), [[np.arange(10)], [np.arange(10, 20)]]
    root = linear.root_of_covariance(groups, 1e-6)
    factor = linear.dependence(groups[1])
    assert factor > 2.0
    np.testing.assert_allclose(root @ root.T, np.diag([0.1, 0.1 * factor]), atol=1e-12)


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.88), (0.8, 0.8)])
def test_intervals_hold_constants_where_noise_is_correlated(correlation, least):
    law = canonicalize(Expression.from_infix("1.3*y - 0.7*y**2"))
    t, rng = np.linspace(0.0, 6.0, 60), np.random.default_rng(1)
    y = solve(law, 0.1, t)
    held = []
    for _ in range(40):
        noise = rng.standard_normal(60)
        for i in range(1, 60):
            noise[i] = correlation * noise[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
        data = Dataset.of([Trajectory(t, y + 0.03 * y.std() * noise)])
        fit = fit_trajectories(data, law, (0.1,), Origin("test", 0.0))
        away = np.abs(np.array(fit.expression.constants) - law.constants)
        held += list(away <= 2.0 * np.sqrt(np.diag(covariance(data, fit)))[: away.size])
    assert least <= np.mean(held) <= 0.99
