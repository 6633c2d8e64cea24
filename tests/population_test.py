"""Drafts of laws, and which of them a population keeps."""

import math

import numpy as np
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


def test_the_population_keeps_the_best_of_each_skeleton():
    population = Population(form_of(solved("-0.7*y", 2.0, 4.0)))
    drafts = {"0.3*y": 0.4, "-0.4*y": 0.1, "y + 0.7": 0.2}
    population.add(
        [Draft(canonical_law(text), error, 0.0, ORIGIN) for text, error in drafts.items()]
    )
    assert [draft.expression.infix for draft in population.best(5)] == ["-0.4*y", "y + 0.7"]


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
