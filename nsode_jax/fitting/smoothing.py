"""A smooth curve through noisy, unevenly sampled data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.interpolate import CubicSpline, make_interp_spline
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.optimize import isotonic_regression

_CLEAN = 1e-3
"""Deviations below this share of the spread are no noise to be modelled."""

_FORETOLD = 0.7
"""Where neighbours err by less than this share of what a smooth curve leaves, it lost signal."""

_CLEAN_NEIGHBOURS = 1e-4
"""Likewise, for the deviations of values from their neighbours."""


def monotone_curve(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"] | None = None,
) -> Callable[[np.ndarray], np.ndarray]:
    """A monotone smooth curve through the data, within their range.

    Solutions of a scalar autonomous ODE are monotone, so wiggles are noise. Residuals are
    multiplied by the weights, if there are any.
    """
    scaled = (t - t[0]) / (t[-1] - t[0])
    level, size = y.mean(), y.std() or 1.0
    values = (y - level) / size
    smoothed = _smoothing_spline_values(scaled, values, weights)
    if np.sqrt(np.mean((smoothed - values) ** 2)) > _CLEAN:
        curve = CubicSpline(scaled, smoothed, bc_type="natural")
    else:  # The data are clean, and interpolation is more exact.
        curve = CubicSpline(scaled, values)

    def evaluate(times: np.ndarray) -> np.ndarray:
        raw = np.clip(curve((times - t[0]) / (t[-1] - t[0])), values.min(), values.max())
        both = [isotonic_regression(raw, increasing=up).x for up in (True, False)]
        return level + size * min(both, key=lambda x: float(np.sum((x - raw) ** 2)))

    return evaluate


def _smoothing_spline_values(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"] | None = None,
) -> Float[np.ndarray, " time"]:
    """The cubic smoothing spline at the data, smoothed by generalized cross-validation.

    Reinsch's form: (R + p Q'VQ) g = Q'y, x = y - p V Q g, with banded matrices, V being
    1 / weights^2. Degrees
    of freedom count 1.4 times in the criterion, which keeps it from following the
    noise of short series. SciPy's `make_smoothing_spline` fails on uneven times
    ("ill-posed"); dense decompositions are slow where BLAS threads share few cores.

    Args:
      t: times from 0 to 1, at least 4, shape [time].
      y: values, shape [time].
      weights: what residuals are multiplied by, shape [time]; None for ones.
    """
    size = 1.0 if weights is None else np.sqrt(np.mean(weights**2))
    weights = np.ones(t.size) if weights is None else np.asarray(weights / size)
    variance, inner = weights**-2.0, t.size - 2
    step = np.diff(t)
    before, after = 1 / step[:-1], 1 / step[1:]
    q = np.stack([before, -before - after, after])  # Column j of Q, rows j, j+1, j+2.
    near = [variance[row : row + inner] for row in range(3)]
    gram = np.zeros((3, inner))  # R, upper bands: [2] diagonal, [1] and [0] above it.
    gram[2] = (step[:-1] + step[1:]) / 3
    gram[1, 1:] = step[1:-1] / 6
    rough = np.zeros((3, inner))  # Q'VQ likewise.
    rough[2] = (q**2 * near).sum(axis=0)
    rough[1, 1:] = q[1, :-1] * q[0, 1:] * near[1][:-1] + q[2, :-1] * q[1, 1:] * near[2][:-1]
    rough[0, 2:] = q[2, :-2] * q[0, 2:] * near[2][:-2]
    right = q[0] * y[:-2] + q[1] * y[1:-1] + q[2] * y[2:]

    penalties, factors = [], []
    for penalty in t.size * np.geomspace(1e-16, 10.0, 50):
        try:
            factors.append(cholesky_banded(gram + penalty * rough))
        except np.linalg.LinAlgError:
            continue
        penalties.append(penalty)
    bands = _bands_of_inverse(np.array(factors).reshape(-1, 3, inner))
    # Of the product of two symmetric matrices, in which each band off the diagonal is twice.
    traces = np.zeros(len(penalties))
    for band in range(3):
        along = rough[2 - band, band:] * bands[:, band, : inner - band]
        traces += (2.0 if band else 1.0) * along.sum(axis=1)
    best, smoothed = np.inf, y
    for penalty, factor, trace in zip(penalties, factors, traces, strict=True):
        curvature = cho_solve_banded((factor, False), right)
        residual = np.zeros(t.size)
        for row in range(3):
            residual[row : row + inner] += penalty * near[row] * q[row] * curvature
        freedom = 1 - 1.4 * (1 - penalty * trace / t.size)
        left = ((weights * residual) ** 2).mean()
        if freedom > 0.01 and left / freedom**2 < best:
            best, smoothed = left / freedom**2, y - residual
    return smoothed


def _bands_of_inverse(
    factors: Float[np.ndarray, "matrices 3 rows"],
) -> Float[np.ndarray, "matrices 3 rows"]:
    """Diagonal, first and second band of the inverses of pentadiagonal matrices.

    From their Cholesky factors, in as many steps as rows (Hutchinson and de Hoog 1985, Numer.
    Math. 47), for all matrices at once.

    Args:
      factors: upper ones, as SciPy's `cholesky_banded` has them.

    Returns:
      Entry [m, k, i] is the inverse's in row i and column i + k.
    """
    number, _, rows = factors.shape
    diagonal = factors[:, 2]
    first, second = np.zeros((2, number, rows))
    first[:, :-1] = factors[:, 1, 1:] / diagonal[:, :-1]
    second[:, :-2] = factors[:, 0, 2:] / diagonal[:, :-2]
    bands = np.zeros((3, rows + 2, number))
    for i in range(rows - 1, -1, -1):
        near, far = first[:, i], second[:, i]
        bands[1, i] = -near * bands[0, i + 1] - far * bands[1, i + 1]
        bands[2, i] = -near * bands[1, i + 1] - far * bands[0, i + 2]
        bands[0, i] = diagonal[:, i] ** -2.0 - near * bands[1, i] - far * bands[2, i]
    return np.moveaxis(bands[:, :rows], -1, 0)


def lagrange_weights(
    nodes: Float[np.ndarray, "points nodes"], at: Float[np.ndarray, " points"]
) -> Float[np.ndarray, "points nodes"]:
    """Weights of the values at the nodes in the polynomial through them, at one place each."""
    away = at[:, None] - nodes
    weights = np.ones_like(nodes)
    for k in range(nodes.shape[1]):
        for other in range(nodes.shape[1]):
            if other != k:
                weights[:, k] *= away[:, other] / (nodes[:, k] - nodes[:, other])
    return weights


def is_clean(t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]) -> bool:
    """Whether most values lie where the cubic through their four neighbours leads.

    Unlike smoothing, this is not misled by a steep transient of a few points.
    """
    inner = np.arange(2, t.size - 2)
    if not inner.size:
        return False
    columns = inner[:, None] + np.array([-2, -1, 1, 2])
    weights = lagrange_weights(t[columns], t[inner])
    deviation = np.abs((weights * y[columns]).sum(axis=1) - y[inner])
    noise = deviation / np.sqrt(1 + (weights**2).sum(axis=1))
    return bool(np.median(noise) <= _CLEAN_NEIGHBOURS * y.std())


def smooth_curve(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"] | None = None,
) -> tuple[Callable[..., np.ndarray], float]:
    """A smooth curve through a series that may rise and fall, and its noise.

    Exact data are interpolated, by the order that foretells most values best from their
    neighbours; noisy ones are smoothed by generalized cross-validation.

    Args:
      t: increasing times.
      y: values.
      weights: what residuals are multiplied by, of mean square 1; None for ones.

    Returns:
      The curve as a function of times and of the number of the derivative, and the root
      mean square of what it leaves, weighted, or would be wrong by, in units of y.
    """
    halves = [half for half in (2, 3, 4) if t.size > 4 * half]
    errors = {half: _left_out_errors(t, y, half) for half in halves}
    typical = {half: 1.48 * float(np.median(np.abs(found))) for half, found in errors.items()}
    half, error = min(typical.items(), key=lambda item: item[1], default=(2, np.inf))
    if error <= _CLEAN * y.std():
        return make_interp_spline(t, y, k=2 * half - 1), error
    since = (t - t[0]) / (t[-1] - t[0])
    smoothed = _smoothing_spline_values(since, (y - y.mean()) / y.std(), weights)
    smoothed = y.mean() + y.std() * smoothed
    left = float(np.sqrt(np.mean(((1.0 if weights is None else weights) * (y - smoothed)) ** 2)))
    # Mean squares both, for most errors are small where noise grows with the values.
    squares = {half: float(np.mean(found**2)) for half, found in errors.items()}
    half, square = min(squares.items(), key=lambda item: item[1], default=(2, np.inf))
    if square < (_FORETOLD * left) ** 2:  # Few points for steep data: neighbours know better.
        return make_interp_spline(t, y, k=2 * half - 1), math.sqrt(square)
    return CubicSpline(t, smoothed, bc_type="natural"), left


def _left_out_errors(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], half: int
) -> Float[np.ndarray, " inner"]:
    """How far values are from the polynomials through their neighbours.

    In standard deviations of the noise, if that were all.
    """
    inner = np.arange(half, t.size - half)
    columns = inner[:, None] + np.r_[-half:0, 1 : half + 1]
    weights = lagrange_weights(t[columns], t[inner])
    return ((weights * y[columns]).sum(axis=1) - y[inner]) / np.sqrt(1 + (weights**2).sum(axis=1))
