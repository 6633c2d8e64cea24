"""What each column of a table seems to hold, to be shown before anything is searched.

`read_measurements` refuses what could be read in two ways. Where the reading is shown and can be
changed, as on the page, the likelier one is a beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.columns import choose_columns
from nsode_jax.tables.names import ERRORS
from nsode_jax.tables.numbers import read_numbers
from nsode_jax.tables.runs import RESTART, long_table, series_within
from nsode_jax.tables.separators import Convention
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.times import are_dates, read_times

_INPUTS = re.compile(r"(inputs?|forcing|stimulus)([^a-z].*)?", re.IGNORECASE)
_REPLICATES = re.compile(r"(.*[\s_.-])?rep(l|licate)?[\s_.-]?\d+", re.IGNORECASE)
_WELLS, _FEWEST_WELLS = re.compile(r"[A-P]\d{1,2}"), 6


@dataclass(frozen=True)
class Roles:
    """Numbers of columns, from 0.

    Attributes:
      time: of the times.
      values: of the values, several if they are replicates, or wells of a plate.
      series: of the labels that tell series apart; "restart" for a clock that starts again;
        None for one series.
      errors: of the standard deviations of the values: none, or one for each.
      inputs: of measured inputs.
    """

    time: int
    values: tuple[int, ...]
    series: int | str | None
    errors: tuple[int, ...]
    inputs: tuple[int, ...]


def suggest_roles(sheet: Sheet) -> Roles:
    """The roles that names and shapes of columns suggest.

    Raises:
      TrajectoryError: if there are no two columns of numbers.
    """
    errors, inputs = _named(sheet, ERRORS), _named(sheet, _INPUTS)
    try:
        choice = choose_columns(sheet, taken=(*errors, *inputs))
    except TrajectoryError:  # What is named as something else is all there is.
        choice, inputs = choose_columns(sheet), ()
    time, value = choice.time, choice.values[0]
    long = long_table(sheet, time, value)
    series: int | str | None
    time, series = long or (time, _series(sheet, time, value))
    # The labels of series may be numbers, and stand where the value was looked for.
    taken = (*errors, *inputs, time, value)
    for other in (c for c in sheet.frame.columns if sheet.kind(c) == "number" and c not in taken):
        if (value == time or value == series) and other != series:
            value = other
        elif series == RESTART and _series(sheet, time, other) == value:
            value, series = other, value
    values, wells = (value,), _named(sheet, _WELLS)
    replicates = _named(sheet, _REPLICATES)
    if len(wells) >= _FEWEST_WELLS and time not in wells:
        values = wells
    elif len(replicates) > 1 and value in replicates and time not in replicates:
        values = replicates
    inputs = tuple(c for c in inputs if c not in (time, series, *values) and _varies(sheet, c))
    return Roles(time, values, series, () if inputs else errors_of(sheet, values), inputs)


def columns_of_values(sheet: Sheet, taken: tuple[int, ...]) -> tuple[int, ...]:
    """All columns of numbers that are not taken and that their names do not tell apart."""
    others = (*taken, *_named(sheet, ERRORS), *_named(sheet, _INPUTS))
    return tuple(c for c in sheet.frame.columns if sheet.kind(c) == "number" and c not in others)


def errors_of(sheet: Sheet, values: tuple[int, ...]) -> tuple[int, ...]:
    """The columns that by their names are standard deviations of these; none, or one for each."""
    named = [column for column in _named(sheet, ERRORS) if column not in values]
    numbers = [c for c in sheet.frame.columns if sheet.kind(c) == "number"]
    found = []
    for value in values:
        own = [column for column in named if _is_of(sheet, column, value)]
        # One that does not say of what stands behind its values.
        bare = [c for c in named if c == value + 1 and c in numbers and _of(sheet, c) == ""]
        found += (own or bare)[:1]
    ok = len(found) == len(values) and all(_are_deviations(sheet, column) for column in found)
    return tuple(found) if ok else ()


def _named(sheet: Sheet, pattern: re.Pattern[str]) -> tuple[int, ...]:
    """Columns of numbers with such names."""
    return tuple(
        column
        for column, name in enumerate(sheet.names)
        if pattern.fullmatch(name) and sheet.kind(column) == "number"
    )


def _of(sheet: Sheet, column: int) -> str:
    """Of what errors are, by the name of their column."""
    match = ERRORS.fullmatch(sheet.names[column])
    return (match[1] or "").casefold() if match else ""


def _is_of(sheet: Sheet, column: int, value: int) -> bool:
    of = _of(sheet, column)
    return of != "" and sheet.names[value].casefold().startswith(of)


def _are_deviations(sheet: Sheet, column: int) -> bool:
    """Whether the numbers can be standard deviations: positive where there is one."""
    cells = sheet.cells(column)
    return cells.dtype.kind in "iuf" and bool(cells.notna().any() and (cells.dropna() > 0).all())


def _varies(sheet: Sheet, column: int) -> bool:
    """Whether the numbers can be an input: known throughout, and not constant."""
    cells = sheet.cells(column)
    return cells.dtype.kind in "iuf" and not cells.hasnans and cells.nunique() > 1


def _series(sheet: Sheet, time: int, value: int) -> int | str | None:
    """What tells several series apart; None where the times cannot be read."""
    if (t := _times(sheet, time)) is None:
        return None
    usable = np.isfinite(t) & sheet.cells(value).notna().to_numpy()
    return series_within(sheet, time, value, t, usable) if usable.any() else None


def _times(sheet: Sheet, column: int) -> Float[np.ndarray, " row"] | None:
    """The times as numbers; None if they cannot be read."""
    try:
        if sheet.kind(column) != "number" or are_dates(sheet, column):
            return read_times(sheet, column)[0].values
        return read_numbers(sheet, column, Convention(None, None)).values
    except TrajectoryError:
        return None
