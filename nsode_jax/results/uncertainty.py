"""What the covariance of a law's constants says about them, and about the law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
"""How probably an interval holds the true value, wherever there are intervals."""
QUANTILE = 1.959963984540054
"""Of the normal distribution: standard errors on either side of a value that make its interval."""


def standard_errors(
    expression: Expression, covariance: Float[np.ndarray, "constants constants"] | None
) -> tuple[float, ...]:
    """Of each constant: zero for those that were not fitted, NaN where nothing is known."""
    if covariance is None:
        return (math.nan,) * len(expression.constants)
    return tuple(float(s) for s in np.sqrt(np.diag(covariance)))


def confidence_intervals(
    values: Sequence[float] | Float[np.ndarray, " constants"],
    errors: Sequence[float] | Float[np.ndarray, " constants"],
) -> tuple[tuple[float, float], ...]:
    """(low, high) around each value that hold the true one with 95% probability."""
    return tuple((v - QUANTILE * e, v + QUANTILE * e) for v, e in zip(values, errors))


def rate_standard_error(
    expression: Expression,
    covariance: Float[np.ndarray, "constants constants"] | None,
    y: Float[np.ndarray, "..."],
) -> Float[np.ndarray, "..."]:
    """Standard error of f at each y that follows from those of the constants.

    Returns:
      Same shape as y; NaN where f or the errors are undefined.
    """
    y = np.asarray(y, np.float64)
    if covariance is None:
        return np.full(y.shape, np.nan)
    constants = np.array(expression.constants)
    errors = np.array(standard_errors(expression, covariance))
    gradient = np.zeros((constants.size, *y.shape))
    with np.errstate(all="ignore"):
        for i in np.flatnonzero(errors > 0):
            # A step within the error: the band shows what that error does.
            step = min(1e-4 * abs(constants[i]), 0.01 * errors[i]) or 1e-8
            above, below = (constants + side * step * (np.arange(constants.size) == i)
                            for side in (1.0, -1.0))  # fmt: skip
            skeleton = expression.skeleton
            difference = skeleton.with_constants(above).evaluate(y) - skeleton.with_constants(
                below
            ).evaluate(y)
            gradient[i] = difference / (2 * step)
        variance = np.einsum("i...,ij,j...->...", gradient, covariance, gradient)
        return np.sqrt(np.maximum(variance, 0.0))


def constants_table(
    expression: Expression, covariance: Float[np.ndarray, "constants constants"] | None
) -> pd.DataFrame:
    """The constants of a law with their uncertainty.

    Returns:
      A row per constant, c0, c1, ... in the order of `expression.constants`, with
      `value`, `standard_error`, the 95% interval `low` to `high`, and whether it is
      `fixed`, not fitted (the 2 of a square). NaN where the data do not determine
      the constants.
    """
    import pandas as pd  # Slow to import.

    values = np.array(expression.constants, np.float64)
    errors = np.array(standard_errors(expression, covariance), np.float64)
    intervals = np.array(confidence_intervals(values, errors), np.float64).reshape(-1, 2)
    return pd.DataFrame(
        {
            "value": values,
            "standard_error": errors,
            "low": intervals[:, 0],
            "high": intervals[:, 1],
            "fixed": errors == 0.0,
        },
        index=pd.Index([f"c{i}" for i in range(values.size)], name="constant"),
    )
