"""How well a law predicts the part of the data that it was not fitted to."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.trajectory_fitting import ROUGH, fit_trajectories
from nsode_jax.observed.dataset import Dataset

HELD_OUT = 0.25
"""Share of each series that is held out: once at its end, once at its beginning."""


def held_out_error(data: Dataset, fit: Fit) -> float:
    """Error of a law where it was not fitted, relative to the spread of the data.

    The constants and initial values are fitted again without the last quarter of each
    series, and without the first; the solutions are continued over what was left out.

    Args:
      data: the series.
      fit: the law fitted to all of them, from which the fits begin.

    Returns:
      Root mean square over what was left out; inf where a solution does not reach it.
    """
    squares, count = 0.0, 0
    for at_end in (True, False):
        hidden = [_hidden(trajectory, at_end) for trajectory in data]
        seen = [
            dataclasses.replace(
                trajectory, noise=np.where(mask, math.inf, 1.0 / trajectory.weights)
            )
            for trajectory, mask in zip(data, hidden, strict=True)
        ]
        part = dataclasses.replace(data, trajectories=tuple(seen))
        again = fit_trajectories(part, fit.expression, fit.y0s, fit.origin, ROUGH)
        if again.diverged:
            return math.inf
        program = Program.from_expression(data.whole(again.expression))
        for trajectory, mask, y0 in zip(data, hidden, again.y0s, strict=True):
            solution = dop853.integrate(
                program,
                np.array([y0]),
                trajectory.t,
                rtol=1e-8,
                atol=1e-8 * data.resolution,
                max_steps=2000,
            ).y[0]
            error = (trajectory.weights * (solution - trajectory.y))[mask]
            squares += float(error @ error) / data.spread**2
            count += int(mask.sum())
    return math.sqrt(squares / count) if math.isfinite(squares) else math.inf


def _hidden(trajectory: Trajectory, at_end: bool) -> np.ndarray:
    """Mask of the points in the last, or the first, quarter of the series."""
    number = max(1, round(HELD_OUT * len(trajectory)))
    mask = np.zeros(len(trajectory), bool)
    mask[slice(-number, None) if at_end else slice(number)] = True
    return mask
