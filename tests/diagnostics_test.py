"""The sentences that tell how far to trust a law."""

import dataclasses

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.results import diagnostics
from nsode_jax.results.diagnostics import diagnose, explained_share
from nsode_jax.results.result import Candidate

DATA = [Trajectory(np.linspace(0.0, 4.0, 30), 2 * np.exp(-0.7 * np.linspace(0.0, 4.0, 30)))]


def _candidate(text: str, probability: float, r2: float = 0.999, errors=()) -> Candidate:
    covariance = np.diag(np.square(errors)) if len(errors) else None
    return Candidate(
        Expression.from_infix(text), (2.0,), (0.0,), r2, 0.01, 0.0,
        probability=probability, covariance=covariance,
    )  # fmt: skip


def test_a_clear_case_needs_no_words():
    best = _candidate("-0.7*y", 0.99, errors=[0.001])
    assert diagnose([best, _candidate("-0.7*y + 0.01", 0.01)], DATA) == ()


def test_rivals_that_agree_where_there_are_data():
    best = _candidate("-0.7*y", 0.6, errors=[0.001])
    (said,) = diagnose([best, _candidate("0.001 - 0.7*y", 0.4)], DATA)
    assert said.startswith("1 other form explains the data about as well")
    assert "probability of the first 60%" in said and "beyond, they may" in said


def test_a_law_of_the_same_form_is_no_rival():
    best = _candidate("0.7*y - 0.1*y**2", 0.5, errors=[0.001, 0.001, 0.0])
    twin, rival = _candidate("y - 0.2*y**2", 0.2), _candidate("-0.4*y**3", 0.1)
    assert diagnose([best, twin], DATA) == ()
    (said,) = diagnose([best, twin, rival], DATA)
    assert said.startswith("1 other form explains") and "probability of the first 70%" in said


def test_rivals_that_differ_even_there():
    best = _candidate("-0.7*y", 0.5, errors=[0.001])
    rivals = [_candidate("-0.4*y**2", 0.3), _candidate("-0.6*sqrt(y)", 0.2)]
    (said,) = diagnose([best, *rivals], DATA)
    assert said.startswith("2 other forms explain")
    assert "more data, or less noise" in said


def test_constants_that_the_data_leave_open():
    (said,) = diagnose([_candidate("0.3 - 0.7*y", 1.0, errors=[0.4, 0.01])], DATA)
    assert "0.3 ± 0.4" in said and "0.7" not in said
    (said,) = diagnose([_candidate("-0.7*y", 1.0)], DATA)
    assert "do not determine all constants" in said


def test_a_bad_fit_is_not_to_be_trusted():
    (said,) = diagnose([_candidate("0.3*y", 1.0, r2=0.42)], DATA)
    assert "only 42%" in said and "do not trust" in said


def test_a_law_that_explains_the_large_values_is_no_bad_one():
    """Counts that fall to a few: by their precision the small ones, mostly noise, count as much."""
    best = _candidate("-0.7*y", 1.0, r2=0.8, errors=[0.01])
    assert explained_share(best, DATA) > 0.999
    assert diagnose([best], DATA) == ()
    wrong = _candidate("-0.3*y", 1.0, r2=0.8)
    left = DATA[0].y - 2 * np.exp(-0.3 * DATA[0].t)
    assert explained_share(wrong, DATA) == max(0.8, 1 - np.mean(left**2) / np.var(DATA[0].y))
    assert explained_share(dataclasses.replace(best, r2=-np.inf), DATA) == -np.inf


def test_a_law_that_does_not_predict():
    best = dataclasses.replace(_candidate("-0.7*y", 1.0, errors=[0.001]), held_out_rms=0.02)
    assert diagnose([best], DATA) == ()
    (said,) = diagnose([dataclasses.replace(best, held_out_rms=0.2)], DATA)
    assert "an error 20 times its residual" in said
    (said,) = diagnose([dataclasses.replace(best, held_out_rms=1e6)], DATA)
    assert "an error more than 1000 times its residual" in said
    (said,) = diagnose([dataclasses.replace(best, held_out_rms=np.inf)], DATA)
    assert "has no solution there" in said
    # What nobody would see is not worth a word, however exact the data.
    exact = dataclasses.replace(best, residual_rms=1e-9, held_out_rms=1e-6)
    assert diagnose([exact], DATA) == ()


def test_series_that_constants_in_common_do_not_explain():
    t = np.linspace(0.0, 4.0, 12)
    rng = np.random.default_rng(0)
    values = [3.0 * np.exp(-rate * t) + 0.1 * rng.normal(size=t.size) for rate in (0.4, 0.5, 0.7)]
    best = Candidate(
        Expression.from_infix("-0.52*y"), (2.9, 3.0, 3.1), (0.0,) * 3, 0.97, 0.2, 0.0,
        probability=0.95, covariance=np.diag([1e-6]),
    )  # fmt: skip
    said = diagnose([best], [Trajectory(t, y) for y in values])
    assert any("--constants own" in sentence for sentence in said)


def test_series_that_begin_at_times_of_their_own_have_no_common_beginning():
    t = np.linspace(0.0, 4.0, 30)
    slow, others = 2 * np.exp(-0.4 * t), 2 * np.exp(-0.7 * t)
    series = [Trajectory(t, slow), Trajectory(t + 100, others), Trajectory(t + 200, others)]
    best = dataclasses.replace(
        _candidate("-0.7*y", 1.0, errors=[0.001]), y0s=(2.0,) * 3, start_times=(0.0, 100.0, 200.0),
        converged=True,
    )  # fmt: skip
    assert not any("lag phase" in said for said in diagnose([best], series))


def test_what_is_known_of_a_law_is_not_counted_as_fitted():
    """Eight constants, of which one was fitted to 30 points: 28 degrees of freedom."""
    (series,) = DATA
    known = "-0.7*y + 0.01*y**2 - 0.02*y**3 + 0.0123 + 0.0001*y**4 - 0.00001*y**5"
    law = Expression.from_infix(known)
    errors = [0.001 if c == -0.7 else 0.0 for c in law.constants]
    best = dataclasses.replace(_candidate(known, 1.0, errors=errors), goodness_of_fit=1e-9)
    measured = [series.with_errors(np.full(30, 0.002), 0.002)]
    assert "for 28 degrees of freedom" in diagnose([best], measured)[0]
    few = [Trajectory(series.t[:2], series.y[:2]).with_errors(np.full(2, 0.002), 0.002)]
    assert not any("degrees of freedom" in said for said in diagnose([best], few))


def test_what_is_known_takes_no_freedom_from_the_tests_of_residuals():
    law = "-0.7*y + 0.123"
    known = [0.0 if c == 0.123 else 0.001 for c in Expression.from_infix(law).constants]
    for errors, numbers in (((0.001, 0.001), 3), (known, 2)):
        best = _candidate(law, 1.0, errors=errors)
        linear = diagnostics._linearized(best, Dataset.of(DATA))
        assert linear is not None and linear.freedom == 30 - numbers
