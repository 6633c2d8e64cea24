"""Fits in stages, where a single solution has no chance to follow the data.

Small errors grow over many periods, and in chaos. So each run is cut into segments with
initial values of their own, and neighbouring segments are joined as long as the fit stays as
good (multiple shooting, Bock 1981, without the constraints of continuity: joining takes
their place).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import SystemFit, fit_system
from nsode_jax.fitting.system_problem import SYSTEMATIC_SHARE
from nsode_jax.fitting.trajectory_fitting import NO_FIT, Stopping
from nsode_jax.observed.observations import Observations

_FEWEST = 6
"""Points of a segment."""
_NEARLY = 1.5
"""Joining segments may raise the residual by this factor."""
_FIRST = 25
"""Iterations of the fit of the shortest segments at least, which all others begin from."""
_LOST = 0.5
"""Relative residual of the shortest segments from which on longer ones are not tried."""


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
    first = dataclasses.replace(stopping, iterations=max(stopping.iterations, _FIRST))
    best = _fit_segments(data, laws, origins, segments, first, None)
    lowest = _relative(data, best)
    while segments > 1 and lowest < _LOST:
        segments //= 2
        fit = _fit_segments(data, best.laws, origins, segments, stopping, best)
        left = _relative(data, fit)
        if left <= max(_NEARLY * lowest, SYSTEMATIC_SHARE):
            best = fit
        lowest = min(lowest, left)
    return best


def _fit_segments(
    data: Observations,
    laws: Sequence[Expression],
    origins: Sequence[Origin],
    segments: int,
    stopping: Stopping,
    shorter: SystemFit | None,
) -> SystemFit:
    """A fit from the best of several states at the first time of each segment.

    They are those of the smooth curves, which lead astray where there are few points between two
    turns; the measured ones; and those to which a fit of shorter segments led.
    """
    starts: list[Float[np.ndarray, "segments states"] | None] = [None]
    if data.system.order == 1:
        begins = [run.y[rows.start] for run in data.runs for rows in run.pieces(segments)]
        starts.append(np.array(begins))
    if shorter is not None:
        starts.append(shorter.states[:: shorter.segments // segments])

    def fit(states: Float[np.ndarray, "segments states"] | None, stopping: Stopping) -> SystemFit:
        return fit_system(data, laws, origins, stopping=stopping, segments=segments, states=states)

    begun = [_relative(data, fit(states, NO_FIT)) for states in starts]
    return fit(starts[int(np.argmin(begun))], stopping)


def _relative(data: Observations, fit: SystemFit) -> float:
    """Root mean square residual of all quantities relative to their spread."""
    return float(np.sqrt(np.mean((fit.residuals / data.spread) ** 2)))
