"""From the cells of a column to numbers, with limits, percent signs and units."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics.trajectory import TrajectoryError, count
from nsode_jax.tables.cells import LIMITS, NUMBER, kind_of
from nsode_jax.tables.separators import (
    AS_FOUND,
    Convention,
    clean_number,
    decimal_mark,
    looks_grouped,
    to_float,
)
from nsode_jax.tables.sheet import Sheet


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a column, row by row.

    Attributes:
      values: NaN where there is none.
      unreadable: cells that are neither numbers nor marks of a missing value.
      below, above: cells that only say that the value is below or above a limit; their
        `values` are NaN, their limits (NaN if not said) are in `limits`.
      limits: see above.
      unit: that the cells have behind their numbers, "" for none.
      notes: a sentence for each thing that was done.
    """

    values: Float[np.ndarray, " row"]
    unreadable: Bool[np.ndarray, " row"]
    below: Bool[np.ndarray, " row"]
    above: Bool[np.ndarray, " row"]
    limits: Float[np.ndarray, " row"]
    unit: str = ""
    notes: tuple[str, ...] = ()


def read_numbers(sheet: Sheet, column: int, convention: Convention = AS_FOUND) -> Numbers:
    """The numbers of a column.

    Raises:
      TrajectoryError: if the column can be read in two ways, or its limits are no numbers.
    """
    cells = sheet.cells(column)
    if cells.dtype.kind in "iuf":
        values = cells.to_numpy(np.float64, na_value=np.nan)
        asked = convention.mark == ","
        if sheet.reread is None or not (asked or looks_grouped(values)):
            return _plain(values)
    return _dressed(sheet, column, convention)


def _plain(values: np.ndarray) -> Numbers:
    none = np.zeros(values.shape, bool)
    return Numbers(values, none, none, none, np.full(values.shape, np.nan))


def _dressed(sheet: Sheet, column: int, convention: Convention) -> Numbers:
    text = sheet.text(column).to_numpy(object)
    known = np.array([isinstance(cell, str) for cell in text], bool)
    matches = [NUMBER.fullmatch(cell) if isinstance(cell, str) else None for cell in text]
    unit = _usual_unit(matches)
    numbers: list[str | None] = []
    below, above = np.zeros(text.shape, bool), np.zeros(text.shape, bool)
    for row, match in enumerate(matches):
        word = LIMITS.get(text[row].lower()) if known[row] else None
        mark = word or (match and match["mark"])
        if mark:
            (below if mark[0] in "<\u2264" else above)[row] = True
        numbers.append(None if match is None else clean_number(match["number"]))
        if match is not None and (match["unit"] or "") != unit and not _is_zero(numbers[row]):
            numbers[row] = None
            below[row] = above[row] = False
    decimal, remark = decimal_mark(sheet, column, numbers, convention)
    values = np.array([np.nan if n is None else to_float(n, decimal) for n in numbers])
    limited = below | above
    unreadable = known & np.isnan(values) & ~limited
    notes = [] if remark is None else [remark]
    if decimal == "," and any(n is not None and "," in n for n in numbers):
        notes.append("Decimal commas were read as decimal points.")
    if unit:
        notes.append(
            f"The percent signs in column {sheet.label(column)} were left out (75% is 75)."
            if unit == "%"
            else f"The unit {unit!r} in the cells of column {sheet.label(column)} was read."
        )
    limits = np.where(limited, values, np.nan)
    values = np.where(limited, np.nan, values)
    return Numbers(values, unreadable, below, above, limits, unit, tuple(notes))


def _usual_unit(matches: list) -> str:
    """The unit that at least half of the numbers have; others are not read."""
    units = Counter((match["unit"] or "") for match in matches if match is not None)
    if not units:
        return ""
    unit, times = units.most_common(1)[0]
    return unit if 2 * times >= units.total() else ""


def _is_zero(number: str | None) -> bool:
    return number is not None and not number.strip("+-0.,")


def not_numbers(sheet: Sheet, column: int, what: str = "numbers") -> TrajectoryError:
    """Why a column is none of numbers: the first cell that is not, and what would help."""
    text = sheet.text(column)
    wrong = [i for i, cell in enumerate(text) if kind_of(cell) not in ("number", "missing")]
    head = f"Column {sheet.label(column)} does not hold {what}"
    if not wrong:
        return TrajectoryError(f"{head}: it is empty.")
    row = wrong[0]
    return TrajectoryError(
        f"{head}: {sheet.cell(row, column)!r} in {sheet.place(row)} is none "
        f"({count(len(wrong), 'such cell')}); choose another column by --time or --value, or "
        "write these cells as numbers and NA where a value is missing."
    )
