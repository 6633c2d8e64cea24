"""Drafts of laws, and which of them a population keeps."""

import dataclasses
import math

import numpy as np
import pytest
from solved import canonical_law, form_of, solved

import nsode_jax.search.population as population_module
from nsode_jax.fitting.fit import Origin
from nsode_jax.search.population import Draft, Population, draft_laws
from nsode_jax.search.sources import Proposal

ORIGIN = Origin("test")


def test_drafts_are_fitted_scored_and_remember_their_origin():
    form = form_of(solved("1.3*y - 0.7*y**2", 0.1, 4.0))
    laws = [canonical_law("y - 5"), canonical_law("log(-y)"), canonical_law("0.9*y - 0.3*y**2")]
    drafts = draft_laws(form, [Proposal(law, Origin(str(i))) for i, law in enumerate(laws)])
    assert [draft.origin.source for draft in drafts] == ["0", "2"]  # The undefined one is left out.
    assert drafts[1].error < 1e-5 < drafts[0].error
    assert drafts[1].score < drafts[0].score
    np.testing.assert_allclose(sorted(drafts[1].expression.constants), (-0.7, 1.3, 2.0), rtol=1e-3)


@pytest.mark.parametrize("exact", [False, True])
def test_the_population_keeps_the_best_of_each_identity(exact):
    form = dataclasses.replace(form_of(solved("-0.7*y", 2.0, 4.0)), exact=exact)
    population = Population(form)
    drafts = {"0.3*y": 0.4, "-0.4*y": 0.1, "y + 0.7": 0.2, "0.3*y**2": 0.3, "0.3*y**3": 0.31}
    population.add(
        [Draft(canonical_law(text), error, 0.0, ORIGIN) for text, error in drafts.items()]
    )
    found = [draft.expression.infix for draft in population.best(5)]
    other = [] if exact else ["0.3*y**3"]  # Of exact data one of them is true by far.
    assert found == ["-0.4*y", "y + 0.7", "0.3*y**2", *other]


def test_who_came_first_to_an_optimum_is_its_origin():
    population = Population(form_of(solved("-0.7*y", 2.0, 4.0)))
    for error, source in ((0.1, "first"), (0.1 - 1e-9, "again"), (0.09, "better")):
        population.add([Draft(canonical_law("-0.4*y"), error, -math.inf, Origin(source))])
        (kept,) = population.best(5)
        assert kept.origin.source == {"again": "first"}.get(source, source)


def test_an_exponent_is_drafted_whole_too():
    form = dataclasses.replace(form_of(solved("1.1*y - 0.9*y**3", 0.05, 5.0)), exact=False)
    drafts = draft_laws(form, [Proposal(canonical_law("0.9*y - 0.7*y**2.8"), ORIGIN)])
    powers = sorted(max(draft.expression.constants) for draft in drafts)
    assert len(powers) == 2 and 3.0 in powers
    np.testing.assert_allclose(powers, 3.0, rtol=1e-3)


def test_the_front_is_of_error_and_length():
    population = Population(form_of(solved("-0.7*y", 2.0, 4.0)))
    for text, error in (("0.3*y", 0.5), ("0.3*y**2", 0.6), ("0.3 - 0.2*y", 0.1), ("y", 0.7)):
        population.add([Draft(canonical_law(text), error, 0.0, ORIGIN)])
    assert [draft.expression.infix for draft in population.front()] == [
        "y",
        "0.3*y",
        "-0.2*y + 0.3",
    ]


def test_what_is_trimmed_leaves_the_best_and_the_front(monkeypatch):
    monkeypatch.setattr(population_module, "_SIZE", 2)
    population = Population(form_of(solved("-0.7*y", 2.0, 4.0)))
    laws = {"0.3*y": 0.5, "0.3*y**2": 0.2, "0.3 - 0.2*y": 1e-3, "exp(y)*0.2 - 0.3*y": 9e-4}
    for text, error in laws.items():
        population.add([Draft(canonical_law(text), error, -math.inf, ORIGIN)])
    front = population.front()
    population.trim()
    kept = population.best(9)
    assert [draft.error for draft in front] == [0.5, 0.2, 1e-3, 9e-4]
    assert {draft.error for draft in kept} == {0.5, 0.2, 1e-3, 9e-4}
    population.add([Draft(canonical_law("0.2*sin(0.7*y)*y - 0.3*y**3"), 0.4, -math.inf, ORIGIN)])
    population.trim()
    assert 0.4 not in {draft.error for draft in population.best(9)}
