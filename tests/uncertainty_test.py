"""Errors of constants, and those of the law that follow from them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from nsode_jax.expressions.expression import Expression
from nsode_jax.results.uncertainty import (
    CONFIDENCE,
    confidence_intervals,
    constants_table,
    quantile,
    rate_standard_error,
    standard_errors,
)

LAW = Expression.from_infix("0.53214*y - 0.00081234*y**2")
COVARIANCE = np.diag([0.0034, 0.0000021, 0.0]) ** 2


def test_errors_and_intervals():
    assert standard_errors(COVARIANCE, 3) == pytest.approx((0.0034, 0.0000021, 0.0))
    assert np.isnan(standard_errors(None, 3)).all()
    assert confidence_intervals([0.5], [0.1]) == (pytest.approx((0.3040036, 0.6959964)),)


def test_few_observations_tell_less_of_the_noise():
    """Of 8 points and 3 fitted numbers: by the table of Student's t, 2.571 standard errors."""
    ((low, high),) = confidence_intervals([0.5], [0.1], 5)
    assert (low, high) == pytest.approx((0.5 - 0.2571, 0.5 + 0.2571), abs=1e-4)
    table = constants_table((LAW,), COVARIANCE, 5)
    assert table.loc["c0", "high"] == pytest.approx(0.53214 + 2.5706 * 0.0034, rel=1e-5)


def test_one_confidence_level_everywhere():
    assert ndtr(quantile()) - ndtr(-quantile()) == pytest.approx(CONFIDENCE)


def test_errors_of_independent_constants_add_as_squares():
    law = Expression.from_infix("0.5*y - 2*y**2")
    y = np.array([0.0, 1.0, -2.0])
    error = rate_standard_error(law, np.diag([0.1, 0.2, 0.0]) ** 2, y)
    assert_allclose(error, np.hypot(0.1 * y, 0.2 * y**2), rtol=1e-6)
    assert np.isnan(rate_standard_error(law, None, y)).all()


def test_table():
    table = constants_table((LAW,), COVARIANCE)
    assert list(table.index) == ["c0", "c1", "exponent"]
    assert_array_equal(table["value"], [0.53214, -0.00081234, 2.0])
    assert_allclose(table["standard_error"], [0.0034, 0.0000021, 0.0])
    assert_allclose(table.loc["c0", ["low", "high"]].tolist(), [0.525476, 0.538804], rtol=1e-6)
    assert list(table["fixed"]) == [False, False, True]
    unknown = constants_table((LAW,), None)
    assert unknown["standard_error"].isna().all() and not unknown["fixed"].any()
    assert constants_table((Expression(("y",)),), None).shape == (0, 5)
