"""Stiff systems by LSODA, where the steps of an explicit method would be too many.

Where an input jumps, it begins anew.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.dop853_system import NO_INPUTS, Inputs, fill_inputs
from nsode_jax.dynamics.odepack import EvaluationsSpent, lsoda
from nsode_jax.dynamics.stack_machine import Program, run_system

_LONGEST_STEP = 1 / 16
"""Of the whole time, where there are inputs that a longer one would miss."""


def solve_stiff(
    program: Program,
    memory: Float[np.ndarray, " address"],
    y0: Float[np.ndarray, " states"],
    t: Float[np.ndarray, " time"],
    inputs: Inputs = NO_INPUTS,
    *,
    rtol: float,
    atol: float | Float[np.ndarray, " states"],
    max_steps: int = 500,
    max_evaluations: float = math.inf,
) -> Float[np.ndarray, "time states"] | None:
    """The solution from y0 at t[0].

    Args:
      program: f; its variables are the K states, the inputs, and the time if it is used.
      memory: the program's memory with the constants.
      y0: values at t[0].
      t: increasing times.
      inputs: of f.
      rtol, atol: tolerances, the absolute one of all states or of each.
      max_steps: between two neighbouring times.
      max_evaluations: of f.

    Returns:
      None where there is no solution up to the last time, or none within these limits.
    """
    states, number = len(y0), inputs.coefficients.shape[2]
    with_time = program.variables - states - number
    memory, point, slope = memory.copy(), np.empty(program.variables), np.empty(states)
    left, latest = max_evaluations, math.inf

    def derivative(y, time):
        nonlocal left
        left -= 1
        if left < 0:
            raise EvaluationsSpent
        point[:states] = y
        at = min(time, latest)  # LSODA looks beyond the end.
        fill_inputs(inputs.breaks, inputs.coefficients, with_time, states, at, point)
        if with_time:
            point[-1] = time
        run_system(program.instructions, memory, point, program.results.start, slope)
        return slope

    longest = _LONGEST_STEP * (t[-1] - t[0]) if number else 0.0  # 0: as it likes.
    start, parts = np.asarray(y0, np.float64), []
    inside = inputs.jumps[(inputs.jumps > t[0]) & (inputs.jumps < t[-1])]
    for begin, end in itertools.pairwise([t[0], *inside, t[-1]]):
        latest = np.nextafter(end, -math.inf) if end in inside else math.inf
        asked = t[(t > begin) & (t <= end)]
        times = np.unique(np.r_[begin, asked, end])
        solved = lsoda(
            derivative, start, times, rtol=rtol, atol=atol, max_steps=max_steps,
            longest_step=longest,
        )  # fmt: skip
        if solved is None:
            return None
        parts.append(solved[1 : 1 + asked.size])
        start = solved[-1]
    return np.concatenate([np.asarray(y0, np.float64)[None], *parts])
