"""Laws outside the proposals are found, the same with the same seed."""

import numpy as np
import pytest
from nsode_jax.selection.rank import length

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.integral import IntegralForm
from nsode_jax.search.evolution import MAX_LENGTH, Draft, Pool, draft_laws, evolve, restart


def _law(text: str) -> Expression:
    return canonicalize(Expression.from_infix(text))


def _form(text: str, y0: float, end: float, points: int = 100) -> IntegralForm:
    t = np.linspace(0.0, end, points)
    y = solve(_law(text), y0, t, rtol=1e-11, atol=1e-11)
    return IntegralForm.from_trajectories([Trajectory(t, y)])


def _pool(form: IntegralForm, *texts: str) -> Pool:
    pool = Pool(form)
    pool.add(draft_laws(form, [_law(text) for text in texts], range(len(texts))))
    return pool


def test_drafts_are_fitted_scored_and_remember_their_source():
    form = _form("1.3*y - 0.7*y**2", 0.1, 4.0)
    laws = [_law("y - 5"), _law("log(-y)"), _law("0.9*y - 0.3*y**2")]
    drafts = draft_laws(form, laws, [4, 5, 6])
    assert [draft.source for draft in drafts] == [4, 6]  # The undefined one is left out.
    assert drafts[1].error < 1e-5 < drafts[0].error
    assert drafts[1].score < drafts[0].score
    np.testing.assert_allclose(sorted(drafts[1].expression.constants), (-0.7, 1.3, 2.0), rtol=1e-3)


@pytest.mark.parametrize(
    ("truth", "y0", "end"),
    [
        ("0.8*y*(1 - y/3)*(y/0.5 - 1)", 0.6, 5.0),
        ("0.9 - 0.4*y + 1.1*y**2/(1.2 + y**2)", 0.1, 8.0),
        ("1.7*y*exp(-0.6*y)", 0.2, 3.0),
    ],
)
def test_a_law_outside_the_proposals_is_found(truth, y0, end):
    form = _form(truth, y0, end)
    pool = _pool(form, "0.5*y", "1 - y", "y - y**2")
    before = pool.best(1)[0].error
    evolve(form, pool, np.random.default_rng(0), generations=12, children=200)
    best = pool.best(1)[0]
    assert best.error < 0.05 * before
    y = np.linspace(form.grid[0], form.grid[-1], 50)
    rate = _law(truth).evaluate(y)
    assert np.abs(best.expression.evaluate(y) - rate).max() < 0.03 * np.abs(rate).max()


def test_same_seed_same_search():
    form = _form("1.7*y*exp(-0.6*y)", 0.2, 3.0)
    found = []
    for _ in range(2):
        pool = _pool(form, "0.5*y", "1 - y")
        evolve(form, pool, np.random.default_rng(3), generations=2, children=60)
        found.append(pool.best(20))
    assert found[0] == found[1]
    assert max(length(draft.expression) for draft in found[0]) <= MAX_LENGTH


def test_the_search_ends_without_progress_or_time():
    form = _form("-0.7*y", 2.0, 4.0)
    told = []
    evolve(
        form,
        _pool(form, "-0.5*y"),
        np.random.default_rng(0),
        generations=50,
        children=40,
        report=told.append,
    )
    assert len(told) < 10  # The law is exact from the start.
    pool = _pool(form, "-0.5*y")
    evolve(form, pool, np.random.default_rng(0), generations=5, children=40, deadline=0.0)
    assert len(pool.best(100)) == 1


def test_a_restart_leaves_a_poor_optimum():
    """Too high a frequency fits the data worse than the right one."""
    form = _form("1.3*sin(1.7*y)", 0.1, 4.0)
    pool = _pool(form, "0.3*sin(9*y)")
    poor = pool.best(1)[0]
    for seed in range(20):
        restart(form, pool, np.random.default_rng(seed), 5)
    assert pool.best(1)[0].error < 0.1 * poor.error


def test_the_pool_keeps_the_best_of_each_skeleton():
    pool = Pool(_form("-0.7*y", 2.0, 4.0))
    drafts = {"0.3*y": 0.4, "-0.4*y": 0.1, "y + 0.7": 0.2}
    pool.add([Draft(_law(text), error, 0.0, 0) for text, error in drafts.items()])
    assert [draft.expression.infix for draft in pool.best(5)] == ["-0.4*y", "y + 0.7"]


def test_the_front_is_of_error_and_length():
    pool = Pool(_form("-0.7*y", 2.0, 4.0))
    for text, error in (("0.3*y", 0.5), ("0.3*y**2", 0.6), ("0.3 - 0.2*y", 0.1), ("y", 0.7)):
        pool.add([Draft(_law(text), error, 0.0, 0)])
    assert [draft.expression.infix for draft in pool.front()] == ["y", "0.3*y", "-0.2*y + 0.3"]
