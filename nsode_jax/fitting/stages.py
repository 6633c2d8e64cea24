"""Fits in stages, where a single solution has no chance to follow the data.

Small errors grow over many periods, and in chaos. So each run is cut into segments with
initial values of their own, and neighbouring segments are joined as long as the fit stays as
good (multiple shooting, Bock 1981, without the constraints of continuity: joining takes
their place).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import SystemFit, fit_system
from nsode_jax.fitting.system_problem import SYSTEMATIC_SHARE
from nsode_jax.fitting.trajectory_fitting import Stopping
from nsode_jax.observed.observations import Observations

_FEWEST = 6
"""Points of a segment."""
_NEARLY = 1.5
"""Joining segments may raise the residual by this factor."""


def fit_in_stages(
    data: Observations,
    laws: Sequence[Expression],
    origins: Sequence[Origin],
    *,
    stopping: Stopping,
) -> SystemFit:
    """Fits short segments first, and joins them as long as the fit stays as good.

    Returns:
      The fit with the fewest segments whose residual is near the best one.
    """
    shortest = min(map(len, data.runs))
    segments = 1
    while shortest // (2 * segments) >= _FEWEST:
        segments *= 2
    best: SystemFit | None = None
    while segments >= 1:
        fits = [
            fit_system(
                data,
                laws if best is None else best.laws,
                origins,
                stopping=stopping,
                segments=segments,
                states=states,
            )
            # Where pieces are joined the fitted states, and if those lead astray, the smoothed.
            for states in (
                None,
                *(() if best is None else (best.states[:: best.segments // segments],)),
            )
        ]
        fit = min(fits, key=lambda fit: _relative(data, fit))
        if best is None or _relative(data, fit) <= max(
            _NEARLY * _relative(data, best), SYSTEMATIC_SHARE
        ):
            best = fit
        segments //= 2
    assert best is not None
    return best


def _relative(data: Observations, fit: SystemFit) -> float:
    """Root mean square residual of all quantities relative to their spread."""
    return float(np.sqrt(np.mean((fit.residuals / data.spread) ** 2)))
