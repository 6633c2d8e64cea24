"""Which systems have a name, and what they cost."""

import itertools
import math

import pytest
from observing import PREY as PREY_SYSTEM
from observing import PREY_LAWS, observed
from solved import laws

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import structure
from nsode_jax.fitting.components import component_forms
from nsode_jax.search.named_systems import named_equations
from nsode_jax.search.sources import UNRESTRICTED, Restriction
from nsode_jax.selection.named_systems import (
    SHARE,
    named_combinations,
    named_system,
    system_cost,
)

PREY = (
    "predator and prey (Lotka 1925, Volterra 1926), or growth cycle of wages and employment "
    "(Goodwin 1967)"
)


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (("0.5*a - 0.02*a*b", "0.01*a*b - 0.8*b"), PREY),
        (("0.01*a*b - 0.8*a", "0.5*b - 0.02*a*b"), PREY),
        (("b", "-2.1*a - 0.3*b"), "harmonic oscillator with damping"),
        (("b", "-2.1*sin(a) - 0.3*b"), "pendulum with damping"),
        (("0.5*a - 0.02*a*b", "0.01*a*b - 0.8*b + 0.1*a**4"), None),
        (("0.3*b", "-a**3"), None),
        (("0.5*a + 0.02*a*b", "0.01*a*b - 0.8*b"), None),
    ],
)
def test_systems_are_known_whatever_their_states_are_called(texts, name):
    assert named_system(laws("ab", *texts), ("a", "b")) == name


def test_what_an_input_or_the_time_enters_has_no_name():
    names = ("a", "b", "u")
    known = ("0.5*a - 0.02*a*b", "0.01*a*b - 0.8*b")
    assert named_system(laws(names, *known), ("a", "b")) == PREY
    texts = ("0.5*a - 0.02*a*b + u", "0.01*a*b - 0.8*b")
    assert named_system(laws(names, *texts), ("a", "b")) is None


def test_systems_of_more_states_than_any_that_has_a_name_have_none():
    states = System(("p", "q", "r", "s"), order=2).states
    equations = laws(states, *states[4:], *(f"-2*{name}" for name in states[:4]))
    assert len(states) == 8 and named_system(equations, states) is None
    assert named_combinations([[law] for law in equations], states) == []


def test_a_named_system_costs_little_whatever_its_terms():
    name = PREY
    assert system_cost(60.0, name, 2) == pytest.approx(system_cost(80.0, name, 2), abs=1e-6)
    assert system_cost(20.0, None, 2) == pytest.approx(20.0 - 2 * math.log(1 - SHARE))
    assert system_cost(20.0, name, 2) < 20.0
    # Simple terms are worth more than a name.
    assert system_cost(4.0, name, 2) < system_cost(4.0, None, 2)
    assert system_cost(4.0, name, 2) > 4.0


def test_combinations_that_have_a_name_are_found():
    states = ("a", "b")
    first = laws("ab", "0.7*a", "0.5*a - 0.02*a*b", "0.01*a*b - 0.8*a", "b")
    second = laws("ab", "0.5*b - 0.03*a*b", "0.01*a*b - 0.8*b", "-2.1*a - 0.3*b")
    found = named_combinations([first, second], states)
    assert {(1, 1), (2, 0), (3, 2)} <= set(found)
    for places in itertools.product(range(4), range(3)):
        chosen = [options[i] for options, i in zip((first, second), places)]
        assert (places in found) == (named_system(chosen, states) is not None)


def test_an_equation_with_an_input_is_in_none():
    names = ("a", "b", "u")
    first, second = laws(names, "0.5*a - 0.02*a*b", "0.01*a*b - 0.8*b + u")
    assert named_combinations([[first], [second]], ("a", "b")) == []


def test_equations_of_named_systems_are_fitted():
    data, truth = observed(PREY_SYSTEM, PREY_LAWS, (1.0, 1.3))
    for form, law in zip(component_forms(data), truth, strict=True):
        drafts = named_equations(form, data.system, UNRESTRICTED)
        best = min(drafts, key=lambda draft: draft.score).expression
        assert structure(best) == structure(canonicalize(law))
        assert sorted(best.constants) == pytest.approx(sorted(law.constants), rel=0.01)
        few = named_equations(form, data.system, Restriction(max_symbols=5))
        assert few and max(len(draft.expression.prefix) for draft in few) <= 5 < len(law.prefix)


def test_only_second_order_systems_have_equations_of_velocities():
    data, (law,) = observed(System(("x",), order=2), ("-2.1*sin(x) - 0.3*v",), (1.0, 0.0))
    (form,) = component_forms(data)
    drafts = named_equations(form, data.system, UNRESTRICTED)
    found = {structure(draft.expression) for draft in drafts}
    assert structure(canonicalize(law)) in found and len(found) < 20
