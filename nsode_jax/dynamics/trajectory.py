"""A trajectory as data: times and values, checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from nsode_jax.dynamics.vectors import TrajectoryError, as_numbers, as_times, as_written, count

MIN_POINTS = 8
MORE_THAN_CONSTANTS = 2  # Points of a law of known form: for the first value, and the noise.
LARGEST = 1e150  # Squares of values must stay finite,
SMALLEST_RANGE = 1e-150  # and squares of differences must not vanish.
CONSTANT_RELATIVE_RANGE = 1e-12  # A range below this is rounding, not a change.


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One quantity observed over time.

    Attributes:
      t: observation times, finite and strictly increasing.
      y: observed values, finite.
      noise: how noisy each value is relative to the others, positive; None if all
        are alike. A value counts as 1 / noise^2 in fits. Of raw values it is 1 each, of the mean
        of n of them 1 / sqrt(n).
      sigma: standard deviation of a measurement whose noise is 1, in units of y, where it
        is known; None where it has to be estimated.

    Raises:
      TrajectoryError: if the arrays are not that.
    """

    t: Float[np.ndarray, " time"]
    y: Float[np.ndarray, " time"]
    noise: Float[np.ndarray, " time"] | None = None
    sigma: float | None = None

    def __post_init__(self):
        for name in ("t", "y", "noise"):
            if getattr(self, name) is not None:
                values = np.array(as_written(np.asarray(getattr(self, name))), dtype=np.float64)
                object.__setattr__(self, name, values)
        if self.t.ndim != 1 or self.t.shape != self.y.shape or not self.t.size:
            raise TrajectoryError(
                "A trajectory needs as many times as values, at least one of each; "
                f"the shapes are {self.t.shape} and {self.y.shape}."
            )
        if not (np.isfinite(self.t).all() and np.isfinite(self.y).all()):
            raise TrajectoryError("A trajectory's times and values must be finite.")
        if not (np.diff(self.t) > 0).all():
            raise TrajectoryError("A trajectory's times must be strictly increasing.")
        if self.noise is not None and (
            self.noise.shape != self.t.shape or not (0 < self.noise).all()
        ):
            raise TrajectoryError("A trajectory's noise must be positive, one for each value.")
        if self.sigma is not None and not 0 < self.sigma < np.inf:
            raise TrajectoryError("A trajectory's measurement error must be positive and finite.")

    @property
    def weights(self) -> Float[np.ndarray, " time"]:
        """1 / noise: what residuals are multiplied by; ones if all values are alike."""
        return np.ones(self.t.size) if self.noise is None else 1.0 / self.noise

    @property
    def errors(self) -> Float[np.ndarray, " time"] | None:
        """Known standard deviation of each measurement, in units of y; None if unknown."""
        return None if self.sigma is None else self.sigma / self.weights

    def with_errors(self, errors: Float[np.ndarray, " time"], sigma: float) -> "Trajectory":
        """The same with known standard deviations, as multiples of one of them."""
        noise = errors / sigma
        alike = (np.abs(noise - 1.0) <= CONSTANT_RELATIVE_RANGE).all()
        return Trajectory(self.t, self.y, None if alike else noise, sigma)

    def __len__(self) -> int:
        return self.t.size


def typical(errors: Float[np.ndarray, " observations"]) -> float:
    """The standard deviation that, if all had it, would tell as much of their mean."""
    return float(1 / np.sqrt(np.mean(errors**-2.0)))


def clean(
    t: Iterable[Any],
    y: Iterable[Any],
    fewest: int = MIN_POINTS,
    sigma: Iterable[Any] | float | None = None,
    constant: bool = False,
) -> tuple[Trajectory, tuple[str, ...]]:
    """Makes a trajectory of raw times and values, and says what was done to them.

    Rows with a missing, NaN or infinite entry are dropped, rows are sorted by
    time, and rows of the same time are averaged. Dates and durations become
    numbers, as `elapsed` says.

    Args:
      t: times `[time]`, in any order: numbers, dates or durations, in a list, an array
        or a column of pandas.
      y: values `[time]`: numbers, likewise.
      fewest: points that must remain; less than `MIN_POINTS` for one of several series.
      sigma: standard deviations of the measurements `[time]`, in units of y, or one for all;
        None if unknown. A row without one is dropped, a repeated time is averaged by them.
      constant: whether the values may be constant, as one of several quantities may be.

    Returns:
      The trajectory, and one sentence for each thing that was done. Its noise, if errors are
      unknown, is relative to that of one row.

    Raises:
      TrajectoryError: if fewer than `fewest` points remain, if the values are
        constant and must not be, if values or times are too large or too close together
        for float64, or if a standard deviation is not positive and finite.
    """
    (t, notes), y = as_times(t), as_numbers(y, "values")
    if t.shape != y.shape:
        raise TrajectoryError(f"There are {t.size} times but {y.size} values.")
    usable = np.isfinite(t) & np.isfinite(y)
    errors = np.ones(t.size) if sigma is None else _as_errors(sigma, usable)
    usable &= ~np.isnan(errors)
    dropped = t.size - int(usable.sum())
    if dropped:
        what = "time or value" if sigma is None else "time, value or measurement error"
        notes.append(
            f"{dropped} of {count(t.size, 'row')} dropped: {what} is missing, NaN or infinite."
        )
        t, y, errors = t[usable], y[usable], errors[usable]
    _require_enough(t.size, fewest, f"after {count(dropped, 'row')} dropped" if dropped else "")
    require_computable(t, "times")
    require_computable(y, "values")

    order, group, note = in_time(t)
    t, y, errors, notes = t[order], y[order], errors[order], [*notes, *note]
    if group[-1] + 1 < t.size:
        size, weights = np.bincount(group), errors**-2.0
        notes.append(
            f"{count(int((size > 1).sum()), 'time')} occurred more than once; the values of a "
            f"repeated time were averaged ({t.size} rows became {size.size})."
        )
        t = t[firsts(group)]
        weight = np.bincount(group, weights=weights)
        y, errors = np.bincount(group, weights=weights * y) / weight, 1 / np.sqrt(weight)
        _require_enough(t.size, fewest, "with different times")

    if not constant and np.ptp(y) <= CONSTANT_RELATIVE_RANGE * np.abs(y).max():
        raise TrajectoryError(
            f"The values are constant (all {y[0]:.6g} up to rounding); a series that does not "
            "change does not tell its law."
        )
    if sigma is not None:
        return Trajectory(t, y).with_errors(errors, typical(errors)), tuple(notes)
    averaged = (errors < 1.0).any()
    return Trajectory(t, y, errors if averaged else None), tuple(notes)


def in_time(
    t: Float[np.ndarray, " time"],
) -> tuple[Int[np.ndarray, " time"], Int[np.ndarray, " time"], list[str]]:
    """The rows in the order of their times.

    Times that differ by rounding only (0.3 and 0.1 * 3) are the same time: a difference quotient
    over such a step would be noise.

    Args:
      t: finite times.

    Returns:
      The places of the rows, the number of each one's time among the different ones, and a note
      if the rows were in another order.
    """
    order, steps, notes = np.arange(t.size), np.diff(t), []
    if (steps < 0).any() and (steps <= 0).all():
        order = order[::-1]
        notes.append("Times were in decreasing order; the rows were put in increasing order.")
    elif (steps < 0).any():
        order = np.argsort(t, kind="stable")
        notes.append("Times were not in increasing order; the rows were sorted by time.")
    t = t[order]
    new = np.diff(t) > 2 * np.finfo(float).eps * np.maximum(np.abs(t[1:]), np.abs(t[:-1]))
    return order, np.cumsum(np.concatenate([np.zeros(min(t.size, 1), bool), new])), notes


def firsts(occasion: Int[np.ndarray, " time"]) -> Int[np.ndarray, " different"]:
    """The first row of each time, by the numbers that `in_time` gives."""
    return np.flatnonzero(np.diff(occasion, prepend=-1))


def _as_errors(
    sigma: Iterable[Any] | float, measured: Bool[np.ndarray, " time"]
) -> Float[np.ndarray, " time"]:
    """Standard deviations, one for each value, NaN where none is given."""
    what = "measurement errors (sigma)"
    single = isinstance(sigma, str) or not np.iterable(sigma)
    given: Any = [sigma] if single else sigma
    errors = as_numbers(given, what)
    if errors.shape != measured.shape:
        if not single:
            raise TrajectoryError(
                f"There are {measured.size} values but {errors.size} measurement errors (sigma)."
            )
        if np.isnan(errors).any():
            raise TrajectoryError("The measurement error (sigma) is not a number.")
        errors = np.full(measured.shape, errors[0])
    wrong = np.flatnonzero(measured & ((errors <= 0) | np.isinf(errors)))
    if wrong.size:
        where = "" if single else f" in {count(wrong.size, 'row')} (first: row {wrong[0] + 1})"
        raise TrajectoryError(
            "Measurement errors (sigma) are standard deviations, which must be positive and "
            f"finite; got {errors[wrong[0]]:g}{where}."
        )
    return errors


def _require_enough(points: int, fewest: int, circumstance: str) -> None:
    if points < fewest:
        circumstance = f" {circumstance}" if circumstance else ""
        known = ", or fewer of a law whose form is known (--form)" if fewest == MIN_POINTS else ""
        raise TrajectoryError(
            f"Only {count(points, 'usable point')}{circumstance}; at least {fewest} points "
            f"are needed{known}."
        )


def require_computable(values: Float[np.ndarray, " time"], what: str) -> None:
    """Squares and products of magnitude and range must neither overflow nor vanish."""
    advice = "multiply the column by a suitable power of ten (choose another unit)"
    largest = np.abs(values).max()
    if largest > LARGEST:
        raise TrajectoryError(
            f"The {what} are too large to compute with (up to {largest:.2g} in magnitude; the "
            f"limit is {LARGEST:g}): {advice}."
        )
    span = np.ptp(values)
    if 0 < span < SMALLEST_RANGE:
        raise TrajectoryError(
            f"The {what} are too small to compute with (their range is {span:.2g}; the limit is "
            f"{SMALLEST_RANGE:g}): {advice}."
        )
    if span == 0 and what == "times":
        raise TrajectoryError(f"All times are the same ({values[0]:.6g}).")
