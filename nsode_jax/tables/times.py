"""From dates, clock times and durations to numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nsode_jax.dynamics.vectors import TrajectoryError, elapsed
from nsode_jax.tables.clocks import PASSED, to_durations
from nsode_jax.tables.dates import (
    DAY_FIRST,
    MONTH_FIRST,
    ORDERS,
    Way,
    are_dates,
    dates_of_numbers,
    read_dates,
    without_zone,
)
from nsode_jax.tables.names import part_of_time
from nsode_jax.tables.numbers import Numbers
from nsode_jax.tables.sheet import Sheet, as_text

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_DAY = 3  # The place of days among the parts of time.

_Moment = Callable[[str], np.ndarray]
"""A bound in the user's words as times, read as those of the file."""


def read_times(
    sheet: Sheet, column: int, bound: str | None = None, order: str | None = None
) -> tuple[Numbers, str, float]:
    """Numbers for a column of dates or clock times.

    Args:
      sheet: the sheet.
      column: of dates, clock times, or numbers that are dates (`are_dates`).
      bound: a date or clock time in the user's words, or a number of the unit that they have.
      order: what stands first in dates such as 01/03/2020, "day-first" or "month-first", if
        the user says so.

    Returns:
      The numbers, their unit ("days since 2020-03-01"), and the bound as such a number,
      NaN without one.

    Raises:
      TrajectoryError: if the dates can be read in two ways, or the bound is no time.
    """
    cells = sheet.cells(column)
    times, unreadable, notes, moment = _read(sheet, column, order)
    (numbers,), unit = elapsed(times)
    what = "dates" if times.dtype.kind == "M" else "clock times"
    what = "durations" if cells.dtype.kind == "m" else what
    notes = [
        *notes,
        f"Column {sheet.label(column)} holds {what}; they were converted to {unit}.",
    ]
    none = np.zeros(len(cells), bool)
    known = Numbers(numbers, unreadable, none, none, np.full(len(cells), np.nan), "", tuple(notes))
    if bound is None:
        return known, unit, np.nan
    number, is_date = as_number(bound), what == "dates" and re.fullmatch(r"\d{8}", bound)
    if number is None or is_date or sheet.has(column, number):
        return known, unit, _place(bound, times, numbers, moment)
    _refuse_year(bound, times, unit)
    return known, unit, number


def as_number(bound: str) -> float | None:
    """A bound that is a number; None for another."""
    try:
        return float(bound)
    except ValueError:
        return None


def _read(
    sheet: Sheet, column: int, order: str | None
) -> tuple[np.ndarray, np.ndarray, list[str], _Moment]:
    """Times as datetime64 or timedelta64, which cells are none, notes, and how bounds are read."""

    kind, cells = sheet.kind(column), sheet.cells(column)
    readable = np.zeros(len(cells), bool)
    if cells.dtype.kind == "m":
        return cells.to_numpy(), readable, [], _as_duration("")
    if cells.dtype.kind == "M":
        times, notes = _with_clock(sheet, column, without_zone(cells), [])
        return times, readable, notes, _as_date(order)
    if kind == "number":
        days, notes = dates_of_numbers(sheet, column, order)
        times, notes = _with_clock(sheet, column, days, notes)
        return times, readable, notes, _as_number_or_date(cells, days, order)
    text, notes = as_text(cells), []
    if kind == "clock":
        times, notes = to_durations(text, sheet.names[column])
        if (days := _days_beside(sheet, column)) is not None:
            times = to_durations(text, sheet.names[column], False)[0] + days
            notes = [note for note in notes if not note.startswith(PASSED)]
            notes.append("The days in the column beside the clock times were added.")
        counted = any(note.startswith(PASSED) for note in notes)
        moment = _as_duration(sheet.names[column], times, counted)
    else:
        clock = _clock_beside(sheet, column)
        if clock is not None and not text.str.contains(":", regex=False).any():
            notes.append(f"The clock times in column {sheet.label(clock)} were added.")
            text += " " + as_text(sheet.cells(clock))
        times, way, remarks = read_dates(sheet, column, text, order)
        notes += remarks
        moment = _as_dates_of(way, text, order)
    return times, text.notna().to_numpy() & np.isnat(times), notes, moment


# --- bounds --------------------------------------------------------------------------


def _place(bound: str, times: np.ndarray, numbers: np.ndarray, moment: _Moment) -> float:
    """The number of a date or clock time that the user gives, on the scale of the others."""
    known = np.flatnonzero(~np.isnat(times))
    first, last = known[np.argmin(numbers[known])], known[np.argmax(numbers[known])]
    try:
        at = moment(bound)[0]
        if np.isnat(at):
            raise ValueError
    except TrajectoryError:
        raise
    except (ValueError, OverflowError):
        raise TrajectoryError(
            f"{bound!r} is neither a number nor a time such as those of the file."
        ) from None
    share = (at - times[first]) / (times[last] - times[first])
    return float(numbers[first] + share * (numbers[last] - numbers[first]))


def _refuse_year(bound: str, times: np.ndarray, unit: str) -> None:
    """Refuses 2017 where it may be a year, and a number of days since the first date."""
    known = times[~np.isnat(times)]
    if known.dtype.kind != "M" or not re.fullmatch(r"\d{4}", bound):
        return
    first, last = (int(str(date)[:4]) for date in (known.min(), known.max()))
    if first <= int(bound) <= last + 1:
        raise TrajectoryError(
            f"{bound!r} may be a year, or a number ({unit}); write a date such as {bound}-01-01, "
            f"or {bound}.0 for the number."
        )


def _as_date(order: str | None) -> _Moment:
    """A date in any form.

    Raises:
      TrajectoryError: if it can be read in two ways, and the user does not say in which.
    """
    import pandas as pd

    def moment(bound: str) -> np.ndarray:
        orders = ORDERS if order is None else (order,)
        if re.match(r"\d{4}", bound):  # Nobody writes days behind a year.
            orders = (MONTH_FIRST,)
        ways = [Way(name, {"dayfirst": name == DAY_FIRST}) for name in orders]
        readings = [(way.name, way.read(pd.Series([bound]))) for way in ways]
        known = [(name, date) for name, date in readings if not np.isnat(date[0])]
        if any(date[0] != known[0][1][0] for _, date in known):
            told = " or ".join(f"{str(date[0])[:10]} (--dates {name})" for name, date in known)
            raise TrajectoryError(
                f"{bound!r} can be read in two ways: {told}; choose one, or write it as "
                "year-month-day."
            )
        return (known or readings)[0][1]

    return moment


def _as_dates_of(way: Way, text: pd.Series, order: str | None) -> _Moment:
    """A date as the file writes them, or as year-month-day."""
    import pandas as pd

    def moment(bound: str) -> np.ndarray:
        if re.match(r"\d{4}-\d", bound):
            return _as_date(order)(bound)
        # The others tell pandas how it is written, and of which century it is.
        return way.read(pd.concat([text.dropna(), pd.Series([bound])]))[-1:]

    return moment


def _as_number_or_date(cells: pd.Series, times: np.ndarray, order: str | None) -> _Moment:
    """Numbers that are dates may be given as such, or as dates."""

    def moment(bound: str) -> np.ndarray:
        values = cells.to_numpy(np.float64, na_value=np.nan)
        found = np.flatnonzero(values == float(bound)) if re.fullmatch(r"\d+", bound) else []
        return times[found[:1]] if len(found) else _as_date(order)(bound)

    return moment


def _as_duration(name: str, times: np.ndarray | None = None, counted: bool = False) -> _Moment:
    """A clock time; one before the first time is of the next day, if midnight was passed.

    Raises:
      TrajectoryError: for one before the first time of a clock that began anew at noon.
    """
    import pandas as pd

    def moment(bound: str) -> np.ndarray:
        at = to_durations(pd.Series([bound]), name)[0]
        day = np.timedelta64(1, "D")
        if times is None or not at[0] < np.nanmin(times):
            return at
        if np.nanmax(times) >= day:
            return at + day
        if counted:
            raise TrajectoryError(
                f"{bound!r} is before the first time; write one that counts on, as 13:30 for the "
                "1:30 that follows 12:30."
            )
        return at

    return moment


# --- columns that belong together ----------------------------------------------------


def _beside(sheet: Sheet, column: int) -> list[int]:
    return [c for c in (column + 1, column - 1) if 0 <= c < len(sheet.names)]


def _clock_beside(sheet: Sheet, column: int) -> int | None:
    """The column beside dates that may have their time of the day."""
    return next((c for c in _beside(sheet, column) if sheet.kind(c) == "clock"), None)


def _with_clock(
    sheet: Sheet, column: int, dates: np.ndarray, notes: list[str]
) -> tuple[np.ndarray, list[str]]:
    """Dates that are whole days with the time of the day in the column beside them, and notes."""
    clock, known = _clock_beside(sheet, column), dates[~np.isnat(dates)]
    if clock is None or (known != known.astype("datetime64[D]")).any():
        return dates, notes
    times, _ = to_durations(as_text(sheet.cells(clock)), sheet.names[clock], False)
    return dates + times, [*notes, f"The clock times in column {sheet.label(clock)} were added."]


def _days_beside(sheet: Sheet, column: int) -> np.ndarray | None:
    """The numbers of the days that a column beside clock times has, NaT where it has none."""
    for other in _beside(sheet, column):
        cells = sheet.cells(other)
        if part_of_time(sheet.names[other]) != _DAY or cells.dtype.kind not in "iuf":
            continue
        days = cells.to_numpy(np.float64, na_value=np.nan)
        known = days[np.isfinite(days)]
        if known.size and (known == np.round(known)).all() and (np.diff(known) >= 0).all():
            whole = np.where(np.isfinite(days), days - known[0], 0).astype("timedelta64[D]")
            return np.where(np.isfinite(days), whole, np.timedelta64("NaT", "D"))
    return None


__all__ = ["are_dates", "as_number", "read_times"]
