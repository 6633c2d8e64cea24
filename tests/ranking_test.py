"""The order of laws: what wins, what is merged, what stays."""

import math

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.derivative import derivative_form
from nsode_jax.fitting.fit import USER, Fit, Origin
from nsode_jax.fitting.integral import integral_form
from nsode_jax.selection.ranking import rank
from nsode_jax.selection.score import scores

T = np.linspace(0.0, 4.0, 50)
DATA = Dataset.of([Trajectory(T, 0.3 + np.exp(-T) * math.pi)])
FORM = integral_form(DATA)
SPREAD = DATA.y.std()
ORIGIN = Origin("test")


def _fit(text: str, relative_rms: float, origin: Origin = ORIGIN) -> Fit:
    r2 = 1 - relative_rms**2 if math.isfinite(relative_rms) else -math.inf
    return Fit(Expression.from_infix(text), (3.0,), relative_rms * SPREAD, r2, True, origin)


def _order(*fits: Fit) -> list[str]:
    return [fit.expression.infix for fit, _ in rank(fits, DATA, FORM)]


def test_a_much_better_fit_wins():
    assert _order(_fit("-1.1*y", 0.1), _fit("0.31 - 1.1*y", 0.01))[0] == "0.31 - 1.1*y"


def test_a_longer_law_within_noise_loses():
    assert _order(_fit("0.3 - 1.1*y + 0.01*y**3", 0.0499), _fit("-1.1*y", 0.05))[0] == "-1.1*y"


def test_precision_beyond_the_data_does_not_pay():
    assert _order(_fit("sin(0.31) - 1.1*y + 0.01*y**3", 1e-10), _fit("-1.1*y", 1e-8))[0] == "-1.1*y"


def test_divergence_comes_last():
    assert _order(_fit("y**2", math.inf), _fit("1.3", 0.9))[-1] == "y**2"


def test_one_fit_per_skeleton_signs_aside():
    assert _order(_fit("-1.1*y", 0.1), _fit("1.2*y", 0.2), _fit("-1.2*y", 0.3)) == ["-1.1*y"]


def test_equal_right_hand_sides_keep_the_shorter():
    long = _fit("-1.1*y + 1e-12*y**2", 0.01)
    assert _order(long, _fit("-1.1*y", 0.01)) == ["-1.1*y"]
    # Even if the longer one fits better by a hair that the score notices.
    hair = _fit("-1.1*y + 1e-12*y**2", 1e-3)
    assert _order(hair, _fit("-1.1*y", 0.01)) == ["-1.1*y"]


def test_of_two_ways_to_write_a_law_the_simpler_stays():
    square, expanded = "(0.7*y + 1.3)**2 - 1.5", "0.49*y**2 + 1.82*y + 0.19"
    assert Expression.from_infix(square).complexity < Expression.from_infix(expanded).complexity
    assert _order(_fit(square, 0.01), _fit(expanded, 0.01)) == [expanded]


def test_laws_that_cannot_be_told_apart_keep_the_better():
    written_twice = _fit("-1.1*y + 1e-5*y**2", 0.1)
    assert _order(_fit("-1.1*y", 0.09), written_twice) == ["-1.1*y"]
    # On clean data the exact law is not given up for a short one that is nearly it.
    exact = "-1.1*y + 1e-05*y**2"
    assert _order(_fit(exact, 1e-5), _fit("-1.1*y", 3e-2)) == [exact]


def test_digits_that_nobody_measured_do_not_buy_a_long_formula():
    """A solver's tolerance of 1e-5 is no noise: all points miss by it together."""
    short, long = "0.3 - 1.1*y", "0.3 - 1.1*y + 0.01*sin(0.3*y) + 0.2*exp(-0.7*y)"
    assert _order(_fit(short, 3e-5), _fit(long, 3e-6))[0] == short
    # In noise the same ratio is evidence.
    worse, better = scores([_fit(short, 3e-1), _fit(long, 3e-2)], DATA, FORM)
    assert better < worse


def test_a_law_that_was_asked_for_stays():
    """Also beside a better way to write it, and one better by far."""
    mine = Origin(USER)
    best = _fit("0.3 - 1.1*y", 0.001)
    same = _fit("-1.1*(y - 0.3/1.1)", 0.001, mine)
    poor = _fit("0.4*sqrt(y)", 0.9, mine)
    diverged = _fit("y**9", math.inf, mine)
    ranked = rank([best, same, poor, diverged], DATA, FORM)
    found = {fit.expression.infix: fit.origin for fit, _ in ranked}
    assert len(ranked) == 4
    assert all(found[fit.expression.infix].asked_for for fit in (same, poor, diverged))
    assert not found[best.expression.infix].asked_for
    # What evolution made of it is one law among others.
    evolved = _fit("-1.1*(y - 0.3/1.1)", 0.001, mine.descendant())
    assert len(rank([best, evolved], DATA, FORM)) == 1


def test_the_best_fit_of_a_law_that_was_asked_for_bears_its_origin():
    ranked = rank([_fit("-1.1*y", 0.1), _fit("-3.3*y", 0.5, Origin(USER))], DATA, FORM)
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
