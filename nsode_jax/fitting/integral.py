"""The integral form: y(t_j) - y(t_i) = integral of f, without solving an ODE.

f is integrated along a smooth curve through the data and compared over all pairs
(i, j). That is cheap, cannot diverge, and takes no derivatives of noisy data. As f
depends on y only, its values on a grid of the observed range say it all: the
integrals are a fixed matrix times these values, whatever the length of the series.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.regression import Regression, interpolation, reduced
from nsode_jax.fitting.smoothing import is_clean, monotone_curve

INTERPOLATION_FLOOR = 3e-5
"""Residual, in standard deviations of the data, that interpolation leaves undecided."""

_GRID = 64


def integral_form(data: Dataset) -> Regression:
    """Smooths the data and lays out the quadrature.

    With a free constant of integration per trajectory the sum over all pairs (i, j)
    is the sum of squares about its mean. Least squares only see the part of the data
    in the range of the operator, so both are reduced to that.

    Returns:
      The regression; its target is in standard deviations of the data.
    """
    target = np.concatenate([_centered(t.y, t.weights) for t in data]) / data.spread
    curves = [_quadrature(trajectory) for trajectory in data]
    nodes = _grid(
        np.concatenate([values for values, _, _ in curves]),
        np.concatenate([weights.ravel() for _, weights, _ in curves]),
    )
    blocks = []
    for trajectory, (values, weights, _) in zip(data, curves, strict=True):
        # [intervals, order, nodes] --> increments [intervals, nodes]
        parts = interpolation(nodes, values).reshape(*weights.shape, nodes.size)
        increments = (parts * weights[..., None]).sum(axis=1)
        integrals = np.concatenate([np.zeros((1, nodes.size)), np.cumsum(increments, axis=0)])
        blocks.append(_centered(integrals, trajectory.weights) / data.spread)
    operator, target, remainder = reduced(np.concatenate(blocks), target)
    form = Regression(
        nodes,
        operator,
        target,
        remainder,
        data.count,
        floor=INTERPOLATION_FLOOR,
        exact=False,
        y0s=tuple(y0 for _, _, y0 in curves),
        sigma=None if data.sigma is None else data.sigma / data.spread,
    )
    return form if data.frame is None else data.frame.applied(form)


def _centered(
    values: Float[np.ndarray, " time *columns"], weights: Float[np.ndarray, " time"]
) -> Float[np.ndarray, " time *columns"]:
    """Weighted values about their weighted mean, which is a free constant's optimum."""
    squares = weights**2 / np.sum(weights**2)
    mean = np.tensordot(squares, values, axes=1)
    return ((values - mean).T * weights).T


def _quadrature(
    trajectory: Trajectory,
) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, "intervals order"], float]:
    """A curve through the data at Gauss-Legendre nodes between them, weights, first value."""
    t, y = trajectory.t, trajectory.y
    clean = is_clean(t, y)
    order = 4 if clean or len(trajectory) <= 100 else 2
    points, weights = np.polynomial.legendre.leggauss(order)
    if not clean:
        half = np.diff(t)[:, None] / 2  # [intervals, 1]
        times = (t[:-1, None] + half * (1 + points)).ravel()
        smooth = monotone_curve(t, y, trajectory.weights)(np.concatenate([t[:1], times]))
        return smooth[1:], half * weights, float(smooth[0])
    # A steep transient between few points is a straight piece of the path (t, y).
    steps = np.hypot(np.diff(t) / np.ptp(t), np.diff(y) / np.ptp(y))
    path = np.concatenate([[0.0], np.cumsum(steps)])
    half = steps[:, None] / 2
    at = (path[:-1, None] + half * (1 + points)).ravel()
    speed = CubicSpline(path, t)(at, 1).reshape(-1, order)
    return CubicSpline(path, y)(at), half * weights * speed, float(y[0])


def _grid(
    nodes: Float[np.ndarray, " nodes"], weights: Float[np.ndarray, " nodes"]
) -> Float[np.ndarray, " grid"]:
    """Values over the range of the nodes: half of them even, half where time is spent."""
    order = np.argsort(nodes)
    share = np.cumsum(weights[order])
    low, high = nodes.min(), nodes.max()
    even = np.linspace(low, high, _GRID // 2)
    dense = np.interp(np.linspace(0, share[-1], _GRID // 2 + 2)[1:-1], share, nodes[order])
    grid = np.sort(np.concatenate([even, dense]))
    # Neighbours must differ: what is too close goes, wide gaps are halved instead.
    kept = [grid[0]]
    for value in grid[1:]:
        if value - kept[-1] > 1e-4 * (high - low):
            kept.append(value)
    kept[-1] = high
    while len(kept) < _GRID:
        widest = int(np.argmax(np.diff(kept)))
        kept.insert(widest + 1, (kept[widest] + kept[widest + 1]) / 2)
    return np.array(kept)
