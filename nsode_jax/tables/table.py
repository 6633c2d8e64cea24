"""Reading series from a file with a table."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import MIN_POINTS, Trajectory
from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.clocks import refuse_numbers_of_clocks
from nsode_jax.tables.columns import Choice, choose_columns, choose_together
from nsode_jax.tables.errors import error_columns, note_on_number, read_errors
from nsode_jax.tables.files import Source, open_table
from nsode_jax.tables.names import is_like_time
from nsode_jax.tables.numbers import Numbers, read_numbers, with_marks_beside
from nsode_jax.tables.parts import (
    Part,
    Refused,
    Series,
    read_parts,
    told_of_quantities,
    told_of_refused,
    told_together,
)
from nsode_jax.tables.roles import errors_of
from nsode_jax.tables.runs import (
    RESTART,
    note_on_blocks,
    require_counting_on,
    require_no_long_table,
    require_one_series,
    runs,
)
from nsode_jax.tables.separators import Convention
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.time_column import refuse_unreadable_times
from nsode_jax.tables.times import are_dates, as_number, read_times

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_FEWEST_OF_SEVERAL = 2  # Points of one series among several.


@dataclass(frozen=True, eq=False)
class Measurements:
    """The series that a table holds.

    Attributes:
      trajectories: cleaned series, in the order of the file.
      labels: what tells the series apart; ("",) if there is one.
      columns: what the columns of values are called, each by a name of its own.
      limits: for each series what is known only by limits, which is not in its trajectory;
        words without a number, such as BLQ, are in neither.
      names: of time and value ("t" and "y" where the file names none), with their unit
        where they held dates or cells with units: "day [days since 2020-03-01]".
      notes: a sentence for each thing that was done.
      together: of columns that were measured together times and values of each run, in the
        rows of the table, NaN where a cell is empty; () for other columns.
      refused: series of the file that are not among these as they cannot be used, in its
        order; () unless each is used by itself.
    """

    trajectories: tuple[Trajectory, ...]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    limits: tuple[Limits, ...]
    names: tuple[str, str]
    notes: tuple[str, ...]
    together: tuple[tuple[Float[np.ndarray, " _"], Float[np.ndarray, "_ columns"]], ...] = ()
    refused: tuple[Refused, ...] = ()

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
    value: str | Sequence[str] | None = None,
    *,
    series: str | None = None,
    replicates: bool = False,
    start: str | None = None,
    end: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    dates: str | None = None,
    sigma: str | float | None = None,
    fewest: int = MIN_POINTS,
    inputs: Sequence[str] | None = None,
    each: bool = False,
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
        `replicates`, several names, in a list or with commas between them (and quotation marks
        around a name with commas); without it: all of them.
      series: the column of labels that tell series apart which stand below each other, or
        "restart": a series ends where the clock starts again.
      replicates: whether each column of values is a series.
      start, end: first and last time to use: numbers, or dates as in the file.
      decimal, thousands: marks in the numbers, where the columns do not tell.
      dates: "day-first" or "month-first", where dates such as 01/03/2020 do not tell.
      sigma: known errors of measurement: the column of their standard deviations (with
        several columns of values one for all, or one for each with commas between them), or
        a number for all. They are in the trajectories (`Trajectory.errors`).
      fewest: points that are needed, in all.
      inputs: columns of inputs, if the values are of quantities that were measured together:
        a series of each, behind those of the quantities, which may be constant. Without `value`
        the quantity is the only column that is left.
      each: whether each of several series is used by itself: it needs `fewest` points then, and
        one that cannot be used is `refused` and leaves the others.

    Raises:
      TrajectoryError: if the file cannot be read, has no such columns, can be read in
        two ways, or holds a series that cannot be used; with `each`, if none can be.
    """
    convention = Convention(decimal, thousands, dates)
    sheet, notes = open_table(path)
    restart = series == RESTART and RESTART not in sheet.names
    taken = error_columns(sheet, sigma)
    label_column = None if restart else series
    if inputs is None:
        choice = choose_columns(sheet, time, value, label_column, replicates, taken, each)
    else:
        choice, replicates = choose_together(sheet, time, value, inputs, label_column), True
    if time is None:
        refuse_unreadable_times(sheet, choice.time, choice.series)
    t, time_name, window = _read_times(sheet, choice.time, convention, (start, end))
    values = [
        with_marks_beside(sheet, column, read_numbers(sheet, column, convention))
        for column in choice.values
    ]
    errors = read_errors(sheet, sigma, taken, values, convention)
    notes += note_on_number(sheet, sigma)
    if sigma is None and inputs is None:
        notes += _on_likely_errors(sheet, choice)
    notes += [*sheet.notes, *choice.notes, *t.notes, *(n for y in values for n in y.notes)]
    if series is None:
        _require_one(sheet, choice, t, values[0], time is None, value is None)
        notes += note_on_blocks(sheet, choice.time)
    if series is None and not replicates and time is None and _look_swapped(t, values[0]):
        column, other = choice.time, choice.values[0]
        notes.append(
            f"Column {sheet.label(column)}, taken as the time, goes up and down while "
            f"{sheet.label(other)} goes one way; if they are swapped, choose with "
            f"--time {other + 1} --value {column + 1}."
        )
    rows = _rows_of_series(sheet, choice.series, restart, t)
    parts = [
        Part(label, column, y, which, error)
        for column, y, error in zip(choice.values, values, errors, strict=True)
        for label, which in rows.items()
    ]
    if replicates:
        parts = [part.named(_own_name(sheet, part.column, choice.values)) for part in parts]
    several = len(parts) > 1
    fewest_each = _FEWEST_OF_SEVERAL if several and not each else fewest
    usable, refused = read_parts(
        sheet, choice, t, parts, window, fewest_each, time is not None, inputs is not None,
        each and several,
    )  # fmt: skip
    if refused:
        notes.append(told_of_refused(refused, len(parts)))
    labels, read = zip(*usable, strict=True)
    trajectories = tuple(one.trajectory for one in read)
    if (total := sum(map(len, trajectories))) < fewest:
        raise TrajectoryError(
            f"Only {count(total, 'usable point')} in all series; at least {fewest} are needed."
        )
    together = ()
    if inputs is None:
        notes += told_together(labels, [[*one.on_cells, *one.on_rows] for one in read])
    else:
        runs = [read[i :: len(rows)] for i in range(len(rows))]
        notes += told_of_quantities(list(rows), runs)
        together = tuple(_rows_together(t, values, run) for run in runs)
    names = time_name, _value_name(sheet, choice.values, values[0])
    limits = tuple(one.limits for one in read)
    columns = tuple(_own_name(sheet, column, choice.values) for column in choice.values)
    told = tuple(dict.fromkeys(notes))
    return Measurements(trajectories, labels, columns, limits, names, told, together, refused)


def _rows_together(
    t: Numbers, values: Sequence[Numbers], columns: Sequence[Series]
) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of a run as its rows have them, those without any value left out."""
    table = np.stack(
        [np.where(of.measured, y.values, np.nan) for y, of in zip(values, columns, strict=True)],
        axis=1,
    )
    any_measured = np.any([of.measured for of in columns], axis=0)
    return t.values[any_measured], table[any_measured]


# --- columns -----------------------------------------------------------------


def _read_times(
    sheet: Sheet, column: int, convention: Convention, bounds: Sequence[str | None]
) -> tuple[Numbers, str, tuple[float, float]]:
    """The times, their name with the unit, and the window."""
    name = sheet.names[column] or "t"
    if sheet.kind(column) != "number" or are_dates(sheet, column):
        readings = [read_times(sheet, column, bound, convention.dates) for bound in bounds]
        known, unit, _ = readings[0]
        places = [place for _, _, place in readings]
        name = f"{name} [{unit}]"
    else:
        known = read_numbers(sheet, column, convention)
        refuse_numbers_of_clocks(sheet, column, known.values)
        numbers = [None if bound is None else as_number(bound) for bound in bounds]
        for option, bound, number in zip(("--from", "--to"), bounds, numbers):
            if bound is not None and number is None:
                raise TrajectoryError(
                    f"The window ({option} {bound!r}) must be in numbers such as 8.5, as the times "
                    f"in column {sheet.label(column)} are."
                )
        places = [np.nan if number is None else number for number in numbers]
        name = f"{name} [{known.unit}]" if known.unit else name
    low = -np.inf if np.isnan(places[0]) else places[0]
    high = np.inf if np.isnan(places[1]) else places[1]
    if low > high:
        raise TrajectoryError(f"The window ends (--to {bounds[1]}) before it begins ({bounds[0]}).")
    return known, name, (low, high)


def _on_likely_errors(sheet: Sheet, choice: Choice) -> list[str]:
    """A note on columns that seem to hold errors of these values."""
    if not (known := errors_of(sheet, choice.values)):
        return []
    names, option = ", ".join(map(sheet.label, known)), sheet.option(*known)
    how = "give it a name of its own" if option.isdigit() else f"--sigma {option}"
    return [f"Column {names} seems to hold errors of measurement: {how}."]


def _own_name(sheet: Sheet, column: int, columns: Sequence[int]) -> str:
    """The name of one of these columns, with its number where others have the same."""
    name = sheet.names[column]
    if not name:
        return str(column + 1)
    return name if [sheet.names[c] for c in columns].count(name) == 1 else f"{name} ({column + 1})"


def _value_name(sheet: Sheet, columns: Sequence[int], values: Numbers) -> str:
    names = [sheet.names[column] for column in columns]
    name = os.path.commonprefix(names).rstrip(" _-.(") if len(names) > 1 else names[0]
    unit = values.unit if values.unit not in ("", *name.replace("[", " ").split()) else ""
    return f"{name} [{unit}]" if name and unit else name or "y"


def _require_one(
    sheet: Sheet, choice: Choice, t: Numbers, y: Numbers, free_time: bool, free_value: bool
) -> None:
    """Refuses several series; a column that nobody named may hold their labels."""
    usable = np.isfinite(t.values) & (np.isfinite(y.values) | y.below | y.above)
    if usable.any():
        value = choice.values[0]
        if free_time and not is_like_time(sheet.names[choice.time]):
            require_no_long_table(sheet, choice.time, value)
        require_one_series(sheet, choice.time, None if free_value else value, t.values, usable)
        require_counting_on(sheet, choice.time, np.where(usable, t.values, np.nan))


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
    labels = sheet.labels(series)
    if labels.hasnans:
        labels = _filled_down(sheet, series, t.values)
    labels = labels.str.rstrip(":").to_numpy(object)
    return {label: labels == label for label in dict.fromkeys(labels) if isinstance(label, str)}


def _filled_down(sheet: Sheet, series: int, t: np.ndarray) -> pd.Series:
    """Labels that stand only in the first row of their series, as in cells that were merged.

    Raises:
      TrajectoryError: if some are missing among others.
    """
    labels = sheet.labels(series)
    empty = (labels.isna() & np.isfinite(t)).to_numpy()
    starts = np.flatnonzero(labels.notna())
    if starts.size and not empty[: starts[0]].any() and labels.dropna().is_unique:
        return labels.ffill()
    if not empty.any():
        return labels
    raise TrajectoryError(
        f"Column {sheet.label(series)}, which tells the series apart, is empty in "
        f"{count(int(empty.sum()), 'row')} (first: {sheet.place(int(np.argmax(empty)))}); fill "
        "these cells."
    )
