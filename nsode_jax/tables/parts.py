"""One series of a table: its rows, and what is said of cells that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import MIN_POINTS, Trajectory, clean
from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.errors import Errors
from nsode_jax.tables.numbers import Numbers
from nsode_jax.tables.sheet import Sheet

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


def read_part(
    sheet: Sheet,
    time: int,
    t: Numbers,
    part: Part,
    window: tuple[float, float],
    fewest: int,
    constant: bool,
) -> tuple[Trajectory, Limits, list[str]]:
    """The trajectory, which may be constant if `constant` says so, its limits, and notes."""
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
        limited = inside & (y.below | y.above) & np.isfinite(t.values)
        if limited.any():
            notes.append(_on_limits(sheet, part.column, t, limited))
        usable = inside & ~limited
        trajectory, cleaning = clean(
            t.values[usable],
            y.values[usable],
            fewest,
            None if errors is None else errors.values[usable],
            constant,
        )
    except TrajectoryError as error:
        start = f"Series {part.label!r}: " if part.label else ""
        reasons = [*_reasons(notes), *_on_shape(sheet)]
        raise TrajectoryError(" ".join([f"{start}{error}", *reasons])) from None
    limits = Limits(t.values[limited], y.limits[limited], y.below[limited])
    return trajectory, limits, [*notes, *cleaning]


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


def _on_limits(sheet: Sheet, column: int, t: Numbers, limited: np.ndarray) -> str:
    rows = np.flatnonzero(limited)
    shown = ", ".join(
        f"{sheet.cell(row, column)!r} at {t.values[row]:g}" for row in rows[: 2 * _SHOWN]
    )
    shown += ", ..." if rows.size > 2 * _SHOWN else ""
    are = "is only a limit" if rows.size == 1 else "are only limits"
    return (
        f"{count(rows.size, 'value')} in column {sheet.label(column)} {are} ({shown}); "
        "no constant is fitted to them, but a law that contradicts them is less probable."
    )


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
