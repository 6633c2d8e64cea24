"""The score: the documented formula, its floor, and what it charges for."""

import math

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.skeleton_catalogue import shipped_catalogue
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.derivative import derivative_form
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.fitting.integral import integral_form
from nsode_jax.selection.prior import Prior, log_prior
from nsode_jax.selection.ranking import rank
from nsode_jax.selection.score import (
    optimistic_score,
    posterior_probabilities,
    relative_residual,
    residual_floor,
    score,
    scores,
)

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


def test_score_is_the_documented_formula():
    law = Expression.from_infix("0.53*y - 0.001*y**2")
    # Two fitted constants, and what the prior thinks of the form: it is the logistic law.
    length_and_constants = 2 * math.log(50) + 2 * 2 - 2 * log_prior(law)
    expected = 40 * math.log(0.01**2 + 1e-6) + 10 * math.log(0.01**2 + 1e-10)
    assert score(law, 0.01, 50) == pytest.approx(expected + length_and_constants)
    few = 4 * math.log(0.01**2 + 1e-10) + 2 * math.log(4) + 2 * 2 - 2 * log_prior(law)
    assert score(law, 0.01, 4) == pytest.approx(few)


def test_weights_are_posterior_probabilities():
    assert posterior_probabilities([3.0, 3.0]) == [0.5, 0.5]
    first, second, third = posterior_probabilities([-700.0, -698.0, math.inf])
    assert first / second == pytest.approx(math.e)
    assert first + second == pytest.approx(1.0)
    assert third == 0.0


def test_floor_follows_the_rounding_of_the_data():
    y = np.array([9.6, 18.3, 29.0, 47.2, 661.8])
    rounded = Dataset.of([Trajectory(np.arange(5.0), y)])
    assert residual_floor(rounded, FORM) == pytest.approx(0.1 / math.sqrt(12) / y.std())
    assert residual_floor(DATA, FORM) == 1e-5


def test_a_law_that_ends_just_beyond_the_data_costs_more():
    """The data lie between 0.3 and 3.5; the root of 3.7 - y ends at once."""
    edge, pole, tame = "0.2*sqrt(3.7 - y)", "0.2/(3.7 - y)", "0.2*exp(3.7 - y)"
    assert _order(_fit(edge, 0.1), _fit(tame, 0.1))[0] == tame
    assert _order(_fit(pole, 0.1), _fit("0.2/(93.7 - y)", 0.1))[0] == "0.2/(93.7 - y)"
    # Where y is positive, the root and the reciprocal of y itself are as good as any.
    plain, root = _fit("0.2*y", 0.1), _fit("0.2*sqrt(y)", 0.1)
    first, second = scores([plain, root], DATA, FORM)
    forms = log_prior(plain.expression) - log_prior(root.expression)
    assert second - first == pytest.approx(2 * forms)


def test_a_round_number_is_worth_a_little():
    """1 is told in fewer words than 0.97, but it is not for free as if units were known."""
    round_number, number = "16.4 - y", "16.1 - 0.97*y"
    same = scores([_fit(round_number, 0.1), _fit(number, 0.1)], DATA, FORM)
    assert same[1] - same[0] == pytest.approx(2.0)


def test_the_optimistic_score_is_seldom_worse_than_that_of_a_simple_law():
    """A sample of all skeletons of up to six symbols, without the named ones."""
    rng = np.random.default_rng(0)
    better = []
    for key in rng.choice(shipped_catalogue().skeletons_up_to(6), 400, replace=False):
        skeleton = Skeleton.from_key(str(key))
        law = skeleton.with_constants(np.exp(0.7 * rng.standard_normal(skeleton.num_constants)))
        if not Prior.load().is_named(law):
            better.append(optimistic_score(law, 0.1, 50, 1e-5) <= score(law, 0.1, 50, 1e-5))
    assert np.mean(better) > 0.95


def test_named_laws_are_worth_more_than_their_tokens():
    for text in ("0.53*y - 0.001*y**2", "exp(0.4*y) - 0.3*y"):
        law = Expression.from_infix(text)
        assert optimistic_score(law, 0.1, 50, 1e-5) > score(law, 0.1, 50, 1e-5)


def test_an_exact_form_judges_by_the_rates():
    """Unless the solution tells worse of a law: then that counts, a hundredth of it."""
    t = np.linspace(0.0, 4.0, 200)
    data = Dataset.of([Trajectory(t, 0.3 + np.exp(-t) * math.pi)])
    form = derivative_form(data)
    assert form is not None and form.exact
    assert residual_floor(data, form) == form.floor < 1e-5
    fit = _fit("0.3 - y", 0.0)
    assert relative_residual(fit, data, form) == form.residual(fit.expression) < form.floor
    poor = _fit("0.3 - y", 0.5)
    assert relative_residual(poor, data, form) == pytest.approx(0.5 * SPREAD / data.spread / 100)
    assert relative_residual(_fit("0.3 - y", math.inf), data, form) == math.inf
    assert relative_residual(_fit("0.3 - y", 1e-8), DATA, FORM) == pytest.approx(1e-8)


def test_a_law_that_diverges_has_no_score():
    assert score(Expression.from_infix("y"), math.inf, 50) == math.inf
    assert scores([_fit("y**2", math.inf)], DATA, FORM) == [math.inf]
