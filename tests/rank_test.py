import math

import numpy as np
import pytest
from nsode_jax.selection.rank import (
    TOKEN_COST,
    Fit,
    in_arbitrary_units,
    is_plain,
    length,
    optimistic_score,
    rank,
    residual_floor,
    score,
    scores,
    spread_of,
    weights_of,
)

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression

T = np.linspace(0.0, 4.0, 50)
DATA = Trajectory(T, 0.3 + np.exp(-T) * math.pi)
SPREAD = DATA.y.std()


def _fit(text: str, relative_rms: float) -> Fit:
    r2 = 1 - relative_rms**2 if math.isfinite(relative_rms) else -math.inf
    return Fit(Expression.from_infix(text), (3.0,), relative_rms * SPREAD, r2, True, 0)


def _order(*fits: Fit) -> list[str]:
    return [fit.expression.infix for fit, _ in rank(fits, [DATA])]


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


def test_score_is_the_documented_formula():
    law = Expression.from_infix("0.53*y - 0.001*y**2")
    # Nine tokens, the exponent of the square free: 8; two fitted constants.
    length_and_constants = 2 * math.log(50) + 2 * 2 + 3.0 * 8
    expected = 40 * math.log(0.01**2 + 1e-6) + 10 * math.log(0.01**2 + 1e-10)
    assert score(law, 0.01, 50) == pytest.approx(expected + length_and_constants)
    few = 4 * math.log(0.01**2 + 1e-10) + 2 * math.log(4) + 2 * 2 + 3.0 * 8
    assert score(law, 0.01, 4) == pytest.approx(few)


def test_digits_that_nobody_measured_do_not_buy_a_long_formula():
    """A solver's tolerance of 1e-5 is no noise: all points miss by it together."""
    short, long = "0.3 - 1.1*y", "0.3 - 1.1*y + 0.01*sin(0.3*y) + 0.2*exp(-0.7*y)"
    assert _order(_fit(short, 3e-5), _fit(long, 3e-6))[0] == short
    # In noise the same ratio is evidence.
    assert _order(_fit(short, 3e-1), _fit(long, 3e-2))[0] == long


def test_weights_are_posterior_probabilities():
    assert weights_of([3.0, 3.0]) == [0.5, 0.5]
    first, second, third = weights_of([-700.0, -698.0, math.inf])
    assert first / second == pytest.approx(math.e)
    assert first + second == pytest.approx(1.0)
    assert third == 0.0


def test_spread_is_about_the_mean_of_each_trajectory():
    shifted = Trajectory(T, DATA.y + 100.0)
    assert spread_of([DATA]) == pytest.approx(SPREAD)
    assert spread_of([DATA, shifted]) == pytest.approx(SPREAD)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y", 1),
        ("2*y", 3),
        ("y**2", 2),
        ("y**3", 3),
        ("y**1.38", 5),
        ("exp(y)", 3),
        ("sin(y)", 4),
        ("sin(0.7*y)", 9),
        ("(y + 0.7)**2", 7),
        ("(y + 0.7)**3", 5),
    ],
)
def test_length(text, expected):
    assert length(Expression.from_infix(text)) == expected


@pytest.mark.parametrize(
    ("value", "plain"), [(2.0, True), (-3.0, True), (1.5, True), (4.5, False), (2.01, False)]
)
def test_is_plain(value, plain):
    assert is_plain(value) is plain


def test_floor_follows_the_rounding_of_the_data():
    y = np.array([9.6, 18.3, 29.0, 47.2, 661.8])
    rounded = Trajectory(np.arange(5.0), y)
    assert residual_floor([rounded]) == pytest.approx(0.1 / math.sqrt(12) / y.std())
    assert residual_floor([DATA]) == 1e-5


def test_a_law_that_ends_just_beyond_the_data_costs_more():
    """The data lie between 0.3 and 3.5; the root of 3.7 - y ends at once."""
    edge, pole, tame = "0.2*sqrt(3.7 - y)", "0.2/(3.7 - y)", "0.2*exp(3.7 - y)"
    assert _order(_fit(edge, 0.1), _fit(tame, 0.1))[0] == tame
    assert _order(_fit(pole, 0.1), _fit("0.2/(93.7 - y)", 0.1))[0] == "0.2/(93.7 - y)"
    # Where y is positive, the root and the reciprocal of y itself are as good as any.
    plain, root = scores([_fit("0.2*y", 0.1), _fit("0.2*sqrt(y)", 0.1)], [DATA])
    assert root - plain == TOKEN_COST


def test_precise_values_count_more():
    doubled = Trajectory(T, DATA.y, noise=np.where(T < 2, 1.0, 2.0))
    early = np.average(
        (DATA.y - np.average(DATA.y, weights=doubled.weights**2)) ** 2, weights=doubled.weights**2
    )
    assert spread_of([doubled]) == pytest.approx(np.sqrt(early * np.mean(doubled.weights**2)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.53*y - 0.001*y**2", (8, 2)),  # As they are: constants for all units.
        ("y - y**2", (8, 2)),
        ("16.4 - y", (5, 2)),
        ("y**3", (5, 1)),
        ("sqrt(y)", (4, 1)),
        ("0.3/y", (3, 1)),
        ("y**1.38", (7, 2)),
        ("exp(y)", (7, 2)),
        ("sin(y)", (8, 2)),
        ("(3.1*y**2 + 2.2)/(0.7*y**2 + 1.9)", (13, 3)),  # One of the four is too many.
        ("2*y/(y + 0.3) + 7*y/(y + 0.9)", (15, 4)),
        ("y/(1 + y)", (9, 2)),
        ("-0.3*log(0.2*y)*y", (9, 2)),
        ("log(-3 - y**2)", (8, 2)),  # Defined nowhere.
    ],
)
def test_length_and_constants_in_arbitrary_units(text, expected):
    assert in_arbitrary_units(Expression.from_infix(text)) == expected


def test_a_round_number_is_worth_a_little():
    """1 is told in fewer words than 0.97, but it is not for free as if units were known."""
    round_number, number = "16.4 - y", "16.1 - 0.97*y"
    same = scores([_fit(round_number, 0.1), _fit(number, 0.1)], [DATA])
    assert same[1] - same[0] == pytest.approx(2.0)


def test_the_optimistic_score_is_a_bound():
    for text in ("y - y**2", "0.3*exp(y)", "2*log(y) - 1", "0.53*y - 0.001*y**2"):
        law = Expression.from_infix(text)
        assert optimistic_score(law, 0.1, 50, 1e-5) <= score(law, 0.1, 50, 1e-5)
