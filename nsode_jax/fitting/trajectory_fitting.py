"""Trajectory matching: constants and initial values whose solutions meet the data."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from nsode_jax.selection.rank import Fit, is_plain, spread_of
from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, ExpressionError

FAILED = 1e3
"""Residual, in standard deviations of the data, where a law has no solution."""

_STEP = 1e-5
"""Relative step of finite differences: the solver's own error must stay well below."""

_CENTRAL_STEP = 1e-4
_LEAST_SINGULAR = 1e-5
"""Of the normalized Jacobian, relative to its largest one; below is rounding."""

_SOLVER_TOLERANCE = 1e-10
_MAX_SOLVER_STEPS = 2000


@dataclasses.dataclass(frozen=True)
class Effort:
    """Relative tolerance and most iterations of a Levenberg-Marquardt fit."""

    tolerance: float
    iterations: int


NO_FIT = Effort(1.0, 0)
ROUGH = Effort(1e-4, 10)
FULL = Effort(1e-9, 30)


def match_trajectories(
    trajectories: Sequence[Trajectory],
    expression: Expression,
    y0s: Sequence[float],
    source: int = 0,
    *,
    effort: Effort | None = None,
    seconds: float = 2.0,
) -> Fit:
    """Fits constants and initial values so that the solutions meet the data.

    Constants that are small whole or half numbers stay as they are.

    Args:
      trajectories: the data; all follow the law.
      expression: the law, constants near enough that it has a solution.
      y0s: initial values to start from, one per trajectory.
      source: passed on to the fit.
      effort: tolerance and limit of the iterations; `FULL` if left out.
      seconds: CPU time. A stiff or oscillating law may be slow to solve; its fit
        ends here.

    Returns:
      The best fit found; `converged` says whether it met its tolerance.
    """
    effort = effort or FULL
    problem = _Problem(trajectories, expression, time.thread_time() + seconds)
    start = problem.start(y0s)
    converged = False
    try:
        # The smoothed first value may lie beyond a barrier; the measured one may not.
        for firsts in (y0s, [trajectory.y[0] for trajectory in trajectories]):
            start = problem.start(firsts)
            problem.residual(start)
            if math.isfinite(problem.best_rms):
                break
        observations = problem.data.size
        if effort.iterations and math.isfinite(problem.best_rms) and start.size <= observations:
            result = least_squares(
                problem.residual,
                start,
                jac=problem.jacobian,
                method="lm",
                x_scale="jac",
                ftol=effort.tolerance,
                xtol=effort.tolerance,
                gtol=1e-12,
                max_nfev=effort.iterations,
            )
            converged = result.status > 0
    except _OutOfTime:
        pass
    rms = problem.best_rms
    if not math.isfinite(rms):
        return Fit(expression, tuple(y0s), math.inf, -math.inf, False, source)
    law, firsts = problem.law(problem.best), problem.first_values(problem.best)
    return Fit(law, tuple(firsts), rms * problem.spread, 1 - rms**2, converged, source)


def covariance(
    trajectories: Sequence[Trajectory], fit: Fit
) -> Float[np.ndarray, "constants constants"] | None:
    """Covariance of the constants of a fitted law, from the linearized solution.

    Noise is taken as independent; its variance is the weighted sum of squares over the
    degrees of freedom.

    Returns:
      Shape [constants, constants], zero for those that are not fitted; None where
      the data do not determine the others.
    """
    problem = _Problem(trajectories, fit.expression, math.inf)
    parameters = problem.start(fit.y0s)
    residual = problem.residual(parameters)
    freedom = residual.size - parameters.size
    if freedom < 1 or not math.isfinite(problem.best_rms):
        return None
    # The mean of a difference forward and one backward is exact to second order.
    sides = [problem.jacobian(parameters, step) for step in (_CENTRAL_STEP, -_CENTRAL_STEP)]
    jacobian = (sides[0] + sides[1]) / 2
    size = np.sqrt((jacobian**2).sum(axis=0))
    if not (np.isfinite(jacobian).all() and (size > 0).all()):
        return None
    _, singular, v = np.linalg.svd(jacobian / size, full_matrices=False)
    if singular[-1] < _LEAST_SINGULAR * singular[0]:
        return None
    variance = float(residual @ residual) / freedom
    # Of the relative parameters, initial values last.
    root = v.T / singular / size[:, None]
    number = int(problem.free.sum())
    scaled = root[:number] * problem.scale[:number, None]
    result = np.zeros((problem.free.size, problem.free.size))
    result[np.ix_(problem.free, problem.free)] = variance * scaled @ scaled.T
    return result


class _Problem:
    """Residuals of one law as a function of its relative constants and initial values."""

    def __init__(self, trajectories: Sequence[Trajectory], expression: Expression, stop: float):
        self.trajectories, self.stop = trajectories, stop
        self.skeleton = expression.skeleton
        self.constants = np.array(expression.constants)
        self.free = np.array([not is_plain(c) for c in self.constants], bool)
        self.spread = spread_of(trajectories)
        self.scale = np.concatenate(
            [np.abs(self.constants[self.free]), np.full(len(trajectories), self.spread)]
        )
        self.data = np.concatenate([trajectory.y for trajectory in trajectories])
        self.weights = np.concatenate([trajectory.weights for trajectory in trajectories])
        self.atol = _SOLVER_TOLERANCE * float(np.abs(self.data).max())
        self.best_rms, self.best = math.inf, np.zeros(self.scale.size)

    def start(self, y0s: Sequence[float]) -> Float[np.ndarray, " parameters"]:
        return np.concatenate([self.constants[self.free], y0s]) / self.scale

    def law(self, parameters: Float[np.ndarray, " parameters"]) -> Expression:
        values = self.constants.copy()
        number = int(self.free.sum())
        values[self.free] = parameters[:number] * self.scale[:number]
        return self.skeleton.with_constants(values)

    def first_values(self, parameters: Float[np.ndarray, " parameters"]) -> list[float]:
        return [float(p * self.spread) for p in parameters[int(self.free.sum()) :]]

    def residual(self, parameters: Float[np.ndarray, " parameters"]) -> Float[np.ndarray, " time"]:
        solved = self._solve(parameters, [[y0] for y0 in self.first_values(parameters)])
        values = np.concatenate([solution[0] for solution in solved])
        with np.errstate(all="ignore"):
            residual = self.weights * (values - self.data) / self.spread
            residual = np.clip(residual, -FAILED, FAILED)
        if not np.isfinite(residual).all():
            return np.full(self.data.shape, FAILED)
        rms = float(np.sqrt(np.mean(residual**2)))
        if rms < self.best_rms:
            self.best_rms, self.best = rms, parameters.copy()
        return residual

    def jacobian(
        self, parameters: Float[np.ndarray, " parameters"], step: float = _STEP
    ) -> Float[np.ndarray, "time parameters"]:
        """By differences to one side; a change of one initial value moves one solution only."""
        number = int(self.free.sum())
        firsts = self.first_values(parameters)
        steps = step * np.maximum(np.abs(parameters), 1e-3)
        pairs = [
            [y0, y0 + change * self.spread]
            for y0, change in zip(firsts, steps[number:], strict=True)
        ]
        solved = self._solve(parameters, pairs)
        base = np.concatenate([solution[0] for solution in solved])
        jacobian = np.zeros((self.data.size, parameters.size))
        row = 0
        for i, solution in enumerate(solved):
            rows = slice(row, row + solution.shape[1])
            jacobian[rows, number + i] = (solution[1] - solution[0]) / steps[number + i]
            row = rows.stop
        for i in range(number):
            moved = parameters.copy()
            moved[i] += steps[i]
            solved = self._solve(moved, [[y0] for y0 in firsts])
            jacobian[:, i] = (np.concatenate([s[0] for s in solved]) - base) / steps[i]
        jacobian *= self.weights[:, None] / self.spread
        return np.nan_to_num(jacobian, nan=0.0, posinf=0.0, neginf=0.0)

    def _solve(
        self, parameters: Float[np.ndarray, " parameters"], y0s: Sequence[Sequence[float]]
    ) -> list[Float[np.ndarray, "initials time"]]:
        """Solutions from the initial values given for each trajectory; NaN if there is none."""
        if time.thread_time() > self.stop:
            raise _OutOfTime
        try:
            program = Program.from_expression(self.law(parameters))
        except ExpressionError:  # A constant overflowed.
            return [
                np.full((len(firsts), len(trajectory)), math.nan)
                for firsts, trajectory in zip(y0s, self.trajectories, strict=True)
            ]
        return [
            dop853.integrate(
                program,
                np.array(firsts),
                trajectory.t,
                rtol=_SOLVER_TOLERANCE,
                atol=self.atol,
                max_steps=_MAX_SOLVER_STEPS,
            ).y
            for firsts, trajectory in zip(y0s, self.trajectories, strict=True)
        ]


class _OutOfTime(Exception):
    """The fit of one law has used up its time."""


def polished_fit(trajectories: Sequence[Trajectory], fit: Fit) -> Fit:
    """The fit continued to full tolerance; never a worse one."""
    again = match_trajectories(trajectories, fit.expression, fit.y0s, fit.source)
    return again if again.residual_rms <= fit.residual_rms else fit
