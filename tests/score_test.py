"""The score: the documented formula, its floor, and what it charges for."""

import dataclasses
import math

import numpy as np
import pytest
from judged import DATA, FORM, ORIGIN, SPREAD, fit_of, order_of
from scipy.signal import lfilter

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.skeleton_catalogue import shipped_catalogue
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.trajectory_fitting import fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.selection.belief import log_prior
from nsode_jax.selection.probabilities import UNSEEN, posterior_probabilities, unseen_probability
from nsode_jax.selection.score import (
    cancellation,
    draft_score,
    evidence,
    independent_share,
    information,
    misfit,
    relative_residual,
    residual_floor,
    score,
    scores,
)


def test_weights_are_posterior_probabilities():
    assert posterior_probabilities([3.0, 3.0]) == [0.5, 0.5]
    first, second, third = posterior_probabilities([-700.0, -698.0, math.inf])
    assert first / second == pytest.approx(math.e)
    assert first + second == pytest.approx(1.0)
    assert third == 0.0


def test_the_right_law_may_be_unseen_in_noise():
    assert unseen_probability(0.1) == pytest.approx(UNSEEN, rel=1e-3)
    assert unseen_probability(0.1, contradicted=True) == pytest.approx(0.5, rel=1e-3)
    assert unseen_probability(1e-5, contradicted=True) < 1e-4
    assert sum(posterior_probabilities([1.0, 2.0], 0.1)) == pytest.approx(0.9)


def test_score_is_the_documented_formula():
    law, n = Expression.from_infix("0.53*y - 0.001*y**2"), 50
    # Two fitted constants, and what the prior thinks of the form: it is the logistic law.
    variance = (0.01**2 + 1e-10) * n / (n - 1 - 2)
    constants = sum(math.log1p(1 / (variance / (9 * g) + 1 / n)) for g in information(law, FORM))
    misfit = 40 * math.log(0.01**2 + 1e-6) + 10 * math.log(0.01**2 + 1e-10)
    terms = constants + cancellation(law, FORM) + 2 * 2
    expected = 49 / 50 * misfit + terms - 2 * log_prior(law)
    assert len(information(law, FORM)) == 2
    assert score(law, 0.01, FORM, 1e-5) == pytest.approx(expected)


def test_terms_that_nearly_cancel_cost_what_they_are_larger_than_the_law():
    three_less_two = Expression.from_infix("3*y - 2*y")
    assert cancellation(three_less_two, FORM) == pytest.approx(
        (math.log(3) ** 2 + math.log(2) ** 2) / 9
    )
    for one in ("0.53*y", "0.2*y*log(700/y)", "0.3*y + 0.1*y**2"):
        assert cancellation(Expression.from_infix(one), FORM) == 0.0
    logistic = cancellation(Expression.from_infix("0.53*y - 0.001*y**2"), FORM)
    disguised = cancellation(Expression.from_infix("500*y - 498.7*y**1.0004"), FORM)
    assert logistic < 0.1 < 6.0 < disguised


def test_near_equilibrium_all_laws_cancel():
    near = dataclasses.replace(FORM, nodes=np.linspace(0.53, 0.55, FORM.nodes.size))
    assert cancellation(Expression.from_infix("0.32 - 0.6*y"), near) < 0.2
    assert cancellation(Expression.from_infix("500*y - 500*y**1.0004"), near) > 8.0


def test_what_the_data_determine_costs_as_in_the_bic():
    """And what they do not determine costs less: the saturation of y/(y + 1000) near y = 1."""
    law = Expression.from_infix("0.31 - 1.1*y")
    known = evidence(law, 1e-3, FORM) - 49 / 50 * float(misfit(1e-3, 50, FORM.floor))
    assert known == pytest.approx(2 * math.log(51) + 2 * 2, abs=0.1)
    saturated, linear = "-700.3*y/(y + 1003.7)", "-0.7*y"
    costs = [
        evidence(Expression.from_infix(text), 0.02, FORM)
        - 49 / 50 * float(misfit(0.02, 50, FORM.floor))
        for text in (saturated, linear)
    ]
    assert costs[0] - costs[1] < 2 + 0.5  # The 2 of a number, and next to nothing.


def test_no_fit_gets_under_the_score_of_an_exact_one():
    for text in ("0.53*y - 0.001*y**2", "-1.1*y**1.4", "exp(-0.7*y) - 0.3"):
        law = Expression.from_infix(text)
        values = [score(law, rms, FORM) for rms in (0.0, 1e-5, 1e-3, 0.1, 1.0)]
        assert values == sorted(values)


def test_a_fitted_exponent_is_expected_near_one():
    near, far = (Expression.from_infix(f"-0.2*y**{e}") for e in (1.38, 19.4))
    assert log_prior(near) == log_prior(far)
    gap = evidence(far, 0.1, FORM) - evidence(near, 0.1, FORM)
    assert gap > math.log(19.4) ** 2 - math.log(1.38) ** 2 - 5


def test_floor_follows_the_rounding_of_the_data():
    y = np.array([9.6, 18.3, 29.0, 47.2, 661.8])
    rounded = Dataset.of([Trajectory(np.arange(5.0), y)])
    assert residual_floor(rounded, FORM) == pytest.approx(0.1 / math.sqrt(12) / y.std())
    assert residual_floor(DATA, FORM) == 1e-5


def test_a_law_that_ends_just_beyond_the_data_costs_more():
    """The data lie between 0.3 and 3.5; the root of 3.7 - y ends at once."""
    edge, pole, tame = "0.2*sqrt(3.7 - y)", "0.2/(3.7 - y)", "0.2*exp(3.7 - y)"
    assert order_of(fit_of(edge, 0.1), fit_of(tame, 0.1))[0] == tame
    assert order_of(fit_of(pole, 0.1), fit_of("0.2/(93.7 - y)", 0.1))[0] == "0.2/(93.7 - y)"
    # Where y is positive, the root and the reciprocal of y itself are as good as any.
    plain, root = fit_of("0.2*y", 0.1), fit_of("0.2*sqrt(y)", 0.1)
    first, second = scores([plain, root], DATA, FORM)
    forms = log_prior(plain.expression) - log_prior(root.expression)
    assert second - first == pytest.approx(2 * forms, abs=0.01)


def test_a_round_number_is_worth_a_little():
    """1 is told in fewer words than 0.97, but it is not for free as if units were known."""
    round_number, number = "16.4 - y", "16.1 - 0.97*y"
    same = scores([fit_of(round_number, 1e-6), fit_of(number, 1e-6)], DATA, FORM)
    assert same[1] - same[0] == pytest.approx(2.0, abs=0.01)


def test_in_noise_a_round_number_is_worth_nothing():
    """Which numbers are round depends on units, and one that is 1 within its error has an error."""
    for round_number, number in (
        ("16.4 - y", "16.1 - 0.97*y"),
        ("y - 0.1*y**2", "0.97*y - 0.097*y**2"),
        ("y/(1 + y)", "0.97*y/(1.03 + y)"),
    ):
        first, second = scores([fit_of(round_number, 0.1), fit_of(number, 0.1)], DATA, FORM)
        assert second == pytest.approx(first, abs=0.3)
    whole, broken = "0.3*y - 0.001*y**2", "0.3*y - 0.001*y**2.03"
    first, second = scores([fit_of(whole, 0.1), fit_of(broken, 0.1)], DATA, FORM)
    assert second > first + 2  # Exponents are the same in all units.


def test_drafts_are_priced_like_laws_without_a_name():
    """The operators of a canonical form cost the same, and names only make a law cheaper."""
    rng = np.random.default_rng(0)
    dearer = []
    for key in rng.choice(shipped_catalogue().skeletons_up_to(6), 200, replace=False):
        skeleton = Skeleton.from_key(str(key))
        law = skeleton.with_constants(np.exp(0.7 * rng.standard_normal(skeleton.num_constants)))
        if math.isfinite(log_prior(law)):
            dearer.append(draft_score(law, 0.1, FORM) - score(law, 0.1, FORM))
    assert abs(np.median(dearer)) < 5
    named = Expression.from_infix("0.53*y - 0.001*y**2")
    assert draft_score(named, 0.1, FORM) > score(named, 0.1, FORM)


def test_an_exact_form_judges_by_the_rates():
    """Unless the solution tells worse of a law: then that counts, a hundredth of it."""
    t = np.linspace(0.0, 4.0, 200)
    data = Dataset.of([Trajectory(t, 0.3 + np.exp(-t) * math.pi)])
    form = derivative_form(data)
    assert form is not None and form.exact
    assert residual_floor(data, form) == form.floor < 1e-5
    fit = fit_of("0.3 - y", 0.0)
    assert relative_residual(fit, data, form) == form.residual(fit.expression) < form.floor
    poor = fit_of("0.3 - y", 0.5)
    assert relative_residual(poor, data, form) == pytest.approx(0.5 * SPREAD / data.spread / 100)
    assert relative_residual(fit_of("0.3 - y", math.inf), data, form) == math.inf
    assert relative_residual(fit_of("0.3 - y", 1e-8), DATA, FORM) == pytest.approx(1e-8)


def _logistic(noise: np.ndarray) -> tuple[Dataset, Fit]:
    """A logistic curve with noise, and the fit of its law."""
    t = np.linspace(0.0, 10.0, noise.size)
    data = Dataset.of([Trajectory(t, 3.0 / (1 + 20 * np.exp(-t)) + 0.05 * noise)])
    return data, fit_trajectories(data, Expression.from_infix("1.01*y - 0.34*y**2"), [0.14], ORIGIN)


def test_residuals_that_are_alike_count_as_fewer():
    shares = {0.0: [], 0.8: []}
    for alike, found in shares.items():
        for seed in range(12):
            steps = np.random.default_rng(seed).standard_normal(200)
            noise = lfilter([math.sqrt(1 - alike**2)], [1, -alike], steps)
            data, fit = _logistic(noise)
            found.append(independent_share([fit], data))
    assert sum(share < 1 for share in shares[0.0]) <= 1
    assert np.mean(shares[0.8]) == pytest.approx((1 - 0.8) / (1 + 0.8), abs=0.06)
    # A law that leaves no pattern tells that the data are independent.
    data, fit = _logistic(np.random.default_rng(0).standard_normal(200))
    poor = fit_trajectories(data, Expression.from_infix("0.31"), [0.1], ORIGIN)
    assert independent_share([poor], data) < 0.2
    assert independent_share([poor, fit], data) == 1.0


def test_fewer_observations_say_less():
    law, other = (Expression.from_infix(text) for text in ("0.31 - 1.1*y", "-0.9*y**2"))
    gaps = [score(other, 0.1, FORM, None, share) - score(law, 0.05, FORM, None, share)
            for share in (1.0, 0.2)]  # fmt: skip
    assert gaps[0] > gaps[1] + 40


def test_a_law_that_diverges_has_no_score():
    assert score(Expression.from_infix("y"), math.inf, FORM) == math.inf
    assert scores([fit_of("y**2", math.inf)], DATA, FORM) == [math.inf]
