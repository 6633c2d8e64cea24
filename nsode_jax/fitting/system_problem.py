"""Residuals of a system as a function of all its constants and initial values.

What `shooting` minimizes: the solutions of each segment of each run minus the data, in units
of their noise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from nsode_jax.dynamics import dop853_system
from nsode_jax.dynamics.dop853 import TOO_MANY_STEPS
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.dynamics.stiff import solve_stiff
from nsode_jax.expressions.constants import exponent_constants, is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError, Skeleton
from nsode_jax.expressions.operators import UNIT
from nsode_jax.fitting.linearized import Linearized
from nsode_jax.fitting.trajectory_fitting import FAILED
from nsode_jax.fitting.trust_region import BudgetSpent
from nsode_jax.observed.observations import Observations, Run

SYSTEMATIC_SHARE = 1e-3
"""Of the spread: no quantity is taken to be more precise beside the others."""

SOLVER_TOLERANCE = 1e-7
"""Of solutions; of constants that exact data tell too."""
_MAX_STEPS = 3000
_STIFF_TOLERANCE, _STIFF_EVALUATIONS, _STIFF_WORK = 1e-10, 5000, 1000
"""Of LSODA, whose neighbouring solutions take steps of their own: their differences need more
digits. And what one such solution counts as, in steps."""
_BREAKS = 300
"""Times at which inputs were measured: more of them ask for as many more steps."""
_MOST_WORK = 400_000
"""Steps of the solver, times solutions that take them, that one fit may cost."""
_STEP = 1e-6
_FAR = 30.0
"""A solution so many times farther out than the data has failed."""


@dataclasses.dataclass(frozen=True)
class Tie:
    """A constant that is another one, with the opposite sign: places in all constants."""

    place: int
    partner: int


def laws_with_constants(
    skeletons: Sequence[Skeleton], values: Float[np.ndarray, " constants"]
) -> tuple[Expression, ...]:
    """Laws with new constants, those of all laws one after the other."""
    ends = np.cumsum([skeleton.num_constants for skeleton in skeletons])[:-1]
    parts = np.split(values, ends)
    return tuple(one.with_constants(part) for one, part in zip(skeletons, parts, strict=True))


@dataclasses.dataclass(frozen=True, eq=False)
class _Segment:
    """Observations from one row of a run up to another."""

    run: Run
    rows: slice

    @property
    def t(self) -> Float[np.ndarray, " time"]:
        return self.run.t[self.rows]

    @property
    def y(self) -> Float[np.ndarray, "time observed"]:
        return self.run.y[self.rows]

    @property
    def weights(self) -> Float[np.ndarray, "time observed"]:
        return self.run.weights[self.rows]


class Problem:
    """Residuals as a function of relative constants and initial states of the segments."""

    def __init__(
        self,
        data: Observations,
        laws: Sequence[Expression],
        ties: Sequence[Tie],
        segments: int,
        states: Float[np.ndarray, "segments states"] | None = None,
        noise: Float[np.ndarray, " observed"] | None = None,
    ):
        self.system, self.observed = data.system, len(data.system.observed)
        self.counts = data.counts
        self.skeletons = [law.skeleton for law in laws]
        self.values = np.concatenate([law.constants for law in laws])
        free = np.concatenate([_free(law) for law in laws]).astype(bool)
        free[[tie.place for tie in ties]] = False
        self.free, self.ties = np.flatnonzero(free), ties
        self.segments = [_Segment(run, rows) for run in data.runs for rows in run.pieces(segments)]
        least = SYSTEMATIC_SHARE * data.spread
        self.noise = np.maximum(data.noise if noise is None else noise, least)
        order = data.system.order
        if states is None:
            states = np.array([s.run.states(s.t[:1], order)[:, 0] for s in self.segments])
        self.start_states = states
        self.state_size = data.state_size
        self.resolution = np.array([data.resolution(s.run) for s in self.segments])
        self.start_size = np.hypot(states, self.resolution)
        self.scale = np.abs(self.values[self.free])
        self.scale[self.scale == 0.0] = 1.0
        self.size = sum(segment.y.size for segment in self.segments)
        self.program = Program.from_expressions(self.system.equations(laws))
        self.places = _addresses(self.system.equations(laws))
        breaks = max(run.inputs.breaks.size for run in data.runs)
        self.more = max(1.0, breaks / _BREAKS)
        self.work = _MOST_WORK * self.more
        self.stiff: set[int] = set()  # Segments that DOP853 takes too many steps for.
        self.best_rms, self.best = math.inf, self.start()

    # --- parameters ----------------------------------------------------------

    def start(self) -> Float[np.ndarray, " parameters"]:
        constants = self.values[self.free] / self.scale
        return np.concatenate([constants, (self.start_states / self.start_size).ravel()])

    def constants(self, parameters: Float[np.ndarray, " parameters"]) -> np.ndarray:
        values = self.values.copy()
        values[self.free] = parameters[: self.free.size] * self.scale
        for tie in self.ties:
            values[tie.place] = -values[tie.partner]
        return values

    def constants_by(self, root: Float[np.ndarray, "parameters n"]) -> np.ndarray:
        """How all constants change with combinations of the parameters."""
        changes = np.zeros((self.values.size, root.shape[1]))
        changes[self.free] = root[: self.free.size] * self.scale[:, None]
        for tie in self.ties:
            changes[tie.place] = -changes[tie.partner]
        return changes

    def states(self, parameters: Float[np.ndarray, " parameters"]) -> np.ndarray:
        states = parameters[self.free.size :].reshape(self.start_states.shape)
        return states * self.start_size

    def laws(self, parameters: Float[np.ndarray, " parameters"]) -> tuple[Expression, ...]:
        return laws_with_constants(self.skeletons, self.constants(parameters))

    # --- residuals -----------------------------------------------------------

    def residual(self, parameters: Float[np.ndarray, " parameters"]) -> np.ndarray:
        parts = [solved[0] for solved in self._solve(parameters, derivatives=False)]
        with np.errstate(all="ignore"):
            left = np.concatenate(
                [
                    (segment.weights * (y - segment.y) / self.noise).ravel()
                    for y, segment in zip(parts, self.segments, strict=True)
                ]
            )
            rms = float(np.sqrt(np.mean(left**2)))
        if not math.isfinite(rms):
            return np.full(self.size, FAILED)
        if rms < self.best_rms:
            self.best_rms, self.best = rms, parameters.copy()
        return left

    def residuals_of(self, parameters: Float[np.ndarray, " parameters"]) -> np.ndarray:
        """Weighted root mean square per quantity, in its units; inf without a solution."""
        if not math.isfinite(self.best_rms):
            return np.full(self.observed, math.inf)
        self.work = math.inf
        parts = [solved[0] for solved in self._solve(parameters, derivatives=False)]
        left = np.concatenate([s.weights * (y - s.y) for y, s in zip(parts, self.segments)])
        return np.sqrt((left**2).sum(axis=0) / self.counts)

    def jacobian(self, parameters: Float[np.ndarray, " parameters"]) -> np.ndarray:
        jacobian = np.zeros((self.size, parameters.size))
        row, number, states = 0, self.free.size, self.start_states.shape[1]
        for i, solved in enumerate(self._solve(parameters, derivatives=True)):
            # [copies, time, observed] --> [time * observed, copies]
            slopes = self.segments[i].weights * (solved[1:] - solved[0]) / self.noise / _STEP
            slopes = slopes.reshape(len(slopes), -1).T
            rows = slice(row, row + len(slopes))
            jacobian[rows, :number] = slopes[:, :number]
            first = number + i * states
            jacobian[rows, first : first + states] = slopes[:, number:]
            row = rows.stop
        return np.nan_to_num(jacobian, nan=0.0, posinf=0.0, neginf=0.0)

    def linearized(self) -> Linearized | None:
        """The residuals to first order about the start; None without a solution there."""
        try:
            residual, jacobian = self.residual(self.start()), self.jacobian(self.start())
        except BudgetSpent:
            return None
        return Linearized(residual, jacobian) if math.isfinite(self.best_rms) else None

    def _solve(
        self, parameters: Float[np.ndarray, " parameters"], derivatives: bool
    ) -> list[Float[np.ndarray, "copies time observed"]]:
        """The observed quantities of each segment; with copies for every parameter."""
        states = self.states(parameters)
        number = self.free.size
        copies = 1 + (number + states.shape[1] if derivatives else 0)
        try:
            base = self._memory(parameters)
        except ExpressionError:
            return [np.full((copies, *s.y.shape), math.nan) for s in self.segments]
        memories = np.repeat(base[None], copies, axis=0)
        if derivatives:
            for i in range(number):
                moved = parameters.copy()
                moved[i] += _STEP
                memories[1 + i] = self._memory(moved)
        found = []
        for i, (y0, size) in enumerate(zip(states, self.start_size, strict=True)):
            starts = np.repeat(y0[None], copies, axis=0)
            if derivatives:
                starts[1 + number :] += _STEP * np.diag(size)
            found.append(self._solutions(i, memories, starts)[:, :, : self.observed])
        return found

    def _solutions(
        self,
        number: int,
        memories: Float[np.ndarray, "copies address"],
        starts: Float[np.ndarray, "copies states"],
    ) -> Float[np.ndarray, "copies time states"]:
        """The states of a segment; NaN without a solution."""
        segment, level = self.segments[number], self.resolution[number]
        if self.work <= 0:
            raise BudgetSpent
        if number not in self.stiff:
            solved = dop853_system.integrate(
                self.program,
                memories,
                starts,
                segment.t,
                segment.run.inputs,
                rtol=SOLVER_TOLERANCE,
                atol=SOLVER_TOLERANCE * level,
                limit=_FAR * self.state_size,
                max_steps=round(_MAX_STEPS * self.more),
            )
            self.work -= solved.steps * len(starts)
            if solved.status != TOO_MANY_STEPS:
                return solved.y
        found = np.full((len(starts), segment.t.size, starts.shape[1]), math.nan)
        for copy, (memory, y0) in enumerate(zip(memories, starts, strict=True)):
            self.work -= _STIFF_WORK
            solution = solve_stiff(
                self.program,
                memory,
                y0,
                segment.t,
                segment.run.inputs,
                rtol=_STIFF_TOLERANCE,
                atol=_STIFF_TOLERANCE * level,
                max_evaluations=_STIFF_EVALUATIONS * self.more,
            )
            if solution is None:
                return np.full_like(found, math.nan)
            found[copy] = solution
        self.stiff.add(number)
        return found

    def _memory(self, parameters: Float[np.ndarray, " parameters"]) -> np.ndarray:
        values = self.constants(parameters)
        if not np.isfinite(values).all():
            raise ExpressionError("a constant overflowed")
        memory = self.program.memory.copy()
        memory[self.places] = values
        return memory


def _free(law: Expression) -> Bool[np.ndarray, " constants"]:
    """Which constants are fitted: all but whole and half exponents."""
    plain = np.array([is_plain(c) for c in law.constants], bool)
    return ~(exponent_constants(law.skeleton) & plain)


def _addresses(equations: Sequence[Expression]) -> Int[np.ndarray, " constants"]:
    """Where the constants of the equations are in the memory of their program."""
    address, found = len(equations[0].variables), []
    for equation in equations:
        for token, kind in zip(equation.prefix, equation.skeleton.tokens, strict=True):
            if not isinstance(token, str):
                if kind != UNIT:
                    found.append(address)
                address += 1
    return np.array(found, int)
