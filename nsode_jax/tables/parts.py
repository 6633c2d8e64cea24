"""The series of a table: their rows, and what is said of cells that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import MIN_POINTS, Trajectory, clean
from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.columns import Choice
from nsode_jax.tables.errors import Errors, require_deviations
from nsode_jax.tables.numbers import Numbers
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.time_column import refuse_unsteady_times

_FEW = 0.05  # A share of cells that may be unreadable, if they are not at one end.
_SHOWN = 3
_SUMMARY = re.compile(
    r"(?:grand |overall )?(?:totals?|sum|means?|averages?|avg|medians?|std|stdev|sd|sem|cv|min|max"
    r"|minimum|maximum|count|n|summe|gesamt|mittel(?:wert)?|somme|moyenne)\b.*",
    re.IGNORECASE,
)
"""What stands in the place of a time where a row sums up the others."""


@dataclass(frozen=True, eq=False)
class Part:
    """Where a series is: its column of values and its rows."""

    label: str
    column: int
    values: Numbers
    rows: Bool[np.ndarray, " row"]
    errors: Errors | None

    def named(self, name: str) -> Part:
        label = f"{self.label}, {name}" if self.label else name
        return replace(self, label=label)


@dataclass(frozen=True, eq=False)
class Series:
    """What a part became.

    Attributes:
      trajectory: its values, cleaned.
      limits: of values of which only a limit is known, and what the limit is.
      on_cells: notes on its cells and on rows that are none of the series.
      on_rows: notes on rows that were dropped, sorted or averaged.
      rows: that are of the series, with a value or without.
      measured: those with a time and a value.
    """

    trajectory: Trajectory
    limits: Limits
    on_cells: tuple[str, ...]
    on_rows: tuple[str, ...]
    rows: Bool[np.ndarray, " row"]
    measured: Bool[np.ndarray, " row"]


class Refused(NamedTuple):
    """A series that cannot be used.

    Attributes:
      place: where it stands among all series of the file, from 0.
      label: what tells it apart.
      reason: why it cannot be used, in a line.
    """

    place: int
    label: str
    reason: str


def read_parts(
    sheet: Sheet,
    choice: Choice,
    t: Numbers,
    parts: Sequence[Part],
    window: tuple[float, float],
    fewest: int,
    named: bool,
    constant: bool,
    each: bool,
) -> tuple[list[tuple[str, Series]], tuple[Refused, ...]]:
    """All series with their labels; with `each` those that can be used, and the others.

    What is wrong with one may be that another column was meant.

    Raises:
      TrajectoryError: naming the series; with `each`, if none can be used, and the first.
    """
    usable: list[tuple[str, Series]] = []
    refused: list[Refused] = []
    for place, part in enumerate(parts):
        try:
            one = _read_part(sheet, choice.time, t, part, window, fewest, constant)
            refuse_unsteady_times(sheet, choice.time, t.values, [part.rows], named)
            usable.append((part.label, one))
        except TrajectoryError as error:
            refused.append(Refused(place, part.label, str(error)))
            if not each:
                break
    if refused and not (each and usable):
        label, reason = refused[0].label, refused[0].reason
        series = f"Series {label!r}: " if label else ""
        start = f"None of the {len(parts)} series can be used. " if each else ""
        taken = [note for note in choice.notes if "as the value" in note]
        raise TrajectoryError(" ".join([f"{start}{series}{reason}", *taken]))
    return usable, tuple(refused)


def _read_part(
    sheet: Sheet,
    time: int,
    t: Numbers,
    part: Part,
    window: tuple[float, float],
    fewest: int,
    constant: bool,
) -> Series:
    """The series, which may be constant if `constant` says so.

    Raises:
      TrajectoryError: saying why it cannot be used, but not which one it is.
    """
    y, notes = part.values, []
    inside = part.rows & ~((t.values < window[0]) | (t.values > window[1]))
    if outside := int(part.rows.sum() - inside.sum()):
        notes.append(f"{count(outside, 'row')} outside the chosen window left out.")
    try:
        inside &= ~_text_rows(t, y)
        notes += _on_text(sheet, part.column, part.rows & _text_rows(t, y))
        sums = inside & _sums(sheet, time, t)
        inside &= ~sums
        notes += _on_sums(sheet, time, sums)
        notes += _require_readable(sheet, time, t.unreadable | t.below | t.above, inside, "time")
        notes += _require_readable(sheet, part.column, y.unreadable, inside, "number")
        _require_times(sheet, time, t, inside & np.isfinite(y.values))
        errors = part.errors
        if errors is not None and errors.column is not None and errors.cells is not None:
            bad, measured = errors.cells.unreadable, inside & np.isfinite(y.values)
            notes += _require_readable(sheet, errors.column, bad, measured, "number")
            require_deviations(sheet, errors.column, errors.cells, measured)
        limited = inside & (y.below | y.above) & np.isfinite(t.values)
        measured = inside & np.isfinite(t.values) & np.isfinite(y.values)
        notes += _on_limits(sheet, part.column, t, y, limited, measured)
        usable = inside & ~limited
        trajectory, cleaning = clean(
            t.values[usable],
            y.values[usable],
            fewest,
            None if errors is None else errors.values[usable],
            constant,
        )
    except TrajectoryError as error:
        reasons = [*_reasons(notes), *_on_shape(sheet)]
        raise TrajectoryError(" ".join([str(error), *reasons])) from None
    told = limited & np.isfinite(y.limits)
    limits = Limits(t.values[told], y.limits[told], y.below[told])
    return Series(trajectory, limits, tuple(notes), cleaning, inside, measured)


def _reasons(notes: Sequence[str]) -> list[str]:
    """What may explain that too little is left."""
    words = ("counted as missing", "left out", "only limits", "only a limit")
    return [note for note in notes if any(word in note for word in words)]


def _on_shape(sheet: Sheet) -> list[str]:
    """What a table of few long rows lacks."""
    rows, columns = sheet.frame.shape
    if rows >= min(columns, MIN_POINTS):
        return []
    return [
        f"The table has {count(rows, 'row')} and {count(columns, 'column')}; if each row is a "
        "quantity over time, the first must hold a name and the times, the others a name and "
        "values."
    ]


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
    full = sheet.frame.notna().all(axis=1).to_numpy()
    titles = [int(row) for row in found if full[row] and not rows[row + 1 :].all()]
    if titles and sheet.names[column] not in ("", name := sheet.cell(titles[-1], column)):
        notes.append(
            f"Below {sheet.place(titles[-1])} the column {sheet.label(column)} is named {name!r}."
        )
    return notes


def _sums(sheet: Sheet, time: int, t: Numbers) -> Bool[np.ndarray, " row"]:
    """Rows that sum up others: Total, Mean, SD."""
    rows = np.flatnonzero(t.unreadable)
    named = [row for row in rows if _SUMMARY.fullmatch(sheet.cell(int(row), time))]
    return np.isin(np.arange(t.unreadable.size), named)


def _on_sums(sheet: Sheet, time: int, rows: np.ndarray) -> list[str]:
    found = [int(row) for row in np.flatnonzero(rows)]
    if not found:
        return []
    shown = ", ".join(f"{sheet.cell(row, time)!r} in {sheet.place(row)}" for row in found[:_SHOWN])
    return [f"{count(len(found), 'row')} left out that only sum up others ({shown})."]


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
            f"{cells} {where}: {shown}. Write them as the others, or NA if nothing was measured, "
            "or remove these lines."
        )
    return [f"{cells}, counted as missing ({'first: ' if wrong.size > 1 else ''}{shown})."]


def _require_times(sheet: Sheet, time: int, t: Numbers, measured: np.ndarray) -> None:
    """Refuses many values without a time, as where cells of several rows were merged."""
    lacking = np.flatnonzero(measured & np.isnan(t.values) & ~t.unreadable)
    if lacking.size > max(_SHOWN, _FEW * measured.sum()):
        raise TrajectoryError(
            f"Column {sheet.label(time)} has no time for {count(lacking.size, 'value')} of "
            f"{int(measured.sum())} (first in {sheet.place(int(lacking[0]))}); write it in every "
            "row."
        )


def _on_limits(
    sheet: Sheet,
    column: int,
    t: Numbers,
    y: Numbers,
    limited: Bool[np.ndarray, " row"],
    measured: Bool[np.ndarray, " row"],
) -> list[str]:
    """Notes on limits that count, on those before the series begins, and on words such as BLQ."""
    told = limited & np.isfinite(y.limits)
    early = told & (t.values < min(t.values[measured], default=-np.inf))
    nameless = np.flatnonzero(limited & ~told)
    example = ">2" if nameless.size and y.above[nameless[0]] else "<2"
    notes = []
    for rows, of_one, of_several in (
        (
            np.flatnonzero(told & ~early),
            "is only a limit ({}); no constant is fitted to it, but a law that contradicts it is "
            "less probable.",
            "are only limits ({}); no constant is fitted to them, but a law that contradicts them "
            "is less probable.",
        ),
        (
            np.flatnonzero(early),
            "is only a limit ({}), before the first value: it does not count.",
            "are only limits ({}), before the first value: they do not count.",
        ),
        (
            nameless,
            "is only a limit without a number ({}): this row is left out; written with the limit, "
            f"such as {example}, it counts in laws of one quantity with common constants.",
            "are only limits without a number ({}): these rows are left out; written with the "
            f"limit, such as {example}, they count in laws of one quantity with common constants.",
        ),
    ):
        if rows.size:
            are = of_one if rows.size == 1 else of_several
            cells = are.format(_cells_at(sheet, column, t, rows))
            notes.append(f"{count(rows.size, 'value')} in column {sheet.label(column)} {cells}")
    return notes


def _cells_at(sheet: Sheet, column: int, t: Numbers, rows: Int[np.ndarray, " found"]) -> str:
    shown = ", ".join(
        f"{sheet.cell(row, column)!r} at {t.values[row]:g}" for row in rows[: 2 * _SHOWN]
    )
    return shown + (", ..." if rows.size > 2 * _SHOWN else "")


def told_of_refused(refused: Sequence[Refused], number: int) -> str:
    """A note on series that are left out, with the reason of the first."""
    first = "the first, " if len(refused) > 1 else ""
    return (
        f"{len(refused)} of {number} series cannot be used; {first}{refused[0].label!r}: "
        f"{refused[0].reason}"
    )


def told_of_quantities(labels: Sequence[str], columns: Sequence[Sequence[Series]]) -> list[str]:
    """The notes on columns that were measured together: what was done to rows is told once.

    Args:
      labels: of the runs; "" for the only one.
      columns: of each run.
    """
    notes = []
    for of_run in columns:
        on_cells = dict.fromkeys(note for column in of_run for note in column.on_cells)
        notes.append([*on_cells, *_on_rows_together(of_run)])
    return told_together(labels, notes)


def _on_rows_together(columns: Sequence[Series]) -> list[str]:
    """Which rows of a run were dropped: those that hold any value count."""
    rows = np.any([column.rows for column in columns], axis=0)
    measured = np.any([column.measured for column in columns], axis=0)
    if dropped := int(rows.sum() - measured.sum()):
        of = count(int(rows.sum()), "row")
        return [f"{dropped} of {of} dropped: the time or all values are missing."]
    return []


def told_together(labels: Sequence[str], notes: Sequence[Sequence[str]]) -> list[str]:
    """The notes of all series, each once, with the series that it is of.

    Args:
      labels: of the series; "" for the only one.
      notes: of each.
    """
    of: dict[str, list[str]] = {}
    for label, its_notes in zip(labels, notes, strict=True):
        for note in its_notes:
            of.setdefault(note, []).append(label)
    told = []
    for note, its_labels in of.items():
        shown = ", ".join(map(repr, its_labels[:_SHOWN]))
        more = len(its_labels) - _SHOWN
        shown += f" and {more} more" if more > 0 else ""
        start = "All series" if len(its_labels) == len(labels) > 1 else f"Series {shown}"
        told.append(f"{start}: {note}" if its_labels != [""] else note)
    return told
