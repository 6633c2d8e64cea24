"""Reading a series from a table in a text file."""

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import Trajectory, TrajectoryError, clean, count


def read_table(
    path: str | Path, time: str | None = None, value: str | None = None
) -> tuple[Trajectory, tuple[str, ...], tuple[str, str]]:
    """Reads a series from a text file with columns.

    Commas, semicolons, tabs or spaces separate the columns. There may be a line of
    names, blank lines, lines of comment (`#`) and lines of text before the data.
    Decimal commas are read where semicolons or tabs separate the columns.

    Args:
      path: the file.
      time: the column of times, by name or by number counted from 1. Without it:
        the first column of numbers, or the one that is named as a time.
      value: the column of values, likewise. Without it: the next column of numbers.

    Returns:
      The cleaned trajectory, a sentence for each thing that was done, and the names
      of the two columns ("t" and "y" where the file names none).

    Raises:
      TrajectoryError: if the file cannot be read, has no such columns, or holds a
        series that `clean` refuses.
    """
    text, notes = _read_text(Path(path))
    table = _parse_table(text, repr(str(path)))
    notes += table.notes
    time_column, value_column, choice = _choose_columns(table, time, value)
    notes += choice

    columns = []
    for column in (time_column, value_column):
        numbers, unreadable = _to_numbers(table.cells(column), table.decimal_comma)
        if unreadable:
            row = unreadable[0]
            notes.append(
                f"Column {table.label(column)} has {count(len(unreadable), 'cell')} without a "
                f"number, counted as missing (first: {table.cells(column)[row].strip()[:20]!r} in "
                f"line {table.lines[row]})."
            )
        columns.append(numbers)
    names = tuple(
        table.names[column] or default
        for column, default in ((time_column, "t"), (value_column, "y"))
    )
    trajectory, cleaning = clean(*columns)
    return trajectory, tuple(notes) + cleaning, names


def _read_text(path: Path) -> tuple[str, list[str]]:
    """The file's text, and notes about its encoding."""
    shown = repr(str(path))
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise TrajectoryError(f"There is no file {shown}.") from None
    except IsADirectoryError:
        raise TrajectoryError(
            f"{shown} is a folder; give a file with columns of numbers."
        ) from None
    except OSError as error:
        raise TrajectoryError(f"{shown} cannot be read: {error.strerror or error}.") from None
    if not raw.strip():
        raise TrajectoryError(f"{shown} is empty.")
    try:
        # UTF-16 is what spreadsheets call "Unicode text".
        utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = raw.decode("utf-16" if utf16 else "utf-8-sig")
        notes = []
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
        notes = ["The file is not UTF-8; it was read as Latin-1."]
    if _CONTROL.search(text):
        raise TrajectoryError(
            f"{shown} is not a text file (it holds binary data); save it as CSV first."
        )
    return text, notes


_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_DELIMITERS = ("\t", ";", ",", " ")
_MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", ".", "?"))
_NAMED_AS_TIME = re.compile(r"(t|time|times|zeit|temps|tiempo)([^a-z].*)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_SAMPLE = 1000


@dataclass(frozen=True, eq=False)
class _Table:
    """Cells of a table as text, and what is known about its columns."""

    file: str
    names: list[str]  # "" where the file gives none.
    rows: list[list[str]]  # All of the same width.
    lines: list[int]  # Line number in the file of each row.
    decimal_comma: bool
    notes: list[str]

    def cells(self, column: int) -> list[str]:
        return [row[column] for row in self.rows]

    def label(self, column: int) -> str:
        return repr(self.names[column]) if self.names[column] else str(column + 1)

    @property
    def numeric(self) -> list[int]:
        """Columns that hold numbers, judged by rows from all over the table."""
        chosen = np.linspace(0, len(self.rows) - 1, min(_SAMPLE, len(self.rows))).astype(int)
        rows = [self.rows[i] for i in chosen]
        return _numeric_columns(rows, len(self.names), self.decimal_comma)


def _number(cell: str, decimal_comma: bool) -> float | None:
    """The cell's number, NaN for a mark of a missing value, None for other text."""
    cell = cell.strip()
    if cell.lower() in _MISSING:
        return np.nan
    if decimal_comma and "." not in cell:
        cell = cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return None


def _is_number(cell: str, decimal_comma: bool) -> bool:
    number = _number(cell, decimal_comma)
    return number is not None and not np.isnan(number)


def _numeric_columns(rows: list[list[str]], width: int, decimal_comma: bool) -> list[int]:
    """Columns where at least half of the cells that are not missing are numbers."""
    columns = []
    for column in range(width):
        cells = [row[column] for row in rows if column < len(row)]
        numbers = sum(_is_number(cell, decimal_comma) for cell in cells)
        texts = sum(_number(cell, decimal_comma) is None for cell in cells)
        if numbers and numbers >= texts:
            columns.append(column)
    return columns


def _to_numbers(
    cells: list[str], decimal_comma: bool
) -> tuple[Float[np.ndarray, "row"], list[int]]:
    """The cells' numbers (NaN where missing) and the rows that could not be read."""
    try:
        return np.array(list(map(float, cells))), []
    except ValueError:
        numbers = [_number(cell, decimal_comma) for cell in cells]
    unreadable = [row for row, number in enumerate(numbers) if number is None]
    return np.array([np.nan if n is None else n for n in numbers], np.float64), unreadable


def _split(lines: list[str], delimiter: str, file: str) -> list[list[str]]:
    if delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    try:
        # strict would refuse a stray quotation mark, as in 5" (inches).
        return list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise TrajectoryError(f"{file} cannot be read as a table: {error}.") from None


def _first_data_row(rows: list[list[str]], width: int, decimal_comma: bool) -> int:
    """Index of the first row of numbers; len(rows) if there is none."""
    for i, row in enumerate(rows):
        numbers = sum(_is_number(cell, decimal_comma) for cell in row)
        texts = sum(_number(cell, decimal_comma) is None for cell in row)
        if numbers >= min(2, width) or (numbers and not texts and len(row) == width):
            return i
    return len(rows)


def _find_delimiter(lines: list[str], file: str) -> tuple[str, bool]:
    """The delimiter that gives two columns of numbers, and whether commas are decimal."""
    widest = " "
    for delimiter in _DELIMITERS:
        rows = _split(lines, delimiter, file)
        width = _usual_width(rows)
        if width < 2:
            continue
        for decimal_comma in (False, True) if delimiter in "\t;" else (False,):
            start = _first_data_row(rows, width, decimal_comma)
            if len(_numeric_columns(rows[start:], width, decimal_comma)) >= 2:
                return delimiter, decimal_comma
        widest = delimiter if widest == " " else widest
    return widest, False


def _usual_width(rows: list[list[str]]) -> int:
    return Counter(map(len, rows)).most_common(1)[0][0]


def _parse_table(text: str, file: str) -> _Table:
    """Splits the text into rows of equal width and finds the names of the columns."""
    lines, numbers, last_comment = [], [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.lstrip()
        if stripped.startswith("#"):
            last_comment = last_comment if lines else stripped.lstrip("# ")
        elif stripped.strip(",;"):
            lines.append(line)
            numbers.append(number)
    if not lines:
        raise TrajectoryError(f"{file} holds no data, only blank lines or comments.")
    if " #" in text:
        lines = [line.partition(" #")[0] if _starts_as_data(line) else line for line in lines]

    delimiter, decimal_comma = _find_delimiter(lines[:_SAMPLE], file)
    rows = _split(lines, delimiter, file)
    if len(rows) != len(lines):  # A quoted line break joins lines.
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        numbers = [numbers[reader.line_num - 1] for _ in reader]
    width = _usual_width(rows)
    start = _first_data_row(rows, width, decimal_comma)
    before, rows, numbers = rows[:start], rows[start:], numbers[start:]

    notes = []
    names = next((row for row in before if _is_header(row, width, decimal_comma)), None)
    skipped = len(before) - (names is not None)
    if names is None and last_comment:
        commented = _split([last_comment], delimiter, file)[0]
        if len(commented) == width and _is_header(commented, width, decimal_comma):
            names = commented
    if not rows:
        dates = any(_DATE.match(cell.strip()) for row in before[:_SAMPLE] for cell in row)
        raise TrajectoryError(
            f"{file} has no two columns of numbers"
            + (f" (columns: {', '.join(map(repr, names[:20]))})" if names else "")
            + "; one column for time and one for the value are needed"
            + ("; give dates as numbers, such as days since the start." if dates else ".")
        )
    if skipped:
        notes.append(f"{count(skipped, 'line')} of text before the data skipped.")
    if decimal_comma:
        notes.append("Decimal commas were read as decimal points.")
    uneven = len(rows) - Counter(map(len, rows))[width]
    if uneven:
        notes.append(
            f"{count(uneven, 'row')} had more or fewer than {width} cells; what is absent counts "
            "as missing."
        )
        rows = [(row + [""] * (width - len(row)))[:width] for row in rows]
    names = [" ".join(name.split()) for name in names or []]
    if len(names) == width - 1 and any(row[-1].strip() for row in rows[:_SAMPLE]):
        names = ["", *names]  # R leaves the column of row names without a name.
    names += [""] * (width - len(names))
    return _Table(file, names, rows, numbers, decimal_comma, notes)


def _starts_as_data(line: str) -> bool:
    return line.lstrip()[0] in "0123456789+-."


def _is_header(row: list[str], width: int, decimal_comma: bool) -> bool:
    """Whether the row before the data can be the names of its columns."""
    named = any(_number(cell, decimal_comma) is None for cell in row)
    no_numbers = not any(_is_number(cell, decimal_comma) for cell in row)
    return 2 <= len(row) <= width and named and no_numbers


def _choose_columns(
    table: _Table, time: str | None, value: str | None
) -> tuple[int, int, list[str]]:
    """Indices of the time and the value column, and notes on the choice."""
    chosen_time = None if time is None else _find_column(table, time)
    chosen_value = None if value is None else _find_column(table, value)
    if chosen_time is not None and chosen_time == chosen_value:
        raise TrajectoryError(
            f"Time and value are the same column, {table.label(chosen_time)}; two are needed."
        )
    numeric, notes = table.numeric, []
    for column in (chosen_time, chosen_value):
        if column is not None and column not in numeric:
            raise TrajectoryError(f"Column {table.label(column)} does not hold numbers.")
    if len(numeric) < 2:
        what = (
            f"only one column of numbers ({table.label(numeric[0])}); two are needed, one for "
            "time and one for the value"
            if numeric
            else "no two columns of numbers; one for time and one for the value are needed"
        )
        raise TrajectoryError(f"{table.file} has {what}.")
    if chosen_time is not None and chosen_value is not None:
        return chosen_time, chosen_value, notes

    free = [column for column in numeric if column not in (chosen_time, chosen_value)]
    if len(numeric) > 2 and any(table.names) and free and _is_row_number(table, free[0]):
        notes.append("The first column, which has no name, counts the rows and was left out.")
        free = free[1:]
    if chosen_time is None:
        named = [c for c in free if _NAMED_AS_TIME.fullmatch(table.names[c])]
        chosen_time = named[0] if len(named) == 1 else free[0]
        if chosen_time != free[0]:
            notes.append(f"Column {table.label(chosen_time)} was taken as the time, by its name.")
        free = [column for column in free if column != chosen_time]
    if chosen_value is None:
        chosen_value = free[0]
        if len(numeric) > 2 or sum(map(bool, table.names)) > 2:
            notes.append(
                f"The file has more than two columns; {table.label(chosen_time)} was taken as the "
                f"time and {table.label(chosen_value)} as the value."
            )
    return chosen_time, chosen_value, notes


def _is_row_number(table: _Table, column: int) -> bool:
    """Whether this is the unnamed column of row numbers that pandas and R write."""
    if column != 0 or table.names[0] not in ("", "Unnamed: 0"):
        return False
    numbers, _ = _to_numbers(table.cells(0), table.decimal_comma)
    return np.array_equal(numbers, np.arange(len(numbers)) + numbers[0])


def _find_column(table: _Table, wanted: str) -> int:
    """Index of a column given by its name or by its number from 1."""
    wanted = " ".join(str(wanted).split())
    for key in (str, str.casefold):
        found = [i for i, name in enumerate(table.names) if name and key(name) == key(wanted)]
        if len(found) > 1:
            numbers = " and ".join(str(i + 1) for i in found)
            raise TrajectoryError(
                f"Columns {numbers} are both named {wanted!r}; choose by number instead."
            )
        if found:
            return found[0]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(table.names):
        return int(wanted) - 1
    known = ", ".join(
        f"{i + 1} {name!r}" if name else str(i + 1) for i, name in enumerate(table.names[:20])
    )
    raise TrajectoryError(f"{table.file} has no column {wanted!r}; its columns are {known}.")
