"""Errors of measurement in a table: columns of standard deviations, or a number for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.columns import find_column
from nsode_jax.tables.names import listed
from nsode_jax.tables.numbers import Numbers, read_numbers
from nsode_jax.tables.separators import Convention
from nsode_jax.tables.sheet import Sheet


@dataclass(frozen=True, eq=False)
class Errors:
    """Standard deviations of a column of values.

    Attributes:
      column: where they stand; None if one number is given for all.
      cells: what stands there; None likewise.
      values: row by row, NaN where none is given.
    """

    column: int | None
    cells: Numbers | None
    values: Float[np.ndarray, " row"]


def error_columns(sheet: Sheet, sigma: str | float | None) -> tuple[int, ...]:
    """Numbers of the columns that are named; none for a number.

    Raises:
      TrajectoryError: if there are no such columns.
    """
    if sigma is None or _number(sheet, sigma) is not None:
        return ()
    wanted = str(sigma)
    names = [wanted] if wanted in sheet.names else listed(wanted)
    return tuple(find_column(sheet, name) for name in names)


def note_on_number(sheet: Sheet, sigma: str | float | None) -> list[str]:
    """A note where the number that is given may have been meant as that of a column."""
    columns = map(str, range(1, len(sheet.names) + 1))
    if sigma is None or str(sigma) not in columns or _number(sheet, sigma) is None:
        return []
    return [
        f"The measurement error {sigma} counts for all values; a column of errors is named by "
        "its name."
    ]


def read_errors(
    sheet: Sheet,
    sigma: str | float | None,
    columns: Sequence[int],
    values: Sequence[Numbers],
    convention: Convention,
) -> list[Errors | None]:
    """The errors of each column of values.

    Args:
      sheet: the table.
      sigma: as the user gives it.
      columns: that it names; one for all values, or one for each.
      values: the columns of values.
      convention: marks in the numbers.

    Raises:
      TrajectoryError: if they do not belong to the values, or a number is not positive.
    """
    if sigma is None:
        return [None] * len(values)
    if (number := _number(sheet, sigma)) is not None:
        if not 0 < number < np.inf:
            raise TrajectoryError(
                f"The measurement error (--sigma {sigma}) must be a positive number, or the name "
                "of a column."
            )
        return [Errors(None, None, np.full(y.values.shape, number)) for y in values]
    if len(columns) not in (1, len(values)):
        raise TrajectoryError(
            f"--sigma names {len(columns)} columns of errors for {len(values)} columns of values; "
            "name one for all, or one for each."
        )
    read = [read_numbers(sheet, column, convention) for column in columns]
    if len(read) == 1:
        columns, read = list(columns) * len(values), read * len(values)
    for column, errors, y in zip(columns, read, values, strict=True):
        _require_unit(sheet, column, errors, y)
    return [Errors(*pair, pair[1].values) for pair in zip(columns, read, strict=True)]


def _number(sheet: Sheet, sigma: str | float) -> float | None:
    """The error as a number, unless a column has that name."""
    if str(sigma) in sheet.names:
        return None
    try:
        return float(sigma)
    except ValueError:
        return None


def require_deviations(
    sheet: Sheet, column: int, errors: Numbers, measured: Bool[np.ndarray, " row"]
) -> None:
    """Refuses what is no standard deviation in rows with a value.

    Args:
      sheet: the table.
      column: of the errors.
      errors: its numbers.
      measured: the rows of the series that have a value.

    Raises:
      TrajectoryError: naming the first cell.
    """
    wrong = (errors.values <= 0) | np.isinf(errors.values) | errors.below | errors.above
    rows = np.flatnonzero(wrong & measured)
    if rows.size:
        raise TrajectoryError(
            f"Errors of measurement are standard deviations, which must be positive and finite; "
            f"{sheet.place(int(rows[0]))} of column {sheet.label(column)} has "
            f"{sheet.cell(int(rows[0]), column)!r}. Leave the cell empty to leave the row out; a "
            "count of 0 has an error of about 1."
        )


def _require_unit(sheet: Sheet, column: int, errors: Numbers, y: Numbers) -> None:
    """Refuses another unit than that of the values."""
    if errors.unit and errors.unit != y.unit:
        raise TrajectoryError(
            f"The errors in column {sheet.label(column)} have the unit {errors.unit!r}; they must "
            "be standard deviations in the unit of the values."
        )
