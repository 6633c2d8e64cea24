"""What the residuals of a fitted law tell of the noise: does it grow, which points are outliers?

A smoothing curve in place of the law would not do: it follows steep parts worse than flat
ones, and then noise grows wherever something happens.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import stats

from nsode_jax.fitting.linearized import Linearized
from nsode_jax.observed.noise_scale import levels

SIGNIFICANCE = 0.02
"""Share of series with constant noise in which growing noise may be claimed, and of series
without an outlier in which one may be."""

_SIMULATED = 999
CLEAN = 1e-3
"""Residuals below this share of the spread are no noise to be modelled."""

_LEAST_SHARE = 0.05
"""Of the largest value: noise does not fall below what belongs to it."""

POWERS = (0.5, 1.0)
RANDOM = 0.99
"""Residuals whose neighbours are more alike than those of this share are no noise."""

_MOST_OUTLIERS = 0.2
_FEWEST_LEFT = 4
_HUBER = 1.345
"""Standard deviations beyond which a residual counts linearly: 95% as efficient as least
squares where the noise is normal (Huber 1981, Robust Statistics)."""

_ITERATIONS = 30
_NORMAL_MAD = 0.6745

_Observations = Float[np.ndarray, " observations"]


class NoiseOfValues(NamedTuple):
    """How noise varies with the values.

    Attributes:
      sizes: relative standard deviations, the mean of 1 / square being 1, shape [observations].
      power: of the values as which they grow: 0 for constant noise, 1/2 for counts, or 1.
    """

    sizes: _Observations
    power: float


class Outlier(NamedTuple):
    """A point that the law, fitted to the others, does not explain.

    Attributes:
      place: of the point among all observations.
      deviation: of its value, in standard deviations of the others' residuals.
    """

    place: int
    deviation: float


def outliers(linear: Linearized, sigma: float = 0.0) -> tuple[Outlier, ...]:
    """Points whose deviation has no place in normal noise, most deviating first.

    Each is judged by a fit to the others, the deleted residual, with Bonferroni's
    correction for the number of points (Cook and Weisberg 1982, Residuals and Influence in
    Regression, section 2.2.2). The worst is left out and the others judged again.

    Args:
      linear: the fit.
      sigma: standard deviation of the noise, in units of the residuals, if it is known. What
        it accounts for is no outlier, nor is what has a place among the others.
    """
    if linear.rms < CLEAN:
        return ()
    found: list[Outlier] = []
    kept = np.ones(linear.residual.size, bool)
    while len(found) < _MOST_OUTLIERS * kept.size:
        fitted = directions(linear.jacobian[kept])
        residual = _without(linear.residual[kept], fitted)
        freedom = residual.size - fitted.shape[1] - 1
        if freedom < _FEWEST_LEFT:
            break
        room = np.maximum(1.0 - (fitted**2).sum(axis=1), 1e-9)
        squares = np.maximum(residual @ residual - residual**2 / room, 1e-300)
        deviations = np.abs(residual) / np.sqrt(room * squares / freedom)
        worst = int(deviations.argmax())
        chance = float(stats.t.sf(deviations[worst], freedom))
        if sigma:
            known = np.abs(residual[worst]) / (math.sqrt(room[worst]) * sigma)
            chance = max(chance, float(stats.norm.sf(known)))
        if 2 * kept.sum() * chance > SIGNIFICANCE:
            break
        place = int(np.flatnonzero(kept)[worst])
        found.append(Outlier(place, float(deviations[worst] * math.sqrt(room[worst]))))
        kept[place] = False
    return tuple(found)


def growing_noise(
    solution: _Observations,
    linear: Linearized,
    kept: Bool[np.ndarray, " observations"] | None = None,
    *,
    significance: float = SIGNIFICANCE,
) -> _Observations | None:
    """How the noise varies with the values, if it clearly does.

    Many instruments err by a share of what they show. The residuals are taken as normal
    with a standard deviation proportional to |solution|^p, and the likeliest p of 0, 1/2
    and 1 is found. That another than 0 is the likeliest means little where there are few
    points: residuals of constant noise are simulated, their fitted directions removed, and
    the ratio of likelihoods must exceed nearly all of theirs (Davison and Hinkley 1997,
    Bootstrap Methods, section 4.2).

    Args:
      solution: what the law says, in any units, shape [observations].
      linear: its fit, all observations weighted alike.
      kept: those to judge by; all, if left out.
      significance: share of series with constant noise in which growing noise is claimed.

    Returns:
      Relative standard deviations, the mean of 1 / square being 1, shape [observations].
      None where constant noise will do, for data too clean to tell, and where the
      residuals are not random.
    """
    kept = np.ones(solution.size, bool) if kept is None else kept
    residual, fitted = linear.residual[kept], directions(linear.jacobian[kept])
    if residual.size - fitted.shape[1] < 2 or linear.rms < CLEAN:
        return None
    residual = _without(residual, fitted)
    profiles = [noise_of_power(solution, power) for power in POWERS]
    drawn = np.random.default_rng(0).standard_normal((_SIMULATED, residual.size))
    simulated = _without(drawn, fitted)
    ratios = np.array([_log_ratio(residual, profile[kept]) for profile in profiles])
    null = np.max([_log_ratio(simulated, profile[kept]) for profile in profiles], axis=0)
    if np.mean(null >= ratios.max()) > significance:
        return None
    noise = profiles[int(ratios.argmax())]
    # What a fit with these weights would leave: one without follows small values badly.
    weights = 1.0 / noise[kept]
    fitted = directions(weights[:, None] * linear.jacobian[kept])
    left = _without(weights * residual, fitted)
    return None if np.mean(alike(_without(drawn, fitted)) < alike(left)) > RANDOM else noise


def likeliest_noise(solution: _Observations, linear: Linearized) -> NoiseOfValues | None:
    """How the noise of values that span decades varies with them.

    Nobody measures a thousand and a billion to the same last unit, so that constant noise is
    but one of the possibilities here, beside that of counts and of shares of the values, above
    any level: the likeliest is taken, by residuals from which what constants can change is
    removed as such noise weights it.

    Args:
      solution: what the law says, in any units, shape [observations].
      linear: its fit, all observations weighted alike.

    Returns:
      None where constant noise is the likeliest.
    """
    above = np.hypot(solution, levels(solution)[:, None])  # [levels, observations]
    profiles = [
        NoiseOfValues(np.ones(solution.size), 0.0),
        *(NoiseOfValues(_normalized(sizes), p) for p in POWERS for sizes in above**p),
    ]

    def log_likelihood(noise: _Observations) -> float:
        weighted = linear.weighted(1.0 / noise)
        fitted = directions(weighted.jacobian)
        left = _without(weighted.residual, fitted)
        return -left.size / 2 * math.log(max(float(np.mean(left**2)), 1e-300)) - float(
            np.log(noise).sum()
        )

    best = max(profiles, key=lambda profile: log_likelihood(profile.sizes))
    return best if best.power else None


def huber_noise(linear: Linearized, sigma: float | None = None) -> _Observations:
    """Factors of the noise under which least squares are Huber's robust fit, at least 1.

    Iteratively reweighted least squares of the linearized law; the scale is the standard
    deviation of the noise if it is known, or else that of the median absolute residual.
    """
    residual, jacobian = linear.residual, linear.jacobian
    noise = np.ones(residual.size)
    share = math.sqrt(residual.size / max(linear.freedom, 1))
    for _ in range(_ITERATIONS):
        step = np.linalg.lstsq(jacobian / noise[:, None], residual / noise, rcond=1e-9)[0]
        left = np.abs(residual - jacobian @ step)
        scale = share * float(np.median(left)) / _NORMAL_MAD if sigma is None else sigma
        if scale == 0.0:
            break
        noise = np.sqrt(np.maximum(left / (_HUBER * scale), 1.0))
    return noise


def directions(
    jacobian: Float[np.ndarray, "observations parameters"],
) -> Float[np.ndarray, "observations directions"]:
    """An orthonormal basis of what the parameters can change."""
    u, singular, _ = np.linalg.svd(jacobian, full_matrices=False)
    return u[:, singular > 1e-9 * singular.max(initial=0.0)]


def _without(
    residual: Float[np.ndarray, "*simulated observations"],
    fitted: Float[np.ndarray, "observations directions"],
) -> Float[np.ndarray, "*simulated observations"]:
    """What is left of residuals once parameters have taken up what they can."""
    return residual - residual @ fitted @ fitted.T


def noise_of_power(values: _Observations, power: float) -> _Observations:
    """|values|^power, not too small near 0, the mean of 1 / square being 1."""
    return _normalized(np.hypot(values, _LEAST_SHARE * np.abs(values).max()) ** power)


def _normalized(noise: _Observations) -> _Observations:
    """Relative standard deviations, the mean of 1 / square being 1."""
    return noise * np.sqrt(np.mean(noise**-2.0))


def _log_ratio(
    residual: Float[np.ndarray, "*simulated observations"], noise: _Observations
) -> Float[np.ndarray, "*simulated"]:
    """Logarithm of the likelihood of such noise over that of constant noise."""
    weighted = np.mean((residual / noise) ** 2, axis=-1)
    alike = np.mean(residual**2, axis=-1)
    return np.asarray(-residual.shape[-1] / 2 * np.log(weighted / alike) - np.log(noise).sum())


def alike(
    residual: Float[np.ndarray, "*simulated observations"],
) -> Float[np.ndarray, "*simulated"]:
    """Autocorrelation of neighbours."""
    products = (residual[..., 1:] * residual[..., :-1]).sum(axis=-1)
    return np.asarray(products / (residual**2).sum(axis=-1))
