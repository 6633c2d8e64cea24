"""What the covariance of a law's constants says about them, and about the law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.results.source import with_names

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
"""How probably an interval holds the true value, wherever there are intervals."""


def quantile(
    freedom: float | Float[np.ndarray, "..."] = math.inf,
) -> float | Float[np.ndarray, "..."]:
    """Standard errors on either side of a value that make its interval, by Student's t.

    Args:
      freedom: degrees of freedom of the noise that the errors come from; infinite, as for the
        normal distribution, if its size is known.
    """
    return scipy.stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(freedom, 1))


def standard_errors(
    covariance: Float[np.ndarray, "constants constants"] | None, number: int
) -> tuple[float, ...]:
    """Of so many constants: zero for those that were not fitted, NaN where nothing is known."""
    if covariance is None:
        return (math.nan,) * number
    return tuple(float(s) for s in np.sqrt(np.diag(covariance)))


def confidence_intervals(
    values: Sequence[float] | Float[np.ndarray, " constants"],
    errors: Sequence[float] | Float[np.ndarray, " constants"],
    freedom: float = math.inf,
) -> tuple[tuple[float, float], ...]:
    """(low, high) around each value that hold the true one with 95% probability."""
    half = float(quantile(freedom))
    return tuple((v - half * e, v + half * e) for v, e in zip(values, errors))


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
    errors = np.array(standard_errors(covariance, constants.size))
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


class Constant(NamedTuple):
    """A constant of a law, its name in formulas (`source.with_names`), its error and interval."""

    name: str
    value: float
    error: float
    low: float
    high: float


def constants_as_shown(
    equations: Sequence[Expression], errors: Sequence[float], freedom: float = math.inf
) -> list[list[Constant]]:
    """The constants of each equation, in the order of the formula as it is shown.

    Args:
      equations: one, or several that belong together.
      errors: standard errors of the constants, equation by equation.
      freedom: see `quantile`.
    """
    values = [constant for equation in equations for constant in equation.constants]
    intervals = confidence_intervals(values, errors, freedom)
    return [
        [Constant(name, values[place], errors[place], *intervals[place]) for place, name in shown]
        for shown in with_names(equations).shown
    ]


def constants_table(
    equations: Sequence[Expression],
    covariance: Float[np.ndarray, "constants constants"] | None,
    freedom: float = math.inf,
    left_sides: Sequence[str] = (),
) -> pd.DataFrame:
    """The constants of a law, or of several that belong together, with their uncertainty.

    Args:
      equations: right-hand sides.
      covariance: of all their constants, one equation after the other.
      freedom: see `quantile`.
      left_sides: of the equations, for a first column `equation`; without, there is none.

    Returns:
      A row per constant in the order of the formula as it is shown: c0, c1, ..., which
      `to_source` and `explore` call so too, and `exponent` for one that is written as it is
      (the 2 of a square). With `value`, `standard_error`, the 95% interval `low` to `high`,
      and whether it is `fixed`, not fitted. NaN where the data do not determine the
      constants.
    """
    import pandas as pd  # Slow to import.

    errors = standard_errors(covariance, sum(len(law.constants) for law in equations))
    by_law = constants_as_shown(equations, errors, freedom)
    constants = [constant for shown in by_law for constant in shown]
    table = pd.DataFrame(
        [constant[1:] for constant in constants],
        index=pd.Index([constant.name for constant in constants], name="constant"),
        columns=["value", "standard_error", "low", "high"],
        dtype=np.float64,
    )
    table = table.assign(fixed=table["standard_error"] == 0.0)
    if left_sides:
        of = [left for left, shown in zip(left_sides, by_law, strict=True) for _ in shown]
        table.insert(0, "equation", of)
    return table
