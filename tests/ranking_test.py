"""The order of laws: what wins, what is merged, what stays."""

import math

import numpy as np
import pytest
from judged import DATA, FORM, ORIGIN, fit_of, order_of

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import USER, Fit, Origin
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.selection.ranking import rank
from nsode_jax.selection.score import scores


def test_a_much_better_fit_wins():
    assert order_of(fit_of("-1.1*y", 0.1), fit_of("0.31 - 1.1*y", 0.01))[0] == "0.31 - 1.1*y"


def test_a_longer_law_within_noise_loses():
    assert (
        order_of(fit_of("0.3 - 1.1*y + 0.01*y**3", 0.0499), fit_of("-1.1*y", 0.05))[0] == "-1.1*y"
    )


def test_precision_beyond_the_data_does_not_pay():
    assert (
        order_of(fit_of("sin(0.31) - 1.1*y + 0.01*y**3", 1e-10), fit_of("-1.1*y", 1e-8))[0]
        == "-1.1*y"
    )


def test_divergence_comes_last():
    assert order_of(fit_of("y**2", math.inf), fit_of("1.3", 0.9))[-1] == "y**2"


def test_one_fit_per_skeleton_signs_aside():
    assert order_of(fit_of("-1.1*y", 0.1), fit_of("1.2*y", 0.2), fit_of("-1.2*y", 0.3)) == [
        "-1.1*y"
    ]


def test_laws_of_other_powers_do_not_hide_each_other():
    laws = ["1.1*y - 0.9*y**3", "1.2*y - 0.8*y**2", "1.1*y - 0.9*y**2.7"]
    fits = [fit_of(law, 0.1) for law in laws]
    worse = fit_of("1.3*y - 0.7*y**2.4", 0.2)
    assert set(order_of(*fits, worse)) == {fit.expression.infix for fit in fits}


def test_equal_right_hand_sides_keep_the_shorter():
    long = fit_of("-1.1*y + 1e-12*y**2", 0.01)
    assert order_of(long, fit_of("-1.1*y", 0.01)) == ["-1.1*y"]
    # Even if the longer one fits better by a hair that the score notices.
    hair = fit_of("-1.1*y + 1e-12*y**2", 1e-3)
    assert order_of(hair, fit_of("-1.1*y", 0.01)) == ["-1.1*y"]


def test_of_two_ways_to_write_a_law_the_simpler_stays():
    square, expanded = "(0.7*y + 1.3)**2 - 1.5", "0.49*y**2 + 1.82*y + 0.19"
    assert Expression.from_infix(square).complexity < Expression.from_infix(expanded).complexity
    assert order_of(fit_of(square, 0.01), fit_of(expanded, 0.01)) == [expanded]


def test_laws_that_cannot_be_told_apart_keep_the_better():
    written_twice = fit_of("-1.1*y + 1e-5*y**2", 0.1)
    assert order_of(fit_of("-1.1*y", 0.09), written_twice) == ["-1.1*y"]
    # On clean data the exact law is not given up for a short one that is nearly it.
    exact = "-1.1*y + 1e-05*y**2"
    assert order_of(fit_of(exact, 1e-5), fit_of("-1.1*y", 3e-2)) == [exact]


def test_digits_that_nobody_measured_do_not_buy_a_long_formula():
    """A solver's tolerance of 1e-5 is no noise: all points miss by it together."""
    short, long = "0.3 - 1.1*y", "0.3 - 1.1*y + 0.01*sin(0.3*y) + 0.2*exp(-0.7*y)"
    assert order_of(fit_of(short, 3e-5), fit_of(long, 3e-6))[0] == short
    # In noise the same ratio is evidence.
    worse, better = scores([fit_of(short, 3e-1), fit_of(long, 3e-2)], DATA, FORM)
    assert better < worse


def test_a_law_that_was_asked_for_stays():
    """Also beside a better way to write it, and one better by far."""
    mine = Origin(USER)
    best = fit_of("0.3 - 1.1*y", 0.001)
    same = fit_of("-1.1*(y - 0.3/1.1)", 0.001, mine)
    poor = fit_of("0.4*sqrt(y)", 0.9, mine)
    diverged = fit_of("y**9", math.inf, mine)
    ranked = rank([best, same, poor, diverged], DATA, FORM)
    found = {fit.expression.infix: fit.origin for fit, _ in ranked}
    assert len(ranked) == 4
    assert all(found[fit.expression.infix].asked_for for fit in (same, poor, diverged))
    assert not found[best.expression.infix].asked_for
    # What evolution made of it is one law among others.
    evolved = fit_of("-1.1*(y - 0.3/1.1)", 0.001, mine.descendant())
    assert len(rank([best, evolved], DATA, FORM)) == 1


def test_the_best_fit_of_a_law_that_was_asked_for_bears_its_origin():
    ranked = rank([fit_of("-1.1*y", 0.1), fit_of("-3.3*y", 0.5, Origin(USER))], DATA, FORM)
    ((fit, _),) = ranked
    assert fit.expression.infix == "-1.1*y" and fit.origin == Origin(USER)


@pytest.mark.parametrize(
    ("plain", "fitted", "y0"),
    [
        ("y - 6", "1.0000000001*y - 6.0000000002", 3.0),
        ("exp(y)*sin(y)", "0.9999999999*exp(1.0000000001*y)*sin(y)", 0.3),
        ("-sqrt(y)/(y - 5)", "sqrt(y)/(5.0000000001 - 1.0000000001*y)", 1.0),
    ],
)
def test_round_numbers_that_fit_exact_data_are_no_accident(plain, fitted, y0):
    law = Expression.from_infix(plain)
    t = np.linspace(0.0, 0.9, 300)
    data = Dataset.of([Trajectory(t, solve(law, y0, t, rtol=1e-11, atol=1e-11))])
    form = derivative_form(data)
    assert form is not None and form.exact
    fits = [
        Fit(Expression.from_infix(text), (y0,), rms * data.spread, 1 - rms**2, True, ORIGIN)
        for text, rms in ((fitted, 1e-12), (plain, 1e-8))
    ]
    assert [fit.expression.infix for fit, _ in rank(fits, data, form)] == [law.infix]
