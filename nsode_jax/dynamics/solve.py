"""Solutions of dy/dt = f(y), and the check that they can be trusted.

Paper, section 2.1: LSODA with tolerances 1e-9, and a solution is kept when a
central finite difference of it agrees with f to within epsilon = 1 everywhere.
Our own DOP853 is at least as accurate and an order of magnitude faster.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.odepack import EvaluationsSpent, lsoda
from nsode_jax.expressions.expression import Expression
from nsode_jax.system.settings import require_at_least_1

METHODS = ("lsoda", "dop853")


@dataclasses.dataclass(frozen=True)
class SolverConfig:
    """How trajectories are computed. The defaults are the paper's (appendix B.2).

    Attributes:
      method: `lsoda` as in the paper, or `dop853`, which is faster.
      tolerance: relative and absolute tolerance of the method.
      max_steps: steps of dop853 for one whole solution; one that needs more is
        dropped. They oscillate wildly; LSODA needs more steps still.
      max_evaluations: of f by LSODA for all solutions of an equation, the paper's
        time limit per ODE; 5 million take some 5 seconds.
      max_time: T; solutions cover [0, T].
      num_points: number of points of the regular grid on [0, T].
      max_initial_value: initial values are drawn from (-max, max).
      max_derivative_error: epsilon of the finite-difference check.
      max_value: solutions that leave [-max_value, max_value] are dropped.
      min_range: solutions that vary less than this are dropped.
    """

    method: str = "lsoda"
    tolerance: float = 1e-9
    max_steps: int = 1000
    max_evaluations: int = 5_000_000
    max_time: float = 4.0
    num_points: int = 1024
    max_initial_value: float = 5.0
    max_derivative_error: float = 1.0
    max_value: float = float("inf")
    min_range: float = 0.0

    def __post_init__(self):
        if self.method not in METHODS:
            raise ValueError(f"method must be {' or '.join(METHODS)}, got {self.method!r}")
        for name in ("tolerance", "max_time", "max_initial_value"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("max_derivative_error", "max_value"):  # Infinity: no limit.
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if not 0.0 <= self.min_range < math.inf:
            raise ValueError(f"min_range must not be negative, got {self.min_range}")
        require_at_least_1(self, "max_steps", "max_evaluations")
        if self.num_points < _STENCIL.size:
            raise ValueError(f"num_points must be at least {_STENCIL.size}, got {self.num_points}")

    @property
    def grid(self) -> Float[np.ndarray, " time"]:
        """The regular grid of times on [0, max_time]."""
        return np.linspace(0.0, self.max_time, self.num_points)


def _central_stencil(half_width: int) -> Float[np.ndarray, " points"]:
    """Weights of the first derivative on the points -half_width ... half_width."""
    offsets = np.arange(-half_width, half_width + 1, dtype=np.float64)
    powers = np.vander(offsets, increasing=True).T
    first_derivative = np.zeros(offsets.size)
    first_derivative[1] = 1.0
    return np.linalg.solve(powers, first_derivative)


# Central stencils have even orders; 11 points (order 10) are the fewest that
# reach the 9th order the paper asks for.
_STENCIL = _central_stencil(5)


@dataclasses.dataclass
class Budget:
    """How often f may still be evaluated: a time limit that is the same on all machines."""

    evaluations: float = math.inf


@runtime_checkable
class Compilable(Protocol):
    """Anything that LSODA can be given: an `Expression`, or a law outside our operators."""

    def compile(self) -> Callable[[float], float]:
        """f as a scalar function."""
        ...


def solve(
    expression: Compilable,
    y0: float,
    t: Float[np.ndarray, " time"],
    *,
    rtol: float = 1e-9,
    atol: float = 1e-9,
    max_steps: int = 500,
    budget: Budget | None = None,
) -> Float[np.ndarray, " time"] | None:
    """The solution of dy/dt = f(y) from y(t[0]) = y0 by LSODA.

    Args:
      expression: f.
      y0: value at t[0].
      t: increasing times, shape [time].
      rtol, atol: tolerances.
      max_steps: steps allowed between two neighbouring times.
      budget: evaluations of f allowed; what is used is taken off.

    Returns:
      y at the times, shape [time], or None where the solver fails: the solution
      blows up, leaves the domain of f, or needs too many steps or evaluations.
    """
    f, budget = expression.compile(), budget or Budget()

    def derivative(y, _):
        budget.evaluations -= 1
        if budget.evaluations < 0:
            raise EvaluationsSpent
        try:
            # A Python float: arithmetic on NumPy scalars is slower, and warns
            # where this raises.
            return f(float(y[0]))
        except (ArithmeticError, ValueError):
            return math.nan

    y = lsoda(derivative, np.array([y0]), t, rtol=rtol, atol=atol, max_steps=max_steps)
    return None if y is None else y[:, 0]


def solve_system(
    components: Sequence[Expression],
    y0: Sequence[float],
    t: Float[np.ndarray, " time"],
    *,
    rtol: float = 1e-9,
    atol: float | Float[np.ndarray, " components"] = 1e-9,
    max_steps: int = 500,
) -> Float[np.ndarray, "time components"] | None:
    """The solution of dy_i/dt = f_i(y_1, ..., y_K) or f_i(y_1, ..., y_K, t) by LSODA.

    Args:
      components: f_1 to f_K; their variables are the K quantities in this order, and
        the time as the last one if the equations depend on it.
      y0: values at t[0].
      t: increasing times.
      rtol, atol: tolerances, the absolute one of all components or of each.
      max_steps: steps allowed between two neighbouring times.

    Returns:
      The quantities at the times, or None where the solver fails (see `solve`).

    Raises:
      ValueError: if there are not as many components as initial values, or the
        variables are not the quantities with or without time.
    """
    from nsode_jax.dynamics.stack_machine import Program  # Numba is slow to import.
    from nsode_jax.dynamics.stiff import solve_stiff

    program, count = Program.from_expressions(components), len(components)
    if len(y0) != count or program.variables not in (count, count + 1):
        raise ValueError(
            f"{count} equations of {program.variables} variables and {len(y0)} initial values"
        )
    start = np.asarray(y0, np.float64)
    return solve_stiff(program, program.memory, start, t, rtol=rtol, atol=atol, max_steps=max_steps)


def solutions(
    expression: Expression,
    initial_values: Sequence[float] | Float[np.ndarray, " n"],
    t: Float[np.ndarray, " time"],
    *,
    method: str = "lsoda",
    rtol: float = 1e-9,
    atol: float = 1e-9,
    max_steps: int = 1000,
    max_evaluations: float = math.inf,
) -> Float[np.ndarray, "n time"]:
    """The solutions of dy/dt = f(y) from several values at t[0].

    Args:
      expression: f.
      initial_values: values at t[0], shape [n].
      t: increasing times, shape [time].
      method: `lsoda` or `dop853`.
      rtol, atol: tolerances.
      max_steps: steps that dop853 may take for one solution.
      max_evaluations: of f by LSODA, for all solutions; those that it has not
        solved by then fail.

    Returns:
      y at the times, shape [n, time]; a row of NaN where the solver fails.

    Raises:
      ValueError: if there is no such method or the times do not increase.
    """
    if not (np.diff(t) > 0.0).all():
        raise ValueError("the times of a solution must increase")
    if method == "dop853":
        # Here, because Numba is slow to import and many commands only need LSODA.
        from nsode_jax.dynamics import dop853
        from nsode_jax.dynamics.stack_machine import Program

        program = Program.from_expression(expression)
        starts = np.asarray(initial_values, np.float64)
        return dop853.integrate(program, starts, t, rtol=rtol, atol=atol, max_steps=max_steps).y
    if method != "lsoda":
        raise ValueError(f"method must be {' or '.join(METHODS)}, got {method!r}")
    y = np.full((len(initial_values), len(t)), math.nan)
    budget = Budget(max_evaluations)
    for row, y0 in zip(y, initial_values):
        solution = solve(expression, y0, t, rtol=rtol, atol=atol, budget=budget)
        if solution is not None:
            row[:] = solution
    return y


def system_solutions(
    laws: Sequence[Expression],
    initial_values: Float[np.ndarray, "n states"],
    t: Float[np.ndarray, " time"],
    config: SolverConfig,
) -> Float[np.ndarray, "states n time"]:
    """The solutions of dy_k/dt = f_k(y_1, ..., y_K[, t]) from several values at t[0].

    Args:
      laws: f_1 to f_K; their variables are the K quantities, and the time as the last one
        if the equations depend on it.
      initial_values: values at t[0].
      t: increasing times.
      config: how to solve. LSODA's evaluations are counted for a single quantity only.

    Returns:
      The quantities at the times; all NaN where the solver fails.
    """
    if len(laws) == 1 == len(laws[0].variables):
        return solutions(
            laws[0],
            initial_values[:, 0],
            t,
            method=config.method,
            rtol=config.tolerance,
            atol=config.tolerance,
            max_steps=config.max_steps,
            max_evaluations=config.max_evaluations,
        )[None]
    solve_one = _by_dop853 if config.method == "dop853" else _by_lsoda
    y = np.stack([solve_one(laws, y0, t, config) for y0 in initial_values])
    return np.moveaxis(y, -1, 0)


def _by_lsoda(laws, y0, t, config: SolverConfig) -> Float[np.ndarray, "time states"]:
    y = solve_system(laws, list(y0), t, rtol=config.tolerance, atol=config.tolerance)
    return np.full((t.size, len(laws)), math.nan) if y is None else y


def _by_dop853(laws, y0, t, config: SolverConfig) -> Float[np.ndarray, "time states"]:
    from nsode_jax.dynamics import dop853_system  # Numba is slow to import.
    from nsode_jax.dynamics.stack_machine import Program

    program = Program.from_expressions(laws)
    solved = dop853_system.integrate(
        program,
        program.memory[None],
        y0[None],
        t,
        rtol=config.tolerance,
        atol=np.full(len(laws), config.tolerance),
        limit=np.full(len(laws), math.inf),
        max_steps=config.max_steps,
    )
    return solved.y[0]


def derivative_error(
    law: Expression, y: Float[np.ndarray, "*n time"], step: float
) -> Float[np.ndarray, "*n"] | np.float64:
    """Largest difference between f(y) and a finite difference of y.

    Args:
      law: f.
      y: solutions on a regular grid, shape [..., time], at least 11 points.
      step: distance of the grid's times.

    Returns:
      The maximum over the points that have five neighbours on either side.
    """
    return _slope_error(law, y, (y,), step)


def _slope_error(law: Expression, y: np.ndarray, variables: Sequence[np.ndarray], step: float):
    """Largest difference between f of its variables [..., time] and the slope of y."""
    # All rows at once; windows that reach into the next row fall to the edges.
    half = _STENCIL.size // 2
    slope = np.correlate(y.ravel(), _STENCIL / step, mode="same").reshape(y.shape)
    inner = (..., slice(half, -half))
    with np.errstate(all="ignore"):
        f = law.evaluate(*(variable[inner] for variable in variables))
        return np.abs(slope[inner] - f).max(axis=-1)


def trusted_solutions(
    law: Expression | Sequence[Expression],
    initial_values: Sequence[float] | Float[np.ndarray, "n ..."],
    config: SolverConfig,
    t: Float[np.ndarray, " time"] | None = None,
) -> list[Float[np.ndarray, "time ..."] | None]:
    """Solutions that pass the quality check, each quantity for itself.

    Args:
      law: f, or f_1 to f_K of a system, as for `system_solutions`.
      initial_values: values at t[0], shape [n], of a system [n, states].
      config: how to solve, and what to keep.
      t: a regular grid of times, shape [time], instead of the config's own.

    Returns:
      For each initial value y at the times, shape [time], of a system [time, states], or
      None.
    """
    t = config.grid if t is None else t
    laws = (law,) if isinstance(law, Expression) else tuple(law)
    starts = np.asarray(initial_values, np.float64).reshape(-1, len(laws))
    y = system_solutions(laws, starts, t, config)
    (solved,) = np.nonzero(np.isfinite(y[:, :, 0]).all(axis=0))
    if not solved.size:
        return [None] * len(starts)
    kept = y[:, solved]
    low, high = kept.min(axis=-1), kept.max(axis=-1)
    time = [np.broadcast_to(t, kept[0].shape)] * (len(laws[0].variables) - len(laws))
    error = [_slope_error(f, own, (*kept, *time), t[1] - t[0]) for f, own in zip(laws, kept)]
    is_trusted = (
        (np.maximum(-low, high) <= config.max_value)
        & (high - low >= config.min_range)
        # NaN fails too.
        & (np.stack(error) <= config.max_derivative_error)
    ).all(axis=0)
    rows = kept[0] if isinstance(law, Expression) else np.moveaxis(kept, 0, -1)
    trusted = dict(zip(solved[is_trusted], rows[is_trusted]))
    return [trusted.get(i) for i in range(len(starts))]
