"""Dates in many forms: which of day, month and year is which is decided by the column as a whole.

"01/03/2020" is a day in March or in January. The other cells tell (13/03/2020), or the order and
the steps of the whole column: dates that follow each other day by day rather than on the third of
each month. What can still be read in two ways is refused.
"""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
ORDERS = (DAY_FIRST, MONTH_FIRST)
"""What the user may say of dates such as 01/03/2020."""

_SAMPLE = 200  # So many dates tell how all of them are written.
_FEW = 100_000  # So many dates of mixed forms can be read one by one.
_UNIX = re.compile(r"(^|.*[^a-z])(unix|epoch|posix|timestamp)([^a-z].*|$)", re.IGNORECASE)
_NAMED = re.compile(
    r"(.*[^a-z])?(dates?|datum|fecha|data|day|month|period|y+m+d*)([^a-z].*)?", re.IGNORECASE
)
_DIGITS = {6: ("%Y%m", "%y%m%d"), 8: ("%Y%m%d", "%d%m%Y", "%m%d%Y")}
_LONG_DIGITS = {12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_FEWEST = 3  # Numbers that are dates.
_MIDNIGHT = re.compile(r"(?<![\d:])24:00(?![\d:]*[1-9])")  # Not of 08:24:00.
_NO_DATE = re.compile(r"\D*$|\d+:[\d:., apm]*$", re.IGNORECASE)  # pandas makes it one of today.
_FIRST = np.datetime64("1000-01-01")  # And years from 1 on of other words with digits.
_DAYS = "(?:1[3-9]|2[0-9]|3[01])"
_CONTRARY = {
    MONTH_FIRST: re.compile(rf"{_DAYS}[-/. ]\d{{1,2}}[-/. ]\d"),
    DAY_FIRST: re.compile(rf"\d{{1,2}}[-/. ]{_DAYS}[-/. ]\d"),
}
_SHORT_YEAR = re.compile(r"\d{1,2}[-/. ](?:\d{1,2}|[a-z]{3,9}\.?,?)[-/. ]\d\d(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Way:
    """How a text is read as a date: arguments of `pandas.to_datetime`, and what it is called."""

    name: str
    how: Mapping[str, Any]

    def read(self, cells: pd.Series) -> np.ndarray:
        """Dates as datetime64 in UTC, NaT where the cell is none, or is written otherwise."""
        import pandas as pd

        late = cells.str.contains(_MIDNIGHT).eq(True).to_numpy()
        written = cells.str.replace(_MIDNIGHT, "00:00", regex=True) if late.any() else cells
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas tells that it guesses cell by cell.
            dates = pd.to_datetime(written, errors="coerce", utc=True, **self.how)
        dates = without_zone(dates) + late * np.timedelta64(1, "D")
        none = cells.str.match(_NO_DATE).eq(True).to_numpy() | self.contradicts(cells)
        none |= dates < _FIRST
        dates[none] = np.datetime64("NaT")
        return _in_one_century(dates, self.has_short_years(cells))

    def contradicts(self, cells: pd.Series) -> Bool[np.ndarray, " row"]:
        """Where the month would be none: pandas reads 13/02/2020 day first, whatever it is told."""
        if self.name not in ORDERS:
            return np.zeros(len(cells), bool)
        return cells.str.match(_CONTRARY[self.name]).eq(True).to_numpy()

    def has_short_years(self, cells: pd.Series) -> Bool[np.ndarray, " row"]:
        """Where the year has two digits."""
        if "format" in self.how and "%" in self.how["format"]:
            return cells.notna().to_numpy() & ("%y" in self.how["format"])
        return cells.str.match(_SHORT_YEAR).eq(True).to_numpy()


_ISO = Way("year-month-day", {"format": "ISO8601"})


def without_zone(dates: pd.Series) -> np.ndarray:
    """Dates of any zone as datetime64 in UTC."""
    zoned = getattr(dates.dt, "tz", None) is not None
    return (dates.dt.tz_convert(None) if zoned else dates).to_numpy()


def read_dates(
    sheet: Sheet, column: int, text: pd.Series, order: str | None = None
) -> tuple[np.ndarray, Way, list[str]]:
    """Dates as datetime64 in UTC, NaT where the text is none.

    Args:
      sheet, column: where they stand.
      text: of the dates.
      order: "day-first" or "month-first", if the user says so.

    Returns:
      The dates, the way in which they were read, and notes.

    Raises:
      TrajectoryError: if they can be read in two ways, or contradict the user.
    """
    if order is not None and (contrary := Way(order, {}).contradicts(text)).any():
        row = int(np.argmax(contrary))
        raise TrajectoryError(
            f"{sheet.cell(row, column)!r} in {sheet.place(row)} of column {sheet.label(column)} "
            f"cannot be {order} (--dates {order}); leave the option out, or give the other one."
        )
    ways = _ways(text, order)
    some = text.iloc[:: max(1, len(text) // _SAMPLE)]
    merits = [(int(np.isnat(way.read(some)).sum()), rank) for rank, way in ways]
    readings = [
        (way, way.read(text)) for (_, way), merit in zip(ways, merits) if merit == min(merits)
    ]
    way, dates, notes = _decide(sheet, column, text, readings)
    notes += _note_on_years(dates[way.has_short_years(text)])
    return dates, way, [*_notes_on_zones(text), *notes]


def _ways(text: pd.Series, order: str | None) -> list[tuple[int, Way]]:
    """Ways to read the text, those of one rank alike in likelihood beforehand."""
    orders = {MONTH_FIRST: False, DAY_FIRST: True}
    if order is not None:
        orders = {order: orders[order]}
    elif text.str.match(r"\d+\.").any():  # Nobody writes points behind a month that comes first.
        orders.pop(MONTH_FIRST)
    short = text.str.match(r"\d\d([-/.])\d\d\1\d\d(\D|$)")
    ways = [(0, _ISO)]
    if text.str.match(r"\d{4}\D").any():  # Nor days behind a year.
        orders.pop(DAY_FIRST, None)
        orders.setdefault(MONTH_FIRST, False)
    ways += [(1, Way(name, {"dayfirst": day})) for name, day in orders.items()]
    if order is None and short.any():
        ways.append((1, Way("year-first", {"yearfirst": True})))
    if len(text) <= _FEW:
        mixed = {"format": "mixed"}
        ways += [(2, Way(name, {"dayfirst": day, **mixed})) for name, day in orders.items()]
    return ways


def _decide(
    sheet: Sheet, column: int, text: pd.Series, readings: Sequence[tuple[Way, np.ndarray]]
) -> tuple[Way, np.ndarray, list[str]]:
    """The likeliest reading, and a note if there are others.

    Raises:
      TrajectoryError: if none is likelier and they differ in more than where they begin.
    """
    way, dates = readings[0]
    others = [one for one in readings[1:] if not _same(one[1], dates)]
    if not others:
        return way, dates, []
    likely = [(way, dates), *others]
    for is_likely in (_goes_one_way, _is_regular):
        likely = [one for one in likely if is_likely(one[1])] or likely
    way, dates = likely[0]
    apart = np.any([days != dates for _, days in likely[1:] or others], axis=0)
    row = int(np.argmax(apart & ~np.isnat(dates)))
    told = {one.name: np.datetime_as_string(days[row], unit="D") for one, days in likely}
    steps = [np.diff(days) for _, days in likely]
    if any(not np.array_equal(step, steps[0], equal_nan=True) for step in steps[1:]):
        ways = " or ".join(f"{day} ({name})" for name, day in told.items())
        help_ = " or ".join(f"--dates {name}" for name in told if name in ORDERS)
        raise TrajectoryError(
            f"The dates in column {sheet.label(column)} can be read in two ways: "
            f"{sheet.cell(row, column)!r} in {sheet.place(row)} is {ways}; write them as "
            f"year-month-day{f', or choose: {help_}' if help_ else ''}."
        )
    note = (
        f"Dates such as {text.iloc[row][:20]!r} can be read in two ways and were read "
        f"{way.name}, as {told[way.name]} (year-month-day); if this is wrong, choose with --dates "
        "or write all dates as year-month-day."
    )
    return way, dates, [note]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


def _goes_one_way(dates: np.ndarray) -> bool:
    known = dates[~np.isnat(dates)]
    return bool((known[1:] >= known[:-1]).all() or (known[1:] <= known[:-1]).all())


def _is_regular(dates: np.ndarray) -> bool:
    """Whether the steps are all alike, in days or between first days of months."""
    known = dates[~np.isnat(dates)].astype("datetime64[s]")
    months = known.astype("datetime64[M]")
    if (months == known).all():
        known = months
    steps = np.diff(known).astype(int)
    return bool(steps.size and (steps == steps[0]).all())


def _in_one_century(dates: np.ndarray, short: Bool[np.ndarray, " row"]) -> np.ndarray:
    """Dates whose years of two digits lie as close together as they can, in the latest
    century in which the first of them is not in the future."""
    rows = np.flatnonzero(short & ~np.isnat(dates))
    if not rows.size:
        return dates
    months = dates[rows].astype("datetime64[M]")
    years = months.astype("datetime64[Y]").astype(int) + 1970
    digits = np.unique(years % 100)
    gaps = np.diff(digits, append=digits[0] + 100)
    first = int(np.roll(digits, -1)[np.argmax(gaps)])
    first += (datetime.date.today().year - first) // 100 * 100
    moved = months + 12 * (first + (years - first) % 100 - years)
    dates = dates.copy()
    dates[rows] += moved.astype(dates.dtype) - months.astype(dates.dtype)
    return dates


def _note_on_years(dates: np.ndarray) -> list[str]:
    known = dates[~np.isnat(dates)]
    if not known.size:
        return []
    years = [np.datetime_as_string(date, unit="Y") for date in (known.min(), known.max())]
    return [f"Years of two digits were read as {' to '.join(dict.fromkeys(years))}."]


def _notes_on_zones(text: pd.Series) -> list[str]:
    clock, zone = r":\d\d(?:[.,]\d+)? ?", r"(?:Z|UTC|[+-]\d\d(?::?\d\d)?)$"
    if not text.str.contains(clock + zone, na=False).any():
        return []  # Asked first, as extracting takes ten times as long.
    zones = text.dropna().str.extract(f"{clock}({zone})")[0]
    shown = ", ".join(zones.dropna().unique()[:3])
    bare = int(zones.isna().sum())
    rest = f"; {count(bare, 'date')} without a zone were taken as UTC" if bare else ""
    return [f"The dates' time zones ({shown}) were converted to UTC{rest}."]


# --- numbers that are dates ---------------------------------------------------------


def are_dates(sheet: Sheet, column: int) -> bool:
    """Whether numbers are dates: 20200301, or seconds since 1970 in a column so named."""
    cells = sheet.cells(column)
    if cells.dtype.kind not in "iuf" or not cells.count():
        return False
    values = cells.dropna().to_numpy(np.float64)
    if (values != np.round(values)).any():
        return False
    if _UNIX.fullmatch(sheet.names[column]):
        return bool(((values > 1e8) & (values < 1e19)).all())
    return bool(_formats(values, sheet.names[column]))


def dates_of_numbers(
    sheet: Sheet, column: int, order: str | None = None
) -> tuple[np.ndarray, list[str]]:
    """Numbers that are dates (`are_dates`) as datetime64, and notes.

    Raises:
      TrajectoryError: if they can be read in two ways.
    """
    values = sheet.cells(column).to_numpy(np.float64, na_value=np.nan)
    label = sheet.label(column)
    if _UNIX.fullmatch(sheet.names[column]):
        decades = int(np.log10(np.nanmax(values)) - 8) // 3  # 0 for seconds, 3 for nanoseconds.
        power = min(3, max(0, decades))
        unit = ("seconds", "milliseconds", "microseconds", "nanoseconds")[power]
        exact = np.where(np.isnan(values), 0, values).astype(np.int64)
        if sheet.cells(column).dtype.kind in "iu":
            exact = sheet.cells(column).to_numpy(np.int64, na_value=0)
        times = exact.astype(f"datetime64[{('s', 'ms', 'us', 'ns')[power]}]")
        times[np.isnan(values)] = np.datetime64("NaT")
        return times, [f"Column {label} was read as {unit} since 1970 (UTC)."]
    formats = _formats(values[np.isfinite(values)], sheet.names[column])
    names = {"%d%m%Y": DAY_FIRST, "%m%d%Y": MONTH_FIRST}
    ways = [Way(names.get(form, _name(form)), {"format": form}) for form in formats]
    if order is not None and {way.name for way in ways} == set(ORDERS) - {order}:
        raise TrajectoryError(
            f"The numbers in column {label} cannot be dates that are {order} (--dates {order}); "
            "leave the option out, or give the other one."
        )
    ways = [way for way in ways if way.name == order] or ways
    text = _padded(values, max(map(_width, formats)))
    way, dates, notes = _decide(sheet, column, text, [(way, way.read(text)) for way in ways])
    written = _name(str(way.how["format"]))
    notes += _note_on_years(dates[way.has_short_years(text)])
    return dates, [f"The numbers in column {label} were read as dates ({written}).", *notes]


def _name(form: str) -> str:
    """The form of a date in the words of people."""
    letters = {"%Y": "yyyy", "%y": "yy", "%m": "mm", "%d": "dd", "%H": "HH", "%M": "MM", "%S": "SS"}
    for code, word in letters.items():
        form = form.replace(code, word)
    return form


def _width(form: str) -> int:
    return len(_name(form))


def _formats(values: Float[np.ndarray, " _"], name: str) -> list[str]:
    """The forms in which all numbers are dates, if they are hardly anything else."""
    if len(values) < _FEWEST or not (values > 0).all():
        return []
    digits = {len(f"{value:.0f}") for value in (values.min(), values.max())}
    for width, form in _LONG_DIGITS.items():
        if digits == {width} and _all_dates(values, form):
            return [form]
    named = _NAMED.fullmatch(name) is not None
    found = []
    if digits <= {7, 8}:
        found = [form for form in _DIGITS[8] if _all_dates(values, form)]
    elif digits <= {5, 6}:
        found = [form for form in _DIGITS[6] if _all_dates(values, form)]
        # Months of more than a year: 201812 is followed by 201901.
        over_years = (np.abs(np.diff(values)) == 89).any()
        found = found if named or (over_years and found[:1] == ["%Y%m"]) else []
    return found


def _all_dates(values: Float[np.ndarray, " _"], form: str) -> bool:
    text = _padded(values, _width(form))
    if (text.str.len() != _width(form)).any():
        return False
    years = Way("", {"format": form}).read(text).astype("datetime64[Y]")
    low, high = np.datetime64("1800"), np.datetime64("2200")
    return bool(not np.isnat(years).any() and ((low <= years) & (years < high)).all())


def _padded(values: Float[np.ndarray, " _"], width: int) -> pd.Series:
    """Whole numbers with the zeros before them that spreadsheets leave out."""
    import pandas as pd

    return pd.Series(values).map(lambda value: f"{value:0{width}.0f}", na_action="ignore")
