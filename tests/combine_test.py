"""Systems from candidates for their equations, and constants that are 1."""

import numpy as np
import pytest
from observing import observed

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.constants import structure
from nsode_jax.fitting.fit import Origin
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


def test_what_is_clearly_not_one_stays():
    search, key = searched(("0.8*y", "-1.3*x - 0.3*y"))
    assert search.round(key) == key
