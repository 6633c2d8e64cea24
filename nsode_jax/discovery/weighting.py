"""How much each point counts, once a first law tells what the noise is like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics.trajectory import CONSTANT_RELATIVE_RANGE, typical
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.linearized import Linearized
from nsode_jax.fitting.shooting import SystemFit
from nsode_jax.fitting.shooting import linearized as linearized_system
from nsode_jax.fitting.trajectory_fitting import linearized
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.noise_scale import expected_noise
from nsode_jax.observed.observations import Observations
from nsode_jax.residuals.noise import (
    CLEAN,
    SIGNIFICANCE,
    growing_noise,
    huber_noise,
    likeliest_noise,
    outliers,
)
from nsode_jax.results.formatting import time_text

_MOST_NAMED = 5

GROWING = (
    "The noise grows with the values; they were weighted accordingly, in R2 and residuals too."
)

_ALIKE = 0.3
"""Noise of a system is as before if no logarithm of it changed by more."""

OVER_DECADES = (
    "The values span decades: they count by their relative errors, in R2 and residuals too."
)


class Weighting(NamedTuple):
    """What the residuals of a law say about the noise.

    Attributes:
      noise: relative standard deviations of the values, shape [observations]; None if they
        count as they did.
      notes: sentences for the person with the data.
      factors: by which a robust fit has made the noise larger, at least 1, shape
        [observations]; None for other fits.
    """

    noise: Float[np.ndarray, " observations"] | None
    notes: tuple[str, ...]
    factors: Float[np.ndarray, " observations"] | None = None


def weighting(
    data: Dataset,
    ranked: Sequence[tuple[Fit, float]],
    robust: bool,
    starts: Sequence[float],
    expected: Float[np.ndarray, " observations"] | None = None,
) -> Weighting:
    """Judges the noise by the best law.

    Args:
      data: the series in the units of the user, times counted from the first of each; values
        count by their known errors of measurement, or by what they are means of.
      ranked: the law that explains them best and its score, in these units; or none.
      robust: whether points far from the law shall count less.
      starts: the first time of each series, to name points by their times.
      expected: the noise by which the law was found, if the values span decades.
    """
    fit = ranked[0][0] if ranked else None
    # Solved as exactly as the noise asks for, which is then taken out again.
    known = data if expected is None else data.with_noise(expected)
    linear = None if fit is None or fit.diverged else linearized(known, fit)
    if linear is None:
        return Weighting(expected, ())
    linear = linear.weighted(data.weights / known.weights * known.spread / data.spread)
    if expected is not None:
        return _over_decades(data, linear, robust, starts, expected)
    sigma = None if data.sigma is None else data.sigma / data.spread
    kept = _kept(linear, sigma or 0.0)
    if robust:
        factors = huber_noise(linear, sigma)
        return Weighting(factors / data.weights, _named(data, kept, robust, starts), factors)
    if sigma is not None:
        return Weighting(None, _named(data, kept, robust, starts))
    noise = growing_noise(_solution(data, linear), linear, kept)
    if noise is None:
        return Weighting(None, _named(data, kept, robust, starts))
    kept = _kept(linear.weighted(1.0 / noise))
    return Weighting(_in_all(noise, data), (GROWING, *_named(data, kept, robust, starts)))


def _in_all(
    noise: Float[np.ndarray, " observations"], data: Dataset
) -> Float[np.ndarray, " observations"]:
    """Noise relative to what values have by their weights so far, times that."""
    whole = noise / data.weights
    return whole / typical(whole)


def _over_decades(
    data: Dataset,
    linear: Linearized,
    robust: bool,
    starts: Sequence[float],
    expected: Float[np.ndarray, " observations"],
) -> Weighting:
    """The same of values that span decades."""
    noise, weighted, note = expected, linear.weighted(1.0 / (expected * data.weights)), OVER_DECADES
    if weighted.rms * data.spread > CLEAN * data.with_noise(expected).spread:
        likeliest = likeliest_noise(_solution(data, linear), linear)
        noise, weighted, note = None, linear, ""
        if likeliest is not None:
            noise, weighted = _in_all(likeliest.sizes, data), linear.weighted(1.0 / likeliest.sizes)
            note = OVER_DECADES if likeliest.power == 1.0 else GROWING
    named = _named(data, _kept(weighted), robust, starts)
    if robust:
        factors = huber_noise(weighted)
        return Weighting(factors * (1 / data.weights if noise is None else noise), named, factors)
    return Weighting(noise, named if noise is None else (note, *named))


def _solution(data: Dataset, linear: Linearized) -> Float[np.ndarray, " observations"]:
    """What the law says, in units of the data."""
    return data.y + linear.residual * data.spread / data.weights


def _kept(linear: Linearized, sigma: float = 0.0) -> Bool[np.ndarray, " observations"]:
    """The observations that are no outliers."""
    kept = np.ones(linear.residual.size, bool)
    kept[[outlier.place for outlier in outliers(linear, sigma)]] = False
    return kept


def with_expected_noise(data: Observations) -> Observations:
    """Runs with the noise of the quantities that span decades, before a law is known."""
    noises = [
        expected_noise([run.quantity(k) for run in data.runs])
        for k in range(len(data.system.observed))
    ]
    if all(noise is None for noise in noises):
        return data
    pairs = zip(noises, (1.0 / data.weights).T, strict=True)
    return data.with_noise(np.stack([old if new is None else new for new, old in pairs], axis=1))


def weighted_system(
    data: Observations, fit: SystemFit, given: Observations | None = None
) -> tuple[Observations, tuple[str, ...]] | None:
    """What the residuals of a first system say about the noise.

    Args:
      data: runs with the noise by which the system was found.
      fit: the system.
      given: the runs as measured, which tell what their values are means of; if left out, the
        values are alike.

    Returns:
      Runs with its sizes, the very same if they count as they should, and sentences for the
      person with the data; None without a solution.
    """
    before = 1.0 / data.weights
    measured = np.ones_like(before) if given is None else 1.0 / given.weights
    alike = data.with_noise(measured)
    linear = None if fit.diverged else linearized_system(data, fit)
    if linear is None:
        return None
    # Solved as exactly as the noise so far asks for, which is then taken out again.
    so_far = before / measured
    known = so_far * data.spread / alike.spread
    linear = [one.weighted(sizes) for one, sizes in zip(linear, known.T, strict=True)]
    sizes, growing, wide = before.copy(), [], []
    for k, (name, one) in enumerate(zip(data.system.observed, linear, strict=True)):
        solution = alike.y[:, k] + one.residual * alike.spread[k] * measured[:, k]
        noise, names = None, growing
        if not np.ptp(so_far[:, k]) > CONSTANT_RELATIVE_RANGE:
            noise = growing_noise(solution, one, significance=SIGNIFICANCE / len(linear))
        elif not fit.residuals[k] > CLEAN * data.spread[k]:
            noise, names = so_far[:, k], wide
        elif (likeliest := likeliest_noise(solution, one)) is not None:
            noise, names = likeliest.sizes, wide if likeliest.power == 1.0 else growing
        sizes[:, k] = measured[:, k] * (1.0 if noise is None else noise)
        sizes[:, k] /= typical(sizes[:, k])
        if noise is not None:
            names.append(name)
    applied = bool(np.abs(np.log(sizes / before)).max() > _ALIKE)
    notes = []
    if growing and applied:
        notes.append(
            f"The noise of {' and '.join(growing)} grows with the values; values count by their "
            "precision, and so they do in R2."
        )
    if wide:
        notes.append(
            f"The values of {' and '.join(wide)} span decades: they count by their relative "
            "errors, in R2 too."
        )
    if applied:
        data = data.with_noise(sizes)
    return data, tuple(notes)


def _named(
    data: Dataset, kept: np.ndarray, robust: bool, starts: Sequence[float]
) -> tuple[str, ...]:
    """A sentence on the outliers, if there are any."""
    places = np.flatnonzero(~kept)
    if not places.size:
        return ()
    times = np.concatenate([series.t + start for series, start in zip(data, starts, strict=True)])
    which = np.repeat(np.arange(len(data)), [len(series) for series in data])
    listed = [
        f"{data.y[i]:.6g} at t = {time_text(float(times[i]))}"
        + (f" of series {which[i] + 1}" if len(data) > 1 else "")
        for i in places[:_MOST_NAMED]
    ]
    more = f" and {places.size - _MOST_NAMED} more" if places.size > _MOST_NAMED else ""
    one = places.size == 1
    return (
        f"{'This value lies' if one else 'These values lie'} far from the law that explains the "
        f"others: {', '.join(listed)}{more}. "
        + (
            f"{'It was' if one else 'They were'} given little weight."
            if robust
            else f"If {'it is' if one else 'they are'} wrong, correct or remove "
            f"{'it' if one else 'them'}; a robust fit (--robust, robust=True) gives such values "
            "little weight."
        ),
    )
