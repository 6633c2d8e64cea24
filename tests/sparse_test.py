"""Terms, and the few of them that make up an equation."""

import dataclasses
import itertools

import numpy as np
import pytest
from observing import observed

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.components import component_forms
from nsode_jax.search.equations import draft_equations, peaks
from nsode_jax.search.sparse import SparseConfig, SubsetSearch
from nsode_jax.search.terms import monomials, sum_of

NAMES = ("x", "y")


def test_monomials_are_all_products_up_to_the_degree():
    found = {sum_of([term], [2.0], NAMES).infix for term in monomials(NAMES, 2)}
    assert found == {"2", "2*x", "2*y", "2*x**2", "2*(x*y)", "2*y**2"}


def test_the_search_finds_the_best_of_all_subsets():
    data, _ = observed(System(NAMES), ("1.1*x - 0.8*x*y", "0.6*x*y - 0.9*y"), (1.0, 1.3), 0.02)
    for form in component_forms(data):
        search = SubsetSearch(form, monomials(NAMES, 2), NAMES)
        search.run(SparseConfig())
        found = search.best(1)[0]
        every = [
            frozenset(subset)
            for size in range(1, 7)
            for subset in itertools.combinations(range(6), size)
        ]
        assert found == min(every, key=search.score)


@pytest.mark.parametrize("unit", [1e-13, 1e-9, 1e9])
def test_the_same_terms_are_found_in_all_units(unit):
    equations = ("0.12 - 0.9*x + 1.1*x**2*y", "0.7 - 1.1*x**2*y")
    data, _ = observed(System(NAMES), equations, (1.0, 0.6), 0.005)
    runs = tuple(dataclasses.replace(run, y=unit * run.y) for run in data.runs)
    other = dataclasses.replace(data, runs=runs)
    np.testing.assert_allclose(other.state_size, unit * data.state_size)
    found = []
    for form in (*component_forms(data), *component_forms(other)):
        search = SubsetSearch(form, monomials(NAMES, 3), NAMES)
        search.run(SparseConfig())
        found.append([search.terms[i] for i in sorted(search.best(1)[0])])
    assert len(search.terms) == len(monomials(NAMES, 3))
    assert found[:2] == found[2:]


def test_a_saturation_gets_its_threshold():
    equations = ("0.9 - 1.4*x*y/(0.6 + x)", "0.7*x - 0.4*y")
    data, _ = observed(System(NAMES), equations, (0.2, 0.5))
    form = component_forms(data)[0]
    best = draft_equations(form, data.system, 8.0, 5, SparseConfig())[0].expression
    points = np.random.default_rng(0).uniform(0.3, 1.0, (2, 50))
    true = Expression.from_infix(equations[0], NAMES)
    np.testing.assert_allclose(best.evaluate(*points), true.evaluate(*points), atol=0.01)


def test_a_pendulum_in_degrees_is_one():
    system, degrees = System(("x",), order=2), 180 / np.pi
    law = f"-{6.2 * degrees}*sin({1 / degrees}*x) - 0.25*v"
    data, _ = observed(system, (law,), (150.0, 0.0), noise=0.5)
    drafts = draft_equations(component_forms(data)[0], system, 8.0, 5, SparseConfig())
    found = {structure(draft.expression): draft.expression for draft in drafts}
    right = found[structure(canonicalize(Expression.from_infix(law, system.variables)))]
    assert 1 / degrees == pytest.approx(min(map(abs, right.constants)), rel=0.05)


def test_a_frequency_is_seen_in_the_periodogram():
    system = System(("y",), explicit_time=True)
    data, _ = observed(system, ("cos(1.7*t) - 0.4*y",), (1.0,), noise=0.02)
    assert abs(peaks(component_forms(data)[0], system, 8.0)[0] - 1.7) < 0.05
