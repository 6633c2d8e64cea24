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


@dataclasses.dataclass(frozen=True)
class System:
    """What the equations are about.

    Attributes:
      observed: names of the measured quantities, 1 to 4.
      inputs: names of measured inputs, which have no equations.
      explicit_time: whether laws may depend on the time.
      order: 1, or 2 where positions are observed and velocities are not.
      held: names of those inputs that keep each value until the next (zero-order hold).
    """

    observed: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    explicit_time: bool = False
    order: int = 1
    held: tuple[str, ...] = ()

    def __post_init__(self):
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order}")
        if not 1 <= len(self.observed) <= MOST_OBSERVED:
            raise ValueError(
                f"a system has 1 to {MOST_OBSERVED} quantities, got {len(self.observed)}"
            )
        if not set(self.held) <= set(self.inputs):
            raise ValueError(f"held names inputs, {self.inputs}; got {self.held}")
        Expression((1.0,), self.variables)  # Names that cannot be used are refused.

    @property
    def holds(self) -> tuple[bool, ...]:
        """Whether each of the inputs is held."""
        return tuple(name in self.held for name in self.inputs)

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
