"""The order of candidate laws: the evidence for them, and their prior.

The score of a law, lower is better, is minus twice the logarithm of its posterior
probability, up to a constant that all laws share:

    (n - s) log(r^2) + sum log(1 + 1 / (v / (9 g) + 1 / n)) + e + k + 2 j - 2 log(p)

The first two terms are Laplace's approximation of the evidence (MacKay 2003, Information
Theory, Inference, and Learning Algorithms, chapter 28). r is the residual of the
*integrated* solution relative to the spread of the data, n the number of observations (of
independent ones, see `independent_share`), s that of the series, whose initial values are
parameters of all laws alike. g are the
eigenvalues of the Fisher matrix of the logarithms of the constants for noise of variance
1, v is the variance of the noise, estimated with the degrees of freedom that the constants
leave. A constant is expected within a factor of e^3 either way, or as well as one
observation tells it if that is better (the unit information of Kass and Wasserman 1995, J.
Am. Stat. Assoc. 90): what the data determine costs log(n + 1), as in the BIC, and what
they do not determine costs less, down to nothing. e is the sum of the squared logarithms of
fitted exponents: they are expected near 1, and y**19.4 is a curve that bends as it likes. k is
that of terms that nearly cancel: where a term is m times as large as f, its constant is so much
larger than what is expected of it, and (log(m) / 3)^2 is added. 8778 y - 8773 y**1.00003 is a
logarithm in disguise. Near equilibrium all laws cancel: what counts is the least of k at a
quarter of the values, at the values, and at four times them.

Not all of r is noise: log(r^2) stands for log(r^2 + F^2) + (m / n) log((r^2 + f^2) /
(r^2 + F^2)), m being the smaller of n and 10. What is left below F = 1e-3 is systematic (a
solver's tolerance, a sensor's drift, a curve that nearly is the right one), smooth over the
whole series, and counts as m observations. Otherwise long formulas would be bought with
digits that nobody measured. Below f, the precision of the data (`residual_floor`), nothing
counts.

Where the errors of measurement are known, v is their variance s^2, and (n - s) log(r^2) gives
way to chi^2 = n r^2 / s^2, minus twice the logarithm of the likelihood. It is no more than
n - s for a law as good as the data ask for, and what a longer law gains below that is what
chance gives. Beyond n - s the errors are larger than was said, or the law is wrong; then v is
what it would have to be, r^2, and minus twice the logarithm is (n - s) (1 + log(chi^2 / (n - s))),
which continues it. On simulated laws, with the noise that they were given as known
(`evaluation.calibration`), this states probabilities slightly better than chi^2 throughout
(a logarithmic loss of 1.452 against 1.463 of 144 problems, and of 1.469 without knowing the
noise), and it does not fail where somebody's errors are too small.

p is the prior probability of the form of the law (`prior`), to which `EDGE_COST`
adds.

Constants and the form are those of the law in arbitrary units (`in_arbitrary_units`).
In noise 16.4 - y is hardly worse than 16.1 - 0.97*y, but that the factor should be 1 in
the units at hand would be a miracle, not simplicity. Only where residuals are no more than
systematic does j count numbers as they stand, those that are not plain (`is_plain`): a round
number is told in fewer words, and to meet it by chance takes digits. In noise it counts every
constant, whatever its value, as one that is 1 within its error has an error nevertheless.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.summands import summands
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.trajectory_fitting import autocorrelation_of
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.residuals.censored import censored_misfit
from nsode_jax.residuals.goodness import goodness_of_fit
from nsode_jax.selection.belief import log_prior, written_log_prior
from nsode_jax.selection.complexity import fitted_exponents, in_arbitrary_units, tangents

NUMBER_COST = 2.0
"""Score of a constant: in noise of any, in data without noise of one that is no plain number."""

RELATIVE_FLOOR = 1e-5
"""Residuals below this share of the data's spread count as equally small."""

SYSTEMATIC = 1e-3
"""Residuals below this share are not independent from one observation to the next."""

_EFFECTIVE_SAMPLE_SIZE = 10
"""As how many independent observations a series counts there."""

EDGE_COST = 9.0
"""Score of a law that ends, or has a pole, just beyond the data. Few real laws do, but
the square root or the reciprocal of a shifted y bends to fit much."""

DECIDING = 5
"""So many laws, the best, tell how independent the observations are."""

_SIGNIFICANT = 2.33
"""Standard deviations: one in a hundred by chance."""

_ACCOUNTED_FOR = 0.05
"""Chi-squared's probability above which errors of measurement account for residuals."""

_SCALES = (0.25, 1.0, 4.0)
"""Of the values: laws that say something of all of them do not cancel on all of these."""

_OVERFLOW = 1e100

_PRIOR_WIDTH = 3.0
"""Standard deviation of the logarithm of a constant before there are data."""

_REACH = 100.0
"""The residual of a solution counts beside that of an exact form beyond so many times it, and
beyond so many times the smallest of any law, beside the floor of the form."""

_SOLVED = 1e-9
"""No solution is more exact, relative to the spread."""


def residual_floor(data: Dataset, form: Regression) -> float:
    """Smallest residual that the data can show, relative to their spread."""
    return max(form.floor if form.exact else RELATIVE_FLOOR, data.rounding / data.spread)


def relative_residual(fit: Fit, data: Dataset, form: Regression, least: float = math.inf) -> float:
    """What a law is judged by: the residual of its solution relative to the spread.

    In an exact form it is that of dy/dt, relative likewise, unless the solution tells
    worse of the law: steep pieces are not in that form. Inf for a law that diverges.

    Args:
      fit: the law.
      data: the series.
      form: the same, prepared for fitting.
      least: the smallest residual of any law's solution, relative likewise, if it is known.
    """
    solution = fit.residual_rms / data.spread
    if not form.exact or fit.diverged:
        return solution
    missed = residual_floor(data, form) * solution / (_REACH * max(least, _SOLVED))
    return max(form.residual(fit.expression), solution / _REACH, missed)


def score(
    expression: Expression,
    relative_rms: float,
    form: Regression,
    floor: float | None = None,
    share: float = 1.0,
) -> float:
    """Minus twice the logarithm of the posterior probability of a law (see above).

    Args:
      expression: the law.
      relative_rms: residual divided by the standard deviation of the data; with 0 a bound
        from below is found, which no residual can get under.
      form: the data, prepared for fitting; laws in its units.
      floor: smallest residual that counts, relative likewise; by default that of the form.
      share: as what share of them the observations count, as `independent_share` gives it.

    Returns:
      The score, lower is better; inf for a law that diverges.
    """
    if not math.isfinite(relative_rms):
        return math.inf
    return evidence(expression, relative_rms, form, floor, share) - 2 * log_prior(expression)


def evidence(
    expression: Expression,
    relative_rms: float,
    form: Regression,
    floor: float | None = None,
    share: float = 1.0,
) -> float:
    """The score without the prior of the law's form; arguments as of `score`."""
    floor = form.floor if floor is None else floor
    determined = [share * value for value in information(expression, form)]
    count, series = share * form.count, len(form.y0s)
    return laplace(relative_rms, determined, count, series, floor, form.sigma) + (
        sum(math.log(abs(exponent)) ** 2 for exponent in fitted_exponents(expression))
        + cancellation(expression, form)
        + NUMBER_COST * counted_numbers(expression, max(relative_rms, form.sigma or 0.0))
    )


def counted_numbers(expression: Expression, relative_rms: float) -> float:
    """How many numbers of a law count: in noise all constants, without it what is not plain.

    Args:
      expression: the law.
      relative_rms: residual, or the known noise, divided by the standard deviation of the data.
    """
    written, constants = _numbers(expression)
    return written + noisy_share(relative_rms) * max(constants - written, 0)


@functools.lru_cache(maxsize=20_000)
def _numbers(expression: Expression) -> tuple[int, int]:
    """How many are written that are not plain, and how many constants there are in any units."""
    written = sum(not is_plain(c) for c in expression.constants)
    return written, in_arbitrary_units(expression)[1]


def noisy_share(relative_rms: float) -> float:
    """As what share of it noise a residual counts: 0 far below what is systematic, 1 beyond."""
    return relative_rms**2 / (relative_rms**2 + SYSTEMATIC**2)


def laplace(
    relative_rms: float,
    information: Sequence[float],
    count: float,
    series: int,
    floor: float,
    sigma: float | None = None,
) -> float:
    """Minus twice the logarithm of the evidence by Laplace's approximation (see above).

    Args:
      relative_rms: residual divided by the standard deviation of the data.
      information: of the constants, as `information` gives it.
      count: number of independent observations.
      series: number of series.
      floor: smallest residual that counts, relative likewise.
      sigma: standard deviation of an observation, relative likewise, if it is known.
    """
    observations = max(count - series, 1.0)
    freedom = max(observations - len(information), 1)
    variance = (relative_rms**2 + floor**2) * count / freedom
    if sigma is not None:
        variance = max(variance, sigma**2)
    occam = sum(
        math.log1p(1 / (variance / (_PRIOR_WIDTH**2 * value) + 1 / count))
        for value in information
        if value > 0
    )
    if sigma is not None:
        return float(known_misfit(relative_rms, count, observations, sigma)) + occam
    return observations / count * float(misfit(relative_rms, count, floor)) + occam


def draft_score(expression: Expression, relative_rms: float, form: Regression) -> float:
    """The score by the prior of the law's operators as it is written.

    For many laws at once: canonical forms and names, which `score` asks for, take longer.
    """
    return evidence(expression, relative_rms, form) - 2 * written_log_prior(expression)


@functools.lru_cache(maxsize=20_000)
def information(expression: Expression, form: Regression) -> tuple[float, ...]:
    """Eigenvalues of the Fisher matrix of the logarithms of a law's constants.

    For noise of the standard deviation by which the form's target is divided. Where the
    law is undefined somewhere, its constants count as known to one spread of the data by
    every observation.
    """
    _, number = in_arbitrary_units(expression)
    with np.errstate(all="ignore"):
        jacobian = form.operator @ tangents(expression, number, form.nodes).T
        if not np.isfinite(jacobian).all() or np.abs(jacobian).max(initial=0.0) > _OVERFLOW:
            return (float(form.count),) * number
    values = np.linalg.svd(jacobian, compute_uv=False) ** 2 if jacobian.size else np.zeros(0)
    return tuple(values.tolist())


@functools.lru_cache(maxsize=20_000)
def cancellation(expression: Expression, form: Regression) -> float:
    """What it costs that terms of a law are larger than the law itself (see above)."""
    parts = summands(expression)
    if len(parts) < 2:
        return 0.0
    y = np.multiply.outer(_SCALES, form.nodes)
    terms = [Expression(part, expression.variables).evaluate(y) for part in parts]
    with np.errstate(all="ignore"):
        size = np.sqrt(np.mean(np.square([*terms, np.sum(terms, axis=0)]), axis=-1))
        # [terms, scales]
        larger = np.maximum(np.log(size[:-1] / size[-1]), 0.0)
        costs = np.sum(larger**2, axis=0) / _PRIOR_WIDTH**2
    return float(min(costs[np.isfinite(costs)], default=0.0))


def misfit(
    relative_rms: Float[np.ndarray, "*laws"] | float, num_points: float, floor: float
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


def known_misfit(
    relative_rms: Float[np.ndarray, "*laws"] | float, count: float, expected: float, sigma: float
) -> Float[np.ndarray, "*laws"]:
    """The same where the errors of measurement are known (see above).

    Args:
      relative_rms: residual divided by the standard deviation of the data.
      count: number of independent observations.
      expected: chi-squared of a law as good as the data ask for.
      sigma: standard deviation of an observation, relative likewise.
    """
    with np.errstate(invalid="ignore"):
        chi_squared = count * np.square(relative_rms) / sigma**2
        beyond = np.maximum(chi_squared / expected, 1.0)
        value = expected * np.log(beyond) + chi_squared / beyond
    return np.where(np.isfinite(chi_squared), value, np.inf)


def draft_misfit(
    relative_rms: Float[np.ndarray, "*laws"], form: Regression, floor: float
) -> Float[np.ndarray, "*laws"]:
    """Of many residuals in a form, with errors of measurement known or not."""
    if form.sigma is None:
        return misfit(relative_rms, form.count, floor)
    return known_misfit(relative_rms, form.count, form.count, form.sigma)


def scores(fits: Sequence[Fit], data: Dataset, form: Regression, share: float = 1.0) -> list[float]:
    """The score of each fit, lower is better; inf for those that diverge."""
    floor, nearby = residual_floor(data, form), _nearby(data)
    return [
        score(fit.expression, left, form, floor, share)
        + _edge_cost(fit.expression, nearby)
        + censored_misfit(fit, data)
        for fit, left in zip(fits, relative_residuals(fits, data, form), strict=True)
    ]


def relative_residuals(fits: Sequence[Fit], data: Dataset, form: Regression) -> list[float]:
    """What each law is judged by, knowing how well the best of them does."""
    least = min((fit.residual_rms for fit in fits if not fit.diverged), default=0.0) / data.spread
    return [relative_residual(fit, data, form, least) for fit in fits]


def independent_share(fits: Sequence[Fit], data: Dataset) -> float:
    """As what share of their number the observations count.

    Where even the best laws leave residuals that are alike from one observation to the
    next, by a sensor's drift or because no law at hand is quite right, n observations tell
    as much as n (1 - a) / (1 + a) independent ones, a being the autocorrelation (Bayley and
    Hammersley 1946, J. R. Stat. Soc. Suppl. 8). Residuals below `SYSTEMATIC` count less
    anyway, and those that known errors of measurement account for count in full.

    Args:
      fits: the best of all; the one with the least autocorrelation decides.
      data: the series.
    """
    alike = 1.0
    for fit in fits:
        if fit.diverged or fit.residual_rms <= SYSTEMATIC * data.spread:
            return 1.0
        if goodness_of_fit(data, fit) > _ACCOUNTED_FOR:
            return 1.0
        alike = min(alike, autocorrelation_of(data, fit))
    return share_of(alike, data.count)


def share_of(autocorrelation: float, count: int) -> float:
    """As what share of their number so many observations count; 1 where it may be chance."""
    if autocorrelation * math.sqrt(count) < _SIGNIFICANT:
        return 1.0
    return (1 - autocorrelation) / (1 + autocorrelation)


def _nearby(data: Dataset) -> Float[np.ndarray, " values"]:
    """The observed range and half of it on either side; 0 is not passed."""
    low, high = data.low, data.high
    margin = (high - low) / 2
    below = low - margin if low < 0 else max(low - margin, low / 10)
    above = high + margin if high > 0 else min(high + margin, high / 10)
    return np.linspace(below, above, 200)


def edge_cost(expression: Expression, data: Dataset) -> float:
    """Score of an edge of a law's domain, or of a pole, near the data; 0 if there is none."""
    return _edge_cost(expression, _nearby(data))


def _edge_cost(expression: Expression, nearby: Float[np.ndarray, " values"]) -> float:
    rates = expression.evaluate(nearby)
    if not np.isfinite(rates).all():
        return EDGE_COST
    # Across a pole f changes its sign between large values, across a zero between small ones.
    flips = np.flatnonzero(np.sign(rates[1:]) != np.sign(rates[:-1]))
    smaller = np.minimum(np.abs(rates[1:]), np.abs(rates[:-1]))[flips]
    return EDGE_COST if (smaller > np.median(np.abs(rates))).any() else 0.0
