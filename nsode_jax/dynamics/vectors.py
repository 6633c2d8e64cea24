"""Vectors of numbers, dates or durations, as people have them, in float64."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float


class TrajectoryError(ValueError):
    """Data that cannot be used. The message is one line, for the person who has the data."""


def elapsed(*series: np.ndarray) -> tuple[list[Float[np.ndarray, " time"]], str]:
    """Numbers for dates or durations, in the unit that suits the longest series.

    Args:
      series: each `[time]`, all of type datetime64 (counted from the earliest of all) or
        timedelta64.

    Returns:
      The numbers (NaN for NaT), and what they are: "days since 2020-03-01" or "hours".
    """
    dates = series[0].dtype.kind == "M"
    times = [_of_fixed_unit(one) for one in series]
    known = [some for one in times if (some := one[~np.isnat(one)]).size]
    if not known:
        return [np.full(one.shape, np.nan) for one in times], "seconds"
    span = max(np.ptp(one) / _SECOND for one in known)
    unit, seconds = next((u for u in reversed(_UNITS) if span >= 3 * u[1]), _UNITS[0])
    if not dates:
        return [one / _SECOND / seconds for one in times], unit
    start = min(one.min() for one in known)
    since = np.datetime_as_string(start, unit="auto").replace("T", " ")
    return [(one - start) / _SECOND / seconds for one in times], f"{unit} since {since}"


def _of_fixed_unit(times: np.ndarray) -> np.ndarray:
    unit = np.datetime_data(times.dtype)[0]
    if unit in ("Y", "M") and times.dtype.kind == "M":
        return times.astype("datetime64[D]")  # Months are no fixed number of days.
    if unit in ("Y", "M", "generic"):
        raise TrajectoryError("The times are durations without a fixed unit; give numbers instead.")
    return times


def times_alike(series: Sequence[Any]) -> tuple[list[Any], tuple[str, ...]]:
    """The times of several series in one unit, counted from one date.

    Args:
      series: times of each, as `clean` takes them.

    Returns:
      They themselves if they are numbers; dates and durations as numbers, and a note on that.
      Those that cannot be read are left as they are: `clean` says why.

    Raises:
      TrajectoryError: if only some are dates, or only some durations.
    """
    read = enumerate(map(_known, series))
    vectors = {place: times for place, times in read if times is not None}
    kinds = {times.dtype.kind if times.dtype.kind in "mM" else "" for times in vectors.values()}
    if kinds <= {""}:
        return list(series), ()
    if len(kinds) > 1:
        raise TrajectoryError(
            "The times of some series are dates, those of others numbers or durations; give all "
            "in one way."
        )
    numbers, unit = elapsed(*vectors.values())
    converted = dict(zip(vectors, numbers, strict=True))
    alike = [converted.get(place, one) for place, one in enumerate(series)]
    return alike, (_converted(kinds.pop(), unit),)


def _known(times: Any) -> np.ndarray | None:
    """Times as a vector; None where they cannot be read, or none is known."""
    try:
        vector = _as_vector(times, "times")
        if vector.dtype.kind in "mM":
            return None if np.isnat(vector).all() else _of_fixed_unit(vector)
        return None if np.isnan(_as_floats(vector, "times")).all() else vector
    except TrajectoryError:
        return None


def _converted(kind: str, unit: str) -> str:
    what = "dates" if kind == "M" else "durations"
    return f"The times are {what}; they were converted to {unit}."


_SECOND = np.timedelta64(1, "s")
_UNITS = (
    ("seconds", 1),
    ("minutes", 60),
    ("hours", 3600),
    ("days", 86400),
    ("years", 86400 * 365.25),
)


def as_times(values: Iterable[Any]) -> tuple[Float[np.ndarray, " time"], list[str]]:
    """Times as float64, and a note if they were not numbers.

    Raises:
      TrajectoryError: if they are neither numbers nor dates nor durations.
    """
    times = _as_vector(values, "times")
    if times.dtype.kind not in "mM":
        return _as_floats(times, "times"), []
    (numbers,), unit = elapsed(times)
    return numbers, [_converted(times.dtype.kind, unit)]


def as_numbers(values: Iterable[Any], what: str) -> Float[np.ndarray, " time"]:
    """Numbers of a list, an array or a column of pandas, NaN where they are missing.

    Args:
      values: `[time]`.
      what: what they are, in the message if they are no numbers.

    Raises:
      TrajectoryError: if they are no numbers.
    """
    return _as_floats(_as_vector(values, what), what)


def times_as_counted(t: Any) -> Float[np.ndarray, " time"]:
    """Times at which something found is asked for: numbers, counted as those of its data.

    Args:
      t: a list, an array or a column of numbers, or a single one.

    Raises:
      TrajectoryError: if they are dates, durations or no numbers at all.
    """
    advice = "give numbers, counted as the data's were: a note says how"
    return _as_floats(_as_vector(np.atleast_1d(t), "times"), "times", advice)


def _as_vector(values: Iterable[Any], what: str) -> np.ndarray:
    """A vector of some type that NumPy calculates with; dates in UTC."""
    try:
        if isinstance(values, np.ma.MaskedArray):
            if values.dtype.kind in "mM":
                missing = np.array("NaT", values.dtype)  # `filled` takes no text for it.
                values = np.where(values.mask, missing, values.data)
            else:
                values = np.where(values.mask, np.nan, values.data.astype(np.float64))
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = _from_objects(array)
    except TrajectoryError:
        raise
    except (TypeError, ValueError, ArithmeticError):
        raise _not_numbers(what) from None
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()  # One column of a matrix or of a DataFrame.
    if array.ndim != 1:
        raise TrajectoryError(
            f"The {what} must be a list of numbers; got an array of shape {array.shape}."
        )
    return array


def _from_objects(array: np.ndarray) -> np.ndarray:
    """Python's own numbers, dates or durations in an array of NumPy's; what is absent missing."""
    # Recognised by their names, pandas' marks need no pandas.
    absent = np.vectorize(lambda e: e is None or type(e).__name__ in _ABSENT, [bool])(array)
    entries = array[~absent]
    result = np.full(array.shape, np.nan)
    if entries.size and all(isinstance(entry, datetime.date) for entry in entries):
        result = np.full(array.shape, "NaT", "datetime64[us]")
        entries = _in_utc(entries)
    elif entries.size and all(isinstance(entry, datetime.timedelta) for entry in entries):
        result = np.full(array.shape, "NaT", "timedelta64[us]")
    result[~absent] = entries.astype(result.dtype)
    return result


_ABSENT = ("NAType", "NaTType")


def _in_utc(dates: np.ndarray) -> np.ndarray:
    """Dates (objects) without their time zones."""
    zoned = [getattr(date, "tzinfo", None) is not None for date in dates]
    if not any(zoned):
        return dates
    if not all(zoned):
        raise TrajectoryError(
            "The times have a time zone in some rows and none in others; give all of them one."
        )
    naive = [date.astimezone(datetime.UTC).replace(tzinfo=None) for date in dates]
    return np.array(naive, dtype=object)


def _as_floats(
    array: np.ndarray, what: str, advice: str = "they must be numbers"
) -> Float[np.ndarray, " time"]:
    if array.dtype.kind in "mM":
        kind = "dates" if array.dtype.kind == "M" else "durations"
        raise TrajectoryError(f"The {what} are {kind}; {advice}.")
    try:
        if array.dtype.kind == "c":
            raise TypeError
        return as_written(array).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _not_numbers(what) from None


def as_written(array: np.ndarray) -> np.ndarray:
    """Numbers of less than double precision in double, as they are written.

    The nearest float32 to 1.2 is 1.2000000477, but 1.2 is meant: digits that were never
    measured would be taken for information. Other arrays are returned as they are.
    """
    if array.dtype.kind == "f" and array.dtype.itemsize < np.dtype(np.float64).itemsize:
        return array.astype(str).astype(np.float64)
    return array


def _not_numbers(what: str) -> TrajectoryError:
    return TrajectoryError(f"The {what} must be a list of real numbers.")


def count(number: int, noun: str) -> str:
    """The number with its noun: 1 row, 2 rows."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
