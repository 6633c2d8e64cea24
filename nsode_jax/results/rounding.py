"""The printed law: its constants in as few digits as still give the fitted solution.

One constant after the other, rounding to the second digit of the standard error would
do. But errors of several constants may cancel in the fit and not in their rounding:
`8.38*y - 0.001955*y**2 - 8980` can be far from what fits. So digits are added to all
of them until the solution stays where it was; those of systems until they stay within
their joint errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.display import decimal_exponent
from nsode_jax.expressions.expression import Expression

SHARE = 0.1
"""Of the residual, by which the printed law may miss the fitted one at any time."""

NEGLIGIBLE = 1e-5
"""Residuals below this share of the spread of the solution count as that share."""

SEEN = 1e-3
"""Share of the spread of the data of a system that a solution may be off unseen."""

FEWEST_DIGITS, USUAL_DIGITS, MOST_DIGITS, UNCERTAIN_DIGITS = 2, 6, 12, 4
"""Significant digits of a constant: at least; by its error alone; at most; and without
a known error."""

_LEAST_NOISE = 1e-8
"""Share of the spread that R2, a double, cannot tell from none."""

_TIMES = 65  # At so many the solutions are compared, per trajectory.
_TOLERANCE = 1e-9
_MAX_STEPS = 2000


def rounded_constants(
    expression: Expression,
    errors: Sequence[float],
    y0s: Sequence[float],
    spans: Sequence[float],
    residual: float,
) -> tuple[float, ...]:
    """The constants of a fitted law, rounded together.

    Args:
      expression: f.
      errors: standard error of each constant; 0 if it was not fitted, NaN if unknown.
      y0s: fitted first value, per trajectory.
      spans: time from the first to the last observation, per trajectory. Without any,
        each constant is rounded by its own error.
      residual: root mean square of the fit's residuals, in units of y.

    Returns:
      Each constant to the second digit of its standard error, in two to six digits, or
      in up to twelve where the solutions of the law would else move by more than a
      tenth of the residual at some time, or of 1e-5 of their spread.
    """
    constants, skeleton = expression.constants, expression.skeleton
    fewest = [_digits(constant, error) for constant, error in zip(constants, errors, strict=True)]

    def rounded(more: int) -> tuple[float, ...]:
        return tuple(
            float(f"{constant:.{min(digits + more, MOST_DIGITS)}g}")
            for constant, digits in zip(constants, fewest, strict=True)
        )

    most = MOST_DIGITS - min(fewest, default=MOST_DIGITS)
    if not spans or not most or not math.isfinite(residual) or rounded(0) == constants:
        return rounded(0)
    fitted = _solutions(expression, y0s, spans)
    if not np.isfinite(fitted).all():
        return rounded(0)
    least = max(NEGLIGIBLE * float(fitted.std()), 1e-12 * float(np.abs(fitted).max()))
    tolerance = SHARE * max(residual, least)
    more = 0
    while more < most:
        printed = _solutions(skeleton.with_constants(rounded(more)), y0s, spans)
        miss = float(np.abs(printed - fitted).max())
        if miss <= tolerance:
            break
        # A digit more brings the solution ten times nearer.
        more += max(1, math.floor(math.log10(miss / tolerance))) if math.isfinite(miss) else 1
    return rounded(min(more, most))


def digits_together(
    constants: Sequence[float],
    covariance: Float[np.ndarray, "constants constants"] | None,
    noise: float,
) -> int:
    """Significant digits in which the constants of a system give what they were fitted to.

    Rounded to so many, all of them together move by less than their errors: where errors
    of several cancel, so do what the rounding of each one changes, or they have more digits.

    Args:
      constants: of all laws.
      covariance: of these; None where it is not known.
      noise: what the fit leaves over, as a share of the spread of the data; less than
        `SEEN` counts as that.

    Returns:
      At least `UNCERTAIN_DIGITS`, at most `MOST_DIGITS`.
    """
    if covariance is None or not np.isfinite(covariance).all():
        return UNCERTAIN_DIGITS
    errors = np.sqrt(np.diag(covariance))
    fitted = errors > 0.0
    errors = errors[fitted]
    correlation = covariance[np.ix_(fitted, fitted)] / np.outer(errors, errors)
    information = np.linalg.pinv(correlation, rcond=1e-12, hermitian=True)
    values, scale = np.array(constants)[fitted], errors * max(1.0, SEEN / (noise or _LEAST_NOISE))
    for digits in range(UNCERTAIN_DIGITS, MOST_DIGITS):
        moved = (np.array([float(f"{value:.{digits}g}") for value in values]) - values) / scale
        if moved @ information @ moved <= 1.0:
            return digits
    return MOST_DIGITS


def _solutions(expression: Expression, y0s: Sequence[float], spans: Sequence[float]) -> np.ndarray:
    """Solutions over each span, shape [trajectory, time]; a row of NaN where there is none."""
    program = Program.from_expression(expression)
    rows = [
        dop853.integrate(
            program,
            np.array([y0]),
            np.linspace(0.0, span, _TIMES),
            rtol=_TOLERANCE,
            atol=_TOLERANCE * (abs(y0) or 1.0),
            max_steps=_MAX_STEPS,
        ).y[0]
        for y0, span in zip(y0s, spans, strict=True)
    ]
    return np.array(rows)


def _digits(constant: float, error: float) -> int:
    """Significant digits of a constant up to the second digit of its standard error."""
    if math.isnan(error):
        return UNCERTAIN_DIGITS
    if error == 0.0 or constant == 0.0:
        return USUAL_DIGITS
    if math.isinf(error):
        return FEWEST_DIGITS
    first, last = decimal_exponent(constant, 17), decimal_exponent(error, 2) - 1
    return min(max(first - last + 1, FEWEST_DIGITS), USUAL_DIGITS)
