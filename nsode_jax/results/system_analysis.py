"""Where the best system rests, and what its solutions do near by."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Inexact
from scipy.stats import qmc

from nsode_jax.expressions.display import value_with_error
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.observations import Observations
from nsode_jax.results.analysis import Remark, finite, remark_on
from nsode_jax.results.system_result import SystemCandidate, SystemResult
from nsode_jax.results.uncertainty import quantile

MARGIN = 0.5
"""Of the observed range, on either side of it, in which fixed points are looked for."""

_STARTS = 512  # A power of two, as Sobol's sequence wants.
_ITERATIONS = 60
_LONGEST_STEP = 0.25  # Of the box.
_SAME, _AT_REST = 1e-5, 1e-8  # Of the box; of the size of f in it.
_SLOPE_STEP = 1e-6
_SINGULAR = 1e-7
_EXACT = 1e-5  # An eigenvalue so small beside the largest is zero but for rounding.
_SLIGHT = 0.1  # Of the imaginary part: the real part of a centre, with its error.
_ERROR_STEP = 1e-3  # Standard errors by which constants are moved.


class SystemFixedPoint(NamedTuple):
    """States at which the best system rests.

    Attributes:
      states: their values.
      standard_errors: of them, from those of the constants; NaN if unknown.
      eigenvalues: of the linearized system there, by decreasing real part, in 1/time.
      eigenvalue_errors: standard errors of the real parts; NaN if unknown.
      kind: such as "stable node", "unstable focus", "saddle" or "centre".
      observed: whether it lies in the range of the data.
    """

    states: tuple[float, ...]
    standard_errors: tuple[float, ...]
    eigenvalues: tuple[complex, ...]
    eigenvalue_errors: tuple[float, ...]
    kind: str
    observed: bool


class SystemFixedPoints(NamedTuple):
    """Isolated fixed points, and whether there are others that are not: a curve of them."""

    points: tuple[SystemFixedPoint, ...]
    curve: bool


def is_autonomous(candidate: SystemCandidate) -> bool:
    """Whether neither the time nor an input stands in the laws."""
    foreign = set(candidate.system.variables) - set(candidate.system.states)
    return not any(foreign & set(law.prefix) for law in candidate.laws)


def state_ranges(found: SystemResult) -> Float[np.ndarray, "states 2"]:
    """Smallest and largest value of each state: of the data; of velocities, of the solutions."""
    order, number = found.system.order, len(found.system.observed)
    parts = [run.states(run.t, order) for run in found.runs]
    values = np.concatenate(parts, axis=1)
    values[:number] = np.concatenate([run.y for run in found.runs]).T
    return np.stack([values.min(axis=1), values.max(axis=1)], axis=1)


@functools.lru_cache(maxsize=8)  # Text, report and picture ask for them, each on its own.
def find_fixed_points(found: SystemResult) -> SystemFixedPoints:
    """Fixed points of the best system in the range of the data and half of it on either side.

    Newton's method from many starts that are spread evenly. None where the laws depend on the
    time or on inputs.
    """
    best = found.best
    if not is_autonomous(best):
        return SystemFixedPoints((), False)
    ranges = state_ranges(found)
    field = _Field(best, best.laws)
    margin = MARGIN * np.ptp(ranges, axis=1)
    box = np.stack([ranges[:, 0] - margin, ranges[:, 1] + margin])
    roots = _roots(field, box)
    slopes = [field.jacobian(root[None], np.ptp(box, axis=0))[0] for root in roots]
    isolated = [_is_regular(slope, np.ptp(box, axis=0)) for slope in slopes]
    points = []
    for root, slope, alone in zip(roots, slopes, isolated, strict=True):
        if alone:
            inside = (ranges[:, 0] <= root) & (root <= ranges[:, 1])
            points.append(_described(best, root, slope, np.ptp(box, axis=0), bool(inside.all())))
    points.sort(key=lambda point: (not point.observed, point.states))
    return SystemFixedPoints(tuple(points), not all(isolated))


def fixed_point_text(point: SystemFixedPoint, names: Sequence[str]) -> str:
    """Where and what it is, and how fast solutions leave it or approach it."""
    values = zip(names, point.states, point.standard_errors, strict=True)
    where = ", ".join(f"{name} = {value_with_error(y, e)}" for name, y, e in values)
    beyond = "" if point.observed else ", beyond the data"
    return f"{where} ({point.kind}{beyond}; eigenvalues {eigenvalue_text(point)})"


def eigenvalue_text(point: SystemFixedPoint) -> str:
    """The eigenvalues, those of a conjugate pair as one."""
    texts = []
    largest = max(map(abs, point.eigenvalues))
    for value in point.eigenvalues:
        real = 0.0 if abs(value.real) <= _EXACT * largest else value.real
        if value.imag > 0.0:
            texts.append(f"{real:.3g} ± {value.imag:.3g}i" if real else f"± {value.imag:.3g}i")
        elif value.imag == 0.0:
            texts.append(f"{real:.3g}")
    return ", ".join(texts)


def residuals(found: SystemResult) -> list[Float[np.ndarray, "time observed"]]:
    """Data minus the fitted solution of the best system, per run; NaN without a solution."""
    left, observed = [], len(found.system.observed)
    for number, run in enumerate(found.runs):
        solved = np.concatenate([y for _, y in found.best.solutions(run, number)])
        left.append(finite(run.y - solved[:, :observed]))
    return left


def residual_remarks(found: SystemResult) -> list[tuple[str, Remark]]:
    """Of each quantity, by its name, whether its residuals look like independent noise.

    Each counts by its precision, as in the fit.
    """
    spread = Observations(found.system, found.runs).spread
    left = [one * run.weights for one, run in zip(residuals(found), found.runs, strict=True)]
    return [
        (name, remark_on([part[:, k] for part in left], float(spread[k])))
        for k, name in enumerate(found.system.observed)
    ]


# --- finding them ------------------------------------------------------------


class _Field:
    """The right-hand sides of an autonomous system, and their slopes, at many states."""

    def __init__(self, candidate: SystemCandidate, laws: Sequence[Expression]):
        self._equations = candidate.system.equations(laws)
        self._others = len(candidate.system.variables) - len(candidate.system.states)

    def __call__(self, y: Float[np.ndarray, "points states"]) -> Float[np.ndarray, "points states"]:
        # The laws are the same whatever the time and the inputs are.
        values = (*y.T, *np.zeros((self._others, len(y))))
        return np.stack([equation.evaluate(*values) for equation in self._equations], axis=1)

    def jacobian(
        self, y: Float[np.ndarray, "points states"], size: Float[np.ndarray, " states"]
    ) -> Float[np.ndarray, "points states states"]:
        """df_i/dy_j by central differences."""
        columns = []
        for step in np.diag(_SLOPE_STEP * size):
            with np.errstate(all="ignore"):
                columns.append((self(y + step) - self(y - step)) / (2 * step.sum()))
        return np.stack(columns, axis=2)


def _roots(field: _Field, box: Float[np.ndarray, "2 states"]) -> list[Float[np.ndarray, " states"]]:
    """Different zeros of the field in the box; some of each curve of zeros."""
    size = np.ptp(box, axis=0)
    spread = qmc.Sobol(size.size, scramble=False).random(_STARTS)
    y = box[0] + spread * size
    # The zero itself, at which many laws rest, and where products have singular slopes.
    y = np.concatenate([y, np.zeros((1, size.size))])
    f = field(y)
    f = f[np.isfinite(f).all(axis=1)]
    if not len(f):
        return []
    scale = np.median(np.abs(f), axis=0) + 1e-300
    for _ in range(_ITERATIONS):
        y = _newton_step(field, y, size)
    left = np.abs(field(y)) / scale
    inside = ((y >= box[0] - _SAME * size) & (y <= box[1] + _SAME * size)).all(axis=1)
    found: list[np.ndarray] = []
    for at in y[inside & (left <= _AT_REST).all(axis=1)]:
        at = np.where(np.abs(at) < _SAME * size * 1e-3, 0.0, at)
        if not any((np.abs(at - other) <= _SAME * size).all() for other in found):
            found.append(at)
    return found


def _newton_step(
    field: _Field, y: Float[np.ndarray, "points states"], size: Float[np.ndarray, " states"]
) -> Float[np.ndarray, "points states"]:
    """One step of all points; those without one stay."""
    f, slopes = field(y), field.jacobian(y, size)
    known = np.isfinite(f).all(axis=1) & np.isfinite(slopes).all(axis=(1, 2))
    # In units of the box; the pseudo-inverse leads on to curves of zeros too.
    inverse = np.linalg.pinv(slopes[known] * size, rcond=1e-10)
    step = np.zeros_like(y)
    step[known] = -np.einsum("pij,pj->pi", inverse, f[known])
    longest = np.abs(step).max(axis=1, keepdims=True)
    return y + size * step * np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, 1e-300))


def _is_regular(
    slope: Float[np.ndarray, "states states"], size: Float[np.ndarray, " states"]
) -> bool:
    singular = np.linalg.svd(slope * size / size[:, None], compute_uv=False)
    return bool(singular[-1] > _SINGULAR * singular[0])


# --- what they are -----------------------------------------------------------


def _described(
    best: SystemCandidate,
    root: Float[np.ndarray, " states"],
    slope: Float[np.ndarray, "states states"],
    size: Float[np.ndarray, " states"],
    observed: bool,
) -> SystemFixedPoint:
    values = _eigenvalues(slope)
    errors, real_errors = _errors(best, root, values, size)
    return SystemFixedPoint(
        tuple(map(float, root)),
        tuple(map(float, errors)),
        tuple(map(complex, values)),
        tuple(map(float, real_errors)),
        kind_of(values, real_errors, best.freedom),
        observed,
    )


def _eigenvalues(slope: Float[np.ndarray, "states states"]) -> Complex[np.ndarray, " states"]:
    values = np.linalg.eigvals(slope).astype(complex)
    tiny = np.abs(np.imag(values)) <= _EXACT * np.abs(values).max()
    values = np.where(tiny, np.real(values), values)
    return values[np.lexsort((-np.imag(values), -np.real(values)))]


def kind_of(
    eigenvalues: Inexact[np.ndarray, " states"],
    errors: Float[np.ndarray, " states"],
    freedom: float = math.inf,
) -> str:
    """What solutions do near a fixed point.

    Args:
      eigenvalues: of the linearized system.
      errors: standard errors of their real parts; NaN if unknown.
      freedom: degrees of freedom of the noise that the errors come from.

    Returns:
      "stable" or "unstable", "node" or "focus"; "saddle"; "centre" for a conjugate pair whose
      real part is zero within a narrow 95% interval. "undetermined" where the sign of another
      real part is not determined by the data.
    """
    real, turning = np.real(eigenvalues), np.imag(eigenvalues) != 0.0
    half = quantile(freedom) * np.where(np.isfinite(errors), errors, 0.0)
    zero = np.abs(real) <= np.maximum(half, _EXACT * np.abs(eigenvalues).max())
    if zero.any():
        most = np.abs(real) + half
        narrow = (most <= _SLIGHT * np.abs(np.imag(eigenvalues))).all()
        return "centre" if eigenvalues.size == 2 and turning.all() and narrow else "undetermined"
    growing = np.real(eigenvalues) > 0.0
    if growing.any() and not growing.all():
        return "saddle"
    stability = "unstable" if growing.all() else "stable"
    return f"{stability} {'focus' if turning.any() else 'node'}"


def _errors(
    best: SystemCandidate,
    root: Float[np.ndarray, " states"],
    values: Complex[np.ndarray, " states"],
    size: Float[np.ndarray, " states"],
) -> tuple[Float[np.ndarray, " states"], Float[np.ndarray, " states"]]:
    """Standard errors of a fixed point and of the real parts of its eigenvalues.

    Constants are moved along the principal axes of their covariance, and the fixed point
    is followed.
    """
    unknown = np.full(root.size, math.nan)
    if best.covariance is None or not np.isfinite(best.covariance).all():
        return unknown, unknown
    # In standard errors: constants may differ by many decades, and some are not fitted.
    errors = np.sqrt(np.diag(best.covariance))
    sizes = np.where(errors > 0.0, errors, 1.0)
    variances, axes = np.linalg.eigh(best.covariance / np.outer(sizes, sizes))
    moves = (errors[:, None] * axes * np.sqrt(np.maximum(variances, 0.0))).T * _ERROR_STEP
    squares, real_squares = np.zeros(root.size), np.zeros(root.size)
    for move in moves[np.abs(moves).max(axis=1) > 0.0]:
        field = _Field(best, best.with_constants(np.asarray(best.constants) + move))
        at = root[None]
        for _ in range(3):
            at = _newton_step(field, at, size)
        slope = field.jacobian(at, size)[0]
        if not np.isfinite(slope).all():  # The point leaves the domain of the laws.
            return unknown, unknown
        moved = _eigenvalues(slope)
        squares += ((at[0] - root) / _ERROR_STEP) ** 2
        real_squares += (np.real(moved - values) / _ERROR_STEP) ** 2
    return np.sqrt(squares), np.sqrt(real_squares)
