"""Dormand and Prince's method of order 8 for several quantities, with neighbouring solutions.

The method is that of `dop853`, for dy/dt = f(y, u(t), t) with K quantities y and M inputs u.
A solution may take neighbours along, whose constants or initial values differ a little:
all take the steps that the first one needs. The differences between them, divided by what
differs, are then smooth in the constants, whatever the tolerance (internal numerical
differentiation; Bock 1981), and cost one evaluation of f each.

Where an input jumps, a step ends: within each it is smooth, and nothing is lost to the jump.

Where a quantity comes to 0, f is undefined below, and f does not lead there, it stays at 0
until f leads up again: a tank that empties with -sqrt(y) is empty until water flows in.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numba
import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.dop853 import FAILED, SUCCESS, TOO_MANY_STEPS
from nsode_jax.dynamics.dop853_tableau import E3, E5, A, D
from nsode_jax.dynamics.stack_machine import FINGERPRINT, Program, run_system

_SAFETY, _MIN_FACTOR, _MAX_FACTOR, _RETRY_FACTOR = 0.9, 1 / 3, 6.0, 0.2
_LONGEST_STEP = 1 / 16
"""Of the whole time."""
_AT_ONCE = 1e-13
"""Of the time: two that differ by less are the same."""


@numba.njit(nogil=True, error_model="numpy")
def fill_inputs(breaks, coefficients, with_time, states, time, point):
    """Sets the inputs and the time, which follow the states in the variables."""
    number = coefficients.shape[2]
    if number:
        piece = min(max(np.searchsorted(breaks, time, "right") - 1, 0), breaks.size - 2)
        x = min(max(time, breaks[0]), breaks[-1]) - breaks[piece]
        for i in range(number):
            value = 0.0
            for degree in range(coefficients.shape[0]):
                value = value * x + coefficients[degree, piece, i]
            point[states + i] = value
    if with_time:
        point[states + number] = time


@numba.njit(nogil=True, error_model="numpy")
def _run_at_0(program, memory, point, states, k):
    """f where what is below 0 is taken for 0, until it is defined; NaN where it leads down."""
    instructions, first_result = program
    below = np.zeros(states, np.bool_)
    for _ in range(states):
        least = -1
        for i in range(states):
            if point[i] < 0.0 and (least < 0 or point[i] > point[least]):
                least = i
        if least < 0:
            return
        point[least], below[least] = 0.0, True
        run_system(instructions, memory, point, first_result, k)
        if np.isfinite(k).all():
            for i in range(states):
                if below[i] and k[i] < 0.0:
                    k[i] = math.nan
            return


@numba.njit(nogil=True, error_model="numpy")
def _slopes(program, memories, inputs, time, y, k, strict=False):
    """f of every copy at y [copies, K], into k [copies, K]; if strict, only where it is defined."""
    instructions, first_result = program
    breaks, coefficients, with_time = inputs
    copies, states = y.shape
    point = np.empty(states + coefficients.shape[2] + with_time)
    fill_inputs(breaks, coefficients, with_time, states, time, point)
    for copy in range(copies):
        point[:states] = y[copy]
        run_system(instructions, memories[copy], point, first_result, k[copy])
        if not (strict or np.isfinite(k[copy]).all()):
            _run_at_0(program, memories[copy], point, states, k[copy])


@numba.njit(nogil=True, error_model="numpy")
def _stage(k, stage, y, h, out):
    """y + h times the weighted sum of the earlier slopes, into out [copies, K]."""
    copies, states = y.shape
    for copy in range(copies):
        for i in range(states):
            total = 0.0
            for j in range(stage):
                if A[stage, j] != 0.0:
                    total += A[stage, j] * k[j, copy, i]
            out[copy, i] = y[copy, i] + h * total


@numba.njit(nogil=True, error_model="numpy")
def _relative_error(k, h, y, new, rtol, atol):
    """The estimated error of the first copy's step in units of the tolerance."""
    sum_3, sum_5 = 0.0, 0.0
    for i in range(y.size):
        error_3, error_5 = 0.0, 0.0
        for j in range(12):
            error_3 += E3[j] * k[j, 0, i]
            error_5 += E5[j] * k[j, 0, i]
        scale = atol[i] + rtol * max(abs(y[i]), abs(new[i]))
        sum_3 += (error_3 / scale) ** 2
        sum_5 += (error_5 / scale) ** 2
    denominator = sum_5 + 0.01 * sum_3
    if denominator <= 0.0:
        return 0.0
    return abs(h) * sum_5 / math.sqrt(denominator * y.size)


@numba.njit(nogil=True, error_model="numpy")
def _fill(k, y, new, h, start, t, out):
    """Dense output at times t, into out [copies, time, K]; all 16 slopes must be there."""
    for copy in range(y.shape[0]):
        for i in range(y.shape[1]):
            change = new[copy, i] - y[copy, i]
            c1 = h * k[0, copy, i] - change
            c2 = change - h * k[12, copy, i] - c1
            c3, c4, c5, c6 = 0.0, 0.0, 0.0, 0.0
            for j in range(16):
                c3 += h * D[0, j] * k[j, copy, i]
                c4 += h * D[1, j] * k[j, copy, i]
                c5 += h * D[2, j] * k[j, copy, i]
                c6 += h * D[3, j] * k[j, copy, i]
            for place in range(t.size):
                x = (t[place] - start) / h
                z = 1.0 - x
                inner = c3 + x * (c4 + z * (c5 + x * c6))
                out[copy, place, i] = y[copy, i] + x * (change + z * (c1 + x * (c2 + z * inner)))


@numba.njit(nogil=True, error_model="numpy")
def _first_step(k, y, rtol, atol, longest):
    size, speed = 0.0, 0.0
    for i in range(y.shape[1]):
        scale = atol[i] + rtol * abs(y[0, i])
        size += (y[0, i] / scale) ** 2
        speed += (k[0, 0, i] / scale) ** 2
    h = 0.01 * math.sqrt(size / speed) if size > 1e-10 and speed > 1e-10 else 1e-3 * longest
    return min(h, longest)


@numba.njit(nogil=True, error_model="numpy")
def _until(jumps, following, end, at_once):
    """Where the next step ends at the latest, and the last time before the next jump."""
    if following == jumps.size:
        return end, math.inf
    jump = jumps[following]
    return jump if jump < end - at_once else end, np.nextafter(jump, -math.inf)


def _compile_for(machine: str):
    """The compiled solver; see `dop853` on the fingerprint."""

    @numba.njit(nogil=True, cache=True, error_model="numpy")
    def integrate(
        instructions, memories, first, starts, t, breaks, coefficients, with_time, jumps, rtol,
        atol, limit, max_steps,
    ):  # fmt: skip
        machine  # noqa: B018
        memories = memories.copy()
        program, inputs = (instructions, first), (breaks, coefficients, with_time)
        copies, states = starts.shape
        out = np.full((copies, t.size, states), np.nan)
        k = np.zeros((16, copies, states))
        y, new, stage_y = starts.copy(), np.empty_like(starts), np.empty_like(starts)
        now, end = t[0], t[-1]
        at_once = _AT_ONCE * max(abs(now), abs(end))
        following = np.searchsorted(jumps, now + at_once, "right")
        if following and jumps[following - 1] > now:
            now = jumps[following - 1]
        stop, latest = _until(jumps, following, end, at_once)
        out[:, 0] = y
        filled = 1
        _slopes(program, memories, inputs, now, y, k[0], strict=True)
        if not np.isfinite(k[0]).all():
            return out, FAILED, 0
        if t.size == 1:
            return out, SUCCESS, 0
        longest = _LONGEST_STEP * (end - now)
        h = _first_step(k, y, rtol, atol, longest)
        max_factor = _MAX_FACTOR
        for steps in range(1, max_steps + 1):
            h = planned = min(h, longest)
            then = now + h
            if now + 1.01 * h >= stop:
                h, then = stop - now, stop
            if not h > 1e-15 * max(abs(now), abs(end)):
                return out, FAILED, steps - 1
            for stage in range(1, 12):
                _stage(k, stage, y, h, stage_y)
                time = min(now + _C[stage] * h, latest)
                _slopes(program, memories, inputs, time, stage_y, k[stage])
            _stage(k, 12, y, h, new)
            _slopes(program, memories, inputs, min(then, latest), new, k[12])
            if not (np.isfinite(new).all() and np.isfinite(k[12]).all()):
                h *= _RETRY_FACTOR
                max_factor = 1.0
                continue
            error = _relative_error(k, h, y[0], new[0], rtol, atol)
            if not error <= 1.0:
                h *= max(_MIN_FACTOR, _SAFETY * error**-0.125) if error == error else _RETRY_FACTOR
                max_factor = 1.0
                continue
            for i in range(states):
                if abs(new[0, i]) > limit[i]:
                    return out, FAILED, steps
            reached = filled
            while reached < t.size and t[reached] <= then:
                reached += 1
            if reached > filled:
                for stage in range(13, 16):
                    _stage(k, stage, y, h, stage_y)
                    time = min(now + _C[stage] * h, latest)
                    _slopes(program, memories, inputs, time, stage_y, k[stage])
                _fill(k, y, new, h, now, t[filled:reached], out[:, filled:reached])
            if reached == t.size:
                if np.isfinite(out).all():
                    return out, SUCCESS, steps
                return out, FAILED, steps
            y[:] = new
            k[0] = k[12]
            now, filled = then, reached
            h *= min(max_factor, _SAFETY * error**-0.125 if error > 0.0 else max_factor)
            max_factor = _MAX_FACTOR
            if then == stop:
                following += 1
                stop, latest = _until(jumps, following, end, at_once)
                _slopes(program, memories, inputs, now, y, k[0])
                h = max(h, planned)  # It was cut short by the jump.
        return out, TOO_MANY_STEPS, max_steps

    return integrate


_C = A.sum(axis=1)
"""Where in a step the slopes are taken, as shares of it."""
_integrate_all = _compile_for(FINGERPRINT)


@dataclasses.dataclass(frozen=True, eq=False)
class Solutions:
    """A solution and its neighbours.

    Attributes:
      y: shape [copies, time, K]; NaN if there is none, or from where it ends.
      status: SUCCESS, FAILED or TOO_MANY_STEPS, of the first.
      steps: steps taken or tried.
    """

    y: Float[np.ndarray, "copies time states"]
    status: int
    steps: int


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """Measured inputs as piecewise cubics of the time; those that are held are constants.

    Attributes:
      breaks: increasing times, shape [pieces + 1].
      coefficients: highest power first, shape [4, pieces, inputs].
    """

    breaks: Float[np.ndarray, " breaks"]
    coefficients: Float[np.ndarray, "4 pieces inputs"]

    @functools.cached_property
    def jumps(self) -> Float[np.ndarray, " jumps"]:
        """Times at which an input that is held takes another value."""
        held = ~self.coefficients[:-1, :-1].any(axis=0)  # [pieces - 1, inputs]
        other = self.coefficients[-1, 1:] != self.coefficients[-1, :-1]
        return self.breaks[1:-1][(held & other).any(axis=1)]

    def __call__(self, t: Float[np.ndarray, " time"]) -> Float[np.ndarray, "inputs time"]:
        """The inputs at any times; beyond the measured ones the nearest of them."""
        last = self.breaks.size - 2
        piece = np.clip(np.searchsorted(self.breaks, t, "right") - 1, 0, last)
        x = np.clip(t, self.breaks[0], self.breaks[-1]) - self.breaks[piece]
        value = np.zeros((t.size, self.coefficients.shape[2]))
        for row in self.coefficients:
            value = value * x[:, None] + row[piece]
        return value.T


NO_INPUTS = Inputs(np.array([0.0, 1.0]), np.zeros((4, 1, 0)))


def integrate(
    program: Program,
    memories: Float[np.ndarray, "copies address"],
    starts: Float[np.ndarray, "copies states"],
    t: Float[np.ndarray, " time"],
    inputs: Inputs = NO_INPUTS,
    *,
    rtol: float,
    atol: Float[np.ndarray, " states"],
    limit: Float[np.ndarray, " states"],
    max_steps: int,
    partial: bool = False,
) -> Solutions:
    """The solution from the first of the starts, and its neighbours. Releases the GIL.

    Args:
      program: f; its variables are the K states, the inputs, and the time if it is used.
      memories: the program's memory with the constants of each copy.
      starts: values at t[0] of each copy.
      t: increasing times.
      inputs: of f.
      rtol, atol: tolerances of the first copy.
      limit: a solution beyond, in magnitude, has failed; inf for none.
      max_steps: steps allowed.
      partial: whether a solution that ends early is given up to there.
    """
    states, number = starts.shape[1], inputs.coefficients.shape[2]
    y, status, steps = _integrate_all(
        program.instructions,
        np.ascontiguousarray(memories, np.float64),
        program.results.start,
        np.ascontiguousarray(starts, np.float64),
        np.ascontiguousarray(t, np.float64),
        inputs.breaks,
        inputs.coefficients,
        program.variables - states - number,
        inputs.jumps,
        float(rtol),
        np.ascontiguousarray(atol, np.float64),
        np.ascontiguousarray(limit, np.float64),
        int(max_steps),
    )
    whole = status == SUCCESS or partial
    return Solutions(y if whole else np.full_like(y, math.nan), status, steps)
