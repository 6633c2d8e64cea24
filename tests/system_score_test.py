"""What systems score, and which terms their equations share."""

import dataclasses

import numpy as np
from observing import observed
from solved import laws

from nsode_jax.dynamics.system import System
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.system_problem import Tie
from nsode_jax.fitting.trajectory_fitting import FULL
from nsode_jax.selection.probabilities import UNSEEN_CONTRADICTED
from nsode_jax.selection.system_score import shared_terms, system_score, unseen_probability

NAMES = ("x", "y")


def test_terms_with_opposite_signs_are_shared():
    found = shared_terms(laws(NAMES, "0.2*x - 0.5*x*y", "0.52*x*y - 0.9*y"), NAMES)
    assert [shared.tie for shared in found] == [Tie(2, 1)]
    assert not shared_terms(laws(NAMES, "0.5*x*y", "0.5*x*y"), NAMES)
    assert not shared_terms(laws(NAMES, "-0.5*x*y", "5*x*y"), NAMES)


def test_a_shared_constant_is_told_once():
    data, _ = observed(System(NAMES), ("-0.5*x*y", "0.5*x*y - 0.3*y"), (2.0, 0.1), noise=0.02)
    free = fit_system(
        data, laws(NAMES, "-0.5*x*y", "0.5*x*y - 0.3*y"), (Origin("test"),) * 2, stopping=FULL
    )
    tied = dataclasses.replace(free, ties=(Tie(1, 0),))
    assert system_score(data, tied) < system_score(data, free)


def test_a_system_without_a_solution_comes_last():
    data, _ = observed(System(NAMES), ("-0.5*x*y", "0.5*x*y - 0.3*y"), (2.0, 0.1))
    fit = fit_system(data, laws(NAMES, "60*x**2", "1.0*y"), (Origin("test"),) * 2, stopping=FULL)
    assert np.isinf(system_score(data, fit))


def test_what_the_data_contradict_is_missed_as_often_as_not():
    system = System(("y",), order=2)
    data, right = observed(system, ("-2.1*y - 0.3*v - 0.8*y**3",), (1.0, 0.5), noise=0.02, runs=2)
    wrong = [laws(system.variables, text) for text in ("-2.2*y - 0.3*v", "-2.2*y")]
    true, *others = (
        fit_system(data, each, (Origin("test"),), stopping=FULL) for each in (right, *wrong)
    )
    assert unseen_probability(data, others) == UNSEEN_CONTRADICTED
    # One among the best that leaves nothing but noise is enough, whatever its rank.
    assert unseen_probability(data, [*others, true]) < 0.1
    assert unseen_probability(data, [true, *others]) < 0.1
