"""Clock times and durations: what they are as spans of time, where they count on."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import numpy as np

from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.cells import SPAN
from nsode_jax.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_MINUTES = re.compile(r"(^|[^a-z])(min(ute)?s?|m+:ss)([^a-z]|$)", re.IGNORECASE)
_HOURS = re.compile(r"(^|[^a-z])(h|hrs?|hours?|h+:mm)([^a-z]|$)", re.IGNORECASE)
_HALF_OF_DAY = r"\s*[ap]\.?m\.?$"
_MINUS = re.compile(r"[-\u2212] ?(?=\d)")
_SAME = 1e-6

PASSED = "The clock passed"
"""How a note begins on times that count on."""


def to_durations(
    text: pd.Series, name: str, counts_on: bool = True
) -> tuple[np.ndarray, list[str]]:
    """Clock times as timedelta64, and notes.

    Times with one colon are h:mm, unless the column's name speaks of minutes; they count
    on after midnight. A name that speaks of neither leaves a doubt, which a note tells.
    """
    import pandas as pd

    minutes = _MINUTES.search(name) is not None and _HOURS.search(name) is None
    before = text.str.match(_MINUS).eq(True)
    text = text.mask(before, text.str.replace(_MINUS, "", n=1, regex=True))
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
    times = times.where(~before, -times)
    notes = []
    if short.any() and (minutes or _HOURS.search(name) is None):
        example, row = "m:ss" if minutes else "h:mm", int(np.argmax(short))
        other = "h:mm" if minutes else "m:ss"
        notes.append(
            f"Times such as {text.iloc[row]!r} were read as {example}; if they are {other}, all "
            f"rates are {'60 times too large' if minutes else '60 times too small'} (write "
            "h:mm:ss to be sure)."
        )
    if not counts_on:
        return times.to_numpy(), notes
    counted, passed = _counting_on(times, minutes or bool(exact.any()))
    return counted.to_numpy(), [*notes, *passed]


def _counting_on(times: pd.Series, minutes: bool) -> tuple[pd.Series, list[str]]:
    """Times that count on where the clock began anew, and a note: at midnight, or after 12:59
    and 59:59 if the hands go no further and no time is seen twice."""
    import pandas as pd

    hour = pd.Timedelta("1h")
    known = times.dropna()
    steps = known.diff()
    around, what, anew = 24 * hour, "midnight", steps < -12 * hour
    falls, usual = steps[steps < 0 * hour], steps.where(steps >= 0 * hour).median()
    of_hour = minutes and bool((known < hour).all())
    if of_hour or bool(((known >= hour) & (known < 13 * hour)).all()):
        around, what = (hour, "the full hour") if of_hour else (12 * hour, "noon or midnight")
        goes_on = known.is_unique and bool(((falls + around - usual).abs() < usual).all())
        anew = (steps < 0 * hour) & goes_on
    rounds = anew.cumsum().reindex(times.index)
    passed = int(rounds.max()) if rounds.notna().any() else 0
    if not passed:
        return times, []
    return times + rounds * around, [f"{PASSED} {what} {count(passed, 'time')}."]


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


def refuse_numbers_of_clocks(sheet: Sheet, column: int, t: np.ndarray) -> None:
    """Refuses numbers whose steps are even only as hours and minutes without their colon (845,
    900, 915), or as months behind their years (2020.11, 2020.12, 2021.01) or before them.

    Raises:
      TrajectoryError: naming a cell.
    """
    known = t[np.isfinite(t)]
    if known.size < 3 or np.ptp(np.diff(known)) < _SAME:
        return
    whole, rest = known // 1, known % 1
    years, months = (1800, 2200), (1, 13)
    readings = (
        (known // 100, known % 100, (0, 24), (0, 60), "hours and minutes without a colon", "8:45"),
        (whole, 100 * rest, years, months, "years and months", "2020-11"),
        (10_000 * rest, whole, years, months, "months and years", "2020-11"),
    )
    for units, parts, all_units, all_parts, what, form in readings:
        counted = units.round() * (all_parts[1] - all_parts[0]) + parts.round()
        fits = _are_whole(units, all_units) and _are_whole(parts, all_parts)
        if fits and np.ptp(np.diff(counted)) == 0:
            raise TrajectoryError(
                f"The times in column {sheet.label(column)} seem to be {what} "
                f"({sheet.cell(0, column)} and so on); write them as {form}, or as numbers that "
                "count on."
            )


def _are_whole(numbers: np.ndarray, limits: tuple[int, int]) -> bool:
    whole = numbers.round()
    inside = (limits[0] <= whole) & (whole < limits[1])
    return bool(((np.abs(numbers - whole) < _SAME) & inside).all())
