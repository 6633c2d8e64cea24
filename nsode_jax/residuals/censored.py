"""Whether a fitted law agrees with values of which only a limit is known."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Fit
from nsode_jax.observed.dataset import Dataset

_TOLERANCE = 1e-8
_MAX_STEPS = 2000
_LEAST_NOISE = 1e-6
"""Of the spread of the data: a limit is no harder than that."""

_FAR = 1e3
"""Standard deviations beyond a limit: as far counts a law without a solution there."""


def censored_misfit(fit: Fit, data: Dataset) -> float:
    """Minus twice the log-likelihood of the limits (Tobin 1958, Econometrica 26).

    The probability that a value with the noise of others of its size lies on its side of the
    limit, the solution of the law being the middle. The noise is what is left of the others, or
    what their errors of measurement typically are, if that is more. Limits before the first
    value do not count.
    """
    if not data.limits or fit.diverged:
        return 0.0
    noise = max(fit.residual_rms, data.sigma or 0.0, _LEAST_NOISE * data.spread)
    total = 0.0
    for limits, y0 in zip(data.limits, fit.y0s, strict=True):
        kept = np.isfinite(limits.limit) & (limits.t >= 0)
        if not kept.any():
            continue
        times, places = np.unique(limits.t[kept], return_inverse=True)
        solution = _solution(data.whole(fit.expression), y0, times, data.resolution)[places]
        told = limits.limit[kept]
        room = (told - solution) / (noise * data.noise_at(told))
        room *= np.where(limits.below[kept], 1.0, -1.0)
        room = np.clip(np.nan_to_num(room, nan=-_FAR), -_FAR, _FAR)
        total -= 2 * float(norm.logcdf(room).sum())
    return total


def _solution(
    law: Expression, y0: float, times: Float[np.ndarray, " time"], size: float
) -> Float[np.ndarray, " time"]:
    """NaN from where there is none."""
    program, solved = Program.from_expression(law), np.full(times.size, math.nan)
    for end in range(times.size, 0, -1):
        t = np.concatenate([[0.0], times[:end]]) if times[0] > 0 else times[:end]
        y = dop853.integrate(
            program, np.array([y0]), t, rtol=_TOLERANCE, atol=_TOLERANCE * size,
            max_steps=_MAX_STEPS,
        ).y[0]  # fmt: skip
        if np.isfinite(y).all():
            solved[:end] = y[-end:]
            break
    return solved
