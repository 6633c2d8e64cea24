"""Systems that the user wants tried."""

import numpy as np
import pytest
from observing import PREY, PREY_LAWS, observed

from nsode_jax.discovery.systems import discover_system
from nsode_jax.dynamics.system import System
from nsode_jax.fitting.components import component_forms
from nsode_jax.fitting.fit import USER, Origin
from nsode_jax.search.combine import CombineConfig, SystemSearch
from nsode_jax.search.own_systems import OwnSystem
from nsode_jax.search.population import Draft
from nsode_jax.selection.named_formula import names_note

NAMED = "a*prey - b*prey*hunters; c*prey*hunters - d*hunters"


def test_named_constants_are_fitted():
    data, truth = observed(PREY, PREY_LAWS, (1.0, 1.3))
    own = OwnSystem.parse(NAMED, PREY)
    assert [part.named for part in own.parts] == [True, True]
    for options, law in zip(own.drafts(component_forms(data)), truth, strict=True):
        best = min(options, key=lambda draft: draft.error).expression
        points = np.random.default_rng(0).uniform(0.5, 2.0, (2, 20))
        np.testing.assert_allclose(best.evaluate(*points), law.evaluate(*points), atol=0.05)


def test_given_constants_are_begun_from():
    own = OwnSystem.parse("1.2*prey - 0.7*prey*hunters; 0.5*prey*hunters - hunters", PREY)
    assert [part.named for part in own.parts] == [False, False]
    data, _ = observed(PREY, PREY_LAWS, (1.0, 1.3))
    first, *fitted = own.drafts(component_forms(data))[0]
    assert set(first.expression.constants) == {1.2, -0.7}
    assert fitted


def test_thresholds_are_found_at_the_size_of_the_data():
    system = System(("x", "y"))
    equations = ("-90*x/(40 + x)", "90*x/(40 + x) - 0.5*y")
    data, (law, _) = observed(system, equations, (300.0, 10.0))
    own = OwnSystem.parse("-V*x/(K + x); V*x/(K + x) - d*y", system)
    best = min(own.drafts(component_forms(data))[0], key=lambda draft: draft.error).expression
    x = np.linspace(20.0, 300.0, 10)
    np.testing.assert_allclose(best.evaluate(x, x), law.evaluate(x, x), rtol=0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a*prey", "has 1 equation for prey, hunters; put ; between them"),
        ("prey; hunters; 1", "has 3 equations"),
        ("prey +; hunters", "'prey \\+': the formula ends too early"),
        ("prey; f(hunters)", "'f\\(hunters\\)': 'f' is no function at 1"),
        ("prey; __import__('os')", "unexpected character"),
        ("prey*sin(t); hunters", "'prey\\*sin\\(t\\)' has the time t in it"),
    ],
)
def test_what_is_no_system_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as error:
        OwnSystem.parse(text, PREY)
    assert "\n" not in str(error.value) and "e+" not in str(error.value)


def test_a_name_in_several_places_is_said_to_be_several_constants():
    said = names_note("r*y - r*y**2", ("y",))
    assert said and said.endswith(" r may take another value in each of its places.")
    note = names_note("a*x - b*x*y; b*x*y - d*y", ("x", "y"))
    assert note and note.endswith(" b may take another value in each of its places.")


def test_they_are_among_the_candidates_whatever_their_rank():
    """A system that nothing else would propose, in data of another."""
    data, _ = observed(PREY, PREY_LAWS, (1.0, 1.3), noise=0.02)
    run = data.runs[0]
    own = "a*prey - b*prey*hunters*cos(k*hunters); c*prey*hunters - d*hunters"
    found = discover_system(run.t, run.y, names=PREY.observed, candidates=own, effort="fast")
    assert any("cos(" in str(candidate) for candidate in found.candidates)


def test_one_without_a_solution_is_said_to_have_none():
    data, _ = observed(PREY, PREY_LAWS, (1.0, 1.3))
    search = SystemSearch(data, CombineConfig(staged=0))
    own = OwnSystem.parse("50*prey**2; hunters**2", PREY)
    drafts = [[Draft(law, 0.0, 0.0, Origin(USER))] for law in own.laws]
    assert not search.try_own(drafts)


def test_a_system_is_fitted_again_from_better_constants():
    """The first that are tried may lead nowhere."""
    data, truth = observed(PREY, PREY_LAWS, (1.0, 1.3))
    search = SystemSearch(data, CombineConfig(staged=0))

    def tried(text):
        laws = OwnSystem.parse(text, PREY).laws
        key = search.fit_roughly([Draft(law, 0.0, 0.0, Origin("test")) for law in laws])
        return search.fits[key]

    assert tried("30*prey - 0.1*prey*hunters; 9*prey*hunters - 0.1*hunters").diverged
    assert not tried("prey - 0.7*prey*hunters; 0.5*prey*hunters - 0.8*hunters").diverged


def test_operators_and_sizes_are_kept():
    data, _ = observed(PREY, PREY_LAWS, (1.0, 1.3), noise=0.02)
    run, names = data.runs[0], PREY.observed
    plain = discover_system(run.t, run.y, names=names, operators=(), max_symbols=9, effort="fast")
    for candidate in plain.candidates:
        for law in candidate.laws:
            assert law.complexity <= 9
            assert not {"pow", "sin", "cos", "exp", "log", "sqrt"} & set(law.prefix)
    assert plain.best.complexity == 18
    with pytest.raises(ValueError, match="there is no operator tan"):
        discover_system(run.t, run.y, operators=("tan",))
