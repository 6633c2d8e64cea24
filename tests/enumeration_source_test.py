"""All simple laws as a source: none is missed, and restrictions hold."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.progress import silent
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.search.enumeration import EnumerationSource
from nsode_jax.search.sources import Restriction

T = np.linspace(0.0, 4.0, 200)


def _proposals(law: str, y0: float, **options):
    y = solve(Expression.from_infix(law), y0, T, rtol=1e-10, atol=1e-10)
    data = Dataset.of([Trajectory(T, y)])
    source = EnumerationSource(symbols=5, beyond=0, **options)
    return source.propose(data, derivative_form(data), seed=0, progress=silent)


@pytest.mark.parametrize(("law", "y0"), [("1.3 - 0.6*y", 0.2), ("0.7*exp(-y)", 0.3)])
def test_a_law_of_five_symbols_is_found_exactly(law, y0):
    truth = Expression.from_infix(law)
    places = np.linspace(y0, 1.5, 20)
    assert any(
        np.allclose(p.expression.evaluate(places), truth.evaluate(places), rtol=1e-4)
        for p in _proposals(law, y0).laws
    )


def test_only_laws_that_are_admitted_are_proposed():
    restriction = Restriction(frozenset({"exp"}), 4)
    proposals = _proposals("1.3 - 0.6*y", 0.2, restriction=restriction)
    assert proposals.laws and all(restriction.admits(p.expression) for p in proposals.laws)
    assert {p.origin.source for p in proposals.laws} == {"enumeration"}
    assert proposals.tried.startswith("all ") and "up to 4 symbols" in proposals.tried


def test_the_best_are_kept():
    assert len(_proposals("1.3 - 0.6*y", 0.2, kept=7).laws) == 7
