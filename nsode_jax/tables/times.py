"""From dates, clock times and durations to numbers."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from nsode_jax.dynamics.trajectory import TrajectoryError, count, elapsed
from nsode_jax.tables.numbers import Numbers
from nsode_jax.tables.sheet import Sheet, as_text

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_SAMPLE = 200  # So many dates tell how all of them are written.
_FEW = 100_000  # So many dates of mixed forms can be read one by one.


_MINUTES = re.compile(r"(^|[^a-z])(min(ute)?s?|m+:ss)([^a-z]|$)", re.IGNORECASE)
_HOURS = re.compile(r"(^|[^a-z])(h|hrs?|hours?|h+:mm)([^a-z]|$)", re.IGNORECASE)
_UNIX = re.compile(r"(^|.*[^a-z])(unix|epoch|posix|timestamp)([^a-z].*|$)", re.IGNORECASE)


def read_times(sheet: Sheet, column: int, bound: str | None = None) -> tuple[Numbers, str, float]:
    """Numbers for a column of dates or clock times.

    Args:
      sheet: the sheet.
      column: of dates, clock times, or numbers that are dates (`are_dates`).
      bound: a date or clock time in the user's words.

    Returns:
      The numbers, their unit ("days since 2020-03-01"), and the bound as such a number,
      NaN without one.
    """
    kind, cells = sheet.kind(column), sheet.cells(column)
    notes, unreadable = [], np.zeros(len(cells), bool)
    if cells.dtype.kind in "mM":
        times = _without_zone(cells) if cells.dtype.kind == "M" else cells.to_numpy()
    elif kind == "number":
        times, notes = _from_numbers(sheet, column)
        kind = "date"
    else:
        text = as_text(cells)
        if kind == "date" and _followed_by_clock(sheet, column):
            notes.append(f"The clock times in column {sheet.label(column + 1)} were added.")
            text += " " + as_text(sheet.cells(column + 1))
        times, remarks = (
            _to_dates(text) if kind == "date" else _to_durations(text, sheet.names[column])
        )
        unreadable = text.notna().to_numpy() & np.isnat(times)
        notes += remarks
    numbers, unit = elapsed(times)
    what = "dates" if kind == "date" else "durations" if cells.dtype.kind == "m" else "clock times"
    notes.append(f"Column {sheet.label(column)} holds {what}; they were converted to {unit}.")
    none = np.zeros(len(cells), bool)
    known = Numbers(numbers, unreadable, none, none, np.full(len(cells), np.nan), "", tuple(notes))
    return (
        known,
        unit,
        np.nan if bound is None else _place(bound, times, numbers, sheet.names[column]),
    )


def _place(bound: str, times: np.ndarray, numbers: np.ndarray, name: str) -> float:
    """The number of a date or clock time that the user gives, on the scale of the others."""
    import pandas as pd

    known = np.flatnonzero(~np.isnat(times))
    first, last = known[np.argmin(numbers[known])], known[np.argmax(numbers[known])]
    try:
        if times.dtype.kind == "M":
            at = _without_zone(pd.Series(pd.to_datetime([bound], utc=True)))[0]
        else:
            at = _to_durations(pd.Series([bound]), name)[0][0]
        if np.isnat(at):
            raise ValueError
    except (ValueError, OverflowError):
        raise TrajectoryError(
            f"{bound!r} is neither a number nor a time such as those of the file."
        ) from None
    share = (at - times[first]) / (times[last] - times[first])
    return float(numbers[first] + share * (numbers[last] - numbers[first]))


def are_dates(sheet: Sheet, column: int) -> bool:
    """Whether numbers are dates: 20200301, or seconds since 1970 in a column so named."""
    cells = sheet.cells(column)
    if cells.dtype.kind not in "iuf" or not cells.count():
        return False
    values = cells.dropna().to_numpy(np.float64)
    if (values != np.round(values)).any():
        return False
    if _UNIX.fullmatch(sheet.names[column]):
        return bool(((values > 1e8) & (values < 1e13)).all())
    if len(values) < 3 or not ((values > 1800_00_00) & (values < 2200_00_00)).all():
        return False
    return not np.isnat(_from_digits(values)).any()


def _from_numbers(sheet: Sheet, column: int) -> tuple[np.ndarray, list[str]]:
    values = sheet.cells(column).to_numpy(np.float64, na_value=np.nan)
    if _UNIX.fullmatch(sheet.names[column]):
        milli = np.nanmax(values) > 1e11
        unit = "milliseconds" if milli else "seconds"
        stamps = np.where(np.isnan(values), 0, values * (1 if milli else 1000)).astype(np.int64)
        times = stamps.astype("datetime64[ms]")
        times[np.isnan(values)] = np.datetime64("NaT")
        return times, [f"Column {sheet.label(column)} was read as {unit} since 1970 (UTC)."]
    note = f"The numbers in column {sheet.label(column)} were read as dates (yyyymmdd)."
    return _from_digits(values), [note]


def _from_digits(values: np.ndarray) -> np.ndarray:
    import pandas as pd

    text = pd.Series(values).map(lambda value: f"{value:.0f}", na_action="ignore")
    return pd.to_datetime(text, format="%Y%m%d", errors="coerce").to_numpy()


def _followed_by_clock(sheet: Sheet, column: int) -> bool:
    """Whether the dates have their time of the day in the next column."""
    if column + 1 == len(sheet.names) or sheet.kind(column + 1) != "clock":
        return False
    return not sheet.cells(column).astype("str").str.contains(":", regex=False).any()


def _without_zone(dates: pd.Series) -> np.ndarray:
    """Dates of any zone as datetime64 in UTC."""
    zoned = getattr(dates.dt, "tz", None) is not None
    return (dates.dt.tz_convert(None) if zoned else dates).to_numpy()


def _to_dates(text: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Dates as datetime64 in UTC, NaT where the text is none, and notes on how they were read."""
    import pandas as pd

    def read(cells: pd.Series, **how) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas tells that it guesses cell by cell.
            return _without_zone(pd.to_datetime(cells, errors="coerce", utc=True, **how))

    day_first = (True, False) if text.str.match(r"\d+\.").any() else (False, True)
    ways = [(0, {"format": "ISO8601"}), *((1, {"dayfirst": day}) for day in day_first)]
    if len(text) <= _FEW:
        ways += [(2, {"dayfirst": day, "format": "mixed"}) for day in day_first]
    some = text.iloc[:: max(1, len(text) // _SAMPLE)]
    merits = [(np.isnat(read(some, **how)).sum(), rank) for rank, how in ways]
    readings = [read(text, **how) for (_, how), m in zip(ways, merits) if m == min(merits)]
    best = next(filter(_in_order, readings), readings[0])
    notes = _notes_on_zones(text)
    if not all(np.array_equal(best, dates, equal_nan=True) for dates in readings):
        row = int(np.argmin(np.isnat(best)))
        notes.append(
            f"Dates such as {text.iloc[row][:20]!r} can be read in two ways and were read as "
            f"{np.datetime_as_string(best[row], unit='D')} (year-month-day); write all dates in "
            "that form if this is wrong."
        )
    return best, notes


def _notes_on_zones(text: pd.Series) -> list[str]:
    clock, zone = r":\d\d(?:[.,]\d+)? ?", r"(?:Z|UTC|[+-]\d\d(?::?\d\d)?)$"
    if not text.str.contains(clock + zone, na=False).any():
        return []  # Asked first, as extracting takes ten times as long.
    zones = text.dropna().str.extract(f"{clock}({zone})")[0]
    shown = ", ".join(zones.dropna().unique()[:3])
    bare = int(zones.isna().sum())
    rest = f"; {count(bare, 'date')} without a zone were taken as UTC" if bare else ""
    return [f"The dates' time zones ({shown}) were converted to UTC{rest}."]


def _in_order(dates: np.ndarray) -> bool:
    known = dates[~np.isnat(dates)]
    return bool((known[1:] >= known[:-1]).all())


def _to_durations(text: pd.Series, name: str) -> tuple[np.ndarray, list[str]]:
    """Clock times as timedelta64, and notes.

    Times with one colon are h:mm, unless the column's name speaks of minutes; they count
    on after midnight. A name that speaks of neither leaves a doubt, which a note tells.
    """
    import pandas as pd

    minutes = _MINUTES.search(name) is not None and _HOURS.search(name) is None
    short = text.str.count(":") == 1
    full = text.str.replace(",", ".", regex=False)
    full = full.where(~short, "0:" + full if minutes else full + ":00")
    full = full.mask(text.str.contains(r":[6-9]\d", na=False))
    times = pd.to_timedelta(full, errors="coerce")
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
    passed = int(midnights.max()) if midnights.notna().any() else 0
    if passed:
        notes.append(f"The clock passed midnight {count(passed, 'time')}.")
    return (times + midnights * pd.Timedelta("24h")).to_numpy(), notes
