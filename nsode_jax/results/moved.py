"""Laws of a result with other constants, and how well they fit then."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.observations import Observations
from nsode_jax.results import analysis, system_analysis
from nsode_jax.results.own_constants import FormResult
from nsode_jax.results.result import Result
from nsode_jax.results.system_result import SystemResult

Found = TypeVar("Found", bound=Result | SystemResult | FormResult)


def chosen(found: Found, place: int) -> Found:
    """The result with one of its candidates in the place of the best one.

    Args:
      found: what `discover` found.
      place: of the candidate, from 0.
    """
    first = found.candidates[place]
    others = (*found.candidates[:place], *found.candidates[place + 1 :])
    return dataclasses.replace(found, candidates=(first, *others))


def moved_law(
    result: Result,
    constants: Sequence[float] | Float[np.ndarray, " constants"],
    y0: float | None = None,
) -> Result:
    """The result whose best law has other constants.

    Args:
      result: what `discover` found.
      constants: of the law, as many as it has.
      y0: another first value, of the first series.

    Returns:
      The result; R2 and residual are those of the moved law, and nothing is known of the
      errors of its constants.
    """
    best = result.best
    draft = dataclasses.replace(
        best,
        expression=best.expression.skeleton.with_constants(constants),
        y0s=best.y0s if y0 is None else (y0, *best.y0s[1:]),
        covariance=None,
        probability=math.nan,
        goodness_of_fit=math.nan,
    )
    moved = dataclasses.replace(result, candidates=(draft, *result.candidates[1:]))
    data = Dataset.of(result.trajectories)
    left = data.weights * np.concatenate(analysis.residuals(moved))
    rms = float(np.sqrt(np.mean(left**2)))
    rms = rms if math.isfinite(rms) else math.inf
    measured = dataclasses.replace(draft, residual_rms=rms, r2=1.0 - (rms / data.spread) ** 2)
    return dataclasses.replace(moved, candidates=(measured, *result.candidates[1:]))


def moved_system(
    found: SystemResult, constants: Sequence[float] | Float[np.ndarray, " constants"]
) -> SystemResult:
    """The same of a system, whose constants stand one law after the other."""
    best = found.best
    draft = dataclasses.replace(
        best,
        laws=best.with_constants(constants),
        covariance=None,
        probability=math.nan,
    )
    moved = dataclasses.replace(found, candidates=(draft, *found.candidates[1:]))
    weights = np.concatenate([run.weights for run in found.runs])
    left = weights * np.concatenate(system_analysis.residuals(moved))
    squares = np.mean(left**2, axis=0)
    squares = np.where(np.isfinite(squares), squares, math.inf)
    spread = Observations(found.system, found.runs).spread ** 2
    measured = dataclasses.replace(
        draft,
        residuals=tuple(float(rms) for rms in np.sqrt(squares)),
        r2s=tuple(float(1.0 - share) for share in squares / spread),
        r2=1.0 - float(np.mean(squares / spread)),
    )
    return dataclasses.replace(moved, candidates=(measured, *found.candidates[1:]))
