"""The order of candidate laws: how well they fit against how complex they are.

The score of a law, lower is better, is twice a description length in nats, up
to a constant that all laws share:

    n log(r^2 + F^2) + m log((r^2 + f^2) / (r^2 + F^2)) + k log(n) + 2 j - 2 log(p)

r is the residual of the *integrated* solution relative to the spread of the data, n
the number of observations, m the smaller of n and 10. The first term and k log(n),
with k constants, are the BIC. It takes observations for independent witnesses, which
holds for noise only: what is left below F = 1e-3 is systematic (a solver's tolerance,
a sensor's drift, a curve that nearly is the right one), smooth over the whole series,
and counts as m observations. Otherwise long formulas would be bought with digits
that nobody measured. Below f, the precision of the data (`residual_floor`), nothing
counts. p is the prior probability of the form of the law (`prior`), to which `EDGE_COST`
adds. Where many laws are to be screened, a flat price of tokens stands in for it
(`optimistic_score`).

Constants and the form are those of the law in arbitrary units (`in_arbitrary_units`).
In noise 16.4 - y is hardly worse than 16.1 - 0.97*y, but that the factor should be 1 in
the units at hand would be a miracle, not simplicity. Only j counts numbers as they
stand, those that are not plain (`is_plain`): a round number is told in fewer words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.regression import Regression
from nsode_jax.selection.complexity import in_arbitrary_units, weighted_complexity
from nsode_jax.selection.prior import log_prior

TOKEN_COST = 3.0
"""Score of one token of a formula where the prior takes too long: twice 1.5 nats."""

NUMBER_COST = 2.0
"""Score of a constant that is no plain number."""

RELATIVE_FLOOR = 1e-5
"""Residuals below this share of the data's spread count as equally small."""

SYSTEMATIC = 1e-3
"""Residuals below this share are not independent from one observation to the next."""

_EFFECTIVE_SAMPLE_SIZE = 10
"""As how many independent observations a series counts there."""

EDGE_COST = 9.0
"""Score of a law that ends, or has a pole, just beyond the data. Few real laws do, but
the square root or the reciprocal of a shifted y bends to fit much."""


_REACH = 100.0
"""The residual of a solution counts beside that of an exact form beyond so many times it."""


def residual_floor(data: Dataset, form: Regression) -> float:
    """Smallest residual that the data can show, relative to their spread."""
    return max(form.floor if form.exact else RELATIVE_FLOOR, data.rounding / data.spread)


def relative_residual(fit: Fit, data: Dataset, form: Regression) -> float:
    """What a law is judged by: the residual of its solution relative to the spread.

    In an exact form it is that of dy/dt, relative likewise, unless the solution tells
    worse of the law: steep pieces are not in that form. Inf for a law that diverges.
    """
    solution = fit.residual_rms / data.spread
    if not form.exact or fit.diverged:
        return solution
    return max(form.residual(fit.expression), solution / _REACH)


def score(
    expression: Expression,
    relative_rms: float,
    num_points: int,
    floor: float = RELATIVE_FLOOR,
) -> float:
    """Twice the description length of a law and of the data given it (see above).

    Args:
      expression: the law.
      relative_rms: residual divided by the standard deviation of the data.
      num_points: number of observations.
      floor: smallest residual that counts, relative likewise.

    Returns:
      The score, lower is better; inf for a law that diverges.
    """
    if not math.isfinite(relative_rms):
        return math.inf
    _, constants = in_arbitrary_units(expression)
    return (
        float(misfit(relative_rms, num_points, floor))
        + constants * math.log(num_points)
        + NUMBER_COST * sum(not is_plain(c) for c in expression.constants)
        - 2 * log_prior(expression)
    )


def optimistic_score(
    expression: Expression, relative_rms: float, num_points: int, floor: float
) -> float:
    """A score that is found faster, for screening.

    Of laws of up to six symbols without a name, 2% have a better true score; of the
    commonest beyond a third have, mostly by less than 20.
    """
    numbers = sum(not is_plain(c) for c in expression.constants)
    return (
        float(misfit(relative_rms, num_points, floor))
        + numbers * (math.log(num_points) + NUMBER_COST)
        + TOKEN_COST * weighted_complexity(expression)
    )


def misfit(
    relative_rms: Float[np.ndarray, "*laws"] | float, num_points: int, floor: float
) -> Float[np.ndarray, "*laws"]:
    """The part of the score that is not complexity (see above); inf for a law that diverges."""
    square = np.square(relative_rms)
    systematic = square + SYSTEMATIC**2
    effective = min(num_points, _EFFECTIVE_SAMPLE_SIZE)
    with np.errstate(invalid="ignore"):
        value = num_points * np.log(systematic) + effective * np.log(
            (square + floor**2) / systematic
        )
    return np.where(np.isfinite(square), value, np.inf)


def scores(fits: Sequence[Fit], data: Dataset, form: Regression) -> list[float]:
    """The score of each fit, lower is better; inf for those that diverge."""
    floor, nearby = residual_floor(data, form), _nearby(data)
    return [
        score(fit.expression, relative_residual(fit, data, form), data.count, floor)
        + (0.0 if _is_tame(fit.expression, nearby) else EDGE_COST)
        for fit in fits
    ]


def _nearby(data: Dataset) -> Float[np.ndarray, " values"]:
    """The observed range and half of it on either side; 0 is not passed."""
    low, high = data.low, data.high
    margin = (high - low) / 2
    below = low - margin if low < 0 else max(low - margin, low / 10)
    above = high + margin if high > 0 else min(high + margin, high / 10)
    return np.linspace(below, above, 200)


def _is_tame(expression: Expression, nearby: Float[np.ndarray, " values"]) -> bool:
    """Whether a law has neither an edge of its domain nor a pole near the data."""
    rates = expression.evaluate(nearby)
    if not np.isfinite(rates).all():
        return False
    # Across a pole f changes its sign between large values, across a zero between small ones.
    flips = np.flatnonzero(np.sign(rates[1:]) != np.sign(rates[:-1]))
    smaller = np.minimum(np.abs(rates[1:]), np.abs(rates[:-1]))[flips]
    return not (smaller > np.median(np.abs(rates))).any()


def posterior_probabilities(values: Sequence[float]) -> list[float]:
    """Posterior probability of each law, if one of them is the right one.

    A score is twice a description length, so the probability falls as exp(-score / 2).

    Args:
      values: scores, at least one of them finite.
    """
    least = min(values)
    shares = [math.exp(-(value - least) / 2) for value in values]
    return [share / sum(shares) for share in shares]
