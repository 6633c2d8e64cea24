"""Numbers as people would write them; formulas in expression_test."""

import numpy as np
import pytest

from nsode_jax.expressions.display import value_with_error


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.54213, 0.0034, "0.5421 ± 0.0034"),
        (0.5, 0.0034, "0.5000 ± 0.0034"),
        (-663.2, 1.74, "-663.2 ± 1.7"),
        (12345.6, 343.0, "12350 ± 340"),
        (0.1, 3.0, "0.1 ± 3.0"),
        (-4.98e-11, 1.3e-12, "(-4.98 ± 0.13)e-11"),
        (1.234e9, 9.96e6, "(1.234 ± 0.010)e+09"),
        (0.0, 2e-7, "(0.0 ± 2.0)e-07"),
        (-0.5, 3.4e-12, "-0.5000000000000 ± 0.0000000000034"),
        (1234567.0, 0.5, "1234567.00 ± 0.50"),
        (30.0000012, 4e-8, "30.000001200 ± 0.000000040"),
        (2.0, 0.0, "2"),
        (1.5707963, 2e-19, "1.5708"),
        (1.23456, np.nan, "1.235 ± unknown"),
        (1969767.0, 16728.0, "1970000 ± 17000"),
        (-66312.4, 1523.0, "-66300 ± 1500"),
        (1.5, np.inf, "1.5 ± inf"),
    ],
)
def test_values_with_errors(value, error, text):
    assert value_with_error(value, error) == text
