"""The names of the columns of a text, and what it means if they are fewer than the cells."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.cells import kind_of

_UNITS = re.compile(
    r"[\[(].*[\])]|[-\u2013#1]|:?-+:?|%|a\.?u\.?|od(_?\d+)?"
    r"|(sec|min|hrs?|hours?|days?|yrs?|years?|seconds?|minutes?)"
    r"|(float|double|int|integer|numeric|real|string|text)(\d\d)?"
    r"|[kmcnp\u00b5\u03bcMGu]?(s|h|d|a|g|l|L|m|M|mol|V|A|K|Pa|J|W|Hz|Da|U|T|N|bar)"
    r"([/*^ .\u00b2\u00b3-].{0,8})?"
    r"|\u00b0[CF]|[CF]|mmHg|rpm|counts?|cells?(/.*)?|cfu(/.*)?",
)

Row = Sequence[str]


def find_names(
    before: Sequence[Row], width: int, commented: Sequence[Row]
) -> tuple[list[str], int]:
    """The names of the columns, and how many rows before the data they take.

    The names are the last row before the data that fills its columns; a row of units below
    it is not theirs.

    Args:
      before: rows before the data.
      width: columns of the data.
      commented: what stands in the comment before the data, as rows.
    """

    def is_header(row: Row) -> bool:
        kinds = [kind_of(cell) for cell in row]
        enough = min(2, width) <= len(_stripped(row)) and len(row) <= width
        return enough and "text" in kinds

    headers = [row for row in before if is_header(row)]
    numberless = [row for row in headers if "number" not in map(kind_of, row)]
    if headers and headers[-1] is before[-1] and "text" == kind_of(headers[-1][0]):
        numberless = numberless if headers[-1] in numberless else [*numberless, headers[-1]]
    if numberless:
        names, above = numberless[-1], numberless[-2:-1]
        if above and _are_units(names) and _filled(above[0]) >= _filled(names):
            names = above[0]
        if _filled(names) < min(2, width) and above:
            names = above[0]
        return list(names), 1
    if before and _filled(before[-1]) and width == 1:
        return list(before[-1]), 1
    named = [row for row in commented if len(row) == width and is_header(row)]
    return (list(named[0]) if named else []), 0


def _filled(row: Row) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _stripped(row: Row) -> Row:
    """Without the empty cells at the end that pad a row of the preamble."""
    end = max((i + 1 for i, cell in enumerate(row) if cell.strip()), default=0)
    return row[:end]


def _are_units(row: Row) -> bool:
    return all(_UNITS.fullmatch(cell.strip()) for cell in row if cell.strip())


def has_row_names(rows: Sequence[Row], names: int, delimiter: str, quoted: bool, file: str) -> bool:
    """Whether the first cell of each row, which has more cells than there are names, names it.

    One name less than columns is what R writes. It is also what becomes of decimal commas
    between commas, and of groups of thousands between spaces: 0,1,85 is then 0 and 1.85.

    Args:
      rows: of the data, as far as they were looked at.
      names: number of names.
      delimiter: between the cells.
      quoted: whether the first cell of the first row is in quotation marks, as R's row names.
      file: the file's name, for messages.

    Returns:
      False if what has no name is a remark behind the data.

    Raises:
      TrajectoryError: if the cells may be parts of broken numbers.
    """
    behind = [cell for row in rows for cell in row[names:] if cell.strip()]
    if 2 * sum(kind_of(cell) != "text" for cell in behind) < len(rows):
        return False
    first = [row[0] for row in rows if row]
    if all(len(row) > names for row in rows if row) and any(len(row) == names + 1 for row in rows):
        if quoted or all(kind_of(cell) == "text" for cell in first):
            return True
        numbers = [int(cell) for cell in first if re.fullmatch(r"\d{1,9}", cell)]
        starts = (0, 1) if delimiter == " " else (1,)  # R counts from 1, what pandas prints from 0.
        counts = len(numbers) == len(first) and numbers[0] in starts
        counts = counts and all(b - a == 1 for a, b in zip(numbers, numbers[1:]))
        if counts and not _may_be_broken(rows, delimiter):
            return True
    row = next((row for row in rows if len(row) > names), first)
    raise TrajectoryError(
        f"{file} names {count(names, 'column')} but its rows have {len(row)} cells "
        f"(first: {delimiter.join(row)[:40]!r}). If decimal commas or marks of thousands stand "
        "between the cells, save the file with semicolons or tabs between the columns, or name "
        "every column."
    )


def _may_be_broken(rows: Sequence[Row], delimiter: str) -> bool:
    """Whether neighbouring cells may be one number, whose comma or space was taken for the end
    of a cell."""
    if delimiter not in (",", " "):
        return False
    rest = r"\d+" if delimiter == "," else r"\d{3}"
    width = min(len(row) for row in rows)
    return any(
        all(
            re.fullmatch(r"[-+]?\d{1,3}", row[left]) and re.fullmatch(rest, row[left + 1])
            for row in rows
        )
        for left in range(width - 1)
    )


def refuse_broken_numbers(rows: Sequence[Row], width: int, delimiter: str, file: str) -> None:
    """Where columns have no names, 0,05,1,25 may be two numbers with decimal commas."""
    if delimiter not in (",", " "):
        return
    for left in range(width - 1):
        pairs = [(row[left], row[left + 1]) for row in rows if len(row) > left + 1]
        whole = all(re.fullmatch(r"[-+]?\d{1,3}", a) and re.fullmatch(r"\d+", b) for a, b in pairs)
        if pairs and whole and any(b[0] == "0" and len(b) > 1 for _, b in pairs):
            row = next(row for row in rows if re.fullmatch(r"0\d+", row[left + 1]))
            shown = delimiter.join(row)[:40]
            raise TrajectoryError(
                f"{file} may hold numbers that are broken in two: in {shown!r} the cell "
                f"{row[left + 1]!r} looks like the rest of {row[left]!r}. Save the file with "
                "semicolons or tabs between the columns, or give the columns names."
            )
