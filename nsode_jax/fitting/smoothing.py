"""Smooth curves through noisy, unevenly sampled data.

A smoothing spline bends alike everywhere, but what is measured often moves fast for a while
and then hardly at all: a steep beginning, the spikes of an oscillator. Such curves are smoothed
in a time of their own, in which they move evenly: a clock that runs fast where the data do.
Which clock serves a quantity best generalized cross-validation says.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline, CubicSpline, PchipInterpolator, make_interp_spline
from scipy.optimize import isotonic_regression

from nsode_jax.fitting.splines import lagrange_weights, smoothing_spline

_CLEAN = 1e-3
"""Deviations below this share of the spread are no noise to be modelled."""

_CLEAN_NEIGHBOURS = 1e-4
"""Likewise, for the deviations of values from their neighbours."""

_BEGINNINGS = (0.1, 0.02)
"""Shares of all time within which a beginning may be steep."""

_AT_REST = 1.0
"""How fast clocks run where nothing moves, beside what they run elsewhere on average."""

_TYPICAL = 1.48
"""Standard deviations of a normal distribution in a median magnitude."""

_ROUNDS = 2
"""So often clocks are set by the curves found before."""

_PIECES = 8
"""Of each interval between observations, by which its speed is measured."""

_Times = Float[np.ndarray, " times"]


@dataclasses.dataclass(frozen=True, eq=False)
class SmoothCurve:
    """A curve through the values of one quantity.

    Attributes:
      spline: the curve over what its clock shows.
      noise: root mean square of what it leaves, weighted, or would be wrong by, in units of y.
      clock: an increasing function of time.
    """

    spline: BSpline | CubicSpline
    noise: float
    clock: PchipInterpolator | None = None

    def __call__(self, t: _Times, degree: int = 0) -> _Times:
        """The curve, or its first derivative, at some times."""
        if self.clock is None:
            return self.spline(t, degree)
        speed = self.clock(t, 1) if degree else 1.0
        return self.spline(self.clock(t), degree) * speed


def smooth_curves(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, "time quantities"],
    weights: Float[np.ndarray, "time quantities"] | None = None,
) -> list[SmoothCurve]:
    """A curve through each of some quantities that may rise and fall.

    Exact data are interpolated, by the order that foretells most values best from their
    neighbours; noisy ones are smoothed, in the clock that foretells them best.

    Args:
      t: increasing times, at least 4.
      y: values.
      weights: what residuals are multiplied by, of mean square 1; None for ones.
    """
    exact = {k: curve for k, column in enumerate(y.T) if (curve := _interpolant(t, column))}
    curves = exact | _smoothed(t, y, weights, exact)
    return [curves[k] for k in range(y.shape[1])]


def monotone_curve(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"] | None = None,
) -> Callable[[np.ndarray], np.ndarray]:
    """A monotone smooth curve through the data, within their range.

    Solutions of a scalar autonomous ODE are monotone, so wiggles are noise. Residuals are
    multiplied by the weights, if there are any.
    """
    curve = _smoothed(t, y[:, None], None if weights is None else weights[:, None], {})[0]
    if curve.noise <= _CLEAN * y.std():  # Interpolation is more exact.
        curve = CubicSpline(t, y)

    def evaluate(times: np.ndarray) -> np.ndarray:
        raw = np.clip(curve(times), y.min(), y.max())
        both = [isotonic_regression(raw, increasing=up).x for up in (True, False)]
        return min(both, key=lambda x: float(np.sum((x - raw) ** 2)))

    return evaluate


def is_clean(t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]) -> bool:
    """Whether most values lie where the cubic through their four neighbours leads.

    Unlike smoothing, this is not misled by a steep transient of a few points.
    """
    if t.size < 5:
        return False
    noise = float(np.median(np.abs(_left_out_errors(t, y, 2))))
    return noise <= _CLEAN_NEIGHBOURS * float(y.std())


def _interpolant(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]
) -> SmoothCurve | None:
    """The curve through exact data; None through noisy ones."""
    halves = [half for half in (2, 3, 4) if t.size > 4 * half]
    errors = {half: float(np.median(np.abs(_left_out_errors(t, y, half)))) for half in halves}
    half, error = min(errors.items(), key=lambda item: item[1], default=(2, math.inf))
    if _TYPICAL * error > _CLEAN * y.std():
        return None
    return SmoothCurve(make_interp_spline(t, y, k=2 * half - 1), _TYPICAL * error)


def _smoothed(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, "time quantities"],
    weights: Float[np.ndarray, "time quantities"] | None,
    known: Mapping[int, SmoothCurve],
) -> dict[int, SmoothCurve]:
    """Curves through the other quantities; those that are known tell how fast things move."""
    counts = np.ones_like(y) if weights is None else weights
    best: dict[int, tuple[float, SmoothCurve]] = {}

    def try_clocks(clocks: Iterable[PchipInterpolator]) -> None:
        for clock in clocks:
            for k in set(range(y.shape[1])) - known.keys():
                curve, error = _in_clock(clock, t, y[:, k], counts[:, k])
                if k not in best or error < best[k][0]:
                    best[k] = error, curve

    try_clocks(_clocks_of_beginnings(t))
    for _ in range(_ROUNDS if best else 0):
        curves = [curve for _, curve in best.values()]
        try_clocks([_clock_of_curves(t, [*curves, *known.values()])])
    return {k: curve for k, (_, curve) in best.items()}


def _in_clock(
    clock: PchipInterpolator,
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"],
) -> tuple[SmoothCurve, float]:
    """The smoothing spline in the time of a clock, and its error of foretelling."""
    shown, level, size = clock(t), y.mean(), y.std() or 1.0
    values, error = smoothing_spline(shown, (y - level) / size, weights)
    values = level + size * values
    left = float(np.sqrt(np.mean((weights * (y - values)) ** 2)))
    return SmoothCurve(CubicSpline(shown, values, bc_type="natural"), left, clock), error


def _clocks_of_beginnings(t: Float[np.ndarray, " time"]) -> Iterator[PchipInterpolator]:
    """The even clock, and such as run fast at first."""
    since = (t - t[0]) / (t[-1] - t[0])
    yield _clock(t, since)
    for share in _BEGINNINGS:
        yield _clock(t, np.log1p(since / share))


def _clock_of_curves(
    t: Float[np.ndarray, " time"], curves: Sequence[SmoothCurve]
) -> PchipInterpolator:
    """The clock that runs as fast as all curves together move, and somewhat where none does."""
    pieces = np.arange(_PIECES) / _PIECES
    fine = np.append((t[:-1, None] + np.diff(t)[:, None] * pieces).ravel(), t[-1])
    moved = np.zeros(fine.size)
    for curve in curves:
        values = curve(fine)
        moved[1:] += np.cumsum(np.abs(np.diff(values))) / (values.std() or 1.0)
    since = (fine - t[0]) / (t[-1] - t[0])
    return _clock(t, (moved + _AT_REST * moved[-1] * since)[::_PIECES])


def _clock(t: Float[np.ndarray, " time"], shown: Float[np.ndarray, " time"]) -> PchipInterpolator:
    return PchipInterpolator(t, (shown - shown[0]) / (shown[-1] - shown[0]))


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
