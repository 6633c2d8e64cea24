"""Several coupled equations, dy_k/dt = f_k(y, u(t), t), and their solutions.

A law of second order that is seen by its positions alone is a system too: y' = v is known
and v' = f(y, v, ...) is looked for.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator

from nsode_jax.dynamics import dop853_system
from nsode_jax.dynamics.dop853 import TOO_MANY_STEPS
from nsode_jax.dynamics.dop853_system import NO_INPUTS, Inputs
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.dynamics.stiff import solve_stiff
from nsode_jax.expressions.coupled import MOST_STATES
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import TIME

MOST_OBSERVED = MOST_STATES
"""Quantities that one system may have."""

_FEW_STEPS, _LARGE_STEP, _ONWARD = 1 / 3, 1 / 20, 1 / 4
"""Of an input that holds: most changes, by the rows; the least typical one, by the range; and
most of them that go on in the same direction at the next row."""


@dataclasses.dataclass(frozen=True)
class System:
    """What the equations are about.

    Attributes:
      observed: names of the measured quantities, 1 to 4.
      inputs: names of measured inputs, which have no equations.
      explicit_time: whether laws may depend on the time.
      order: 1, or 2 where positions are observed and velocities are not.
    """

    observed: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    explicit_time: bool = False
    order: int = 1

    def __post_init__(self):
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order}")
        if not 1 <= len(self.observed) <= MOST_OBSERVED:
            raise ValueError(
                f"a system has 1 to {MOST_OBSERVED} quantities, got {len(self.observed)}"
            )
        Expression((1.0,), self.variables)  # Names that cannot be used are refused.

    @property
    def velocities(self) -> tuple[str, ...]:
        """Names of the unobserved velocities; none of a system of first order."""
        if self.order == 1:
            return ()
        taken = {*self.observed, *self.inputs}
        if len(self.observed) == 1 and "v" not in taken:
            return ("v",)
        names = []
        for name in self.observed:
            velocity = f"v_{name}"
            while velocity in taken:
                velocity += "_"
            taken.add(velocity)
            names.append(velocity)
        return tuple(names)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of all quantities that have an equation, the observed ones first."""
        return (*self.observed, *self.velocities)

    @property
    def sought(self) -> tuple[str, ...]:
        """Names of the states whose rates of change are the laws that are looked for."""
        return self.velocities or self.observed

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of the equations: states, inputs, and the time if they may depend on it."""
        return (*self.states, *self.inputs, *((TIME,) if self.explicit_time else ()))

    def equations(self, laws: Sequence[Expression]) -> tuple[Expression, ...]:
        """One right-hand side for each state, from those that are looked for."""
        known = (Expression((velocity,), self.variables) for velocity in self.velocities)
        return (*known, *laws)


def changes_in_steps(values: Float[np.ndarray, " rows"]) -> bool:
    """Whether an input is constant but for steps, as a switch, a valve or a controller is.

    It is if it has two values; or if few rows differ from the one before, by much of the range,
    and do not go on in the same direction at the next row, as ramps and measured curves do.
    """
    changes = np.diff(values)
    steps = changes[changes != 0.0]
    if not steps.size or np.unique(values).size == 2:
        return bool(steps.size)
    onward = np.count_nonzero(np.sign(changes[1:]) * np.sign(changes[:-1]) > 0)
    few = steps.size <= _FEW_STEPS * changes.size and onward <= _ONWARD * steps.size
    return bool(few and np.median(np.abs(steps)) >= _LARGE_STEP * np.ptp(values))


def measured_inputs(t: Float[np.ndarray, " time"], u: Float[np.ndarray, "time inputs"]) -> Inputs:
    """What measured inputs are between the rows.

    What changes in steps is held from its row until the next (zero-order hold). Else it is a
    curve through the values that does not overshoot (monotone cubics). One row holds for ever.
    """
    if not u.shape[1]:
        return NO_INPUTS
    if len(t) == 1:
        ends = np.array([t[0], np.nextafter(t[0], math.inf)])
        return Inputs(ends, np.concatenate([np.zeros((3, 1, u.shape[1])), u[None]]))
    curve = PchipInterpolator(t, u)
    breaks, coefficients = np.asarray(curve.x), np.array(curve.c, order="C")
    held = np.array([changes_in_steps(column) for column in u.T])
    if not held.any():
        return Inputs(breaks, coefficients)
    # The last value holds too: an own piece, of no length, is where it begins.
    breaks = np.append(breaks, np.nextafter(breaks[-1], math.inf))
    last = np.zeros((len(coefficients), 1, u.shape[1]))
    last[-1] = u[-1]
    coefficients = np.concatenate([coefficients, last], axis=1)
    coefficients[:-1, :, held], coefficients[-1, :, held] = 0.0, u[:, held].T
    return Inputs(breaks, coefficients)


def integrate(
    equations: Sequence[Expression],
    y0: Sequence[float] | Float[np.ndarray, " states"],
    t: Float[np.ndarray, " time"],
    inputs: Inputs = NO_INPUTS,
    *,
    rtol: float = 1e-9,
    atol: float | Float[np.ndarray, " states"] = 1e-9,
    max_steps: int = 20_000,
) -> Float[np.ndarray, "time states"]:
    """The solution from y0 at t[0]: by DOP853, or LSODA where that would need too many steps.

    Args:
      equations: f_1 to f_K; their variables are the K states, the inputs, and the time if
        it is used.
      y0: values at t[0].
      t: increasing times.
      inputs: measured inputs.
      rtol, atol: tolerances, the absolute one of all states or of each.
      max_steps: of DOP853; stiff equations need more.

    Returns:
      The states at the times; NaN from where there is no solution: it blows up, or leaves
      the domain of f.
    """
    program = Program.from_expressions(equations)
    solved = dop853_system.integrate(
        program,
        program.memory[None],
        np.asarray(y0, np.float64)[None],
        t,
        inputs,
        rtol=rtol,
        atol=np.broadcast_to(np.asarray(atol, np.float64), len(equations)).copy(),
        limit=np.full(len(equations), math.inf),
        max_steps=max_steps,
        partial=True,
    )
    if solved.status == TOO_MANY_STEPS:
        start = np.asarray(y0, np.float64)
        stiff = solve_stiff(program, program.memory, start, t, inputs, rtol=rtol, atol=atol)
        if stiff is not None:
            return stiff
    return solved.y[0]
