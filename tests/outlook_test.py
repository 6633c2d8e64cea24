"""Tests for what laws foretell beyond the data."""

import dataclasses
import math

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.results.outlook import Fate, outlook
from nsode_jax.results.result import Candidate, Result

T = np.linspace(0.0, 4.0, 30)


def law(formula, probability, y0=1.0, residual=0.01):
    return Candidate(
        Expression.from_infix(formula),
        (y0,),
        (0.0,),
        0.99,
        residual,
        0.0,
        probability=probability,
        end_times=(4.0,),
    )


def foretold(*laws):
    series = Trajectory(T, laws[0].predict(T))
    found = outlook(Result(laws, (series,), (), 0.0))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("formula", "y0", "fate", "place"),
    [
        ("0.8*y*(1 - y/10)", 1.0, Fate.RESTS, 10.0),
        ("0.3*y", 1.0, Fate.RISES, math.nan),
        ("2 - 0.5*y", 9.0, Fate.RESTS, 4.0),
        ("-0.4*y", 5.0, Fate.RESTS, 0.0),  # What was never negative ends at zero.
        ("-0.1*sqrt(y)", 5.0, Fate.RESTS, 0.0),
        ("-0.4*y", -5.0, Fate.RESTS, 0.0),
        ("-3*sqrt(y - 2)", 8.0, Fate.RESTS, 2.0),  # At the edge of the domain, where f is 0.
        ("2*sqrt(7 - y)", 1.0, Fate.RESTS, 7.0),
        ("-1.0 + 0*y", 2.0, Fate.FALLS, math.nan),
        ("exp(-4.4*y)", 90.0, Fate.RISES, math.nan),  # Rates whose products vanish.
        ("1/(7 - y)", 1.0, Fate.ENDS, 7.0),  # A pole is no place to rest.
        ("sqrt(7 - y) + 0.1", 1.0, Fate.ENDS, 7.0),
    ],
)
def test_the_fate_of_a_solution(formula, y0, fate, place):
    (group,) = foretold(law(formula, 0.8, y0)).groups
    assert group.fate is fate
    if math.isnan(place):
        assert math.isnan(group.low)
    else:
        assert group.low == group.high == pytest.approx(place, abs=0.02)


def test_laws_that_say_the_same_stand_together():
    found = foretold(
        law("0.8*y*(1 - y/10)", 0.4),
        law("0.5*y", 0.25),
        law("0.8*y*(1 - (y/10.2)**2)", 0.2),
        law("0.6*y*(1 - y/30)", 0.05),
        law("0.1*y", 0.001),  # Which does not matter.
    )
    assert [group.ranks for group in found.groups] == [(1, 3), (2,), (4,)]
    assert [group.probability for group in found.groups] == pytest.approx([0.6, 0.25, 0.05])
    assert str(found) == (
        "by laws 1, 3 (60.0%) y levels off at 10 to 10.2; by law 2 (25.0%) y goes on rising; "
        "by law 4 (5.0%) y levels off at 30."
    )


def test_all_may_agree():
    found = foretold(law("0.8*y*(1 - y/10)", 0.6), law("0.9*y*(1 - (y/10)**2)", 0.2))
    assert str(found) == "by all 2 laws that matter y levels off at 10."


@pytest.mark.parametrize(
    ("rest", "start", "said"),
    [
        (1004.932, 1012.8, "levels off at 1004.9."),
        (101325.2, 101333.0, "levels off at 101325.2."),
        (-20.0, -12.0, "levels off at -20."),
        (0.0, -8.0, "levels off at 0."),
        (4e-14, 8e-12, "levels off at 4e-14."),
    ],
)
def test_places_have_the_digits_that_the_range_of_the_data_asks_for(rest, start, said):
    only = dataclasses.replace(law(f"-1.2*(y - ({rest!r}))", 0.9, start), residual_rms=0.0)
    assert str(foretold(only)).endswith(said)


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e9])
def test_where_it_rests_is_exact_in_any_unit(scale):
    (group,) = foretold(law(f"0.5*y*(1 - y/{scale!r})", 0.9, 0.05 * scale)).groups
    assert group.low == pytest.approx(scale, rel=1e-6)


def test_without_probabilities_or_solutions_nothing_is_foretold():
    unknown = law("0.3*y", math.nan)
    assert outlook(Result((unknown,), (Trajectory(T, T),), (), 0.0)) is None
    diverged = dataclasses.replace(law("y**2", 0.9), y0s=(math.nan,))
    assert outlook(Result((diverged,), (Trajectory(T, T),), (), 0.0)) is None
