"""A trajectory as data: times and values, checked."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

MIN_POINTS = 8
LARGEST = 1e150  # Squares of values must stay finite,
SMALLEST_RANGE = 1e-150  # and squares of differences must not vanish.
CONSTANT_RELATIVE_RANGE = 1e-12  # A range below this is rounding, not a change.


class TrajectoryError(ValueError):
    """Data that cannot be used. The message is one line, for the person who has the data."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One quantity observed over time.

    Attributes:
      t: observation times, finite and strictly increasing.
      y: observed values, finite.

    Raises:
      TrajectoryError: if the arrays are not that.
    """

    t: Float[np.ndarray, "time"]
    y: Float[np.ndarray, "time"]

    def __post_init__(self):
        for name in ("t", "y"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        if self.t.ndim != 1 or self.t.shape != self.y.shape or not self.t.size:
            raise TrajectoryError(
                "A trajectory needs as many times as values, at least one of each; "
                f"the shapes are {self.t.shape} and {self.y.shape}."
            )
        if not (np.isfinite(self.t).all() and np.isfinite(self.y).all()):
            raise TrajectoryError("A trajectory's times and values must be finite.")
        if not (np.diff(self.t) > 0).all():
            raise TrajectoryError("A trajectory's times must be strictly increasing.")

    def __len__(self) -> int:
        return self.t.size


def clean(
    t: Sequence[float] | Float[np.ndarray, "time"], y: Sequence[float] | Float[np.ndarray, "time"]
) -> tuple[Trajectory, tuple[str, ...]]:
    """Makes a trajectory of raw times and values, and says what was done to them.

    Rows with a missing, NaN or infinite entry are dropped, rows are sorted by
    time, and rows of the same time are averaged.

    Args:
      t: times `[time]`, in any order.
      y: values `[time]`.

    Returns:
      The trajectory, and one sentence for each thing that was done.

    Raises:
      TrajectoryError: if fewer than `MIN_POINTS` points remain, if the values are
        constant, or if values or times are too large or too close together to
        compute with in float64.
    """
    t, y = _as_floats(t, "times"), _as_floats(y, "values")
    if t.shape != y.shape:
        raise TrajectoryError(f"There are {t.size} times but {y.size} values.")
    notes = []

    usable = np.isfinite(t) & np.isfinite(y)
    dropped = t.size - int(usable.sum())
    if dropped:
        notes.append(
            f"{dropped} of {count(t.size, 'row')} dropped: time or value is missing, NaN or "
            "infinite."
        )
        t, y = t[usable], y[usable]
    _require_enough(t.size, f"after {count(dropped, 'row')} dropped" if dropped else "")
    _require_computable(t, "times")
    _require_computable(y, "values")

    steps = np.diff(t)
    if (steps < 0).any():
        order = np.argsort(t, kind="stable")
        t, y = t[order], y[order]
        notes.append(
            "Times were in decreasing order; the rows were put in increasing order."
            if (steps <= 0).all()
            else "Times were not in increasing order; the rows were sorted by time."
        )

    # Times that differ by rounding only (0.3 and 0.1 * 3) are the same time: a
    # difference quotient over such a step would be noise.
    new = np.diff(t) > 2 * np.finfo(float).eps * np.maximum(np.abs(t[1:]), np.abs(t[:-1]))
    group = np.concatenate([[0], np.cumsum(new)])
    if group[-1] + 1 < t.size:
        size = np.bincount(group)
        notes.append(
            f"{count(int((size > 1).sum()), 'time')} occurred more than once; the values of a "
            f"repeated time were averaged ({t.size} rows became {size.size})."
        )
        t = t[np.concatenate([[True], new])]
        y = np.bincount(group, weights=y) / size
        _require_enough(t.size, "with different times")

    if np.ptp(y) <= CONSTANT_RELATIVE_RANGE * np.abs(y).max():
        raise TrajectoryError(
            f"The values are constant (all {y[0]:.6g} up to rounding); a series that does not "
            "change does not tell its law."
        )
    return Trajectory(t, y), tuple(notes)


def _as_floats(values: Sequence[float], what: str) -> Float[np.ndarray, "time"]:
    """A vector of float64; missing entries (None, masked) become NaN."""
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = values.astype(np.float64).filled(np.nan)
        array = np.asarray(values)
        if array.dtype.kind == "M":
            raise TrajectoryError(
                f"The {what} are dates; give numbers instead, such as days since the start."
            )
        if array.dtype.kind in "cm":
            raise TypeError
        array = array.astype(np.float64)
    except TrajectoryError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise TrajectoryError(f"The {what} must be a list of real numbers.") from None
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()  # One column of a matrix or of a DataFrame.
    if array.ndim != 1:
        raise TrajectoryError(
            f"The {what} must be a list of numbers; got an array of shape {array.shape}."
        )
    return array


def _require_enough(points: int, circumstance: str) -> None:
    if points < MIN_POINTS:
        circumstance = f" {circumstance}" if circumstance else ""
        raise TrajectoryError(
            f"Only {count(points, 'usable point')}{circumstance}; at least {MIN_POINTS} points "
            "are needed."
        )


def _require_computable(values: Float[np.ndarray, "time"], what: str) -> None:
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


def count(number: int, noun: str) -> str:
    """The number with its noun: 1 row, 2 rows."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
