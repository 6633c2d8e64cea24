"""Whether noise grows with the values, judged by many series together.

Each series has noise of its own size. How it varies within them is what they have in common,
and what a single series of a few dozen points hardly tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.discovery.form_search import Found, as_fit
from nsode_jax.fitting.own_constants import OwnConstants, fit_own_constants
from nsode_jax.fitting.trajectory_fitting import Problem, autocorrelation_of
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.noise import CLEAN, POWERS, noise_of_power

_MOST = 24
"""Series by which it is judged."""

_CLEAR = 3.3
"""Logarithm of the ratio of likelihoods that constant noise exceeds once in a hundred."""

_RANDOM = 0.4
"""Autocorrelation above which residuals of most series tell of another law, not of noise."""

_Sizes = list[Float[np.ndarray, " _"]]


def noise_within_series(found: Found, given: Sequence[Dataset]) -> _Sizes | None:
    """Relative standard deviations of the values of each series.

    The noise is taken as proportional to |solution|^p, and the likeliest p of 0, 1/2 and 1 is
    found, the constants fitted anew with the weights of each.

    Args:
      found: a form with the constants of every series.
      given: each the data of one, whose values count by what they are means of.

    Returns:
      For each series shape [time]; None if the values count as they did, or the fits do not
      tell.
    """
    usable = [i for i, one in enumerate(found.fit.residual_rms) if math.isfinite(one)]
    if len(usable) < len(given):
        return None
    places = np.linspace(0, len(given) - 1, min(_MOST, len(given))).astype(int).tolist()
    fits = [as_fit(found, i, given[i]) for i in places]
    chosen = [given[i] for i in places]
    relative = [fit.residual_rms / data.spread for fit, data in zip(fits, chosen)]
    if np.median(relative) < CLEAN:
        return None
    if np.median([autocorrelation_of(*pair) for pair in zip(chosen, fits)]) > _RANDOM:
        return None
    likelihoods = []
    for power in POWERS:
        sizes = [noise_of_power(_solution(found, i, given[i]), power) for i in places]
        weighted = [_counting(*pair) for pair in zip(chosen, sizes, strict=True)]
        constants, y0s = found.fit.constants[places], found.fit.y0s[places].tolist()
        fit = fit_own_constants(
            weighted, found.formula.with_values, constants, y0s, bounds=found.bounds
        )
        likelihoods.append(_log_likelihood(fit, weighted, sizes))
    counts, fitted = np.array([data.count for data in chosen]), len(found.names) + 1
    constant = _log_likelihood_of(found.fit.residual_rms[places], counts, fitted)
    best = int(np.argmax(likelihoods))
    if not likelihoods[best] - constant > _CLEAR:
        return None
    grown = [noise_of_power(_solution(found, i, one), POWERS[best]) for i, one in enumerate(given)]
    return [size / one.weights for one, size in zip(given, grown, strict=True)]


def _counting(data: Dataset, size: Float[np.ndarray, " time"]) -> Dataset:
    """With noise that is larger than so far by some factors."""
    return data.with_noise(size / data.weights)


def _solution(found: Found, i: int, data: Dataset) -> Float[np.ndarray, " time"]:
    fit = as_fit(found, i, data)
    problem = Problem.of(data, fit.expression)
    residual = problem.residual(problem.start(fit.y0s))
    return data.y + residual * data.spread / data.weights


def _log_likelihood(fit: OwnConstants, data: Sequence[Dataset], sizes: _Sizes) -> float:
    counts = np.array([one.count for one in data])
    known = _log_likelihood_of(fit.residual_rms, counts, fit.constants.shape[1] + 1)
    return known - float(sum(np.log(size).sum() for size in sizes))


def _log_likelihood_of(
    rms: Float[np.ndarray, " series"], counts: Int[np.ndarray, " series"], fitted: int
) -> float:
    """Of residuals whose size is that of each series itself, up to a constant.

    Args:
      rms: of the residuals.
      counts: of the observations.
      fitted: parameters of each series.
    """
    freedom = np.maximum(counts - fitted, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = freedom / 2 * np.log(counts * rms**2)
    return -float(np.sum(terms[freedom > 0]))
