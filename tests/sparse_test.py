"""Terms, and the few of them that make up an equation."""

import dataclasses
import itertools

import numpy as np
import pytest
from observing import observed

from nsode_jax.dynamics.system import System, integrate
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.components import component_forms
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.trajectory_fitting import FULL
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.search.equations import draft_equations
from nsode_jax.search.periodogram import driven_oscillators, frequencies
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
    assert abs(frequencies(component_forms(data)[0], 8.0)[0] - 1.7) < 0.05


@pytest.mark.parametrize("spring", [0.8, 3.1])
def test_a_driven_oscillator_is_found_where_only_its_wave_is_left(spring):
    """Softer than the wave asks for, and stiffer; its position and its wave are alike then."""
    system, t = System(("x",), explicit_time=True, order=2), np.linspace(0.0, 40.0, 240)
    law = Expression.from_infix(f"-{spring}*x - 0.3*v + 4*cos(1.37*t + 0.5)", system.variables)
    x = integrate(system.equations([law]), [3.0, 0.0], t)[:, :1]
    noisy = x + 0.03 * np.random.default_rng(2).standard_normal(x.shape)
    data = Observations(system, (Run(t, noisy, np.empty((t.size, 0))),))
    (form,) = component_forms(data)
    assert min(abs(w - 1.37) for w in frequencies(form, 40.0)) < 0.01
    drafts = driven_oscillators(form, system, 40.0)
    fits = [fit_system(data, [d.expression], [d.origin], stopping=FULL) for d in drafts]
    best = min(fits, key=lambda fit: fit.residuals[0])
    assert best.residuals[0] == pytest.approx(0.03, rel=0.1)
    at = np.array([[1.0, -2.0], [0.5, 1.0], [0.0, 3.0]])
    np.testing.assert_allclose(best.laws[0].evaluate(*at), law.evaluate(*at), rtol=0.05, atol=0.05)
