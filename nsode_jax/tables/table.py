"""Reading series from a file with a table."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import (
    MIN_POINTS,
    Trajectory,
    TrajectoryError,
    clean,
    count,
)
from nsode_jax.tables.columns import choose_columns
from nsode_jax.tables.errors import Errors, error_columns, read_errors
from nsode_jax.tables.files import Source, open_table
from nsode_jax.tables.numbers import Numbers, read_numbers
from nsode_jax.tables.runs import RESTART, require_no_long_table, require_one_series, runs
from nsode_jax.tables.separators import Convention
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.times import are_dates, read_times

_FEW = 0.05  # A share of cells that may be unreadable, if they are not at one end.
_SHOWN = 3
_FEWEST_OF_SEVERAL = 2  # Points of one series among several.


@dataclass(frozen=True, eq=False)
class Measurements:
    """The series that a table holds.

    Attributes:
      trajectories: cleaned series, in the order of the file.
      labels: what tells the series apart; ("",) if there is one.
      limits: for each series what is known only by limits, which is not in its trajectory.
      names: of time and value ("t" and "y" where the file names none), with their unit
        where they held dates or cells with units: "day [days since 2020-03-01]".
      notes: a sentence for each thing that was done.
    """

    trajectories: tuple[Trajectory, ...]
    labels: tuple[str, ...]
    limits: tuple[Limits, ...]
    names: tuple[str, str]
    notes: tuple[str, ...]

    def require_no_limits(self) -> None:
        """Refuses values of which only a limit is known, where they would not count.

        Raises:
          TrajectoryError: if there are any.
        """
        if number := sum(limit.t.size for limit in self.limits):
            raise TrajectoryError(
                f"{count(number, 'value')} of which only a limit is known, such as <0.1: they "
                "count in laws of one quantity with common constants only; empty these cells to "
                "do without them."
            )


def read_table(
    path: Source, time: str | None = None, value: str | None = None
) -> tuple[Trajectory, tuple[str, ...], tuple[str, str]]:
    """The one series of a table; `read_measurements` has more options.

    Returns:
      The cleaned trajectory, notes, and the names of time and value.

    Raises:
      TrajectoryError: as `read_measurements`.
    """
    read = read_measurements(path, time, value)
    return read.trajectories[0], read.notes, read.names


def read_measurements(
    path: Source,
    time: str | None = None,
    value: str | None = None,
    *,
    series: str | None = None,
    replicates: bool = False,
    start: str | None = None,
    end: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    sigma: str | float | None = None,
    fewest: int = MIN_POINTS,
) -> Measurements:
    """Reads series from a file with columns.

    Text may have commas, semicolons, tabs or spaces between the columns, lines of text,
    names and units before the data, comments (`#`), and a row for each quantity instead of
    a column. Numbers may have decimal commas, marks of thousands, percent signs and units.
    What can be read in two ways is refused.

    Args:
      path: the file: text, Excel, OpenDocument, Parquet, Feather or HDF5; "-" for standard
        input, "clipboard" for the clipboard; or what a file holds (`Contents`).
      time: the column of times, by name or by number counted from 1; it may hold dates
        or clock times, which become numbers in a unit that suits their span. Without it:
        the column of numbers that is named as a time, a column of dates, or the first
        column of numbers.
      value: the column of values, likewise. Without it: the next column of numbers. With
        `replicates`, several names with commas between them; without it: all of them.
      series: the column of labels that tell series apart which stand below each other, or
        "restart": a series ends where the clock starts again.
      replicates: whether each column of values is a series.
      start, end: first and last time to use: numbers, or dates as in the file.
      decimal, thousands: marks in the numbers, where the columns do not tell.
      sigma: known errors of measurement: the column of their standard deviations (with
        several columns of values one for all, or one for each with commas between them), or
        a number for all. They are in the trajectories (`Trajectory.errors`).
      fewest: points that are needed, in all.

    Raises:
      TrajectoryError: if the file cannot be read, has no such columns, can be read in
        two ways, or holds a series that cannot be used.
    """
    convention = Convention(decimal, thousands)
    sheet, notes = open_table(path)
    restart = series == RESTART and RESTART not in sheet.names
    taken = error_columns(sheet, sigma)
    choice = choose_columns(sheet, time, value, None if restart else series, replicates, taken)
    t, time_name, window = _read_times(sheet, choice.time, convention, (start, end))
    values = [read_numbers(sheet, column, convention) for column in choice.values]
    errors = read_errors(sheet, sigma, taken, values, convention)
    notes += [*sheet.notes, *choice.notes, *t.notes, *(n for y in values for n in y.notes)]
    if series is None:
        _require_one(sheet, choice.time, choice.values[0], t, values[0], time is None)
    if series is None and not replicates and time is None and _look_swapped(t, values[0]):
        column, other = choice.time, choice.values[0]
        notes.append(
            f"Column {sheet.label(column)}, taken as the time, goes up and down while "
            f"{sheet.label(other)} goes one way; if they are swapped, choose with "
            f"--time {other + 1} --value {column + 1}."
        )
    rows = _rows_of_series(sheet, choice.series, restart, t)
    parts = [
        _Part(label, column, y, which, error)
        for column, y, error in zip(choice.values, values, errors, strict=True)
        for label, which in rows.items()
    ]
    if replicates:
        parts = [part.named(sheet.names[part.column] or str(part.column + 1)) for part in parts]
    fewest_each = _FEWEST_OF_SEVERAL if len(parts) > 1 else fewest
    read = [_read_part(sheet, choice.time, t, part, window, fewest_each) for part in parts]
    trajectories = tuple(trajectory for trajectory, _, _ in read)
    total = sum(map(len, trajectories))
    if total < fewest:
        raise TrajectoryError(
            f"Only {count(total, 'usable point')} in all series; at least {fewest} are needed."
        )
    for part, (_, _, its_notes) in zip(parts, read):
        notes += [f"Series {part.label!r}: {n}" if part.label else n for n in its_notes]
    names = time_name, _value_name(sheet, choice.values, values[0])
    labels = tuple(part.label for part in parts)
    limits = tuple(limit for _, limit, _ in read)
    return Measurements(trajectories, labels, limits, names, tuple(dict.fromkeys(notes)))


# --- columns -----------------------------------------------------------------


def _read_times(
    sheet: Sheet, column: int, convention: Convention, bounds: Sequence[str | None]
) -> tuple[Numbers, str, tuple[float, float]]:
    """The times, their name with the unit, and the window."""
    name = sheet.names[column] or "t"
    numbers = [np.nan if bound is None else _as_number(bound) for bound in bounds]
    places: list[float] = []
    if sheet.kind(column) != "number" or are_dates(sheet, column):
        moments = [bound if number is None else None for bound, number in zip(bounds, numbers)]
        readings = [read_times(sheet, column, moment) for moment in moments]
        known, unit, _ = readings[0]
        for number, (_, _, place) in zip(numbers, readings):
            places.append(place if number is None else number)
        name = f"{name} [{unit}]"
    else:
        known = read_numbers(sheet, column, convention)
        for bound, number in zip(bounds, numbers):
            if number is None:
                raise TrajectoryError(
                    f"{bound!r} is no end of a window (--from, --to): the times in column "
                    f"{sheet.label(column)} are numbers; give a number."
                )
            places.append(number)
        name = f"{name} [{known.unit}]" if known.unit else name
    low = -np.inf if np.isnan(places[0]) else places[0]
    high = np.inf if np.isnan(places[1]) else places[1]
    return known, name, (low, high)


def _as_number(bound: str) -> float | None:
    try:
        return float(bound)
    except ValueError:
        return None


def _value_name(sheet: Sheet, columns: Sequence[int], values: Numbers) -> str:
    names = [sheet.names[column] for column in columns]
    name = os.path.commonprefix(names).rstrip(" _-.(") if len(names) > 1 else names[0]
    unit = values.unit if values.unit not in ("", *name.replace("[", " ").split()) else ""
    return f"{name} [{unit}]" if name and unit else name or "y"


def _require_one(sheet: Sheet, time: int, value: int, t: Numbers, y: Numbers, free: bool) -> None:
    usable = np.isfinite(t.values) & (np.isfinite(y.values) | y.below | y.above)
    if usable.any():
        require_one_series(sheet, time, value, t.values, usable)
        if free:
            require_no_long_table(sheet, time, value)


def _look_swapped(t: Numbers, y: Numbers) -> bool:
    """Whether the values would do as times and the times would not."""
    usable = np.isfinite(t.values) & np.isfinite(y.values)
    steps, rises = np.diff(t.values[usable]), np.diff(y.values[usable])
    one_way = (rises > 0).all() or (rises < 0).all()
    return bool(one_way and (steps < 0).any() and (steps > 0).any())


def _rows_of_series(
    sheet: Sheet, series: int | None, restart: bool, t: Numbers
) -> dict[str, np.ndarray]:
    """The rows of each series, by its label."""
    if restart:
        number = runs(t.values)
        return {str(n + 1): number == n for n in range(number[-1] + 1)}
    if series is None:
        return {"": np.ones(len(sheet.frame), bool)}
    cells = sheet.text(series)
    labels = cells.fillna("nan").str.rstrip(":").to_numpy(object)
    return {label: labels == label for label in dict.fromkeys(labels)}


# --- one series --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """Where a series is: its column of values and its rows."""

    label: str
    column: int
    values: Numbers
    rows: Bool[np.ndarray, " row"]
    errors: Errors | None

    def named(self, name: str) -> _Part:
        label = f"{self.label}, {name}" if self.label else name
        return replace(self, label=label)


def _read_part(
    sheet: Sheet,
    time: int,
    t: Numbers,
    part: _Part,
    window: tuple[float, float],
    fewest: int,
) -> tuple[Trajectory, Limits, list[str]]:
    """The trajectory, its limits, and notes."""
    y, notes = part.values, []
    inside = part.rows & ~((t.values < window[0]) | (t.values > window[1]))
    if outside := int(part.rows.sum() - inside.sum()):
        notes.append(f"{count(outside, 'row')} outside the chosen window left out.")
    try:
        inside &= ~_text_rows(t, y)
        notes += _on_text(sheet, part.column, part.rows & _text_rows(t, y))
        notes += _require_readable(sheet, time, t.unreadable | t.below | t.above, inside, "time")
        notes += _require_readable(sheet, part.column, y.unreadable, inside, "number")
        errors = part.errors
        if errors is not None and errors.column is not None and errors.cells is not None:
            bad, measured = errors.cells.unreadable, inside & np.isfinite(y.values)
            notes += _require_readable(sheet, errors.column, bad, measured, "number")
        limited = inside & (y.below | y.above) & np.isfinite(t.values)
        if limited.any():
            notes.append(_on_limits(sheet, part.column, t, limited))
        usable = inside & ~limited
        trajectory, cleaning = clean(
            t.values[usable],
            y.values[usable],
            fewest,
            None if errors is None else errors.values[usable],
        )
    except TrajectoryError as error:
        start = f"Series {part.label!r}: " if part.label else ""
        raise TrajectoryError(" ".join([f"{start}{error}", *_reasons(notes)])) from None
    limits = Limits(t.values[limited], y.limits[limited], y.below[limited])
    return trajectory, limits, [*notes, *cleaning]


def _reasons(notes: Sequence[str]) -> list[str]:
    """What may explain that too little is left."""
    words = ("counted as missing", "left out", "only limits")
    return [note for note in notes if any(word in note for word in words)]


def _text_rows(t: Numbers, y: Numbers) -> Bool[np.ndarray, " row"]:
    """Rows that hold neither a time nor a value but some text: a line below the table."""
    nothing = np.isnan(t.values) & np.isnan(y.values) & ~(y.below | y.above)
    return nothing & (t.unreadable | y.unreadable)


def _on_text(sheet: Sheet, column: int, rows: np.ndarray) -> list[str]:
    """Notes on lines of text among the data, and on another name of the column there."""
    found = np.flatnonzero(rows)
    if not found.size:
        return []
    notes = [f"{count(found.size, 'row')} of text among the data skipped."]
    titles = [int(row) for row in found if sheet.frame.loc[sheet.frame.index[row]].notna().all()]
    if titles and sheet.names[column] not in ("", name := sheet.cell(titles[-1], column)):
        notes.append(
            f"Below {sheet.place(titles[-1])} the column {sheet.label(column)} is named {name!r}."
        )
    return notes


def _require_readable(
    sheet: Sheet, column: int, bad: np.ndarray, inside: np.ndarray, what: str
) -> list[str]:
    """A note on the few cells that are not what the column holds.

    Raises:
      TrajectoryError: if they are many, or stand where the series begins or ends: a series
        without its end is another series.
    """
    rows = np.flatnonzero(inside & sheet.cells(column).notna().to_numpy())
    wrong = rows[bad[rows]]
    if not wrong.size:
        return []
    shown = ", ".join(
        f"{sheet.cell(row, column)!r} in {sheet.place(row)}" for row in wrong[:_SHOWN]
    )
    shown += ", ..." if wrong.size > _SHOWN else ""
    cells = f"Column {sheet.label(column)} has {count(wrong.size, 'cell')} without a {what}"
    at_end = bad[rows[0]] or bad[rows[-1]]
    if at_end or wrong.size > max(1, _FEW * rows.size):
        where = "at an end of the series" if at_end else f"among {rows.size}"
        raise TrajectoryError(
            f"{cells} {where}: {shown}. Write them as the others, or NA where nothing was measured."
        )
    return [f"{cells}, counted as missing ({'first: ' if wrong.size > 1 else ''}{shown})."]


def _on_limits(sheet: Sheet, column: int, t: Numbers, limited: np.ndarray) -> str:
    rows = np.flatnonzero(limited)
    shown = ", ".join(
        f"{sheet.cell(row, column)!r} at {t.values[row]:g}" for row in rows[: 2 * _SHOWN]
    )
    shown += ", ..." if rows.size > 2 * _SHOWN else ""
    return (
        f"{count(rows.size, 'value')} in column {sheet.label(column)} are only limits ({shown}); "
        "no constant is fitted to them, but a law that contradicts them is less probable."
    )
