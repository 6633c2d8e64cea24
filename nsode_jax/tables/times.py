"""From dates, clock times and durations to numbers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import count, elapsed
from nsode_jax.tables.text import Table, as_text

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `table_text`.

_SAMPLE = 200  # So many dates tell how all of them are written.
_FEW = 100_000  # So many dates of mixed forms can be read one by one.


def read_times(table: Table, column: int) -> tuple[Float[np.ndarray, " row"], str, list[str]]:
    """Numbers for a column of dates or clock times; its name with their unit; and notes."""
    kind, cells, name = table.kind(column), table.frame[column], table.names[column] or "t"
    notes = []
    if cells.dtype.kind in "mM":
        times = _without_zone(cells)
    else:
        text = as_text(cells)
        if kind == "date" and _followed_by_clock(table, column):
            notes.append(f"The clock times in column {table.label(column + 1)} were added.")
            text += " " + as_text(table.frame[column + 1])
        times, remarks = _to_dates(text) if kind == "date" else _to_durations(text)
        bad = text.notna().to_numpy() & np.isnat(times)
        notes += table.unreadable(column, bad, "date" if kind == "date" else "clock time")
        notes += remarks
    numbers, unit = elapsed(times)
    what = "dates" if kind == "date" else "durations" if cells.dtype.kind == "m" else "clock times"
    notes.append(f"Column {table.label(column)} holds {what}; they were converted to {unit}.")
    return numbers, f"{name} [{unit}]", notes


def _followed_by_clock(table: Table, column: int) -> bool:
    """Whether the dates have their time of the day in the next column."""
    if column + 1 == len(table.names) or table.kind(column + 1) != "clock":
        return False
    return not table.frame[column].astype("str").str.contains(":", regex=False).any()


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


def _to_durations(text: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Clock times (h:mm or h:mm:ss) as timedelta64; they count on after midnight."""
    import pandas as pd

    full = text.where(text.str.count(":") != 1, text + ":00").str.replace(",", ".", regex=False)
    times = pd.to_timedelta(full, errors="coerce")
    midnights = (times.dropna().diff() < pd.Timedelta("-12h")).cumsum().reindex(times.index)
    passed = int(midnights.max()) if midnights.notna().any() else 0
    notes = [f"The clock passed midnight {count(passed, 'time')}."] if passed else []
    return (times + midnights * pd.Timedelta("24h")).to_numpy(), notes
