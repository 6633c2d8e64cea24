"""What is said against a form, and against constants that series were made to share."""

import dataclasses

import numpy as np
import pytest
from solved import logistic

from nsode_jax.discovery import FormDiscovery, discover
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.fitting.own_constants import fit_own_constants
from nsode_jax.observed.dataset import Dataset
from nsode_jax.reporting.report_own_constants import what_to_be_wary_of
from nsode_jax.selection.named_formula import NamedFormula

T = np.linspace(0.0, 10.0, 40)
LAW = "r*y*(1 - y/K)"
NOT_RANDOM = "The residuals are not random: they change sign"


def growth(capacities, noise=0.003, seed=5) -> list[np.ndarray]:
    """Logistic series of one rate."""
    rng = np.random.default_rng(seed)
    return [logistic(T, 0.8, k, 0.1) + noise * rng.normal(size=T.size) for k in capacities]


def gompertz() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    constants = [(0.6, 1.2), (0.9, 1.5), (0.7, 0.9)]
    exact = [k * np.exp(np.log(0.1 / k) * np.exp(-r * T)) for r, k in constants]
    return [y + 0.004 * rng.normal(size=T.size) for y in exact]


def is_said(found: FormDiscovery, what: str) -> bool:
    """In the text, and in the report too or in neither."""
    in_report = any(what in one for one in what_to_be_wary_of(found))
    assert in_report == (what in str(found)) == any(what in one for one in found.remarks)
    return in_report


# --- the residuals -----------------------------------------------------------------


def test_a_form_that_misses_something_in_all_series_is_contradicted():
    found = discover(T, gompertz(), constants="own", law=LAW)
    assert found.best.r2.min() > 0.996
    assert is_said(found, f"{NOT_RANDOM} 11 times where chance would give about 60")
    assert is_said(found, "the form misses something systematic, or the noise is correlated")
    right = discover(T, gompertz(), constants="own", law="r*y*log(K/y)")
    assert right.remarks == ()


def test_so_it_is_by_one_series():
    found = discover(T, gompertz()[0], constants="own", law=LAW)
    assert is_said(found, NOT_RANDOM)
    within = discover(T, gompertz()[0], constants="own", law=LAW, bounds={"K": (0, 1)})
    assert is_said(within, "the form or a bound misses something systematic")


def test_values_count_by_their_errors_and_series_by_their_noise():
    """The errors of large values hide what is missed of small ones unless they are weighted."""
    rng = np.random.default_rng(0)
    t, errors = np.linspace(0.0, 8.0, 80), np.where(np.arange(80) < 8, 0.3, 0.003)
    missed = 0.006 * np.sin(t) + errors * rng.normal(size=80)
    values = [10 * np.exp(-k * t) + missed for k in (0.5, 0.6)]
    found = discover(t, values, constants="own", law="-k*y", sigma=[errors, errors])
    assert is_said(found, NOT_RANDOM)
    noise = [3 * np.exp(-0.5 * t) + 0.5 * rng.normal(size=80), 3 * np.exp(-0.5 * t) + missed]
    assert is_said(discover(t, noise, constants="own", law="-k*y"), NOT_RANDOM)


def test_noise_and_numerical_errors_are_nothing_to_be_said():
    said = [discover(T, growth((1.0, 1.5), seed=seed), constants="own", law=LAW).remarks
            for seed in range(10)]  # fmt: skip
    assert sum(map(bool, said)) <= 1
    assert discover(T, growth((1.0, 1.5), noise=0.0), constants="own", law=LAW).remarks == ()


def test_a_series_without_a_solution_tells_no_pattern():
    found = discover(T, growth((1.0, 1.2)), constants="own", law=LAW)
    missing = dataclasses.replace(
        found.best,
        constants=np.array([[np.nan] * 2, found.best.constants[1]]),
        residual_rms=np.array([np.inf, 0.003]),
        r2=np.array([-np.inf, found.best.r2[1]]),
    )
    assert not is_said(dataclasses.replace(found, candidates=(missing,)), NOT_RANDOM)


# --- what is shared ----------------------------------------------------------------


@pytest.mark.parametrize("sigma", [None, 0.003])
def test_one_constant_that_the_series_contradict(sigma):
    options = {"constants": "own", "law": LAW, "sigma": sigma}
    found = discover(T, growth((1.0, 1.05, 1.1)), shared=["K"], **options)
    assert found.best.shared_p_value < 1e-6
    assert is_said(found, "The series contradict one K (p < 0.0001): it is not the same in all")
    assert is_said(found, "the form or one K for all misses something systematic")
    equal = discover(T, growth((1.05, 1.05, 1.05)), shared=["K"], **options)
    assert equal.best.shared_p_value > 0.01 and not is_said(equal, "The series contradict")
    rate = discover(T, growth((1.0, 1.05, 1.1)), shared=["r"], **options)
    assert rate.best.shared_p_value > 0.01 and rate.remarks == ()


def test_two_constants_and_none():
    values = growth((1.0, 1.05, 1.1))
    both = discover(T, values, constants="own", law=LAW, shared=["r", "K"])
    assert is_said(both, "The series contradict one r and one K (p < 0.0001): they are not")
    free = discover(T, values, constants="own", law=LAW)
    assert np.isnan(free.best.shared_p_value) and not is_said(free, "contradict")


def test_what_sharing_takes_nothing_from_is_contradicted_by_nothing():
    """a*b is of each series' own, whatever a is; b alone shared with a is not."""
    values = [np.exp(-k * T) + 0.003 * np.random.default_rng(0).normal(size=40) for k in (0.3, 0.5)]
    law = {"constants": "own", "law": "-a*b*y"}
    assert np.isnan(discover(T, values, shared=["a"], **law).best.shared_p_value)
    assert discover(T, values, shared=["a", "b"], **law).best.shared_p_value < 1e-6


def test_series_that_are_exact_are_not_contradicted_by_rounding():
    found = discover(T, growth((1.2,) * 3, noise=0.0), constants="own", law=LAW, shared="K")
    assert found.best.shared_p_value > 0.01 and found.remarks == ()
    differing = growth((1.2, 1.21, 1.2), noise=0.0)
    found = discover(T, differing, constants="own", law=LAW, shared="K")
    assert is_said(found, "The series contradict one K")


@pytest.mark.parametrize("number, points, unequal", [(2, 6, 0.0), (8, 5, 0.7), (4, 25, 0.7)])
def test_equal_constants_are_contradicted_as_seldom_as_stated(number, points, unequal):
    rng, t, law = np.random.default_rng(1), np.linspace(0.0, 2.0, points), "-k*y"
    found = []
    for _ in range(60):
        noise = 0.3 * np.exp(unequal * rng.normal(size=number))
        values = [10 * np.exp(-t) + size * rng.normal(size=points) for size in noise]
        fit = fit_own_constants(
            [Dataset.of([Trajectory(t, y)]) for y in values],
            NamedFormula.parse(law).with_values,
            np.ones((number, 1)), [10.0] * number, np.array([True]),
        )  # fmt: skip
        found.append(fit.shared_p_value)
    # Of 60 below 1%: five or more less than once in a thousand.
    assert np.mean(np.less(found, 0.01)) <= 4 / 60
    assert 0.25 < np.median(found) < 0.75
