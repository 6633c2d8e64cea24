"""Where the rows, the columns and their names are in a text."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.system.files import one_line
from nsode_jax.tables.cells import DATA, kind_of, usual_kind
from nsode_jax.tables.header import find_names, has_row_names, refuse_broken_numbers
from nsode_jax.tables.names import is_like_time, numbers_rows
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.transposed import find_rows, transpose

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_HEAD = 500  # Lines in which the data must begin.
_SAMPLE = 200
_NEARLY_ALL = 0.9
_LONGEST = 100_000  # Characters of a line; the csv module allows a cell little more.
_DELIMITERS = ("\t", ";", ",", "|", " ")  # In order of preference.
_LINE_END = re.compile(r"\r\n|[\r\n\v\f]")
_PAIRS = re.compile(r"(?=.*,)[-+]?\d+(,\d+)?( [-+]?\d+(,\d+)?)+")


@dataclass(frozen=True, eq=False)
class _Layout:
    """How a text is split into cells."""

    delimiter: str  # " " for any white space.
    before: list[list[str]]  # Rows before the data.
    start: int  # How many lines these take.
    rows: list[list[str]]  # Some rows of the data.
    width: int
    merit: tuple[int, float, float]  # Usable columns, minus the shares of text and of dressed.


def parse_text(text: str, file: str) -> Sheet:
    """The cells of a text.

    Args:
      text: of the file.
      file: its name, for messages.

    Raises:
      TrajectoryError: if there are no data, or if rows cannot be split into columns
        without doubt, as where thousands stand unquoted between commas.
    """
    lines, comment = _LINE_END.split(text), ""
    lines = lines if lines[-1] else lines[:-1]
    lines, delimiters = _told_delimiter(lines)
    if '="' in text:  # So that spreadsheets leave the cell alone.
        lines = [re.sub(r'(^|[\t;,|])="([^"]*)"', r'\1"\2"', line) for line in lines]
    if "#" in text:
        lines, comment = _without_comments(lines)
    filled = itertools.islice((i for i, line in enumerate(lines) if _is_filled(line)), _HEAD)
    if not (filled := list(filled)):
        raise TrajectoryError(f"{file} holds no data, only blank lines or comments.")
    rest = lines[filled[-1] + 1 :]
    sample = [lines[i] for i in filled] + rest[:: max(1, len(rest) // _SAMPLE)]
    sample = [line[:_LONGEST] for line in sample if _is_filled(line)]
    layouts = [_lay_out(sample, delimiter, file) for delimiter in delimiters]
    layout = max(layouts, key=lambda x: x.merit)
    if layout.delimiter == " ":  # Beside regular tabs or semicolons, spaces are within the cells.
        regular = [x for x in layouts if x.merit[0] > 1 and _is_regular(x.delimiter, sample)]
        layout = next((x for x in regular if x.delimiter in "\t;"), layout)
    _require_split(layout, sample, file)
    if (found := find_rows([*layout.before, *layout.rows])) is not None:
        return transpose(found, file, layout.delimiter)

    width, names, unnamed = layout.width, *_find_names(layout, comment, file)
    start = filled[layout.start] if layout.start < len(filled) else len(lines)
    frame, shifted, notes = _read_frame(lines[start:], layout, file, start)
    filled_columns = [bool(frame[column].notna().to_numpy().any()) for column in range(width)]
    if any(names) and any(filled_columns[len(names) :]):
        quoted = lines[start].lstrip(" ").startswith('"')
        if has_row_names(layout.rows, len(names), layout.delimiter, quoted, file):
            names = ["", *names]
    if not any(names):
        refuse_broken_numbers(layout.rows, width, layout.delimiter, file)
    if skipped := len(layout.before) - unnamed:
        notes.insert(0, f"{count(skipped, 'line')} of text before the data skipped.")
    names = [" ".join(name.split()) for name in names] + [""] * (width - len(names))
    # A quoted line break joins lines; then rows cannot be told by their lines.
    rows_are = "line" if len(frame) == len(lines) - start else "row"
    frame.index += start + 1 if rows_are == "line" else 1
    blank = [i for i in frame.index[frame.isna().all(axis=1)] if not _is_filled(lines[i - 1])]
    whole, left_out = frame.index, [*blank, *frame.index[shifted]]
    frame = frame.drop(index=left_out) if rows_are == "line" else frame.dropna(how="all")

    @functools.cache
    def reread(column: int) -> pd.Series:
        raw = {"dtype": "str", "keep_default_na": False, "na_values": [""]}
        cells = _parse(lines[start:], layout, file, usecols=[column], **raw)[column]
        return cells.set_axis(whole).loc[frame.index]

    return Sheet(file, frame, names, rows_are, layout.delimiter, reread, tuple(notes))


def _find_names(layout: _Layout, comment: str, file: str) -> tuple[list[str], int]:
    """The names of the columns, and how many rows before the data they take."""
    heads = [comment.strip("# \t,;")]
    if layout.delimiter != " " and comment.startswith(f"#{layout.delimiter}"):
        heads.append(comment)  # Then # is the name of the column that numbers the rows.
    commented = _split([head for head in heads if head], layout.delimiter, file)[0]
    return find_names(layout.before, layout.width, commented)


def _is_regular(delimiter: str, lines: list[str]) -> bool:
    """Whether nearly all lines have it equally often."""
    usual, number = Counter(line.count(delimiter) for line in lines).most_common(1)[0]
    return usual > 0 and number >= _NEARLY_ALL * len(lines)


def _is_filled(line: str) -> bool:
    return bool(line.strip(" \t,;"))


def _require_split(layout: _Layout, lines: list[str], file: str) -> None:
    """Refuses a split that hides rows, or leaves another delimiter between numbers.

    As a quotation mark does that is not closed, or commas in 0,0;0,278 and in 1,5 461,4.
    """
    ends = [0, *_split(lines, layout.delimiter, file)[1]]
    for start, end in zip(ends, ends[1:]):
        if len(lines[start]) == _LONGEST:  # It was cut, perhaps within quotation marks.
            continue
        if any(_begins_with_data(line) for line in lines[start + 1 : end]):
            raise _open_quote(file, lines[start])
    if layout.delimiter not in (",", " "):
        return
    pairs = [line for line in lines if _PAIRS.fullmatch(line.strip())]
    named = any(len(row) == layout.width for row in layout.before)
    if layout.delimiter == "," and 2 * len(pairs) > len(lines) and not named:
        raise TrajectoryError(
            f"{file} can be split in two ways: {pairs[0].strip()[:40]!r} may be cells with commas "
            "between them, or with spaces between them and decimal commas; save it with semicolons "
            "or tabs between the columns."
        )
    for column in range(layout.width):
        cells = [row[column] for row in layout.rows if column < len(row)]
        whole = [cell for cell in cells if re.search(r"\d\"?[;\t]\"?[-+.\d]", cell)]
        if 2 * len(whole) > len(cells):
            raise TrajectoryError(
                f"{file} cannot be split into columns without doubt: its cells {whole[0][:20]!r} "
                "hold two numbers; look for a quotation mark that is not closed, or lines of "
                "another kind before the data."
            )


def _told_delimiter(lines: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The lines, and the delimiters that come into question: spreadsheets write `sep=;` first."""
    told = (
        re.fullmatch(r"\"?sep=(.)\"?[\s,;]*", lines[0].strip(" "), re.IGNORECASE) if lines else None
    )
    if told is None or told[1] not in _DELIMITERS:
        return lines, _DELIMITERS
    return ["", *lines[1:]], (told[1],)


def _without_comments(lines: list[str]) -> tuple[list[str], str]:
    """The lines with comments blanked, and the last comment before the others."""
    comment, rest = "", []
    for line in lines:
        if line.lstrip(" \t,;").startswith("#"):
            comment = comment if any(rest) else line.strip()
            rest.append("")
        else:
            rest.append(line.partition(" #")[0] if _starts_as_data(line) else line)
    return rest, comment


def _starts_as_data(line: str) -> bool:
    return line.lstrip()[:1] in tuple("0123456789+-.")


def _lay_out(lines: list[str], delimiter: str, file: str) -> _Layout:
    """The layout with this delimiter, judged by some lines."""
    rows, ends = _split(lines, delimiter, file)
    kinds = [[kind_of(cell) for cell in row] for row in rows]
    data = [_data_cells(row) for row in kinds]
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
    named = start and len(rows[start - 1]) == width and set(kinds[start - 1]) == {"text"}
    if _is_numbered_header(rows[start:], kinds[start:], width, bool(named)):
        start += 1
    # A full row that begins with a number is one of the data, though it may hold a word.
    while start and width > 1 and len(rows[start - 1]) == width and kinds[start - 1][0] in DATA:
        if "missing" in kinds[start - 1]:
            break
        start -= 1

    columns = [Counter(row[c] for row in kinds[start:] if c < len(row)) for c in range(width)]
    usable = sum(usual_kind(column) != "text" for column in columns)
    total = sum(columns, Counter())
    known = max(1, total.total() - total["missing"])
    merit = (min(usable, 2), -total["text"] / known, -total["dressed"] / known)
    lines_before = ends[start - 1] if start else 0
    return _Layout(delimiter, rows[:start], lines_before, rows[start:], width, merit)


def _data_cells(kinds: list[str]) -> int:
    """How many cells hold data; beside text, "5 mM" is a name."""
    dressed = 0 if "text" in kinds else kinds.count("dressed")
    return sum(kind in DATA for kind in kinds) + dressed


def _is_numbered_header(
    rows: list[list[str]], kinds: list[list[str]], width: int, named: bool
) -> bool:
    """Whether the first row names columns by numbers: `time,1,2,3`.

    Below a row that names them (`named`) it may be data before the start: `baseline,10.0,3.0`.
    """
    if len(kinds) < 4 or len(kinds[0]) != width or "text" not in kinds[0]:
        return False
    if named and not (is_like_time(rows[0][0]) or numbers_rows(rows[0][0])):
        return False
    columns = [c for c, kind in enumerate(kinds[0]) if kind == "text"]
    below = [Counter(row[c] for row in kinds[1:] if c < len(row)) for c in columns]
    return columns[0] == 0 and all(usual_kind(column) != "text" for column in below)


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


# --- cells -----------------------------------------------------------------------


def _parse(lines: list[str], layout: _Layout, file: str, **how: Any) -> pd.DataFrame:
    """The cells of the lines, with one column more for what is too long."""
    import pandas as pd

    columns = range(layout.width + 1)
    first = layout.delimiter.join("0" for _ in columns)  # pandas insists that one row has it.
    # Older pandas drop the last digits, unless asked not to; newer ones warn if asked.
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        how = {"float_precision": "round_trip", **how}
    how = {"usecols": columns, **how}  # With it, rows that are too long are cut, not refused.
    try:
        frame = pd.read_csv(
            io.StringIO("\n".join([first, *lines])),
            sep=r"\s+" if layout.delimiter == " " else layout.delimiter,
            header=None,
            names=columns,
            index_col=False,
            skipinitialspace=True,
            skip_blank_lines=False,
            low_memory=False,
            **how,
        )
    except (ValueError, OverflowError) as error:
        reason = one_line(error)
        hint = "; a quotation mark is not closed" if "inside string" in reason else ""
        raise TrajectoryError(f"{file} cannot be read as a table: {reason}{hint}.") from None
    return frame.iloc[1:].reset_index(drop=True)


def _read_frame(
    lines: list[str], layout: _Layout, file: str, start: int
) -> tuple[pd.DataFrame, list[int], list[str]]:
    """A row per line, rows that cannot be used, and notes on the number of cells."""
    frame = _parse(lines, layout, file)
    if len(frame) != len(lines):
        _require_closed_quotes(frame, file)
    extra = frame.pop(layout.width).dropna()
    full = frame[layout.width - 1].notna().to_numpy()
    long = zip(map(int, extra.index), map(str, extra))  # Rows are numbered from 0 here.
    broken = [row for row, cell in long if full[row] and kind_of(cell) != "text"]
    if broken:
        line = lines[broken[0]][:40] if len(frame) == len(lines) else str(extra[broken[0]])
        raise TrajectoryError(
            f"{file} has {count(len(broken), 'row')} with more cells than its {layout.width} "
            f"columns (first: {line!r} in line {start + broken[0] + 1}). If decimal commas or "
            "marks of thousands stand between the cells, put quotation marks around the numbers, "
            "or save the file with semicolons or tabs between the columns."
        )
    short = []
    if len(frame) == len(lines):
        suspects = [int(row) for row in np.flatnonzero(~full) if _is_filled(lines[row])]
        short = [row for row in suspects if _is_short(lines[row], layout)]
    shifted = _shifted_rows(short, lines, layout)
    notes = []
    if shifted:
        notes.append(
            f"{count(len(shifted), 'row')} left out with fewer than {layout.width} cells (first: "
            f"line {start + shifted[0] + 1}), as spaces do not tell which one is absent."
        )
    if uneven := len(extra) + len(short) - len(shifted):
        notes.append(
            f"{count(uneven, 'row')} had more or fewer than {layout.width} cells; what is absent "
            "counts as missing."
        )
    return frame, shifted, notes


def _shifted_rows(short: list[int], lines: list[str], layout: _Layout) -> list[int]:
    """Rows with too few cells whose cells may stand in other columns than theirs: of a table
    with spaces between them, unless what is absent may be a word at the end of the row."""
    if layout.delimiter != " ":
        return []
    kinds = [[kind_of(cell) for cell in row] for row in layout.rows]
    columns = [Counter(row[c] for row in kinds if c < len(row)) for c in range(layout.width)]
    enough = layout.width
    while enough and usual_kind(columns[enough - 1]) == "text":
        enough -= 1
    shifted = [row for row in short if len(lines[row].split()) < enough]
    return [row for row in shifted if _begins_with_data(lines[row])]


def _begins_with_data(line: str) -> bool:
    first = re.split(r"[\s;,\"]", line.strip(' "'))[0]
    return kind_of(first) in (*DATA, "dressed")


def _open_quote(file: str, text: str) -> TrajectoryError:
    return TrajectoryError(
        f"{file} has a quotation mark that is not closed, so that what follows {text[:30]!r} is "
        "taken for one cell with the next line; remove the mark or close it."
    )


def _require_closed_quotes(frame: pd.DataFrame, file: str) -> None:
    """Refuses a cell that goes on in the next line with data: a row that a quotation mark hides."""
    for column in frame.columns[frame.dtypes.map(lambda kind: kind.kind not in "iuf")]:
        cells = frame[column].astype("str")
        for row in np.flatnonzero(cells.str.contains("\n", regex=False, na=False)):
            first, *others = cells.iloc[row].split("\n")
            if any(map(_begins_with_data, others)):
                raise _open_quote(file, first or str(frame.iloc[row, 0]))


def _is_short(line: str, layout: _Layout) -> bool:
    delimiters = len(line.split()) - 1 if layout.delimiter == " " else line.count(layout.delimiter)
    return delimiters < layout.width - 1
