"""Columns of cells, as a file gives them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from nsode_jax.tables.cells import MISSING, kind_of, usual_kind

if TYPE_CHECKING:
    # Imported where a table is at hand: it takes half a second, and a mistyped file name
    # must be answered at once.
    import pandas as pd

_SAMPLE = 200


@dataclass(frozen=True, eq=False)
class Sheet:
    """Columns of a file, and what is known about them.

    Attributes:
      file: the file's name, as shown in messages.
      frame: the cells; columns are numbered from 0, rows from 1.
      names: of the columns, "" where the file gives none.
      rows_are: what the frame's index counts: rows, lines or columns of the file.
      delimiter: what separates the cells of a text (" " for any white space); None if the
        file is no text.
      reread: gives the cells of a column as the text they were; None if they are kept so.
      notes: what was done so far.
    """

    file: str
    frame: pd.DataFrame
    names: list[str]
    rows_are: str = "row"
    delimiter: str | None = None
    reread: Callable[[int], pd.Series] | None = None
    notes: tuple[str, ...] = ()

    def label(self, column: int) -> str:
        return repr(self.names[column][:60]) if self.names[column] else str(column + 1)

    def option(self, *columns: int) -> str:
        """The columns as an argument on the command line; those without a name of their own,
        or with commas in it, by their numbers."""
        names = [self.names[column] for column in columns]
        own = [self.names.count(name) == 1 and "," not in name and bool(name) for name in names]
        parts = [n if told else str(c + 1) for c, n, told in zip(columns, names, own, strict=True)]
        return shlex.quote(",".join(parts))

    def place(self, row: int) -> str:
        return f"{self.rows_are} {self.frame.index[row]}"

    def cells(self, column: int) -> pd.Series:
        """A column as pandas read it."""
        return cast("pd.Series", self.frame[column])  # pandas does not say what it gives.

    def cell(self, row: int, column: int) -> str:
        """A cell as shown in messages."""
        return str(self.cells(column).iloc[row]).strip()[:20]

    def kind(self, column: int) -> str:
        """What the column holds, judged by rows from all over it."""
        cells = self.cells(column)
        known_by_type = {"i": "number", "u": "number", "f": "number", "M": "date", "m": "clock"}
        if (kind := cells.dtype.kind) in known_by_type and cells.count():
            return known_by_type[kind]
        rows = np.linspace(0, len(self.frame) - 1, min(_SAMPLE, len(self.frame))).astype(int)
        return usual_kind(Counter(kind_of(cell) for cell in as_text(cells.iloc[rows])))

    def has(self, column: int, number: float) -> bool:
        """Whether one of the column's cells is that number."""
        cells = self.cells(column)
        return cells.dtype.kind in "iuf" and bool((cells == number).any())

    def text(self, column: int) -> pd.Series:
        """The column's cells as they stand in the file, NaN where there is nothing."""
        cells = self.cells(column)
        if cells.dtype.kind in "iuf" and self.reread is not None:
            return as_text(self.reread(column))
        return as_text(cells)

    def labels(self, column: int) -> pd.Series:
        """The column's cells as labels, NaN only where there is nothing: "none" and "-" are
        treatments too."""
        cells = self.cells(column) if self.reread is None else self.reread(column)
        text = cells.astype("str").str.strip()
        return text.mask(cells.isna() | (text == ""))


def as_text(cells: pd.Series) -> pd.Series:
    """The cells as text, NaN where there is nothing or a mark of a missing value."""
    text = cells.astype("str").str.strip()
    return text.mask(text.str.lower().isin(MISSING))
