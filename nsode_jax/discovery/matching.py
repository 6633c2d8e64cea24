"""Trajectory matching: constants and initial value whose solution meets the data."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np
from scipy.optimize import least_squares

from nsode_jax.discovery.integral import FAILED
from nsode_jax.discovery.rank import Fit, is_plain
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, ExpressionError


@dataclasses.dataclass(frozen=True)
class Effort:
    """Relative tolerance and most iterations of a Levenberg-Marquardt fit."""

    tolerance: float
    iterations: int


NO_FIT = Effort(1.0, 0)
ROUGH = Effort(1e-4, 10)
FULL = Effort(1e-9, 30)


def match_trajectory(
    trajectory: Trajectory,
    expression: Expression,
    y0: float,
    source: int = 0,
    *,
    effort: Effort | None = None,
    seconds: float = 2.0,
) -> Fit:
    """Fits constants and initial value so that the solution meets the data.

    Constants that are small whole or half numbers stay as they are.

    Args:
      trajectory: the data.
      expression: the law, constants near enough that it has a solution.
      y0: initial value to start from.
      source: passed on to the fit.
      effort: tolerance and limit of the iterations; `FULL` if left out.
      seconds: CPU time. A stiff or oscillating law may be slow to solve; its fit
        ends here.

    Returns:
      The best fit found; `converged` says whether it met its tolerance.
    """
    effort = effort or FULL
    constants = np.array(expression.constants)
    free = np.array([not is_plain(c) for c in constants], bool)
    t, y = trajectory.t, trajectory.y
    spread = float(y.std()) or 1.0
    scale = np.concatenate([[spread], np.abs(constants[free])])
    atol = 1e-9 * float(np.abs(y).max())
    stop = time.thread_time() + seconds
    best = (math.inf, np.array([y0 / spread]))

    def law(relative: np.ndarray) -> Expression:
        values = constants.copy()
        values[free] = relative[1:] * scale[1:]
        return expression.skeleton.with_constants(values)

    def residual(relative: np.ndarray) -> np.ndarray:
        nonlocal best
        if time.thread_time() > stop:
            raise _OutOfTime
        try:
            solution = solve(law(relative), relative[0] * spread, t, atol=atol)
        except ExpressionError:  # A constant overflowed.
            solution = None
        if solution is None:
            return np.full(y.shape, FAILED)
        values = np.clip((solution - y) / spread, -FAILED, FAILED)
        rms = float(np.sqrt(np.mean(values**2)))
        if rms < best[0]:
            best = rms, relative.copy()
        return values

    start = np.concatenate([[y0], constants[free]]) / scale
    converged = False
    try:
        # The smoothed first value may lie beyond a barrier; the measured one may not.
        for first in (y0, float(y[0])):
            start[0] = first / spread
            residual(start)
            if math.isfinite(best[0]):
                break
        if effort.iterations and math.isfinite(best[0]) and start.size <= y.size:
            # Steps of 1e-5: the solver's own error, 1e-9, must stay well below.
            result = least_squares(
                residual,
                start,
                method="lm",
                x_scale="jac",
                diff_step=1e-5,
                ftol=effort.tolerance,
                xtol=effort.tolerance,
                gtol=1e-12,
                max_nfev=effort.iterations * (start.size + 1),
            )
            converged = result.status > 0
    except _OutOfTime:
        pass
    rms, relative = best
    if not math.isfinite(rms):
        return Fit(expression, y0, math.inf, -math.inf, False, source)
    fitted_y0 = float(relative[0] * spread)
    return Fit(law(relative), fitted_y0, rms * spread, 1 - rms**2, converged, source)


class _OutOfTime(Exception):
    """The fit of one law has used up its time."""


def polished_fit(trajectory: Trajectory, fit: Fit) -> Fit:
    """The fit continued to full tolerance; never a worse one."""
    again = match_trajectory(trajectory, fit.expression, fit.y0, fit.source)
    return again if again.residual_rms <= fit.residual_rms else fit
