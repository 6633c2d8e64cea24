"""From the cells of a column to numbers, with limits, percent signs and units."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.cells import (
    LIMITS,
    NUMBER,
    clean_number,
    kind_of,
    unit_of_cell,
    usual_unit,
)
from nsode_jax.tables.separators import (
    AS_FOUND,
    Convention,
    decimal_mark,
    looks_grouped,
    to_float,
)
from nsode_jax.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_MARKS = (-99.0, -999.0, -9999.0, -99999.0, -99.9, -99.99, -999.9, -999.99, -9999.9, -9999.99)
"""What loggers write where nothing was measured."""

_FAR = 10  # Ranges of the others by which a mark is below them, where they are negative too.

_LONG = 1000  # Rows from which reading cell by cell takes time.


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
            return _without_marks(sheet, column, _plain(values))
    return _without_marks(sheet, column, _dressed(sheet, column, convention))


def _without_marks(sheet: Sheet, column: int, numbers: Numbers) -> Numbers:
    """Without -999 and the like far below all other numbers, or among such as are never negative:
    marks of missing values."""
    values = numbers.values
    marked = np.isin(np.round(values, 3), _MARKS)
    others = values[np.isfinite(values) & ~marked]
    if not marked.any() or not others.size:
        return numbers
    low = others.min()
    marked &= (low >= 0) | (values < low - _FAR * np.ptp(others))
    if not marked.any():
        return numbers
    first = int(np.argmax(marked))
    among = "never negative" if low >= 0 else f"never below {low:g}"
    note = (
        f"Column {sheet.label(column)}: {count(int(marked.sum()), 'cell')} counted as missing, as "
        f"{values[first]:g} (first in {sheet.place(first)}) among numbers that are {among} "
        "marks what was not measured."
    )
    return dataclasses.replace(
        numbers, values=np.where(marked, np.nan, values), notes=(*numbers.notes, note)
    )


def _plain(values: np.ndarray) -> Numbers:
    none = np.zeros(values.shape, bool)
    return Numbers(values, none, none, none, np.full(values.shape, np.nan))


_COMMAS = r"[-+]?[0-9]+(?:,[0-9]+)?"
_DECIMALS = r"[-+]?(?:0[0-9]*|[0-9]{4,}),[0-9]+|[-+]?[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})"
_DECIMAL_COMMAS = "Decimal commas were read as decimal points."


def _with_commas(text: pd.Series, convention: Convention) -> Numbers | None:
    """The numbers of a long column of decimal commas and nothing else, read at once."""
    known = text.dropna()
    if len(known) < _LONG or convention.mark == "." or not known.str.fullmatch(_COMMAS).all():
        return None
    certain = int(known.str.fullmatch(_DECIMALS).sum())
    if 2 * certain < int(known.str.contains(",", regex=False).sum()) or not certain:
        return None
    values = np.full(len(text), np.nan)
    values[text.notna().to_numpy()] = known.str.replace(",", ".", regex=False).astype(np.float64)
    return dataclasses.replace(_plain(values), notes=(_DECIMAL_COMMAS,))


def _dressed(sheet: Sheet, column: int, convention: Convention) -> Numbers:
    if (found := _with_commas(sheet.text(column), convention)) is not None:
        return found
    text = sheet.text(column).to_numpy(object)
    known = np.array([isinstance(cell, str) for cell in text], bool)
    matches = [NUMBER.fullmatch(cell) if isinstance(cell, str) else None for cell in text]
    unit = usual_unit(matches)
    numbers: list[str | None] = []
    below, above = np.zeros(text.shape, bool), np.zeros(text.shape, bool)
    for row, match in enumerate(matches):
        word = LIMITS.get(text[row].lower()) if known[row] else None
        mark = word or (match and match["mark"])
        if mark:
            (below if mark[0] in "<\u2264" else above)[row] = True
        numbers.append(None if match is None else clean_number(match["number"]))
        if match is not None and unit_of_cell(match) != unit and not _is_zero(numbers[row]):
            numbers[row] = None
            below[row] = above[row] = False
    decimal, remark = decimal_mark(sheet, column, numbers, convention)
    values = np.array([np.nan if n is None else to_float(n, decimal) for n in numbers])
    limited = below | above
    unreadable = known & np.isnan(values) & ~limited
    notes = [] if remark is None else [remark]
    if decimal == "," and any(n is not None and "," in n for n in numbers):
        notes.append(_DECIMAL_COMMAS)
    if unit:
        notes.append(
            f"The percent signs in column {sheet.label(column)} were left out (75% is 75)."
            if unit == "%"
            else f"The unit {unit!r} in the cells of column {sheet.label(column)} was read."
        )
    limits = np.where(limited, values, np.nan)
    values = np.where(limited, np.nan, values)
    return Numbers(values, unreadable, below, above, limits, unit, tuple(notes))


_MARKED = {"<": "<", "<=": "<", "\u2264": "<", ">": ">", ">=": ">", "\u2265": ">", "=": ""}


def with_marks_beside(sheet: Sheet, column: int, numbers: Numbers) -> Numbers:
    """The numbers, as limits where a column beside them holds the mark: <, > or =."""
    for other in (column - 1, column + 1):
        if not 0 <= other < len(sheet.names) or sheet.kind(other) != "text":
            continue
        marks = sheet.text(other)
        found = set(marks.dropna())
        if not found <= set(_MARKED) or found <= {"="}:
            continue
        signs = marks.map(_MARKED).to_numpy(object)
        known = np.isfinite(numbers.values)
        below, above = (known & (signs == sign) for sign in "<>")
        note = f"The marks in column {sheet.label(other)} were read as limits of the values."
        return dataclasses.replace(
            numbers,
            values=np.where(below | above, np.nan, numbers.values),
            limits=np.where(below | above, numbers.values, numbers.limits),
            below=below | numbers.below,
            above=above | numbers.above,
            notes=(*numbers.notes, note),
        )
    return numbers


def _is_zero(number: str | None) -> bool:
    return number is not None and not number.strip("+-0.,")


def not_numbers(sheet: Sheet, column: int, what: str = "numbers") -> TrajectoryError:
    """Why a column is none of numbers: the first cell that is not, and what would help."""
    wrong = words_in(sheet, column)
    head = f"Column {sheet.label(column)} does not hold {what}"
    if not wrong:
        return TrajectoryError(f"{head}: it is empty.")
    row, hint = wrong[0], ""
    wanted = "numbers" if what == "numbers" else "numbers, or dates such as 2020-03-01,"
    if re.search(r"\d ?(?:\u00b1|\+/?-)", sheet.cell(row, column)):
        hint = " Errors stand in a column of their own, which --sigma names."
    return TrajectoryError(
        f"{head}: {sheet.cell(row, column)!r} in {sheet.place(row)} is none "
        f"({count(len(wrong), 'such cell')}); choose another column by --time or --value, or "
        f"write these cells as {wanted} and NA where a value is missing.{hint}"
    )


def words_in(sheet: Sheet, column: int) -> list[int]:
    """The rows of a column whose cells are neither numbers nor marks of missing ones."""
    kinds = [kind_of(cell) for cell in sheet.text(column)]
    return [i for i, kind in enumerate(kinds) if kind not in ("number", "dressed", "missing")]
