"""Tables with a row for each quantity and a column for each time."""

from __future__ import annotations

from nsode_jax.tables.cells import NUMBER, kind_of
from nsode_jax.tables.sheet import Sheet

_FEWEST = 5  # Times; a table of fewer columns is read as it stands.
_MOST_ROWS = 400


def is_transposed(rows: list[list[str]]) -> bool:
    """Whether each row is a quantity: a name, then numbers; the first row is the times.

    The times go one way; of rows without names there must be two.
    """
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not 2 <= len(rows) <= _MOST_ROWS:
        return False
    width = len(rows[0])
    if any(len(row) != width for row in rows) or width <= _FEWEST:
        return False
    named = all(kind_of(row[0]) in ("text", "missing", "dressed") for row in rows)
    if not named and len(rows) != 2:
        return False
    cells = [row[named:] for row in rows]
    if any(kind_of(cell) in ("text", "date", "clock") for row in cells[1:] for cell in row):
        return False
    return _goes_one_way(cells[0])


def _goes_one_way(cells: list[str]) -> bool:
    numbers = []
    for cell in cells:
        match = NUMBER.fullmatch(cell.strip())
        if match is None:
            return False
        try:
            numbers.append(float(match["number"].replace(",", ".")))
        except ValueError:
            return False
    steps = [b - a for a, b in zip(numbers, numbers[1:])]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


def transpose(rows: list[list[str]], file: str, delimiter: str) -> Sheet:
    """The table with its rows as columns."""
    import pandas as pd

    rows = [row for row in rows if any(cell.strip() for cell in row)]
    named = all(kind_of(row[0]) in ("text", "missing", "dressed") for row in rows)
    names = [" ".join(row[0].split()) if named else "" for row in rows]
    columns = {c: [cell.strip() or None for cell in row[named:]] for c, row in enumerate(rows)}
    frame = pd.DataFrame(columns, dtype=object)
    frame.index += 1 + named
    note = "The rows of the table were read as columns: each row holds one quantity over time."
    return Sheet(file, frame, names, "column", delimiter, None, (note,))
