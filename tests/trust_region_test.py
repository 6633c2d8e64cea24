"""Least squares in a trust region."""

import numpy as np
import pytest

from nsode_jax.fitting.trust_region import minimized

T = np.linspace(0.0, 2.0, 20)


def test_a_curve_is_fitted_and_the_limit_of_iterations_is_kept():
    tried = []

    def residual(p):
        tried.append(p.copy())
        return p[0] * np.exp(-p[1] * T) - 2.0 * np.exp(-0.7 * T)

    def jacobian(p):
        decay = np.exp(-p[1] * T)
        return np.stack([decay, -p[0] * T * decay], axis=1)

    start = np.array([1.0, 0.1])
    assert minimized(residual, jacobian, start, tolerance=1e-10, iterations=50)
    best = min(list(tried), key=lambda p: float(np.sum(residual(p) ** 2)))
    assert best == pytest.approx([2.0, 0.7], rel=1e-6)
    tried.clear()
    assert not minimized(residual, jacobian, start, tolerance=1e-10, iterations=3)
    assert len(tried) <= 4
