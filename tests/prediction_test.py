"""Solutions of a law: anywhere they exist, and from times of any size."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from nsode_jax.dynamics.vectors import times_as_counted
from nsode_jax.expressions.expression import Expression
from nsode_jax.results.prediction import predict, solution

DECAY, BLOW_UP = Expression.from_infix("-0.5*y"), Expression.from_infix("y**2")
UNIX = 1.7e9
T = UNIX + np.linspace(0.0, 10.0, 11)


@pytest.mark.parametrize("start", [0.0, UNIX, -UNIX, 1e12])
def test_times_are_counted_from_the_start(start):
    elapsed = np.arange(0.0, 8.0, 0.5)
    exact = 3.0 * np.exp(-0.5 * elapsed)
    assert_allclose(predict(DECAY, 3.0, start + elapsed), exact, rtol=1e-7)
    assert_allclose(predict(DECAY, 3.0, start + elapsed[3:], start), exact[3:], rtol=1e-7)
    assert_allclose(solution(DECAY, start, 3.0, start + elapsed[::-1]), exact[::-1], rtol=1e-7)
    assert_allclose(solution(DECAY, start, 3.0, [start - 2.0]), [3.0 * math.e], rtol=1e-7)


def test_nan_from_where_it_ceases_to_exist():
    values = predict(BLOW_UP, 1.0, UNIX + np.array([0.0, 0.5, 0.75, 1.5, 2.0]))
    assert_allclose(values, [1.0, 2.0, 4.0, math.nan, math.nan], rtol=1e-6)


def test_times_that_cannot_be():
    with pytest.raises(ValueError, match="increasing"):
        predict(DECAY, 1.0, [1.0, 1.0])
    with pytest.raises(ValueError, match="finite"):
        predict(DECAY, 1.0, [math.nan])
    with pytest.raises(ValueError, match="1700000000 lies before .* start at 1700000005"):
        predict(DECAY, 1.0, T, T[5])
    with pytest.raises(ValueError, match="finite"):
        solution(DECAY, 0.0, 1.0, [math.inf])


@pytest.mark.parametrize(
    "times",
    [
        np.array(["2024-03-01", "2024-03-02"], "datetime64[D]"),
        pd.date_range("2024-03-01", periods=2, tz="UTC"),
        [datetime.datetime(2024, 3, 1), datetime.datetime(2024, 3, 2)],
        np.array([1, 2], "timedelta64[h]"),
    ],
)
def test_dates_are_not_taken_for_numbers(times):
    """As integers they would be nanoseconds, or days since 1970."""
    with pytest.raises(ValueError, match="The times are (dates|durations); give numbers"):
        times_as_counted(times)
    assert times_as_counted([1, 2.5]).tolist() == [1.0, 2.5] and times_as_counted(3).tolist() == [3]


@pytest.mark.parametrize("text", ["-y", "-1e-3*y**1.5", "0.4*y*log(y/1e13)"])
@pytest.mark.parametrize("end", [28.0, 200.0])
def test_what_falls_over_many_decades_does_not_stick(text, end):
    """It is solved as exactly as its last values ask for, with times in between or without."""
    law, t = Expression.from_infix(text), np.array([0.0, 1.0, 20.0, end])
    exact = {
        "-y": 1e12 * np.exp(-t),
        "-1e-3*y**1.5": (1e-6 + 5e-4 * t) ** -2.0,
        "0.4*y*log(y/1e13)": 1e13 * np.exp(np.log(0.1) * np.exp(0.4 * t)),
    }[text]
    for places in ([0, 1, 2, 3], [0, 2], [0, 3]):
        found, wanted = predict(law, 1e12, t[places]), exact[places]
        assert_allclose(found[wanted > 1e-130], wanted[wanted > 1e-130], rtol=1e-6)


@pytest.mark.parametrize(("text", "rest"), [("-1 - y", -1.0), ("-sqrt(y)", 0.0)])
def test_what_falls_past_0_or_rests_there_has_its_end(text, rest):
    values = predict(Expression.from_infix(text), 1e12, [0.0, 1.0, 3e6])
    assert values[-1] == pytest.approx(rest, abs=1e-6)
