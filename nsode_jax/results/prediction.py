"""Solutions of a law at any times, also where they do not exist all the way.

Times are counted from the first one before anything is computed: the law does not
know the time, and the solver refuses a first step that is lost in the rounding of
large times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.dynamics.vectors import times_as_counted
from nsode_jax.expressions.expression import Expression
from nsode_jax.results.formatting import time_text

_RTOL = 1e-9
_MAX_SOLVER_STEPS = 20_000
_FALLEN = 1e-5
"""To such a share of the values that it began with, a solution is solved anew, more exactly."""
_SMALLEST = 1e-140
"""Squares of errors beside smaller values would vanish."""


def solution(
    expression: Expression,
    start: float,
    y0: float,
    t: Float[np.ndarray, " time"] | Sequence[float],
) -> Float[np.ndarray, " time"]:
    """The solution through y(start) = y0 at any times, in any order, on either side.

    Returns:
      Values, shape [time]; NaN where the solution does not exist.

    Raises:
      ValueError: if a time is not finite.
    """
    t = times_as_counted(t)
    if not np.isfinite(t).all():
        raise ValueError("solution needs a list of finite times")
    result = np.full(t.shape, y0, np.float64)
    for sign, side in ((1.0, t > start), (-1.0, t < start)):
        if side.any():
            elapsed, place = np.unique(np.abs(t[side] - start), return_inverse=True)
            times = sign * np.concatenate([[0.0], elapsed])
            result[side] = _solve_while_it_exists(expression, y0, times)[1:][place]
    return result


def predict(
    expression: Expression,
    y0: float,
    t: Float[np.ndarray, " time"] | Sequence[float],
    start: float | None = None,
) -> Float[np.ndarray, " time"]:
    """The solution through y(start) = y0 at increasing times from there on.

    Args:
      expression: f.
      y0: value at `start`.
      t: strictly increasing times, shape [time], none before `start`.
      start: None for t[0].

    Returns:
      Values, shape [time]; NaN from where the solution ceases to exist.

    Raises:
      ValueError: if the times are not increasing, or lie before `start`.
    """
    times = times_as_counted(t)
    if not times.size or not np.isfinite(times).all():
        raise ValueError("predict needs a list of finite times")
    if not (np.diff(times) > 0).all():
        raise ValueError("predict needs strictly increasing times")
    if start is None or times[0] == start:
        return _solve_while_it_exists(expression, y0, times - times[0])
    if times[0] < start:
        raise ValueError(
            f"the time {time_text(times[0])} lies before the data, which start at "
            f"{time_text(start)}; give y0, the value at the first time"
        )
    elapsed = np.concatenate([[0.0], times - start])
    return _solve_while_it_exists(expression, y0, elapsed)[1:]


def _solve_while_it_exists(
    expression: Expression, y0: float, elapsed: Float[np.ndarray, " time"]
) -> Float[np.ndarray, " time"]:
    """The solution from y0 at times that rise or fall from 0; NaN from where there is none."""
    size = _scale(expression, y0, elapsed)
    backward = elapsed[-1] < 0.0
    law = Expression(("neg", *expression.prefix), expression.variables) if backward else expression
    program = Program.from_expression(law)

    def attempt(count: int) -> np.ndarray | None:
        if count < 2:
            return np.full(count, y0)
        return _solved_to_the_end(program, y0, np.abs(elapsed[:count]), size)

    result = np.full(elapsed.shape, np.nan)
    good, bad = 1, elapsed.size + 1
    count = elapsed.size
    while good < bad - 1 or count == 1:
        values = attempt(count)
        if values is None:
            bad = count
        else:
            result[:count] = values
            good = count
        if good == elapsed.size:
            break
        count = (good + bad) // 2
        if count in (good, bad):
            break
    result[0] = y0
    return result


def _solved_to_the_end(
    program: Program, y0: float, times: Float[np.ndarray, " time"], size: float
) -> Float[np.ndarray, " time"] | None:
    """The solution at times that rise from 0, its last value exact too; None if there is none.

    What is exact beside the first values is nothing beside those to which a solution falls over
    many decades. It only rises or only falls, so that the last value tells how far it goes.
    """
    found = None
    while True:
        solved = dop853.integrate(
            program,
            np.array([y0]),
            times,
            rtol=_RTOL,
            atol=_RTOL * size,
            max_steps=_MAX_SOLVER_STEPS,
        )
        if solved.status[0] != dop853.SUCCESS:
            return found
        found = solved.y[0]
        last = abs(float(found[-1]))
        if not _SMALLEST < last < _FALLEN * size:
            return found
        size = last


def _scale(expression: Expression, y0: float, elapsed: Float[np.ndarray, " time"]) -> float:
    """Size of the values near the start; one that starts at 0 is judged by its first step."""
    if y0 or elapsed.size < 2:
        return abs(y0) or 1.0
    step = abs(float(expression.evaluate(0.0)) * (elapsed[1] - elapsed[0]))
    return step if 0.0 < step < math.inf else 1.0
