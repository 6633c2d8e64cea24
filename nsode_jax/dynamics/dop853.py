"""Dormand and Prince's method of order 8 with dense output, compiled once.

The method: Hairer, Norsett, Wanner, "Solving Ordinary Differential Equations I" (1993),
sections II.5 and II.6, program DOP853.

A scalar autonomous equation allows what a general one does not:
  - f never changes its sign along a solution, for where f is 0 the solution
    rests. A step after which the sign is another one has jumped over a rest
    point, a pole or a gap in the domain, and is repeated with a shorter one.
  - A solution that slows down with a rest point just in front of it stays there.
    It need not be followed with the tiny steps that make stable rest points
    stiff for an explicit method. Stiffness has no other source in one dimension,
    so there is neither a test for it nor an implicit method to fall back to.
  - A rest point may be the edge of the domain: a tank that empties with -sqrt(y) stays
    empty.
  - Whether a solution blows up shows in f alone, long before the steps vanish.
"""

from __future__ import annotations

import dataclasses
import math

import numba
import numpy as np
from jaxtyping import Float, Int64

from nsode_jax.dynamics.dop853_tableau import A_ROWS, E3, E5, A, D
from nsode_jax.dynamics.stack_machine import FINGERPRINT, Program, run

SUCCESS = 0
FAILED = 1
"""The solution blows up or leaves the domain of f."""
TOO_MANY_STEPS = 2

_EPSILON = 2.0**-52

_SAFETY = 0.9
_MIN_FACTOR, _MAX_FACTOR = 1 / 3, 6.0
"""Limits of how much a step differs from the one before."""

_RETRY_FACTOR = 0.2
"""Of a step after one that met undefined values or should not have been taken."""

_LONGEST_STEP = 1 / 16
"""Of the whole time: longer ones can miss a narrow feature of f altogether."""

_MAX_DEFECT = 10.0
"""How much the dense output may violate the equation, in units of the tolerance.

The estimated error of a step says nothing about what lies within; on random
equations the latter was up to 3,000 times the tolerance without this check.
"""
_DEFECT_AT = 0.3
"""Where in a step that is checked; 0.5 finds less."""

_RELATIVE_SHARE, _MIN_RTOL = 0.01, 2e-14
"""Of the relative tolerance asked for.

The quality check bounds the error of the derivative, whatever the size of y. At
order 8 this costs 15% more steps, and twice as many growing solutions pass.
"""

_REST = 0.01
"""A rest point at most this part of the tolerance away is as good as reached."""

_HALVINGS, _FALLEN = 60, 0.5
"""How closely the edge of a domain is looked at, and to what share f has fallen if to 0 there."""

# How `_explodes` samples f: how often, how far apart, and how much f/y must grow.
_EXPLOSION_SAMPLES, _EXPLOSION_RATIO, _EXPLOSION_GROWTH = 40, 1.3, 1.03


@numba.njit(nogil=True, error_model="numpy")
def _slope(instructions, memory, k, stage, y, h):
    """f in one stage of the step of length h from y."""
    total = 0.0
    for j in range(stage):
        total += A[stage, j] * k[j]
    return run(instructions, memory, y + h * total)


@numba.njit(nogil=True, error_model="numpy")
def _step(instructions, memory, k, y, h):
    """The result of a step, from k[0] = f(y); sets k[5] to k[11].

    Written out, because a loop over the table takes twice as long.
    """
    a = A_ROWS
    k0 = k[0]
    # fmt: off
    k1 = run(instructions, memory, y + h * (a[1][0] * k0))
    k2 = run(instructions, memory, y + h * (a[2][0] * k0 + a[2][1] * k1))
    k3 = run(instructions, memory, y + h * (a[3][0] * k0 + a[3][2] * k2))
    k4 = run(instructions, memory, y + h * (a[4][0] * k0 + a[4][2] * k2 + a[4][3] * k3))
    k5 = run(instructions, memory, y + h * (a[5][0] * k0 + a[5][3] * k3 + a[5][4] * k4))
    k6 = run(instructions, memory, y + h * (
        a[6][0] * k0 + a[6][3] * k3 + a[6][4] * k4 + a[6][5] * k5))
    k7 = run(instructions, memory, y + h * (
        a[7][0] * k0 + a[7][3] * k3 + a[7][4] * k4 + a[7][5] * k5 + a[7][6] * k6))
    k8 = run(instructions, memory, y + h * (
        a[8][0] * k0 + a[8][3] * k3 + a[8][4] * k4 + a[8][5] * k5 + a[8][6] * k6 + a[8][7] * k7))
    k9 = run(instructions, memory, y + h * (
        a[9][0] * k0 + a[9][3] * k3 + a[9][4] * k4 + a[9][5] * k5 + a[9][6] * k6
        + a[9][7] * k7 + a[9][8] * k8))
    k10 = run(instructions, memory, y + h * (
        a[10][0] * k0 + a[10][3] * k3 + a[10][4] * k4 + a[10][5] * k5 + a[10][6] * k6
        + a[10][7] * k7 + a[10][8] * k8 + a[10][9] * k9))
    k11 = run(instructions, memory, y + h * (
        a[11][0] * k0 + a[11][3] * k3 + a[11][4] * k4 + a[11][5] * k5 + a[11][6] * k6
        + a[11][7] * k7 + a[11][8] * k8 + a[11][9] * k9 + a[11][10] * k10))
    k[5], k[6], k[7], k[8], k[9], k[10], k[11] = k5, k6, k7, k8, k9, k10, k11
    if not math.isfinite(k1 + k2 + k3 + k4 + k5 + k6 + k7 + k8 + k9 + k10 + k11):
        return math.nan
    return y + h * (
        a[12][0] * k0 + a[12][5] * k5 + a[12][6] * k6 + a[12][7] * k7 + a[12][8] * k8
        + a[12][9] * k9 + a[12][10] * k10 + a[12][11] * k11)
    # fmt: on


@numba.njit(nogil=True, error_model="numpy")
def _relative_error(k, h, scale):
    """The estimated error of a step in units of the tolerance."""
    error_3, error_5 = 0.0, 0.0
    for j in range(12):
        error_3 += E3[j] * k[j]
        error_5 += E5[j] * k[j]
    square_3, square_5 = error_3 * error_3, error_5 * error_5
    denominator = square_5 + 0.01 * square_3
    if denominator <= 0.0:
        return 0.0
    return h * square_5 / (scale * math.sqrt(denominator))


@numba.njit(nogil=True, error_model="numpy")
def _fill(instructions, memory, k, y, new, h, scale, start, t, out):
    """Writes the dense output of a step at times t; False where it is not good.

    Three more slopes make a polynomial of degree 7 in the share of the step.
    """
    for stage in range(13, 16):
        k[stage] = _slope(instructions, memory, k, stage, y, h)
    change = new - y
    c1 = h * k[0] - change
    c2 = change - h * k[12] - c1
    c3, c4, c5, c6 = 0.0, 0.0, 0.0, 0.0
    for j in range(16):
        c3 += h * D[0, j] * k[j]
        c4 += h * D[1, j] * k[j]
        c5 += h * D[2, j] * k[j]
        c6 += h * D[3, j] * k[j]

    # The polynomial and its derivative, from the inside outwards.
    x, z = _DEFECT_AT, 1.0 - _DEFECT_AT
    value, derivative = c5 + x * c6, c6
    value, derivative = c4 + z * value, z * derivative - value
    value, derivative = c3 + x * value, x * derivative + value
    value, derivative = c2 + z * value, z * derivative - value
    value, derivative = c1 + x * value, x * derivative + value
    value, derivative = change + z * value, z * derivative - value
    value, derivative = y + x * value, x * derivative + value
    defect = abs(derivative - h * run(instructions, memory, value))
    if not defect <= _MAX_DEFECT * scale:  # So NaN fails too.
        return False

    for i in range(t.size):
        x = (t[i] - start) / h
        z = 1.0 - x
        out[i] = y + x * (change + z * (c1 + x * (c2 + z * (c3 + x * (c4 + z * (c5 + x * c6))))))
    return True


@numba.njit(nogil=True, error_model="numpy")
def _first_step(instructions, memory, y, slope, rtol, atol):
    """A step so short that an explicit Euler step would be about accurate."""
    scale = atol + rtol * abs(y)
    size, speed = abs(y) / scale, abs(slope) / scale
    h = 0.01 * size / speed if size > 1e-5 and speed > 1e-5 else 1e-6
    curvature = abs(run(instructions, memory, y + h * slope) - slope) / (scale * h)
    fastest = max(speed, curvature)
    if not math.isfinite(fastest):
        return h
    longer = (0.01 / fastest) ** 0.125 if fastest > 1e-15 else max(1e-6, 1e-3 * h)
    return min(100.0 * h, longer)


@numba.njit(nogil=True, error_model="numpy")
def _explodes(instructions, memory, y, slope, time_left):
    """Whether y, moving away from 0, surely reaches infinity within the time left.

    That is so where f/y keeps growing from one sample to the next: then the way
    from each to the next takes at most the time it takes at the former's speed.
    """
    speed = slope / y
    time = 0.0
    for _ in range(_EXPLOSION_SAMPLES):
        time += (_EXPLOSION_RATIO - 1.0) / speed
        if not time < time_left:
            return False
        y *= _EXPLOSION_RATIO
        faster = run(instructions, memory, y) / y
        if faster == math.inf:
            return True
        if not faster > _EXPLOSION_GROWTH * speed:
            return False
        speed = faster
    # What is left is shorter than a geometric series.
    rest = (_EXPLOSION_RATIO - 1.0) / speed / (1.0 - 1.0 / _EXPLOSION_GROWTH)
    return time + rest < time_left


@numba.njit(nogil=True, error_model="numpy")
def _falls_to_0(instructions, memory, y, slope, near):
    """Whether f does so towards the edge of its domain, which lies less than `near` ahead."""
    outside = y + math.copysign(near, slope)
    for _ in range(_HALVINGS):
        middle = y + 0.5 * (outside - y)
        if math.isfinite(run(instructions, memory, middle)):
            y = middle
        else:
            outside = middle
    return abs(run(instructions, memory, y)) <= _FALLEN * abs(slope)


@numba.njit(nogil=True, error_model="numpy")
def _integrate(instructions, memory, k, y, t, rtol, atol, max_steps, out):
    """Solves for one initial value; returns the status and the number of steps."""
    now, end = t[0], t[-1]
    out[0] = y
    filled = 1
    k[0] = run(instructions, memory, y)
    if not math.isfinite(k[0]):
        return FAILED, 0
    if t.size == 1:
        return SUCCESS, 0
    h = _first_step(instructions, memory, y, k[0], rtol, atol)
    longest = _LONGEST_STEP * (end - now)
    max_factor = _MAX_FACTOR
    fast = 10.0 * abs(k[0])
    for steps in range(1, max_steps + 1):
        if k[0] == 0.0:
            out[filled:] = y
            return SUCCESS, steps - 1
        h = min(h, longest)
        then = now + h
        if now + 1.01 * h >= end:
            h, then = end - now, end
        if not h > 4.0 * _EPSILON * abs(now) or h < 1e-30:
            return FAILED, steps - 1

        new = _step(instructions, memory, k, y, h)
        k[12] = run(instructions, memory, new)
        stop = filled
        scale = atol + rtol * max(abs(y), abs(new))
        near = max(_REST * scale, 4.0 * _EPSILON * abs(new))
        factor, accepted = _RETRY_FACTOR, False
        if math.isfinite(new) and math.isfinite(k[12]):
            error = _relative_error(k, h, scale)
            if not error <= 1.0:
                factor = max(_MIN_FACTOR, _SAFETY * error**-0.125)
            elif k[0] * k[12] >= 0.0:
                factor = _SAFETY * error**-0.125 if error > 0.0 else max_factor
                while stop < t.size and t[stop] <= then:
                    stop += 1
                accepted = stop == filled or _fill(
                    instructions, memory, k, y, new, h, scale, now, t[filled:stop], out[filled:stop]
                )
                if not accepted:
                    factor = _RETRY_FACTOR
            elif abs(new - y) <= near:  # The rest point lies between the two.
                out[filled:] = y
                return SUCCESS, steps
        if not accepted:
            h *= factor
            max_factor = 1.0
            continue

        if abs(k[12]) < abs(k[0]):
            beyond = run(instructions, memory, new + math.copysign(near, k[12]))
            if math.isfinite(beyond):
                rests = beyond * k[12] <= 0.0
            elif _falls_to_0(instructions, memory, new, k[12], near):
                rests = True
            else:
                return FAILED, steps
            if rests:
                out[stop:] = new
                return SUCCESS, steps
        elif abs(k[12]) > fast and new * k[12] > 0.0:
            if _explodes(instructions, memory, new, k[12], end - then):
                return FAILED, steps
            fast = 4.0 * abs(k[12])
        if stop == t.size:
            return SUCCESS, steps
        y, now, filled = new, then, stop
        k[0] = k[12]
        h *= min(max_factor, factor)
        max_factor = _MAX_FACTOR
    return TOO_MANY_STEPS, max_steps


def _compile_for(machine: str):
    """The compiled solver.

    Numba's cache on disk knows when this file changes, but not when the machine
    does, which is compiled in. It does look at the variables of a closure.
    """

    @numba.njit(nogil=True, cache=True, error_model="numpy")
    def integrate(instructions, memory, initial_values, t, rtol, atol, max_steps):
        machine  # noqa: B018
        memory = memory.copy()
        k = np.zeros(16)
        y = np.empty((initial_values.size, t.size))
        status = np.empty(initial_values.size, np.int64)
        steps = np.empty(initial_values.size, np.int64)
        for i in range(initial_values.size):
            status[i], steps[i] = _integrate(
                instructions, memory, k, initial_values[i], t, rtol, atol, max_steps, y[i]
            )
            if status[i] == SUCCESS and not np.isfinite(y[i]).all():
                status[i] = FAILED
            if status[i] != SUCCESS:
                y[i] = math.nan
        return y, status, steps

    return integrate


_integrate_all = _compile_for(FINGERPRINT)


@dataclasses.dataclass(frozen=True, eq=False)
class Solutions:
    """Solutions of one equation.

    Attributes:
      y: shape [n, time]; rows of NaN where there is none.
      status: SUCCESS, FAILED or TOO_MANY_STEPS, shape [n].
      steps: steps taken or tried, shape [n].
    """

    y: Float[np.ndarray, "n time"]
    status: Int64[np.ndarray, " n"]
    steps: Int64[np.ndarray, " n"]


def integrate(
    program: Program,
    initial_values: Float[np.ndarray, " n"],
    t: Float[np.ndarray, " time"],
    *,
    rtol: float,
    atol: float,
    max_steps: int,
) -> Solutions:
    """The solutions of dy/dt = f(y) from each initial value at t[0].

    Releases the GIL, so threads share the cores. What is computed for an initial
    value does not depend on the others.

    Args:
      program: f.
      initial_values: shape [n].
      t: increasing times, shape [time].
      rtol, atol: tolerances; a step uses less of them where that is cheap.
      max_steps: steps allowed for one solution, whatever their number of times.
    """
    results = _integrate_all(
        program.instructions,
        program.memory,
        np.ascontiguousarray(initial_values, np.float64),
        np.ascontiguousarray(t, np.float64),
        max(_RELATIVE_SHARE * rtol, _MIN_RTOL),
        float(atol),
        int(max_steps),
    )
    return Solutions(*results)
