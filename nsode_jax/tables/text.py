"""From the text of a file to a table of cells."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsode_jax.dynamics.trajectory import TrajectoryError, count

if TYPE_CHECKING:
    # Imported where a table is at hand: it takes half a second, and a mistyped file name
    # must be answered at once.
    import pandas as pd

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
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
# In order of preference; a decimal comma is believed only where it makes more cells data.
_SPLITS = (("\t", False), ("\t", True), (";", False), (";", True))
_SPLITS += ((",", False), (" ", False), (" ", True))


def decode(raw: bytes, shown: str) -> tuple[str, list[str]]:
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


# --- a table and its cells ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
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
        kinds = Counter(_kind(cell, self.decimal_comma) for cell in as_text(cells.iloc[rows]))
        return _usual_kind(kinds)

    def unreadable(self, column: int, bad: np.ndarray, what: str) -> list[str]:
        """A note on the cells that are not what the column holds."""
        if not bad.any():
            return []
        row = int(np.argmax(bad))
        cell = str(self.frame[column].iloc[row]).strip()[:20]
        return [
            f"Column {self.label(column)} has {count(int(bad.sum()), 'cell')} without a {what}, "
            f"counted as missing (first: {cell!r} in {self.place(row)})."
        ]


def as_text(cells: pd.Series) -> pd.Series:
    """The cells as text, NaN where there is nothing or a mark of a missing value."""
    text = cells.astype("str").str.strip()
    return text.mask(text.str.lower().isin(_MISSING))


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


# --- rows and columns in a text ----------------------------------------------


@dataclass(frozen=True, eq=False)
class _Layout:
    """How a text is split into cells."""

    delimiter: str  # " " for any white space.
    decimal_comma: bool
    before: list[list[str]]  # Rows before the data.
    start: int  # How many lines these take.
    width: int
    merit: tuple[int, float]  # Usable columns, up to two, and minus the share of text.


def parse_text(text: str, file: str) -> Table:
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
    return Table(file, frame, names, rows_are, layout.decimal_comma, tuple(notes))


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
