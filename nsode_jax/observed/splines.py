"""Numerical parts of smoothing: cubic smoothing splines, and polynomials through neighbours."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve_banded, cholesky_banded


def smoothing_spline(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"] | None = None,
) -> tuple[Float[np.ndarray, " time"], float]:
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

    Returns:
      Its values, and the criterion: the mean square error of foretelling a value that is left
      out, of weights whose mean square is 1.
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
    bands = bands_of_inverse(np.array(factors).reshape(-1, 3, inner))
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
    return smoothed, best


def bands_of_inverse(
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
