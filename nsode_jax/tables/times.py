"""From dates, clock times and durations to numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nsode_jax.dynamics.trajectory import TrajectoryError, count, elapsed
from nsode_jax.tables.cells import SPAN
from nsode_jax.tables.dates import Way, are_dates, dates_of_numbers, read_dates, without_zone
from nsode_jax.tables.names import part_of_time
from nsode_jax.tables.numbers import Numbers
from nsode_jax.tables.sheet import Sheet, as_text

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_MINUTES = re.compile(r"(^|[^a-z])(min(ute)?s?|m+:ss)([^a-z]|$)", re.IGNORECASE)
_HOURS = re.compile(r"(^|[^a-z])(h|hrs?|hours?|h+:mm)([^a-z]|$)", re.IGNORECASE)
_HALF_OF_DAY = r"\s*[ap]\.?m\.?$"
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
      bound: a date or clock time in the user's words.
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
    return known, unit, np.nan if bound is None else _place(bound, times, numbers, moment)


def _read(
    sheet: Sheet, column: int, order: str | None
) -> tuple[np.ndarray, np.ndarray, list[str], _Moment]:
    """Times as datetime64 or timedelta64, which cells are none, notes, and how bounds are read."""

    kind, cells = sheet.kind(column), sheet.cells(column)
    readable = np.zeros(len(cells), bool)
    if cells.dtype.kind == "M":
        return without_zone(cells), readable, [], _as_date
    if cells.dtype.kind == "m":
        return cells.to_numpy(), readable, [], _as_duration("")
    if kind == "number":
        times, notes = dates_of_numbers(sheet, column, order)
        return times, readable, notes, _as_number_or_date(cells, times)
    text, notes = as_text(cells), []
    if kind == "clock":
        times, notes = _to_durations(text, sheet.names[column])
        if (days := _days_beside(sheet, column)) is not None:
            times = _to_durations(text, sheet.names[column], False)[0] + days
            notes = [note for note in notes if "midnight" not in note]
            notes.append("The days in the column beside the clock times were added.")
        moment = _as_duration(sheet.names[column], times)
    else:
        if (clock := _clock_beside(sheet, column)) is not None:
            notes.append(f"The clock times in column {sheet.label(clock)} were added.")
            text += " " + as_text(sheet.cells(clock))
        times, way, remarks = read_dates(sheet, column, text, order)
        notes += remarks
        moment = _as_dates_of(way, text)
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
    except (ValueError, OverflowError):
        raise TrajectoryError(
            f"{bound!r} is neither a number nor a time such as those of the file."
        ) from None
    share = (at - times[first]) / (times[last] - times[first])
    return float(numbers[first] + share * (numbers[last] - numbers[first]))


def _as_date(bound: str) -> np.ndarray:
    import pandas as pd

    return without_zone(pd.Series(pd.to_datetime([bound], utc=True)))


def _as_dates_of(way: Way, text: pd.Series) -> _Moment:
    """A date as the file writes them, or as year-month-day."""
    import pandas as pd

    def moment(bound: str) -> np.ndarray:
        if re.match(r"\d{4}-\d", bound):
            return _as_date(bound)
        # The first date tells pandas how all are written.
        return way.read(pd.Series([text.dropna().iloc[0], bound]))[1:]

    return moment


def _as_number_or_date(cells: pd.Series, times: np.ndarray) -> _Moment:
    """Numbers that are dates may be given as such, or as dates."""

    def moment(bound: str) -> np.ndarray:
        values = cells.to_numpy(np.float64, na_value=np.nan)
        found = np.flatnonzero(values == float(bound)) if re.fullmatch(r"\d+", bound) else []
        return times[found[:1]] if len(found) else _as_date(bound)

    return moment


def _as_duration(name: str, times: np.ndarray | None = None) -> _Moment:
    """A clock time; one before the first time is of the next day, if midnight was passed."""
    import pandas as pd

    def moment(bound: str) -> np.ndarray:
        at = _to_durations(pd.Series([bound]), name)[0]
        day = np.timedelta64(1, "D")
        if times is not None and at[0] < np.nanmin(times) and np.nanmax(times) >= day:
            return at + day
        return at

    return moment


def refuse_hours_and_minutes(sheet: Sheet, column: int, t: np.ndarray) -> None:
    """Refuses 845, 900, 915: times of the day without their colon, whose steps are even only so.

    Raises:
      TrajectoryError: naming a cell.
    """
    known = t[np.isfinite(t)]
    whole = (
        known.size > 2
        and (known == np.round(known)).all()
        and ((0 <= known) & (known < 2400)).all()
    )
    if not whole or (known % 100 >= 60).any():
        return
    minutes = known // 100 * 60 + known % 100
    if np.ptp(np.diff(known)) > 0 and np.ptp(np.diff(minutes)) == 0:
        raise TrajectoryError(
            f"The times in column {sheet.label(column)} seem to be hours and minutes without a "
            f"colon ({sheet.cell(0, column)} and so on); write them as 8:45, or count the minutes."
        )


# --- columns that belong together ----------------------------------------------------


def _beside(sheet: Sheet, column: int) -> list[int]:
    return [c for c in (column + 1, column - 1) if 0 <= c < len(sheet.names)]


def _clock_beside(sheet: Sheet, column: int) -> int | None:
    """The column beside dates that has their time of the day."""
    if sheet.cells(column).astype("str").str.contains(":", regex=False).any():
        return None
    return next((c for c in _beside(sheet, column) if sheet.kind(c) == "clock"), None)


def _days_beside(sheet: Sheet, column: int) -> np.ndarray | None:
    """The numbers of the days that a column beside clock times has."""
    for other in _beside(sheet, column):
        cells = sheet.cells(other)
        if part_of_time(sheet.names[other]) != _DAY or cells.dtype.kind not in "iu":
            continue
        days = cells.to_numpy(np.int64)
        if (np.diff(days) >= 0).all():
            return (days - days[0]) * np.timedelta64(1, "D")
    return None


# --- clock times and durations -------------------------------------------------------


def _to_durations(
    text: pd.Series, name: str, counts_on: bool = True
) -> tuple[np.ndarray, list[str]]:
    """Clock times as timedelta64, and notes.

    Times with one colon are h:mm, unless the column's name speaks of minutes; they count
    on after midnight. A name that speaks of neither leaves a doubt, which a note tells.
    """
    import pandas as pd

    minutes = _MINUTES.search(name) is not None and _HOURS.search(name) is None
    spans = text.map(_seconds_of_span, na_action="ignore").astype(np.float64)
    half = text.str.contains(_HALF_OF_DAY, case=False, na=False)
    exact = text.str.fullmatch(r"\d+:\d\d[.,]\d+", na=False)  # Only seconds have fractions.
    short = (text.str.count(":") == 1) & ~half & ~exact
    full = text.str.replace(_HALF_OF_DAY, "", regex=True, case=False)
    full = full.str.replace(r",(?=\d)", ".", regex=True)
    full = full.where(full.str.count(":") != 1, "0:" + full if minutes else full + ":00")
    full = full.mask(exact, "0:" + text.str.replace(",", ".", regex=False))
    full = full.mask(text.str.contains(r":[6-9]\d", na=False))
    times = pd.to_timedelta(full, errors="coerce")
    times = times.where(~half, _in_day(times, text.str.contains(r"p\.?m\.?$", case=False)))
    times = times.where(spans.isna(), pd.to_timedelta(spans, unit="s"))
    notes = []
    if short.any() and (minutes or _HOURS.search(name) is None):
        example, row = "m:ss" if minutes else "h:mm", int(np.argmax(short))
        other = "h:mm" if minutes else "m:ss"
        notes.append(
            f"Times such as {text.iloc[row]!r} were read as {example}; if they are {other}, all "
            f"rates are {'60 times too large' if minutes else '60 times too small'} (write "
            "h:mm:ss to be sure)."
        )
    midnights = (times.dropna().diff() < pd.Timedelta("-12h")).cumsum().reindex(times.index)
    passed = int(midnights.max()) if midnights.notna().any() and counts_on else 0
    if passed:
        notes.append(f"The clock passed midnight {count(passed, 'time')}.")
        times += midnights * pd.Timedelta("24h")
    return times.to_numpy(), notes


def _in_day(times: pd.Series, afternoon: pd.Series) -> pd.Series:
    """Times of a clock of twelve hours; NaT where the hour is none of them."""
    import pandas as pd

    half = pd.Timedelta("12h")
    good = (times >= pd.Timedelta("1h")) & (times < pd.Timedelta("13h"))
    from_midnight = times.where(times < half, times - half)
    return from_midnight.where(afternoon != True, from_midnight + half).where(good)  # noqa: E712


@functools.cache
def _seconds_of_span(text: str) -> float:
    """Seconds in "1 h 30 min"; NaN for what is none."""
    match = SPAN.fullmatch(text)
    if match is None or not match.group():
        return np.nan
    parts = zip(match.group("d", "h", "m", "s"), (86400, 3600, 60, 1), strict=True)
    return sum(float(part.replace(",", ".")) * unit for part, unit in parts if part)


__all__ = ["are_dates", "read_times", "refuse_hours_and_minutes"]
