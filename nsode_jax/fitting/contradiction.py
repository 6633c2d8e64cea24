"""Whether many series contradict constants that they were made to share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from nsode_jax.fitting.own_covariances import known_constants
from nsode_jax.fitting.trajectory_fitting import Problem

_LEAST_NOISE = 1e-5
"""Of the spread: solutions are fitted no more exactly."""


def p_of_sharing(
    alone: Sequence[Problem],
    together: Sequence[Problem],
    noise: Float[np.ndarray, " series"],
    freedom: Int[np.ndarray, " series"],
    shared: Bool[np.ndarray, " constants"],
) -> float:
    """Probability of series as different as these if they share some constants.

    What the sum of squares of all series, each by its noise, gains where each has constants of
    its own, is compared with the noise (F test; chi-squared where the noise is known). Residuals
    that are alike from one observation to the next make the gain smaller.

    Args:
      alone: the fit of each series by itself.
      together: the joint fit.
      noise: of each series, relative to its spread, by the fits alone.
      freedom: degrees of freedom by which that is known.
      shared: which constants are the same in all series.

    Returns:
      NaN where sharing takes nothing from the fit, or too little is known.
    """
    usable = [
        i
        for i, (free, joint) in enumerate(zip(alone, together, strict=True))
        if math.isfinite(free.best_rms + joint.best_rms + noise[i]) and freedom[i] > 0
    ]
    if not usable:
        return math.nan
    alone, together = [alone[i] for i in usable], [together[i] for i in usable]
    noise, freedom = np.maximum(noise[usable], _LEAST_NOISE), freedom[usable]
    free = known_constants(alone, noise, np.zeros(shared.size, bool))
    added = free.directions - known_constants(together, noise, shared).directions
    if added < 1:
        return math.nan
    gain = (_squares(together) - _squares(alone)) @ noise**-2.0 / free.widened
    known_by = float(stats.hmean(freedom))
    return float(stats.f.sf(max(gain, 0.0) / added, added, known_by))


def _squares(problems: Sequence[Problem]) -> Float[np.ndarray, " series"]:
    """Sums of squared residuals, relative to the spread."""
    return np.array([problem.best_rms**2 * problem.data.size for problem in problems])
