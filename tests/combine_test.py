"""Systems from candidates for their equations, and constants that are 1."""

import numpy as np
import pytest
from observing import observed

from nsode_jax.discovery.weighting import with_expected_noise
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.search.combine import CombineConfig, SystemSearch
from nsode_jax.search.population import Draft

SYSTEM = System(("x", "y"))


def searched(equations):
    """Data of these equations, and their laws as drafts with coefficients."""
    data, laws = observed(SYSTEM, equations, (1.0, 0.5), noise=0.03, runs=1)
    drafts = []
    for law in laws:
        given = law.skeleton.with_constants(np.array(law.constants) * 1.01)
        drafts.append(Draft(given, 0.0, 0.0, Origin("test")))
    search = SystemSearch(data, CombineConfig())
    key = search.fit_roughly(drafts)
    search.polish(key)
    return search, key


def test_what_may_well_be_one_is_taken_to_be_that():
    search, key = searched(("1.0001*y", "-1.0001*x - 0.3*y"))
    rounded = search.round(key)
    laws = search.fits[rounded].laws
    assert [structure(law) for law in laws] == ["y", structure(laws[1])]
    assert sorted(np.abs(laws[1].constants)) == pytest.approx([0.3], rel=0.1)
    assert search.scores[rounded] < search.scores[key]


def test_a_constant_is_shared_once():
    """Searched again, a system must not be credited anew for what it shares."""
    search, key = searched(("0.9*x - 0.5*x*y", "0.5*x*y - 0.7*y"))
    search.share(key)
    score, ties = search.scores[key], search.fits[key].ties
    assert len(ties) == 1
    search.share(key)
    assert search.fits[key].ties == ties and search.scores[key] == score


def test_a_first_fit_of_what_falls_over_decades_is_fitted_on():
    """Smooth curves do not tell how noisy that is; what a first fit leaves does."""
    laws = [Expression.from_infix(law, ("x", "y")) for law in ("-0.4*x*y", "0.4*x*y - 0.3*y")]
    t = np.linspace(0.0, 8.0, 60)
    y = integrate(laws, np.array([8.0, 40.0]), t, rtol=1e-9, atol=1e-90)
    y = y * (1 + 0.05 * np.random.default_rng(1).standard_normal(y.shape))
    data = with_expected_noise(Observations(SYSTEM, (Run(t, y, np.empty((t.size, 0))),)))
    starts = [laws[0], Expression.from_infix("0.46*x*y - 0.345*y", ("x", "y"))]
    search = SystemSearch(data, CombineConfig())
    key = search.fit_roughly([Draft(law, 0.0, 0.0, Origin("test")) for law in starts])
    before = search.scores[key]
    search.fit_on(key)
    assert search.scores[key] < before - 50.0
    assert search.fits[key].laws[1].constants == pytest.approx((0.4, -0.3), rel=0.25)


def test_what_is_clearly_not_one_stays():
    search, key = searched(("0.8*y", "-1.3*x - 0.3*y"))
    assert search.round(key) == key
