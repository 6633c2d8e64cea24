"""Solutions of a law: anywhere they exist, and from times of any size."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

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
