"""Where laws come from, and that a result can say so."""

import math

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import USER, Origin
from nsode_jax.fitting.progress import silent
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.search.library import LibrarySource, library
from nsode_jax.search.network import NetworkSource
from nsode_jax.search.own_laws import OwnLaw, OwnLawSource

T = np.linspace(0.0, 4.0, 30)
DATA = Dataset.of([Trajectory(T, 3.0 * np.exp(-T))])
FORM = integral_form(DATA)


def test_given_laws_are_proposed_as_they_are():
    laws = tuple(Expression.from_infix(text) for text in ("0.5*y", "log(-y)", "y*y - y"))
    source = OwnLawSource.of(list(map(OwnLaw, laws)), FORM)
    proposals = source.propose(DATA, FORM, seed=0, progress=silent)
    assert tuple(proposal.expression for proposal in proposals.laws) == laws
    starts = [start for starts in source.starts for start in starts]
    assert tuple(start.expression for start in starts) == laws
    assert all(start.origin == Origin(USER) and start.origin.asked_for for start in starts)
    # What the search makes of them is not what was asked for.
    assert not any(proposal.origin.asked_for for proposal in proposals.laws)
    assert proposals.tried == "3 laws of your own"


def test_given_laws_with_named_constants_begin_where_they_fit_best():
    named, given = OwnLaw.parse("V*y/(K + y)"), OwnLaw.parse("-y")
    of_named, of_given = OwnLawSource.of([named, given], FORM).starts
    assert [start.expression for start in of_given] == [Expression.from_infix("-y")]
    first, *others = [start.expression for start in of_named]
    y = np.linspace(0.1, 3.0, 20)
    np.testing.assert_allclose(first.evaluate(y), -y, rtol=0.05)
    assert others and all(law.skeleton == first.skeleton for law in others)


def test_a_named_exponent_stays_one():
    """Rounded it would be another law, which nobody asked for."""
    own = OwnLaw.parse("r*y - s*y**theta")
    for law in own.starts(FORM):
        assert structure(law) == structure(canonicalize(own.law))


def test_the_library_is_that_of_the_size_of_the_data():
    proposals = LibrarySource().propose(DATA, FORM, seed=0, progress=silent)
    assert [proposal.expression for proposal in proposals.laws] == library(3.0)
    assert {proposal.origin for proposal in proposals.laws} == {Origin("library")}
    assert f"{len(proposals.laws):,}" in proposals.tried


@pytest.mark.parametrize("source", [OwnLawSource(()), LibrarySource(), NetworkSource()])
def test_every_source_has_a_name(source):
    assert source.name in ("user", "library", "network")


def test_an_origin_says_where_a_law_comes_from():
    origin = Origin("network", -2.5)
    assert str(origin) == "network"
    child = origin.descendant()
    assert str(child) == "network, evolved" and child.log_probability == -2.5
    assert child.descendant() == child
    assert math.isnan(Origin("library").log_probability)
    assert Origin(USER).asked_for
    assert not Origin(USER).descendant().asked_for and not origin.asked_for
