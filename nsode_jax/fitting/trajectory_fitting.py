"""Trajectory fitting: constants and initial values whose solutions meet the data."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.fitting.linearized import Linearized, autocorrelation
from nsode_jax.fitting.trust_region import BudgetSpent, minimized
from nsode_jax.observed.dataset import Dataset

_GOOD_START = 0.1
"""Residual, in standard deviations of the data, of first values that are good enough to begin."""

FAILED = 1e3
"""Residual, in standard deviations of the data, where a law has no solution."""

_STEP = 1e-5
"""Relative step of finite differences: the solver's own error must stay well below."""

_CENTRAL_STEP = 1e-4
_MOST_CHANGE = 1e-4
"""Of a solution by a step, in spreads of the data: where terms nearly cancel, as in values far
from 0, a constant has a large effect, and its step is made shorter."""

_SHORTENED = 4
"""So often at most."""

LEAST_SINGULAR = 1e-6
"""Of the normalized Jacobian, relative to its largest one; below is rounding."""

_SOLVER_TOLERANCE, _PRECISE = 1e-10, 1e-12
"""Relative; the second for derivatives, as constants may compensate each other nearly."""

_FAR = 10.0
"""So many times longer steps of constants are for values far from 0."""

_MAX_SOLVER_STEPS = 2000
"""Of one solution; one that needs more counts as none."""

_MOST_STEPS = 400_000
"""Of the solver in one fit. A law that is so slow to solve is taken as far as it got."""


@dataclasses.dataclass(frozen=True)
class Stopping:
    """Relative tolerance and most iterations of a fit."""

    tolerance: float
    iterations: int


NO_FIT = Stopping(1.0, 0)
ROUGH = Stopping(1e-4, 10)
FULL = Stopping(1e-9, 30)


def fit_trajectories(
    data: Dataset,
    expression: Expression,
    y0s: Sequence[float],
    origin: Origin,
    stopping: Stopping = FULL,
) -> Fit:
    """Fits constants and initial values so that the solutions meet the data.

    Constants that are small whole or half numbers stay as they are.

    Args:
      data: the series; all follow the law.
      expression: the law, constants near enough that it has a solution.
      y0s: initial values to start from, one per trajectory.
      origin: passed on to the fit.
      stopping: tolerance and limit of the iterations. A stiff or oscillating law may
        be slow to solve: its fit ends after `_MOST_STEPS` of the solver.

    Returns:
      The best fit found; `converged` says whether it met its tolerance.
    """
    problem = Problem.of(data, expression, _MOST_STEPS)
    start = problem.start(y0s)
    converged = False
    try:
        # The smoothed first value may lie beyond a barrier; the measured one may not.
        measured = [float(trajectory.y[0]) for trajectory in data]
        good = _GOOD_START if stopping.iterations else math.inf
        for firsts in (lambda: y0s, lambda: measured, problem.from_middles):
            if problem.best_rms < good:
                break
            problem.residual(problem.start(firsts()))
        start = problem.best
        observations = problem.data.size
        if stopping.iterations and math.isfinite(problem.best_rms) and start.size <= observations:
            converged = problem.minimized(start, stopping)
    except BudgetSpent:
        pass
    rms = problem.best_rms
    if not math.isfinite(rms):
        return Fit(expression, tuple(y0s), math.inf, -math.inf, False, origin)
    law, firsts = problem.law(problem.best), problem.first_values(problem.best)
    return Fit(law, tuple(firsts), rms * problem.spread, 1 - rms**2, converged, origin)


def covariance(
    data: Dataset, fit: Fit, factors: Float[np.ndarray, " observations"] | None = None
) -> Float[np.ndarray, "constants constants"] | None:
    """Covariance of the constants of a fitted law, from the linearized solution.

    The variance of the noise is that of the known errors of measurement, which is not made
    larger where they are too small for the residuals; if they are unknown, the weighted sum of
    squares over the degrees of freedom. What residuals are alike from one observation to the
    next makes the covariance larger (`dependence`).

    Args:
      data: the series.
      fit: of a law to them.
      factors: those of a robust fit, by which the noise of the data is larger, shape
        [observations]. The variance is that of the residuals then.

    Returns:
      Shape [constants, constants], zero for those that are not fitted; None where
      the data do not determine the others.
    """
    free = _free(fit.expression)
    linear = linearized(data, fit)
    if linear is None or linear.freedom < 1:
        return None
    if factors is not None:
        linear = linear.with_residuals_bounded(factors)
    # Of the relative parameters, initial values last.
    root = linear.root_of_covariance([data.rows], LEAST_SINGULAR * data.nearness)
    if root is None:
        return None
    variance = float(linear.residual @ linear.residual) / linear.freedom
    if data.sigma is not None and factors is None:
        variance = (data.sigma / data.spread) ** 2
    constants = np.abs(np.array(fit.expression.constants)[free])
    scaled = root[: constants.size] * constants[:, None]
    result = np.zeros((free.size, free.size))
    result[np.ix_(free, free)] = variance * scaled @ scaled.T
    return result


def linearized(data: Dataset, fit: Fit) -> Linearized | None:
    """The fit to first order; None for a law that has no solution near the data."""
    problem = Problem.of(data, fit.expression)
    return problem.linearized(problem.start(fit.y0s))


def autocorrelation_of(data: Dataset, fit: Fit) -> float:
    """Of neighbouring residuals of a fit, within their series; 0 if there are none."""
    return autocorrelation(residuals_of(data, fit))


def residuals_of(data: Dataset, fit: Fit) -> list[Float[np.ndarray, " time"]]:
    """Weighted residuals of a fit, by series."""
    problem = Problem.of(data, fit.expression)
    return data.split(problem.residual(problem.start(fit.y0s)))


def _free(expression: Expression) -> Bool[np.ndarray, " constants"]:
    """Constants that are fitted: small whole and half numbers stay as they are."""
    return np.array([not is_plain(c) for c in expression.constants], bool)


class Problem:
    """Residuals of one law as a function of its relative constants and initial values.

    Attributes:
      scale: what those are relative to, constants first: their own magnitude at the
        beginning, and the spread of the data, shape [parameters].
      best, best_rms: parameters with the smallest residual so far, and that.
    """

    def __init__(
        self,
        data: Dataset,
        law_of: Callable[[Float[np.ndarray, " constants"]], Expression],
        constants: Float[np.ndarray, " constants"],
        steps: float = math.inf,
        bounds: Bounds | None = None,
    ):
        """Args:
        data: the series; all follow the law.
        law_of: the law with given constants.
        constants: where those that are fitted begin, none of them 0.
        steps: of the solver, after which `BudgetSpent` is raised.
        bounds: of the constants, which begin within.
        """
        self.trajectories, self.steps, self.whole = data.trajectories, steps, data.whole
        self.law_of, self.constants, self.bounds = law_of, constants, bounds
        self.spread, self.sigma = data.spread, data.sigma
        self.scale = np.concatenate([np.abs(constants), np.full(len(data), self.spread)])
        self.data, self.weights = data.y, data.weights
        self.rtol, self.resolution = _SOLVER_TOLERANCE, data.resolution
        self.nearness = data.nearness
        self.best_rms, self.best = math.inf, np.zeros(self.scale.size)

    @classmethod
    def of(cls, data: Dataset, expression: Expression, steps: float = math.inf) -> Problem:
        """The problem of a law's constants that are no plain numbers."""
        free, values = _free(expression), np.array(expression.constants)

        def law_of(constants: Float[np.ndarray, " constants"]) -> Expression:
            values[free] = constants
            return expression.skeleton.with_constants(values)

        return cls(data, law_of, values[free], steps)

    def start(self, y0s: Sequence[float]) -> Float[np.ndarray, " parameters"]:
        return np.concatenate([self.constants, y0s]) / self.scale

    def law(self, parameters: Float[np.ndarray, " parameters"]) -> Expression:
        return self.law_of((parameters * self.scale)[: self.constants.size])

    def first_values(self, parameters: Float[np.ndarray, " parameters"]) -> list[float]:
        return [float(p * self.spread) for p in parameters[self.constants.size :]]

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
        number = self.constants.size
        firsts = self.first_values(parameters)
        steps = step * np.clip(np.abs(parameters[number:]), 1e-3, 1.0)
        pairs = [[y0, y0 + change * self.spread] for y0, change in zip(firsts, steps, strict=True)]
        solved = self._solve(parameters, pairs)
        base = np.concatenate([solution[0] for solution in solved])
        jacobian = np.zeros((self.data.size, parameters.size))
        row = 0
        for i, solution in enumerate(solved):
            rows = slice(row, row + solution.shape[1])
            jacobian[rows, number + i] = (solution[1] - solution[0]) / steps[i]
            row = rows.stop
        for direction, size in zip(*self._directions(parameters, step), strict=True):
            along = self._along(parameters, firsts, base, size * direction) / size
            jacobian[:, :number] += np.outer(along, direction)
        jacobian *= self.weights[:, None] / self.spread
        return np.nan_to_num(jacobian, nan=0.0, posinf=0.0, neginf=0.0)

    def _directions(
        self, parameters: Float[np.ndarray, " parameters"], step: float
    ) -> tuple[Float[np.ndarray, "directions constants"], Float[np.ndarray, " directions"]]:
        """Orthonormal directions of the relative constants, and the steps along them.

        Each constant alone, but for values far from 0: terms nearly cancel there, all constants
        have all but the same effect, and what one has beyond it is lost in its difference. The
        directions are those that change f along the data independently of each other then.
        """
        constants = parameters[: self.constants.size]
        alone = np.eye(constants.size), step * np.maximum(np.abs(constants), 1e-3)
        if self.nearness == 1.0 or constants.size < 2:
            return alone
        sides = [self._rates(parameters, side * move) for move in alone[0] for side in (1, -1)]
        slopes = (np.array(sides[::2]) - sides[1::2]).T / (2 * _STEP)
        size = float(np.sqrt(np.mean(self._rates(parameters, 0.0 * constants) ** 2)))
        if not (np.isfinite(slopes).all() and size > 0.0):
            return alone
        _, singular, directions = np.linalg.svd(slopes / size / math.sqrt(len(slopes)))
        sizes = np.ones(constants.size)  # Of those beyond the data, which f does not tell.
        sizes[: singular.size] = np.maximum(singular, 1.0)
        return directions, _FAR * step / sizes

    def _rates(
        self, parameters: Float[np.ndarray, " parameters"], move: Float[np.ndarray, " constants"]
    ) -> Float[np.ndarray, " time"]:
        """f along the data, constants moved."""
        moved = parameters.copy()
        moved[: move.size] += _STEP * move
        with np.errstate(all="ignore"):
            return self.whole(self.law(moved)).evaluate(self.data)

    def _along(
        self,
        parameters: Float[np.ndarray, " parameters"],
        firsts: Sequence[float],
        base: Float[np.ndarray, " time"],
        move: Float[np.ndarray, " constants"],
    ) -> Float[np.ndarray, " time"]:
        """How solutions change with a move of the constants, shortened to fit its effect."""
        most, change, step = _MOST_CHANGE * self.spread, base, 1.0
        for _ in range(_SHORTENED):
            moved = parameters.copy()
            moved[: move.size] += step * move
            solved = self._solve(moved, [[y0] for y0 in firsts])
            change = np.concatenate([s[0] for s in solved]) - base
            largest = float(np.abs(self.weights * change).max())
            if largest <= most:
                break
            step *= most / (2 * largest) if math.isfinite(largest) else 0.1
        return np.nan_to_num(change / step, nan=0.0, posinf=0.0, neginf=0.0)

    def from_middles(self) -> list[float]:
        """First values whose solutions pass through a value in the middle of each series.

        Near an unstable fixed point the first values do not tell on which side of it they
        are, or not well; later ones do. NaN becomes the first value measured.
        """
        law = self.whole(self.law_of(self.constants))
        back = Program.from_expression(Expression(("neg", *law.prefix), law.variables))
        firsts = []
        for trajectory in self.trajectories:
            middle = (trajectory.y.min() + trajectory.y.max()) / 2
            place = max(1, int(np.argmin(np.abs(trajectory.y - middle))))
            elapsed = trajectory.t[place] - trajectory.t[place::-1]
            solved = self._integrate(back, [trajectory.y[place]], elapsed)
            first = float(solved[0, -1])
            firsts.append(first if math.isfinite(first) else float(trajectory.y[0]))
        return firsts

    def linearized(self, parameters: Float[np.ndarray, " parameters"]) -> Linearized | None:
        """To first order there; None where the law has no solution near the data."""
        residual = self.residual(parameters)
        if not math.isfinite(self.best_rms):
            return None
        precise = copy.copy(self)
        precise.rtol = _PRECISE
        # The mean of a difference forward and one backward is exact to second order.
        sides = [precise.jacobian(parameters, step) for step in (_CENTRAL_STEP, -_CENTRAL_STEP)]
        jacobian = (sides[0] + sides[1]) / 2
        return Linearized(residual, jacobian) if np.isfinite(jacobian).all() else None

    def minimized(self, start: Float[np.ndarray, " parameters"], stopping: Stopping) -> bool:
        """Moves `best` to a minimum near the start; whether the tolerance was met.

        Raises:
          BudgetSpent: if that takes too long; `best` is how far it got.
        """
        return minimized(
            self.residual,
            self.jacobian,
            start,
            tolerance=stopping.tolerance,
            iterations=stopping.iterations,
            bounds=None if self.bounds is None else self.bounds.relative(self.scale),
        )

    def _solve(
        self, parameters: Float[np.ndarray, " parameters"], y0s: Sequence[Sequence[float]]
    ) -> list[Float[np.ndarray, "initials time"]]:
        """Solutions from the initial values given for each trajectory; NaN if there is none."""
        if self.steps <= 0:
            raise BudgetSpent
        try:
            program = Program.from_expression(self.whole(self.law(parameters)))
        except ExpressionError:  # A constant overflowed.
            return [
                np.full((len(firsts), len(trajectory)), math.nan)
                for firsts, trajectory in zip(y0s, self.trajectories, strict=True)
            ]
        return [
            self._integrate(program, firsts, trajectory.t)
            for firsts, trajectory in zip(y0s, self.trajectories, strict=True)
        ]

    def _integrate(
        self, program: Program, y0s: Sequence[float], t: Float[np.ndarray, " time"]
    ) -> Float[np.ndarray, "initials time"]:
        tolerance = self.rtol * self.nearness
        solutions = dop853.integrate(
            program,
            np.array(y0s),
            t,
            rtol=tolerance,
            atol=tolerance * self.resolution,
            max_steps=_MAX_SOLVER_STEPS,
        )
        self.steps -= int(solutions.steps.sum())
        return solutions.y


def polished_fit(data: Dataset, fit: Fit) -> Fit:
    """The fit continued to full tolerance; never a worse one."""
    again = fit_trajectories(data, fit.expression, fit.y0s, fit.origin)
    return again if again.residual_rms <= fit.residual_rms else fit
