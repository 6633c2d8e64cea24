"""Laws with other constants."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import logistic_discovery, prey_discovery

from nsode_jax.results.moved import chosen, moved_law, moved_system


def test_a_candidate_is_put_first_and_none_is_lost():
    found = logistic_discovery()
    second = chosen(found, 1)
    assert second.best is found.candidates[1]
    assert set(map(id, second.candidates)) == set(map(id, found.candidates))
    assert second.trajectories is found.trajectories and type(second) is type(found)


def test_constants_that_stay_keep_the_fit():
    found = logistic_discovery()
    moved = moved_law(found, found.best.expression.constants).best
    assert_allclose([moved.r2, moved.residual_rms], [found.best.r2, found.best.residual_rms])
    assert math.isnan(moved.probability) and moved.covariance is None


def test_the_fit_is_that_of_the_moved_law():
    found = logistic_discovery()
    constants = [1.1 * constant for constant in found.best.expression.constants]
    moved = moved_law(found, constants, y0=0.2).best
    data = found.trajectory
    left = data.y - moved.predict(data.t)
    assert moved.y0 == 0.2 and moved.expression.constants == tuple(constants)
    assert_allclose(moved.residual_rms, np.sqrt(np.mean(left**2)))
    assert_allclose(moved.r2, 1 - np.mean(left**2) / np.var(data.y))


def test_a_law_without_a_solution_fits_nothing():
    found = logistic_discovery()
    # The square now grows without limit.
    moved = moved_law(found, [50.0 * abs(c) for c in found.best.expression.constants]).best
    assert moved.r2 == -math.inf and moved.residual_rms == math.inf


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_the_same_of_a_system(factor):
    found = prey_discovery()
    moved = moved_system(found, factor * np.asarray(found.best.constants)).best
    assert_allclose(moved.constants, factor * np.asarray(found.best.constants))
    same = np.allclose(moved.residuals, found.best.residuals, rtol=1e-3)
    assert same == (factor == 1.0) and (moved.r2 < found.best.r2 - 0.01) == (factor > 1.0)
