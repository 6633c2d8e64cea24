"""How well parameters are known from a fit to first order."""

import numpy as np
import pytest
import scipy.stats

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.linearized import Linearized, autocorrelation, dependence
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


def test_only_likeness_beyond_chance_widens_and_not_beyond_one_observation():
    assert dependence([np.tile(ALTERNATING, 5)], 0) == 1.0
    assert dependence([np.ones(40)], 0) == pytest.approx(40.0)
    # Of 23 pairs of neighbours 20 are alike, 3 are not: a = 17/24.
    residual = np.repeat(ALTERNATING, 6)
    assert dependence([residual], 0) == pytest.approx(41 / 7)
    assert dependence([residual[:12], residual[12:]], 0) == pytest.approx(42 / 6)
    # Every parameter takes some of the likeness away: a = 17/24 + 41/576.
    assert dependence([residual], 1) == pytest.approx(1025 / 127)
    # Twelve pairs alike, eleven not.
    assert dependence([np.tile([1.0, 1.0, -1.0, -1.0], 6)], 0) == 1.0


def test_independent_residuals_give_the_usual_covariance():
    linear = Linearized(np.tile(ALTERNATING, 5), _jacobian(20))
    root = linear.root_of_covariance([[np.arange(20)]], 1e-6)
    usual = np.linalg.inv(linear.jacobian.T @ linear.jacobian)
    np.testing.assert_allclose(root @ root.T, usual, rtol=1e-10)
    assert (
        Linearized(np.ones(3), np.ones((3, 2))).root_of_covariance([[np.arange(3)]], 1e-6) is None
    )


def test_each_quantity_has_a_likeness_of_its_own():
    jacobian = np.kron(np.eye(2), np.ones((20, 1)))  # A parameter for each quantity.
    residual = np.concatenate([np.tile([1.0, -1.0], 10), np.repeat([1.0, -1.0], 10)])
    linear, groups = Linearized(residual, jacobian), [[np.arange(20)], [np.arange(20, 40)]]
    root = linear.root_of_covariance(groups, 1e-6)
    factor = dependence([residual[20:]], 1)
    assert factor > 2.0
    np.testing.assert_allclose(root @ root.T, np.diag([0.05, 0.05 * factor]), atol=1e-12)


def test_noise_of_a_group_is_by_what_its_own_parameters_leave():
    """Two regressions without a common parameter: each has the covariance that it has alone."""
    parts, rng = [_jacobian(6, 1), _jacobian(9, 4)], np.random.default_rng(1)
    jacobian = np.zeros((15, 5))
    jacobian[:6, :1], jacobian[6:, 1:] = parts
    residual = rng.standard_normal(15)
    noises = Linearized(residual, jacobian).noise_of_groups(
        [[np.arange(6)], [np.arange(6, 15)]], 1e-6
    )
    assert [noise.freedom for noise in noises] == pytest.approx([5.0, 5.0])
    found = sum(noise.root @ noise.root.T for noise in noises)
    expected = np.zeros((5, 5))
    for part, own, at in zip(parts, np.split(residual, [6]), np.split(np.arange(5), [1])):
        expected[np.ix_(at, at)] = own @ own / 5.0 * np.linalg.inv(part.T @ part)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_group_that_its_parameters_follow_tells_no_noise():
    jacobian, groups = _jacobian(12), [[np.arange(2)], [np.arange(2, 12)]]
    residual = np.tile(ALTERNATING, 3)
    equal = Linearized(residual, jacobian).noise_of_groups(groups, 1e-6)
    assert sum(noise.freedom for noise in equal) == pytest.approx(10.0)
    precise = Linearized(residual, jacobian).weighted(np.repeat([1e3, 1.0], [2, 10]))
    assert precise.noise_of_groups(groups, 1e-6) is None


def test_intervals_hold_parameters_that_a_precise_group_tells():
    """Of eight precise rows and eight noisy ones: the precise tell all but one parameter."""
    jacobian, rng, tries = _jacobian(16, 4), np.random.default_rng(2), 2000
    jacobian[:8, 3] = 0.0
    size = np.repeat([0.01, 1.0], 8)
    weighted, groups = jacobian / size[:, None], [[np.arange(8)], [np.arange(8, 16)]]
    held = np.zeros(4)
    for residual in rng.standard_normal((tries, 16)):
        fitted, *_ = np.linalg.lstsq(weighted, residual, rcond=None)
        linear = Linearized(residual - weighted @ fitted, weighted)
        noises = linear.noise_of_groups(groups, 1e-6)
        error = np.sqrt(sum((noise.root**2).sum(axis=1) for noise in noises))
        freedom = np.array([noises[0].freedom] * 3 + [noises[1].freedom])
        held += np.abs(fitted) < scipy.stats.t.ppf(0.975, freedom) * error
    assert noises[0].freedom == pytest.approx(5.0, abs=0.01)
    # Neighbours that are alike by chance widen some.
    assert (held / tries > 0.95 - 3 * np.sqrt(0.95 * 0.05 / tries)).all()
    assert (held / tries < 0.98).all()


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
