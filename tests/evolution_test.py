"""Laws outside the proposals are found, the same with the same seed."""

import numpy as np
import pytest
from solved import canonical_law, form_of, population_of, solved

from nsode_jax.search.evolution import MAX_COMPLEXITY, evolve, restart
from nsode_jax.selection.complexity import weighted_complexity


@pytest.mark.parametrize(
    ("truth", "y0", "end"),
    [
        ("0.8*y*(1 - y/3)*(y/0.5 - 1)", 0.6, 5.0),
        ("0.9 - 0.4*y + 1.1*y**2/(1.2 + y**2)", 0.1, 8.0),
        ("1.7*y*exp(-0.6*y)", 0.2, 3.0),
    ],
)
def test_a_law_outside_the_proposals_is_found(truth, y0, end):
    form = form_of(solved(truth, y0, end))
    population = population_of(form, "0.5*y", "1 - y", "y - y**2")
    before = population.best(1)[0].error
    evolve(form, population, np.random.default_rng(0), generations=12, children=200)
    best = population.best(1)[0]
    assert best.error < 0.05 * before
    y = np.linspace(form.nodes[0], form.nodes[-1], 50)
    rate = canonical_law(truth).evaluate(y)
    assert np.abs(best.expression.evaluate(y) - rate).max() < 0.03 * np.abs(rate).max()


def test_same_seed_same_search():
    form = form_of(solved("1.7*y*exp(-0.6*y)", 0.2, 3.0))
    found = []
    for _ in range(2):
        population = population_of(form, "0.5*y", "1 - y")
        evolve(form, population, np.random.default_rng(3), generations=2, children=60)
        found.append(population.best(20))
    assert found[0] == found[1]
    assert max(weighted_complexity(draft.expression) for draft in found[0]) <= MAX_COMPLEXITY


def test_the_search_ends_without_progress():
    form = form_of(solved("-0.7*y", 2.0, 4.0))
    told = []
    evolve(
        form,
        population_of(form, "-0.5*y"),
        np.random.default_rng(0),
        generations=50,
        children=40,
        progress=lambda stage, share: told.append(share),
    )
    assert 0 < len(told) < 10  # The law is exact from the start.
    assert all(0 <= share < 1 for share in told)


def test_without_generations_nothing_changes():
    form = form_of(solved("-0.7*y", 2.0, 4.0))
    population = population_of(form, "-0.5*y")
    evolve(form, population, np.random.default_rng(0), generations=0, children=40)
    assert len(population.best(100)) == 1


def test_descendants_know_where_they_come_from():
    form = form_of(solved("1.7*y*exp(-0.6*y)", 0.2, 3.0))
    population = population_of(form, "0.5*y", "1 - y")
    evolve(form, population, np.random.default_rng(0), generations=2, children=60)
    origins = {draft.origin for draft in population.best(100)}
    assert {origin.source for origin in origins} == {"0.5*y", "1 - y"}
    assert {origin.evolved for origin in origins} == {False, True}


def test_a_restart_leaves_a_poor_optimum():
    """Too high a frequency fits the data worse than the right one."""
    form = form_of(solved("1.3*sin(1.7*y)", 0.1, 4.0))
    population = population_of(form, "0.3*sin(9*y)")
    poor = population.best(1)[0]
    for seed in range(20):
        restart(form, population, np.random.default_rng(seed), 5)
    assert population.best(1)[0].error < 0.1 * poor.error
