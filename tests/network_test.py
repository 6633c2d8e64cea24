"""The network as a source, with a stand-in for it."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.progress import silent
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.search.network import NetworkSource

LOGISTIC = Expression.from_infix("0.5*y*(1 - y/600)")
T = np.linspace(0.0, 18.0, 60)
DATA = Dataset.of([Trajectory(T, solve(LOGISTIC, 9.0, T))])


class StandIn:
    """Proposes the same laws for every view, and remembers what it was shown."""

    def __init__(self, *laws):
        self.laws = [Expression.from_infix(law) for law in laws]
        self.seen, self.options = [], {}

    def propose(self, trajectories, **options):
        self.seen, self.options = trajectories, options
        return [[(law, -1.0 - i) for i, law in enumerate(self.laws)] for _ in trajectories]


def _proposals(stand_in, data=DATA, **options):
    source = NetworkSource(proposer=stand_in, **options)
    return source.propose(data, integral_form(data), seed=3, progress=silent).laws


def test_laws_are_restored_to_the_units_of_the_data():
    stand_in = StandIn("sin(y)", "2*y - 0.3*y**2")
    proposals = _proposals(stand_in, beams=7, samples=5)
    assert stand_in.options == {"beams": 7, "samples": 5, "seed": 3}
    for seen in stand_in.seen:
        assert np.abs(seen.y).max() <= 5 * (1 + 1e-9) and seen.t[0] == 0.0
    best = proposals[0]  # By fit, not by probability.
    assert best.origin.source == "network" and best.origin.log_probability == -2.0
    grid = np.linspace(20.0, 580.0, 20)
    np.testing.assert_allclose(best.expression.evaluate(grid), LOGISTIC.evaluate(grid), rtol=1e-3)
    assert len({proposal.expression for proposal in proposals}) == len(proposals)


def test_one_skeleton_is_tried_a_few_times_only():
    linear = StandIn(*(f"{c}.5*y" for c in range(1, 9)))
    nonlinear = StandIn(*(f"sin({c}.5*y)" for c in range(1, 9)))
    # Constants that f is linear in need no second guess; the most probable ones are kept.
    for stand_in, most, likely in ((linear, 1, {-1.0}), (nonlinear, 2, {-1.0, -2.0})):
        proposals = _proposals(stand_in)
        assert 0 < len(proposals) <= most * len(stand_in.seen)
        assert {proposal.origin.log_probability for proposal in proposals} <= likely


def test_it_says_how_many_laws_were_tried():
    stand_in = StandIn("y", "sin(y)", "log(-y)")
    source = NetworkSource(proposer=stand_in)
    proposals = source.propose(DATA, integral_form(DATA), seed=3, progress=silent)
    assert proposals.tried == f"{3 * len(stand_in.seen)} laws of the network"


def test_undefined_laws_are_left_out():
    assert _proposals(StandIn("log(-y)", "sqrt(-1 - y)")) == ()


@pytest.mark.parametrize(("series", "views"), [(1, 4), (2, 8), (5, 5), (30, 8)])
def test_the_more_series_the_fewer_views_of_each(series, views):
    """The network reads them as one batch."""
    many = [Trajectory(T, solve(LOGISTIC, 9.0 + i, T)) for i in range(series)]
    stand_in = StandIn("y")
    _proposals(stand_in, Dataset.of(many))
    assert len(stand_in.seen) == views


def test_without_beams_and_samples_nothing_is_asked():
    stand_in = StandIn("y")
    assert _proposals(stand_in, beams=0, samples=0) == ()
    assert not stand_in.seen
