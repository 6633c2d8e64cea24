"""Tables with a row for each quantity and a column for each time, as plate readers write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsode_jax.dynamics.vectors import count
from nsode_jax.tables.cells import DATA, NUMBER, kind_of
from nsode_jax.tables.sheet import Sheet

_FEWEST = 5  # Times; a table of fewer columns is read as it stands.
_MOST_ROWS = 400
_NUMBERS = ("number", "dressed", "missing")


@dataclass(frozen=True)
class Rows:
    """Rows that are quantities.

    Attributes:
      cells: of each row its data, the times first.
      names: of the rows, "" where they have none.
      labels: how many cells before the data name a row.
      before, after: rows of the file before and behind these.
    """

    cells: list[list[str]]
    names: list[str]
    labels: int
    before: int = 0
    after: int = 0


def find_rows(rows: Sequence[Sequence[str]]) -> Rows | None:
    """The rows that are quantities, each a name or more and then numbers; the first is the times.

    The times go one way, or are dates or durations. Before them there may be lines of a
    preamble, but none that names columns. Of rows without names there must be two.
    """
    filled = [[cell.strip() for cell in row] for row in rows if any(map(str.strip, row))]
    if not 2 <= len(filled) <= _MOST_ROWS:
        return None
    if (found := _without_names(filled)) is not None:
        return found
    for start, row in enumerate(filled[:-1]):
        end = max((i + 1 for i, cell in enumerate(row) if cell))
        labels = _count_of_labels(row[:end])
        if end - labels > _FEWEST and labels and _are_times(row[labels:end]):
            return _block(filled, start, labels, end)
        if sum(map(bool, row)) > _FEWEST and kind_of(row[0]) == "text":
            return None  # These are names of columns.
    return None


def _without_names(rows: list[list[str]]) -> Rows | None:
    width = len(rows[0])
    if len(rows) != 2 or len(rows[1]) != width or width <= _FEWEST:
        return None
    if any(kind_of(row[0]) in ("text", "missing", "dressed") for row in rows):
        return None
    values_are_numbers = all(kind_of(cell) in _NUMBERS for cell in rows[1])
    return Rows(rows, ["", ""], 0) if values_are_numbers and _goes_one_way(rows[0]) else None


def _count_of_labels(row: list[str]) -> int:
    """How many cells stand before those that hold data up to the end."""
    kinds = [kind_of(cell) for cell in row]
    labels = len(kinds)
    while labels and kinds[labels - 1] in (*DATA, "dressed"):
        labels -= 1
    return labels


def _are_times(cells: list[str]) -> bool:
    kinds = {kind_of(cell) for cell in cells}
    return (
        kinds == {"date"}
        or ("clock" in kinds and kinds <= {"clock", "dressed"})
        or (_goes_one_way(cells))
    )


def _goes_one_way(cells: list[str]) -> bool:
    numbers = []
    for cell in cells:
        match = NUMBER.fullmatch(cell)
        if match is None:
            return False
        try:
            numbers.append(float(match["number"].replace(",", ".")))
        except ValueError:
            return False
    steps = [b - a for a, b in zip(numbers, numbers[1:])]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


def _block(rows: list[list[str]], start: int, labels: int, width: int) -> Rows | None:
    """The rows from the times on that are like them."""
    end = start + 1
    while end < len(rows) and _is_quantity(rows[end], labels, width):
        end += 1
    chosen = [(row + [""] * width)[:width] for row in rows[start:end]]
    names = [" ".join(" ".join(row[:labels]).split()) for row in chosen]
    if len(chosen) < 2 or len(set(names)) < len(names):
        return None
    names[0] = names[0] if labels == 1 else "time"
    cells = [row[labels:] for row in chosen]
    return Rows(cells, names, labels, start, len(rows) - end)


def _is_quantity(row: list[str], labels: int, width: int) -> bool:
    if any(row[width:]) or len(row) <= labels:
        return False
    kinds = [kind_of(cell) for cell in row[labels:width]]
    numbers = len(kinds) - kinds.count("missing")
    named = any(kind_of(cell) in ("text", "dressed") for cell in row[:labels])
    empty = labels == 1 and not row[0]
    return (named or empty) and set(kinds) <= {*_NUMBERS} and 2 * numbers > width - labels


def transpose(found: Rows, file: str, delimiter: str) -> Sheet:
    """The table with its rows as columns."""
    import pandas as pd

    names = [" ".join(name.split()) for name in found.names]
    columns = {c: [cell or None for cell in row] for c, row in enumerate(found.cells)}
    frame = pd.DataFrame(columns, dtype=object)
    frame.index += 1 + found.labels
    notes = ["The rows of the table were read as columns: each row holds one quantity over time."]
    if found.before:
        notes.insert(0, f"{count(found.before, 'line')} of text before the data skipped.")
    if found.after:
        notes.append(f"{count(found.after, 'row')} behind these quantities left out.")
    return Sheet(file, frame, names, "column", delimiter, None, tuple(notes))
