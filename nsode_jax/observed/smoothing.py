"""Smooth curves through noisy, unevenly sampled data.

A smoothing spline bends alike everywhere, but what is measured often moves fast for a while
and then hardly at all: a steep beginning, the spikes of an oscillator. Such curves are smoothed
in a time of their own, in which they move evenly: a clock that runs fast where the data do.
Which clock serves a quantity best generalized cross-validation says.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float
from scipy.interpolate import BSpline, CubicSpline, PchipInterpolator, make_interp_spline
from scipy.optimize import isotonic_regression

from nsode_jax.observed.noise_scale import LINEAR, NoiseScale
from nsode_jax.observed.splines import lagrange_weights, smoothing_spline

_CLEAN = 1e-3
"""Deviations below this share of the spread are no noise to be modelled."""

_CLEAN_NEIGHBOURS = 1e-4
"""Likewise, for the deviations of values from their neighbours."""

_MUCH_BETTER = 0.5
"""Share of the squared errors of neighbours at which a smooth curve foretells much better."""

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

_WITHIN_NOISE, _ROUNDING, _LITTLE, _NEXT_TO_0 = 6.0, 1e-6, 0.25, 1e-4
"""Typical deviations within which values beyond 0 may be 0, and shares of the largest value: what
a solver's errors may be, what is too much in any case, and what is next to 0."""

_Times = Float[np.ndarray, " times"]


@dataclasses.dataclass(frozen=True, eq=False)
class SmoothCurve:
    """A curve through the values of one quantity.

    Attributes:
      spline: the curve over what its clock shows.
      noise: root mean square of what it leaves, weighted, or would be wrong by, in units of y.
      square_error: mean square, weighted, of its errors in foretelling a value left out.
      clock: an increasing function of time; the time itself, if left out.
      scale: in which the spline has the values.
      low, high: which its values do not pass: 0 where no value does but by noise.
    """

    spline: BSpline | CubicSpline
    noise: float
    square_error: float
    clock: PchipInterpolator | None = None
    scale: NoiseScale = LINEAR
    low: float = -math.inf
    high: float = math.inf

    def __call__(self, t: _Times, degree: int = 0) -> _Times:
        """The curve, or its first derivative, at some times."""
        shown = t if self.clock is None else self.clock(t)
        y = self.scale.inverse(self.spline(shown))
        if not degree:
            return np.clip(y, self.low, self.high)
        speed = 1.0 if self.clock is None else self.clock(t, 1)
        slope = self.spline(shown, 1) * speed / self.scale.slope(y)
        return np.where((y < self.low) | (y > self.high), 0.0, slope)


def smooth_curves(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, "time quantities"],
    weights: Float[np.ndarray, "time quantities"] | None = None,
    scales: Sequence[NoiseScale] = (),
    exact: bool = False,
) -> list[SmoothCurve]:
    """A curve through each of some quantities that may rise and fall.

    Exact data are interpolated, by the order that foretells most values best from their
    neighbours; noisy ones are smoothed, in the clock that foretells them best.

    Args:
      t: increasing times, at least 4.
      y: values.
      weights: what residuals are multiplied by, of mean square 1; None for ones.
      scales: in which they are smooth and alike noisy, one for each; those of y, if left out.
      exact: whether all values are, however badly their neighbours foretell them: what changes
        as fast as it is measured looks like noise.
    """
    scales = scales or [LINEAR] * y.shape[1]
    z, precision = np.empty_like(y), np.ones_like(y) if weights is None else weights.copy()
    for k, scale in enumerate(scales):
        z[:, k] = scale.forward(y[:, k])
        precision[:, k] /= scale.slope(y[:, k])
    found = _smoothed(t, z, precision)
    for k, (curve, scale) in enumerate(zip(found, scales, strict=True)):
        through = _interpolant(t, z[:, k], precision[:, k])
        clean = _CLEAN * float(np.sqrt(np.mean(precision[:, k] ** 2))) * float(z[:, k].std())
        if exact or _is_exact(through, curve, clean):
            known = math.isfinite(through.noise)  # Of few values nobody knows.
            curve = through if known else dataclasses.replace(through, noise=curve.noise)
        least, most = range_of(y[:, k], noise_of_neighbours(t, y[:, k]))
        low, high = 0.0 if least >= 0.0 else -math.inf, 0.0 if most <= 0.0 else math.inf
        found[k] = dataclasses.replace(curve, scale=scale, low=low, high=high)
    return found


def monotone_curve(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"] | None = None,
) -> Callable[[np.ndarray], np.ndarray]:
    """A monotone smooth curve through the data, within their range.

    Solutions of a scalar autonomous ODE are monotone, so wiggles are noise. Residuals are
    multiplied by the weights, if there are any.
    """
    counts = np.ones_like(y) if weights is None else weights
    (curve,) = _smoothed(t, y[:, None], counts[:, None])
    exact = curve.noise <= _CLEAN * y.std()  # Interpolation is better then.
    through = CubicSpline(t, y) if exact else curve

    def evaluate(times: np.ndarray) -> np.ndarray:
        raw = np.clip(through(times), y.min(), y.max())
        both = [isotonic_regression(raw, increasing=up).x for up in (True, False)]
        return min(both, key=lambda x: float(np.sum((x - raw) ** 2)))

    return evaluate


def is_clean(t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]) -> bool:
    """Whether most values lie where the cubic through their four neighbours leads.

    Unlike smoothing, this is not misled by a steep transient of a few points.
    """
    return t.size >= 5 and noise_of_neighbours(t, y) <= _CLEAN_NEIGHBOURS * float(y.std())


def noise_of_neighbours(t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]) -> float:
    """How far most values lie from where their four neighbours lead; 0 of fewer than five."""
    return float(np.median(np.abs(_left_out_errors(t, y, 2)))) if t.size >= 5 else 0.0


def range_of(y: Float[np.ndarray, " values"], noise: float) -> tuple[float, float]:
    """The least and the greatest value, but next to 0 for one that noise may have put beyond it.

    Next to it, as laws such as r*y*log(K/y) have no value at 0 itself, and noise does not tell.
    """
    return _least(y, noise), -_least(-y, noise)


def _least(y: Float[np.ndarray, " values"], noise: float) -> float:
    least, most = float(y.min()), float(y.max())
    likely = max(_WITHIN_NOISE * noise, _ROUNDING * most)
    noisy = least < 0.0 or noise > _ROUNDING * most  # Where there is no noise a 0 is a 0.
    if not (noisy and 0.0 <= -least < min(likely, _LITTLE * most)):
        return least
    return max(min(noise, float(y[y > 0].min()) / 2), _NEXT_TO_0 * most)


def _interpolant(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"],
) -> SmoothCurve:
    """The curve through all values, of the order that foretells most of them best."""
    halves = [half for half in (2, 3, 4) if t.size > 4 * half]
    errors = {half: _left_out_errors(t, y, half) for half in halves}
    typical = {half: _TYPICAL * float(np.median(np.abs(found))) for half, found in errors.items()}
    half, noise = min(typical.items(), key=lambda item: item[1], default=(2, math.inf))
    precision, square = float(np.sqrt(np.mean(weights**2))), math.inf
    if half in errors:
        square = float(np.mean((weights[half:-half] * errors[half]) ** 2))
    return SmoothCurve(make_interp_spline(t, y, k=2 * half - 1), precision * noise, square)


def _is_exact(through: SmoothCurve, smooth: SmoothCurve, clean: float) -> bool:
    """Whether the values are exact, up to what is called clean, and not noisy.

    They are where most are what their neighbours foretell, unless a curve that leaves noise
    foretells them all much better: the noise may grow with the values, and most of these be small.
    """
    better = smooth.square_error < _MUCH_BETTER * through.square_error
    return through.noise <= clean and not (smooth.noise > clean and better)


def _smoothed(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, "time quantities"],
    weights: Float[np.ndarray, "time quantities"],
) -> list[SmoothCurve]:
    """A smoothing spline for each quantity, in the clock that foretells its values best."""
    columns = list(zip(y.T, weights.T, strict=True))
    found: list[SmoothCurve] = []

    def look_at(clock: PchipInterpolator) -> None:
        tried = [_in_clock(clock, t, *column) for column in columns]
        pairs = zip(found or tried, tried, strict=True)
        found[:] = [min(pair, key=lambda curve: curve.square_error) for pair in pairs]

    for clock in _clocks_of_beginnings(t):
        look_at(clock)
    for _ in range(_ROUNDS):
        look_at(_clock_of_curves(t, found))
    return found


def _in_clock(
    clock: PchipInterpolator,
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    weights: Float[np.ndarray, " time"],
) -> SmoothCurve:
    """The smoothing spline in the time of a clock."""
    shown, level, size = clock(t), y.mean(), y.std() or 1.0
    values, square = smoothing_spline(shown, (y - level) / size, weights)
    values = level + size * values
    left = float(np.sqrt(np.mean((weights * (y - values)) ** 2)))
    spline = CubicSpline(shown, values, bc_type="natural")
    return SmoothCurve(spline, left, float(np.mean(weights**2)) * size**2 * square, clock)


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
