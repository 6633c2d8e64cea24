"""Which column holds the times where nobody names it, and when that is too doubtful to go on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.names import (
    is_like_time,
    is_time,
    may_be_time,
    numbers_rows,
    part_of_time,
)
from nsode_jax.tables.numbers import not_numbers
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.times import are_dates

_MOST = 0.9  # Of the steps of a column that numbers the rows are 1: it may start again.
_SPEAKS_OF_TIME = re.compile(
    r"(?:1[89]|20)\d\d|\d:\d\d"
    r"|\b(?:jan|feb|m[a\u00e4]r|mrz|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])",
    re.IGNORECASE,
)
"""A year, a clock time or the name of a month."""


def choose_time(
    sheet: Sheet,
    kinds: Sequence[str],
    free: list[int],
    numbers: list[int],
    has_value: bool,
    hidden: Sequence[int],
) -> tuple[int, list[str]]:
    """The column of times among the free ones, and notes on the choice."""
    if not free:
        raise TrajectoryError(
            "All columns are taken for values and none is left for the times; name fewer (--value)."
        )
    needed = 1 if has_value else 2
    named = _named_as_time(sheet, kinds, free, hidden)
    dated = sorted(
        (c for c in free if c not in numbers or are_dates(sheet, c)),
        key=lambda c: (kinds[c] == "clock", c),
    )
    others, notes = free[1:], []
    if named and named[0] in numbers and len(numbers) < needed:
        named = []
    if not named and not dated:
        _require_one_time(sheet, free, hidden)
    chosen, reason = free[0], ""
    if named:
        chosen, reason = named[0], "by its name"
    elif dated and (dated[0] not in numbers or len(numbers) >= needed):
        chosen, reason = dated[0], "as it holds dates or clock times"
    elif counts_rows(sheet, free[0]) and others:
        one_way = [c for c in others if goes_one_way(sheet, c, hidden)]
        rest = [c for c in others if c in numbers]
        if one_way and one_way[0] == others[0] and len(rest) == needed:
            chosen = others[0]
        elif hidden and one_way:
            chosen, reason = one_way[0], "as it rises in every series"
        elif sheet.names[free[0]] == "" and any(sheet.names):
            notes.append(
                "The first column, which has no name, was taken as the time, as it counts up; if "
                "it only numbers the rows, choose the time with --time."
            )
    elif hidden:
        one_way = [c for c in free if goes_one_way(sheet, c, hidden)]
        chosen, reason = (one_way or free)[0], "as it rises in every series"
    if counts_rows(sheet, free[0]) and chosen != free[0] and (len(free) > needed or has_value):
        notes.append(
            "The first column, which has no name, counts the rows and was left out."
            if sheet.names[free[0]] == ""
            else f"Column {sheet.label(free[0])} counts the rows and was left out."
        )
    if chosen != free[0] and reason:
        notes.append(f"Column {sheet.label(chosen)} was taken as the time, {reason}.")
    return chosen, notes


def _named_as_time(
    sheet: Sheet, kinds: Sequence[str], free: list[int], hidden: Sequence[int]
) -> list[int]:
    """The one column that its name says to hold the times; none if there are several."""
    dates = [c for c in free if kinds[c] == "date" or are_dates(sheet, c)]
    undated = [c for c in free if kinds[c] != "date"]
    named = [c for c in undated if is_time(sheet.names[c])]
    if not named:
        named = [c for c in undated if is_like_time(sheet.names[c])]
        if not (named or dates):
            named = [c for c in undated if may_be_time(sheet.names[c])]
            named = [c for c in named if goes_one_way(sheet, c, hidden)]
        if len(named) > 1:  # As year, month, and decimal date.
            named = [c for c in named if goes_one_way(sheet, c, hidden)]
    if len(named) == 1 and kinds[named[0]] == "clock":  # A date beside it says of which day.
        return [] if dates else named
    return named if len(named) == 1 else []


def _require_one_time(sheet: Sheet, free: list[int], hidden: Sequence[int]) -> None:
    """Refuses days beside hours of the day, and the like: each is only a part of the time."""
    parts = {rank: c for c in free if (rank := part_of_time(sheet.names[c])) is not None}
    ordered = [parts[rank] for rank in sorted(parts)]
    if len(ordered) < 2 or any(goes_one_way(sheet, c, hidden) for c in ordered):
        return
    names = " and ".join(map(sheet.label, ordered))
    form = "dates such as 2020-03-01" if min(parts) < 3 else "hours, or times such as 1:30:00"
    raise TrajectoryError(
        f"Columns {names} seem to hold one time in parts; write it in one column ({form}), or "
        "choose the column of times with --time."
    )


def counts_rows(sheet: Sheet, column: int) -> bool:
    """Whether this is the column of row numbers that pandas and R write."""
    if column != 0 or not numbers_rows(sheet.names[0]) or sheet.kind(0) != "number":
        return False
    import pandas as pd

    numbers = np.asarray(pd.to_numeric(sheet.cells(0), errors="coerce"), np.float64)
    if sheet.cells(0).dtype.kind == "O":  # Between blocks of data there are lines of text.
        numbers = numbers[np.isfinite(numbers)]
    steps = np.diff(numbers)
    return bool(steps.size and (steps == 1).mean() > _MOST)


def goes_one_way(sheet: Sheet, column: int, by: Sequence[int] = ()) -> bool:
    """Whether numbers only rise or only fall, within each series if they have labels."""
    cells = sheet.cells(column)
    if cells.dtype.kind not in "iuf":
        return False
    groups = [cells] if not by else [part for _, part in cells.groupby(sheet.labels(by[0]))]
    for part in groups:
        steps = np.diff(part.dropna().to_numpy(np.float64))
        if not ((steps > 0).all() or (steps < 0).all()):
            return False
    return True


def refuse_unreadable_times(sheet: Sheet, column: int, labels: int | None) -> None:
    """Refuses to pass over a column that speaks of time, and whose cells cannot be read.

    Args:
      sheet: the table.
      column: what was taken as the time.
      labels: the column that tells series apart, if there is one.

    Raises:
      TrajectoryError: naming that column, and a cell.
    """
    is_clock = sheet.kind(column) == "clock"
    if not is_clock and _is_told(sheet, column):
        return
    for other, name in enumerate(sheet.names):
        if other == labels or sheet.kind(other) != "text":
            continue
        cells = sheet.text(other).dropna()
        speaks = 2 * int(cells.str.contains(_SPEAKS_OF_TIME).sum()) > len(cells)
        told = is_like_time(name) and (speaks or not is_clock)
        if cells.nunique() > 1 and (told or (other == 0 and speaks and not is_clock)):
            raise not_numbers(sheet, other, "numbers or dates")


def refuse_unsteady_times(
    sheet: Sheet,
    column: int,
    t: Float[np.ndarray, " row"],
    series: Iterable[Bool[np.ndarray, " row"]],
    named: bool,
) -> None:
    """Refuses clocks that go back, and what goes up and down where nothing but its place says
    that it is the time.

    Args:
      sheet: the table.
      column: what was taken as the time.
      t: its numbers.
      series: the rows of each series.
      named: whether the user named the column.

    Raises:
      TrajectoryError: naming the column, and another one that may be meant.
    """
    is_clock = sheet.kind(column) == "clock" and sheet.cells(column).dtype.kind != "m"
    is_clock = is_clock and sheet.text(column).str.contains(":", regex=False).any()
    if not is_clock and (named or _is_told(sheet, column)):
        return
    turn = next((turn for rows in series if (turn := _turn(t, rows)) is not None), None)
    if turn is None:
        return
    label, place = sheet.label(column), sheet.place(turn)
    if is_clock:
        raise TrajectoryError(
            f"The clock times in column {label} go up and down (first in {place}, "
            f"{sheet.cell(turn, column)!r}); write times that count on, such as 13:00 after 12:30 "
            "and 25:00 after 24:00, or dates with them."
        )
    steady = [c for c in sheet.frame.columns if c != column and goes_one_way(sheet, c)]
    other = f"--time {sheet.option(steady[0])}, which goes one way, or " if steady else ""
    raise TrajectoryError(
        f"Column {label}, taken as the time, goes up and down (first in {place}); choose the "
        f"column of times: {other}--time {sheet.option(column)} if it is that one."
    )


def _turn(t: Float[np.ndarray, " row"], rows: Bool[np.ndarray, " row"]) -> int | None:
    """The first of these rows whose time goes against the times before it."""
    known = np.flatnonzero(rows & np.isfinite(t))
    signs = np.sign(np.diff(t[known]))
    against = np.flatnonzero(signs * signs[np.argmax(signs != 0)] < 0) if signs.size else signs
    return int(known[against[0] + 1]) if against.size else None


def _is_told(sheet: Sheet, column: int) -> bool:
    """Whether the name or the cells of a column say that it holds times."""
    return (
        is_like_time(sheet.names[column])
        or sheet.kind(column) != "number"
        or are_dates(sheet, column)
    )
