"""Reading a series from a file with a table."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import Trajectory, TrajectoryError, clean, count, elapsed

if TYPE_CHECKING:
    # Imported where a table is at hand: it takes half a second, and a mistyped file name
    # must be answered at once.
    import pandas as pd


def read_table(
    path: str | Path, time: str | None = None, value: str | None = None
) -> tuple[Trajectory, tuple[str, ...], tuple[str, str]]:
    """Reads a series from a file with columns.

    The file is Parquet or text, which may be gzipped. In text, commas, semicolons, tabs or
    spaces separate the columns. There may be a line of names, a line of units, blank
    lines, lines of comment (`#`) and lines of text before the data. Decimal commas are
    read unless commas separate the columns.

    Args:
      path: the file.
      time: the column of times, by name or by number counted from 1; it may hold dates
        or clock times, which become numbers in a unit that suits their span. Without it:
        the column of numbers that is named as a time, a column of dates, or the first
        column of numbers.
      value: the column of values, likewise. Without it: the next column of numbers.

    Returns:
      The cleaned trajectory, a sentence for each thing that was done, and the names
      of the two columns ("t" and "y" where the file names none), the first with the
      unit if it held dates: "day [days since 2020-03-01]".

    Raises:
      TrajectoryError: if the file cannot be read, has no such columns, or holds a
        series that `clean` refuses.
    """
    columns = _read_columns(path, time, value)
    trajectory, cleaning = columns.clean(slice(None))
    return trajectory, (*columns.notes, *cleaning), columns.names


def read_series_of_table(
    path: str | Path, series: str, time: str | None = None, value: str | None = None
) -> tuple[tuple[Trajectory, ...], tuple[str, ...], tuple[str, str]]:
    """Reads several series below each other, told apart by a column of labels.

    Args:
      path: the file.
      series: the column of labels, by name or by number counted from 1.
      time, value: columns, as `read_table` takes them.

    Returns:
      The cleaned trajectories in the order of the file, notes, and the names of the
      columns of times and values, as `read_table` does.

    Raises:
      TrajectoryError: as `read_table`, naming the series that cannot be used.
    """
    columns = _read_columns(path, time, value, series)
    table = columns.table
    labels = _as_text(table.frame[_find_column(table, series)]).to_numpy()
    trajectories, notes = [], list(columns.notes)
    for label in dict.fromkeys(labels):
        try:
            trajectory, cleaning = columns.clean(labels == label)
        except TrajectoryError as error:
            raise TrajectoryError(f"Series {label!r}: {error}") from None
        trajectories.append(trajectory)
        notes += [f"Series {label!r}: {note}" for note in cleaning]
    return tuple(trajectories), tuple(notes), columns.names


@dataclass(frozen=True, eq=False)
class _Columns:
    """Times and values as numbers, row by row, missing ones NaN."""

    t: Float[np.ndarray, "row"]
    y: Float[np.ndarray, "row"]
    notes: tuple[str, ...]
    names: tuple[str, str]
    table: _Table

    def clean(self, rows: slice | np.ndarray) -> tuple[Trajectory, tuple[str, ...]]:
        """The trajectory of some rows, and what was done to it."""
        try:
            return clean(self.t[rows], self.y[rows])
        except TrajectoryError as error:
            reasons = [note for note in self.notes if "counted as missing" in note]
            raise TrajectoryError(" ".join([str(error), *reasons])) from None


def _read_columns(
    path: str | Path, time: str | None, value: str | None, series: str | None = None
) -> _Columns:
    shown = repr(str(path))
    raw = _read_bytes(Path(path), shown)
    if raw.startswith(b"PAR1") or Path(path).suffix.lower() == ".parquet":
        table, notes = _parse_parquet(raw, shown), []
    else:
        text, notes = _decode(raw, shown)
        table = _parse_text(text, shown)
    hidden = () if series is None else (_find_column(table, series),)
    time_column, value_column, choice = _choose_columns(table, time, value, hidden)
    t, time_name, time_notes = _read_times(table, time_column)
    y, value_notes = _read_numbers(table, value_column)
    notes += [*table.notes, *choice, *time_notes, *value_notes]
    if time is None and series is None and _look_swapped(t, y):
        notes.append(
            f"Column {table.label(time_column)}, taken as the time, goes up and down while "
            f"{table.label(value_column)} goes one way; if they are swapped, choose with "
            f"--time {value_column + 1} --value {time_column + 1}."
        )
    names = time_name, table.names[value_column] or "y"
    return _Columns(t, y, tuple(notes), names, table)


# --- from the file to text ---------------------------------------------------


def _read_bytes(path: Path, shown: str) -> bytes:
    try:
        raw = path.read_bytes()
        if raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
    except FileNotFoundError:
        raise TrajectoryError(f"There is no file {shown}.") from None
    except IsADirectoryError:
        raise TrajectoryError(
            f"{shown} is a folder; give a file with columns of numbers."
        ) from None
    except (OSError, ValueError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise TrajectoryError(f"{shown} cannot be read: {reason}.") from None
    if not raw.strip():
        raise TrajectoryError(f"{shown} is empty.")
    return raw


def _decode(raw: bytes, shown: str) -> tuple[str, list[str]]:
    """The file's text, and notes about its encoding."""
    notes = []
    try:
        # UTF-16 is what spreadsheets call "Unicode text".
        utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = raw.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
        notes = ["The file is not UTF-8; it was read as Latin-1."]
    if _CONTROL.search(text):
        raise TrajectoryError(
            f"{shown} is not a text file (it holds binary data); save it as CSV first."
        )
    return text, notes


_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


# --- from text to a table ----------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns of a file, and what is known about them."""

    file: str
    frame: pd.DataFrame  # Columns are numbered from 0, rows from 1.
    names: list[str]  # "" where the file gives none.
    rows_are: str = "row"  # What the frame's index counts: rows or lines of the file.
    decimal_comma: bool = False
    notes: tuple[str, ...] = ()

    def label(self, column: int) -> str:
        return repr(self.names[column][:60]) if self.names[column] else str(column + 1)

    def place(self, row: int) -> str:
        return f"{self.rows_are} {self.frame.index[row]}"

    def kind(self, column: int) -> str:
        """What the column holds, judged by rows from all over it."""
        rows = np.linspace(0, len(self.frame) - 1, min(_SAMPLE, len(self.frame))).astype(int)
        cells = self.frame[column]
        known_by_type = {"i": "number", "u": "number", "f": "number", "M": "date", "m": "clock"}
        if (kind := cells.dtype.kind) in known_by_type and cells.notna().any():
            return known_by_type[kind]
        kinds = Counter(_kind(cell, self.decimal_comma) for cell in _as_text(cells.iloc[rows]))
        return _usual_kind(kinds)


_HEAD = 500  # Lines in which the data must begin.
_SAMPLE = 200
_LONGEST = 100_000  # Characters of a line; the csv module allows a cell little more.
_MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "<na>", "-", "--", ".", "?")
)
_CLOCK = r"\d{1,4}:\d\d(:\d\d([.,]\d+)?)?"
_KINDS = {
    "number": r"[-+]?((\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?|inf(inity)?)",
    "date": (
        r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
        r"|\d{1,2}[- ][a-z]{3,9}\.?,?[- ]\d{2,4}|[a-z]{3,9}\.? (\d{1,2}, ?)?\d{4})"
        rf"([t ,]+{_CLOCK}( ?[ap]m)?)? ?(z|utc|[+-]\d\d:?(\d\d)?)?"
    ),
    "clock": _CLOCK,
}
_KINDS = {kind: re.compile(text, re.ASCII | re.IGNORECASE) for kind, text in _KINDS.items()}


def _kind(cell: str | float, decimal_comma: bool) -> str:
    """What the cell holds: number, date, clock, text, or missing."""
    cell = cell.strip() if isinstance(cell, str) else ""
    if cell.lower() in _MISSING:
        return "missing"
    if decimal_comma and "." not in cell:
        cell = cell.replace(",", ".")
    return next((kind for kind, form in _KINDS.items() if form.fullmatch(cell)), "text")


def _usual_kind(kinds: Counter) -> str:
    """The kind of a column: what at least half of its cells hold that are not missing."""
    known = kinds.total() - kinds["missing"]
    return next((kind for kind in _KINDS if known and 2 * kinds[kind] >= known), "text")


@dataclass(frozen=True, eq=False)
class _Layout:
    """How a text is split into cells."""

    delimiter: str  # " " for any white space.
    decimal_comma: bool
    before: list[list[str]]  # Rows before the data.
    start: int  # How many lines these take.
    width: int
    merit: tuple[int, float]  # Usable columns, up to two, and minus the share of text.


def _parse_text(text: str, file: str) -> _Table:
    lines, comment = text.splitlines(), ""
    if "#" in text:
        lines, comment = _without_comments(lines)
    filled = itertools.islice((i for i, line in enumerate(lines) if _is_filled(line)), _HEAD)
    if not (filled := list(filled)):
        raise TrajectoryError(f"{file} holds no data, only blank lines or comments.")
    rest = lines[filled[-1] + 1 :]
    sample = [lines[i] for i in filled] + rest[:: max(1, len(rest) // _SAMPLE)]
    sample = [line[:_LONGEST] for line in sample if _is_filled(line)]
    layout = max((_lay_out(sample, *split, file) for split in _SPLITS), key=lambda x: x.merit)

    width, names = layout.width, _find_names(layout, comment, file)
    start = filled[layout.start] if layout.start < len(filled) else len(lines)
    frame, uneven = _read_frame(lines[start:], layout, file)
    notes = []
    if skipped := len(layout.before) - (names in layout.before):
        notes.append(f"{count(skipped, 'line')} of text before the data skipped.")
    if layout.decimal_comma:
        notes.append("Decimal commas were read as decimal points.")
    if uneven:
        notes.append(
            f"{count(uneven, 'row')} had more or fewer than {width} cells; what is absent counts "
            "as missing."
        )
    if len(names) == width - 1 and frame[width - 1].notna().any():
        names = ["", *names]  # R leaves the column of row names without a name.
    names = [" ".join(name.split()) for name in names] + [""] * (width - len(names))
    # A quoted line break joins lines; then rows cannot be told by their lines.
    rows_are = "line" if len(frame) == len(lines) - start else "row"
    frame.index += start + 1 if rows_are == "line" else 1
    blank = [i for i in frame.index[frame.isna().all(axis=1)] if not _is_filled(lines[i - 1])]
    frame = frame.drop(index=blank) if rows_are == "line" else frame.dropna(how="all")
    return _Table(file, frame, names, rows_are, layout.decimal_comma, tuple(notes))


def _is_filled(line: str) -> bool:
    return bool(line.strip(" \t,;"))


def _without_comments(lines: list[str]) -> tuple[list[str], str]:
    """The lines with comments blanked, and the last comment before the others."""
    comment, rest = "", []
    for line in lines:
        if line.lstrip(" \t,;").startswith("#"):
            comment = comment if any(rest) else line.strip("# \t,;")
            rest.append("")
        else:
            rest.append(line.partition(" #")[0] if _starts_as_data(line) else line)
    return rest, comment


def _starts_as_data(line: str) -> bool:
    return line.lstrip()[:1] in tuple("0123456789+-.")


# In order of preference; a decimal comma is believed only where it makes more cells data.
_SPLITS = (("\t", False), ("\t", True), (";", False), (";", True))
_SPLITS += ((",", False), (" ", False), (" ", True))


def _lay_out(lines: list[str], delimiter: str, decimal_comma: bool, file: str) -> _Layout:
    """The layout with this delimiter, judged by some lines."""
    rows, ends = _split(lines, delimiter, file)
    kinds = [[_kind(cell, decimal_comma) for cell in row] for row in rows]
    data = [sum(kind in _KINDS for kind in row) for row in kinds]
    widths = Counter()  # Rows of text before the data, however many, do not count.
    for row, cells in zip(kinds, data):
        widths[len(row)] += cells
    width = widths.most_common(1)[0][0]
    # Data begin where two cells hold some, or one and no text; or else below a header.
    enough = min(2, width, max(data))
    begins = (
        cells >= max(1, enough) or (cells and "text" not in row and len(row) == width)
        for row, cells in zip(kinds, data)
    )
    start = next((i for i, begun in enumerate(begins) if begun), 1)

    columns = [Counter(row[c] for row in kinds[start:] if c < len(row)) for c in range(width)]
    usable = sum(_usual_kind(column) != "text" for column in columns)
    total = sum(columns, Counter())
    merit = (min(usable, 2), -total["text"] / max(1, total.total() - total["missing"]))
    lines_before = ends[start - 1] if start else 0
    return _Layout(delimiter, decimal_comma, rows[:start], lines_before, width, merit)


def _split(lines: list[str], delimiter: str, file: str) -> tuple[list[list[str]], list[int]]:
    """Rows of cells, and how many lines end with each of them."""
    if delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    # strict would refuse a stray quotation mark, as in 5" (inches).
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        rows = [(row, reader.line_num) for row in reader]
    except csv.Error as error:
        raise TrajectoryError(f"{file} cannot be read as a table: {error}.") from None
    return [row for row, _ in rows], [end for _, end in rows]


def _find_names(layout: _Layout, comment: str, file: str) -> list[str]:
    """The row with the names of the columns, from before the data or from a comment."""

    def is_header(row: list[str]) -> bool:
        kinds = [_kind(cell, layout.decimal_comma) for cell in row]
        enough = min(2, layout.width) <= len(row) <= layout.width
        return enough and "text" in kinds and "number" not in kinds

    commented = _split([comment], layout.delimiter, file)[0] if comment else []
    commented = [row for row in commented if len(row) == layout.width]
    return next(filter(is_header, [*layout.before, *commented]), [])


def _read_frame(lines: list[str], layout: _Layout, file: str) -> tuple[pd.DataFrame, int]:
    """A row per line, and how many of them had not the usual number of cells."""
    import pandas as pd

    columns = range(layout.width + 1)  # One more shows which rows are too long.
    first = layout.delimiter.join("0" for _ in columns)  # pandas insists that one row has it.
    # Older pandas drop the last digits, unless asked not to; newer ones warn if asked.
    old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
    try:
        frame = pd.read_csv(
            io.StringIO("\n".join([first, *lines])),
            sep=r"\s+" if layout.delimiter == " " else layout.delimiter,
            decimal="," if layout.decimal_comma else ".",
            header=None,
            names=columns,
            usecols=columns,  # With it, rows that are too long are cut, not refused.
            index_col=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            low_memory=False,
            **({"float_precision": "round_trip"} if old else {}),
        )
    except (ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        hint = "; a quotation mark is not closed" if "inside string" in reason else ""
        raise TrajectoryError(f"{file} cannot be read as a table: {reason}{hint}.") from None
    frame = frame.iloc[1:].reset_index(drop=True)
    uneven = int(frame.pop(layout.width).notna().sum())
    if len(frame) == len(lines):
        suspects = (lines[row] for row in frame.index[frame[layout.width - 1].isna()])
        uneven += sum(_is_short(line, layout) for line in suspects if _is_filled(line))
    return frame, uneven


def _is_short(line: str, layout: _Layout) -> bool:
    delimiters = len(line.split()) - 1 if layout.delimiter == " " else line.count(layout.delimiter)
    return delimiters < layout.width - 1


def _parse_parquet(raw: bytes, file: str) -> _Table:
    try:
        import pandas as pd

        frame = pd.read_parquet(io.BytesIO(raw))
    except ImportError:
        raise TrajectoryError(
            f"{file} is a Parquet file, which pyarrow reads; install it: pip install pyarrow."
        ) from None
    except Exception as error:  # pyarrow has many.
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise TrajectoryError(f"{file} cannot be read as Parquet: {reason}.") from None
    if frame.index.dtype.kind in "mM":
        frame = frame.reset_index()  # pandas likes to keep times as row names.
    names = [" ".join(str(name).split()) for name in frame.columns]
    frame = frame.set_axis(range(len(names)), axis=1)
    return _Table(file, frame.set_axis(range(1, len(frame) + 1), axis=0), names)


# --- choosing columns --------------------------------------------------------

_NAMED_AS_TIME = re.compile(r"(t|time|times|zeit|temps|tiempo)([^a-z].*)?", re.IGNORECASE)


def _choose_columns(
    table: _Table, time: str | None, value: str | None, hidden: Sequence[int] = ()
) -> tuple[int, int, list[str]]:
    """Indices of the time and the value column, neither hidden, and notes on the choice."""
    chosen_time = None if time is None else _find_column(table, time)
    chosen_value = None if value is None else _find_column(table, value)
    if chosen_time is not None and chosen_time == chosen_value:
        raise TrajectoryError(
            f"Time and value are the same column, {table.label(chosen_time)}; two are needed."
        )
    kinds = [table.kind(column) for column in table.frame.columns]
    if chosen_time is not None and kinds[chosen_time] == "text":
        raise TrajectoryError(f"Column {table.label(chosen_time)} does not hold numbers or dates.")
    if chosen_value is not None and kinds[chosen_value] != "number":
        raise TrajectoryError(f"Column {table.label(chosen_value)} does not hold numbers.")
    usable = [c for c, kind in enumerate(kinds) if kind != "text" and c not in hidden]
    free = [column for column in usable if column not in (chosen_time, chosen_value)]
    numbers = [column for column in free if kinds[column] == "number"]
    if len(usable) < 2 or (chosen_value is None and not numbers):
        raise _no_two_columns(table, usable)
    if chosen_time is not None and chosen_value is not None:
        return chosen_time, chosen_value, []

    notes = []
    spare = len(usable) > 2 and any(table.names) and (chosen_value is not None or len(numbers) > 1)
    if spare and _is_row_number(table, free[0]):
        notes.append("The first column, which has no name, counts the rows and was left out.")
        free, numbers = free[1:], numbers[1:]
    if chosen_time is None:
        chosen_time, reason = free[0], ""
        named = [column for column in numbers if _NAMED_AS_TIME.fullmatch(table.names[column])]
        dated = sorted((c for c in free if c not in numbers), key=lambda c: kinds[c] != "date")
        if len(named) == 1 and (chosen_value is not None or len(numbers) > 1):
            chosen_time, reason = named[0], "by its name"
        elif dated:
            chosen_time, reason = dated[0], "as it holds dates or clock times"
        if chosen_time != free[0]:
            notes.append(f"Column {table.label(chosen_time)} was taken as the time, {reason}.")
    if chosen_value is None:
        others = [column for column in numbers if column != chosen_time]
        after = [column for column in others if time is None and column > chosen_time]
        chosen_value = (after or others)[0]
        if len(usable) > 2 or sum(map(bool, table.names)) > 2:
            notes.append(
                f"The file has more than two columns; {table.label(chosen_time)} was taken as the "
                f"time and {table.label(chosen_value)} as the value."
            )
    return chosen_time, chosen_value, notes


def _no_two_columns(table: _Table, usable: list[int]) -> TrajectoryError:
    found = f", only one column ({table.label(usable[0])})" if len(usable) == 1 else ""
    names = [name[:60] for name in table.names if name][:20]
    found += f" (columns: {', '.join(map(repr, names))})" if names and not found else ""
    return TrajectoryError(
        f"{table.file} has no two columns of numbers{found}; two are needed, one for time (or "
        "dates) and one for the value."
    )


def _is_row_number(table: _Table, column: int) -> bool:
    """Whether this is the unnamed column of row numbers that pandas and R write."""
    if column != 0 or table.names[0] not in ("", "Unnamed: 0") or table.kind(0) != "number":
        return False
    numbers, _ = _read_numbers(table, 0)
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
    numbers = [str(i + 1) for i in range(len(table.names))]
    if wanted in numbers:
        return numbers.index(wanted)
    known = ", ".join(
        f"{i + 1} {name[:60]!r}" if name else str(i + 1) for i, name in enumerate(table.names[:20])
    )
    raise TrajectoryError(f"{table.file} has no column {wanted[:60]!r}; its columns are {known}.")


def _look_swapped(t: Float[np.ndarray, "row"], y: Float[np.ndarray, "row"]) -> bool:
    """Whether the values would do as times and the times would not."""
    usable = np.isfinite(t) & np.isfinite(y)
    steps, rises = np.diff(t[usable]), np.diff(y[usable])
    one_way = (rises > 0).all() or (rises < 0).all()
    return bool(one_way and (steps < 0).any() and (steps > 0).any())


# --- from cells to numbers ---------------------------------------------------


def _as_text(cells: pd.Series) -> pd.Series:
    """The cells as text, NaN where there is nothing or a mark of a missing value."""
    text = cells.astype("str").str.strip()
    return text.mask(text.str.lower().isin(_MISSING))


def _unreadable(table: _Table, column: int, bad: np.ndarray, what: str) -> list[str]:
    """A note on the cells that are not what the column holds."""
    if not bad.any():
        return []
    row = int(np.argmax(bad))
    cell = str(table.frame[column].iloc[row]).strip()[:20]
    return [
        f"Column {table.label(column)} has {count(int(bad.sum()), 'cell')} without a {what}, "
        f"counted as missing (first: {cell!r} in {table.place(row)})."
    ]


def _read_numbers(table: _Table, column: int) -> tuple[Float[np.ndarray, "row"], list[str]]:
    """The column's numbers, NaN where there is none, and notes."""
    import pandas as pd

    cells = table.frame[column]
    if cells.dtype.kind in "iuf":
        return cells.to_numpy(np.float64, na_value=np.nan), []
    text = _as_text(cells)
    if table.decimal_comma:
        dotted = text.str.contains(".", regex=False, na=False)
        text = text.where(dotted, text.str.replace(",", ".", regex=False))
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    bad = text.notna().to_numpy() & np.isnan(numbers)
    return numbers, _unreadable(table, column, bad, "number")


def _read_times(table: _Table, column: int) -> tuple[Float[np.ndarray, "row"], str, list[str]]:
    """The column's numbers, or numbers for its dates; its name with their unit; and notes."""
    kind, cells, name = table.kind(column), table.frame[column], table.names[column] or "t"
    if kind == "number":
        numbers, notes = _read_numbers(table, column)
        return numbers, name, notes
    notes = []
    if cells.dtype.kind in "mM":
        times = _without_zone(cells)
    else:
        text = _as_text(cells)
        if kind == "date" and _followed_by_clock(table, column):
            notes.append(f"The clock times in column {table.label(column + 1)} were added.")
            text += " " + _as_text(table.frame[column + 1])
        times, remarks = _to_dates(text) if kind == "date" else _to_durations(text)
        bad = text.notna().to_numpy() & np.isnat(times)
        notes += _unreadable(table, column, bad, "date" if kind == "date" else "clock time")
        notes += remarks
    numbers, unit = elapsed(times)
    what = "dates" if kind == "date" else "durations" if cells.dtype.kind == "m" else "clock times"
    notes.append(f"Column {table.label(column)} holds {what}; they were converted to {unit}.")
    return numbers, f"{name} [{unit}]", notes


def _followed_by_clock(table: _Table, column: int) -> bool:
    """Whether the dates have their time of the day in the next column."""
    if column + 1 == len(table.names) or table.kind(column + 1) != "clock":
        return False
    return not table.frame[column].astype("str").str.contains(":", regex=False).any()


def _without_zone(dates: pd.Series) -> np.ndarray:
    """Dates of any zone as datetime64 in UTC."""
    zoned = getattr(dates.dt, "tz", None) is not None
    return (dates.dt.tz_convert(None) if zoned else dates).to_numpy()


def _to_dates(text: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Dates as datetime64 in UTC, NaT where the text is none, and notes on how they were read."""
    import pandas as pd

    def read(cells: pd.Series, **how) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas tells that it guesses cell by cell.
            return _without_zone(pd.to_datetime(cells, errors="coerce", utc=True, **how))

    day_first = (True, False) if text.str.match(r"\d+\.").any() else (False, True)
    ways = [(0, {"format": "ISO8601"}), *((1, {"dayfirst": day}) for day in day_first)]
    if len(text) <= _FEW:
        ways += [(2, {"dayfirst": day, "format": "mixed"}) for day in day_first]
    some = text.iloc[:: max(1, len(text) // _SAMPLE)]
    merits = [(np.isnat(read(some, **how)).sum(), rank) for rank, how in ways]
    readings = [read(text, **how) for (_, how), m in zip(ways, merits) if m == min(merits)]
    best = next(filter(_in_order, readings), readings[0])
    notes = _notes_on_zones(text)
    if not all(np.array_equal(best, dates, equal_nan=True) for dates in readings):
        row = int(np.argmin(np.isnat(best)))
        notes.append(
            f"Dates such as {text.iloc[row][:20]!r} can be read in two ways and were read as "
            f"{np.datetime_as_string(best[row], unit='D')} (year-month-day); write all dates in "
            "that form if this is wrong."
        )
    return best, notes


_FEW = 100_000  # So many dates of mixed forms can be read one by one.


def _notes_on_zones(text: pd.Series) -> list[str]:
    clock, zone = r":\d\d(?:[.,]\d+)? ?", r"(?:Z|UTC|[+-]\d\d(?::?\d\d)?)$"
    if not text.str.contains(clock + zone, na=False).any():
        return []  # Asked first, as extracting takes ten times as long.
    zones = text.dropna().str.extract(f"{clock}({zone})")[0]
    shown = ", ".join(zones.dropna().unique()[:3])
    bare = int(zones.isna().sum())
    rest = f"; {count(bare, 'date')} without a zone were taken as UTC" if bare else ""
    return [f"The dates' time zones ({shown}) were converted to UTC{rest}."]


def _in_order(dates: np.ndarray) -> bool:
    known = dates[~np.isnat(dates)]
    return bool((known[1:] >= known[:-1]).all())


def _to_durations(text: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Clock times (h:mm or h:mm:ss) as timedelta64; they count on after midnight."""
    import pandas as pd

    full = text.where(text.str.count(":") != 1, text + ":00").str.replace(",", ".", regex=False)
    times = pd.to_timedelta(full, errors="coerce")
    midnights = (times.dropna().diff() < pd.Timedelta("-12h")).cumsum().reindex(times.index)
    passed = int(midnights.max()) if midnights.notna().any() else 0
    notes = [f"The clock passed midnight {count(passed, 'time')}."] if passed else []
    return (times + midnights * pd.Timedelta("24h")).to_numpy(), notes
