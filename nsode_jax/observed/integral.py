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
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.noise_scale import NoiseScale
from nsode_jax.observed.regression import Regression, interpolation, reduced
from nsode_jax.observed.smoothing import is_clean, monotone_curve

INTERPOLATION_FLOOR = 3e-5
"""Residual, in standard deviations of the data, that interpolation leaves undecided."""

_GRID = 64


def integral_form(data: Dataset) -> Regression:
    """Smooths the data and lays out the quadrature.

    With a free constant of integration per trajectory the sum over all pairs (i, j)
    is the sum of squares about its mean. Least squares only see the part of the data
    in the range of the operator, so both are reduced to that. In a scale z of y that is not
    linear it is z(y(t_j)) - z(y(t_i)) = integral of dz/dy f.

    Returns:
      The regression; its target is in standard deviations of the data.
    """
    scale = data.noise_scale
    precisions = [t.weights / scale.slope(t.y) for t in data]
    target = np.concatenate([_centered(scale.forward(t.y), w) for t, w in zip(data, precisions)])
    ends = scale.forward(np.array([data.low, data.high]))
    curves = [_quadrature(t, w, scale, ends) for t, w in zip(data, precisions, strict=True)]
    places = _grid(
        np.concatenate([values[1:] for values, _ in curves]),
        np.concatenate([weights.ravel() for _, weights in curves]),
    )
    nodes, slopes = scale.inverse(places), scale.slope(scale.inverse(places))
    blocks = []
    for precision, (values, weights) in zip(precisions, curves, strict=True):
        # [intervals, order, nodes] --> increments [intervals, nodes]
        parts = interpolation(places, values[1:]).reshape(*weights.shape, nodes.size)
        increments = (parts * weights[..., None]).sum(axis=1) * slopes
        integrals = np.concatenate([np.zeros((1, nodes.size)), np.cumsum(increments, axis=0)])
        blocks.append(_centered(integrals, precision) / data.spread)
    operator, target, remainder = reduced(np.concatenate(blocks), target / data.spread)
    form = Regression(
        nodes,
        operator,
        target,
        remainder,
        data.count,
        floor=INTERPOLATION_FLOOR,
        exact=False,
        y0s=tuple(float(scale.inverse(values[:1])[0]) for values, _ in curves),
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
    precision: Float[np.ndarray, " time"],
    scale: NoiseScale,
    ends: Float[np.ndarray, "2"],
) -> tuple[Float[np.ndarray, " values"], Float[np.ndarray, "intervals order"]]:
    """A curve through the data, at the first time and at Gauss-Legendre nodes, and weights.

    Values are in the given scale and between the ends; residuals there are multiplied by the
    precision.
    """
    t, z = trajectory.t, scale.forward(trajectory.y)
    clean = is_clean(t, z)
    order = 4 if clean or len(trajectory) <= 100 else 2
    points, weights = np.polynomial.legendre.leggauss(order)
    if not clean:
        half = np.diff(t)[:, None] / 2  # [intervals, 1]
        times = (t[:-1, None] + half * (1 + points)).ravel()
        smooth = monotone_curve(t, z, precision)(np.concatenate([t[:1], times]))
        return np.clip(smooth, *ends), half * weights
    # A steep transient between few points is a straight piece of the path (t, z).
    steps = np.hypot(np.diff(t) / np.ptp(t), np.diff(z) / np.ptp(z))
    path = np.concatenate([[0.0], np.cumsum(steps)])
    half = steps[:, None] / 2
    at = (path[:-1, None] + half * (1 + points)).ravel()
    speed = CubicSpline(path, t)(at, 1).reshape(-1, order)
    # A spline overshoots where a solution comes to rest at once, as a tank that is empty.
    values = np.clip(CubicSpline(path, z)(at), z.min(), z.max())
    return np.concatenate([z[:1], values]), half * weights * speed


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
