"""The equations of a system one by one: a regression for each, along the smoothed states.

Once the states are known as functions of time, dy_k/dt = f_k(y, u, t) is linear in the values
of f_k, and no equation needs the others. In the integral form

    y_k(t) = a + integral of f_k            first order,
    y_k(t) = a + b t + double integral of f_k   second order, y_k a position,

constants a and b of each run are projected out, and no derivative of noisy data is taken. A
quantity over decades is compared in the scale z in which it is alike noisy, whose rate of change
is dz/dy f.

Where there is noise, smooth curves are wrong by more than their integrals forgive, velocities
most. The solution of a system that fits the data is the better curve, even of one whose
equations are not quite right: between the data it does what some dynamics does.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.system import integrate
from nsode_jax.fitting.shooting import SystemFit
from nsode_jax.observed.integral import INTERPOLATION_FLOOR
from nsode_jax.observed.noise_scale import LINEAR
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.observed.regression import Regression

_ORDER = 3
"""Gauss-Legendre nodes between two observations, of up to `_FEW` points; 2 of more."""
_FEW = 400
_TOLERANCE = 1e-9


def component_forms(data: Observations, fit: SystemFit | None = None) -> tuple[Regression, ...]:
    """The regression for each equation that is looked for, in the order of the quantities.

    Their targets are in standard deviations of the quantity.

    Args:
      data: what was measured.
      fit: a system whose solutions are followed between the data, as far as there are any;
        smooth curves, if left out.
    """
    order = _ORDER if data.count <= _FEW else 2
    parts = [_quadrature(run, order) for run in data.runs]
    nodes = np.concatenate(
        [data.points(run, times) for run, (times, _) in zip(data.runs, parts)], axis=1
    )
    if fit is not None:
        states = [_solution(data, fit, i, times) for i, (times, _) in enumerate(parts)]
        known = np.isfinite(solved := np.concatenate(states, axis=1)).all(axis=0)
        nodes[: len(solved), known] = solved[:, known]
    number = len(data.system.observed)
    operators: list[list[np.ndarray]] = [[] for _ in range(number)]
    targets: list[list[np.ndarray]] = [[] for _ in range(number)]
    start = 0
    for run, (times, weights) in zip(data.runs, parts):
        # (t_i - s)^(order - 1) ds: Cauchy's formula for repeated integrals.
        elapsed = np.maximum(run.t[:, None] - times, 0.0)
        kernel = (elapsed > 0.0) * weights * elapsed ** (data.system.order - 1)
        block = np.zeros((len(run), nodes.shape[1]))
        block[:, start : start + times.size] = kernel
        start += times.size
        for k in range(number):
            scale = run.scales[k] if data.system.order == 1 else LINEAR
            counts = run.weights[:, k] / scale.slope(run.y[:, k])
            free = _free_constants(run, data.system.order, counts)
            integrals = block * scale.slope(nodes[k])
            for kept, rows in ((operators[k], integrals), (targets[k], scale.forward(run.y[:, k]))):
                weighted = (counts * rows.T).T
                kept.append(weighted - free @ (free.T @ weighted))
    starts = tuple(tuple(run.states(run.t[:1], data.system.order)[:, 0]) for run in data.runs)
    return tuple(
        Regression(
            nodes,
            np.concatenate(operators[k]) / spread,
            np.concatenate(targets[k]) / spread,
            remainder=0.0,
            count=int(data.counts[k]),
            floor=max(INTERPOLATION_FLOOR, float(data.precision[k])),
            exact=False,
            y0s=tuple(start[k] for start in starts),
            own=data.system.sought[k],
        )
        for k, spread in enumerate(data.spread)
    )


def _solution(
    data: Observations, fit: SystemFit, number: int, times: Float[np.ndarray, " nodes"]
) -> Float[np.ndarray, "states nodes"]:
    """The states of a fitted system in a run, each of its segments up to the next one."""
    run, pieces = data.runs[number], fit.segments
    equations = data.system.equations(fit.laws)
    starts = fit.states[number * pieces : (number + 1) * pieces]
    begins = [float(run.t[rows.start]) for rows in run.pieces(pieces)]
    inside = np.split(times, np.searchsorted(times, begins[1:]))
    atol = _TOLERANCE * data.resolution(run)
    parts = [
        integrate(equations, start, np.r_[begin, those], run.inputs, rtol=_TOLERANCE, atol=atol)[1:]
        for start, begin, those in zip(starts, begins, inside, strict=True)
    ]
    return np.concatenate(parts).T


def _quadrature(
    run: Run, order: int
) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Times between the observations, and the weights of an integral over them.

    Where inputs were measured more often, the parts between those are shorter, with fewer nodes.
    """
    edges = run.t
    if run.input_times is not None:
        inside = (run.input_times > edges[0]) & (run.input_times < edges[-1])
        edges = np.union1d(edges, run.input_times[inside])
        order = max(1, round(order * len(run) / edges.size))
    points, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + points)).ravel(), (half * weights).ravel()


def _free_constants(
    run: Run, order: int, weights: Float[np.ndarray, " time"]
) -> Float[np.ndarray, "time order"]:
    """An orthonormal basis of what the constants of integration add, weighted."""
    elapsed = run.t - run.t.mean()
    return np.linalg.qr(weights[:, None] * np.vander(elapsed, order))[0]
