"""From a file to what is asked of it: the columns as guessed and as the visitor wants them."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import zipfile
import zlib

from nsode_jax.console import scalar, system
from nsode_jax.dynamics.trajectory import TrajectoryError
from nsode_jax.tables.columns import choose_columns, find_column
from nsode_jax.tables.files import Contents, open_table
from nsode_jax.tables.quantities import Quantities, read_quantities
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.table import Measurements, read_measurements

LARGEST = 10 * 2**20
"""Bytes that a file may have."""

MOST_UNPACKED = 10 * LARGEST
"""Bytes that a compressed file may have without its compression."""

MOST_TEXT = 500_000
"""Characters that may be pasted."""

_PREVIEW_ROWS, _LONGEST_CELL = 6, 24


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is asked of a table.

    Attributes:
      time: key of the column of times; None to find it.
      values: keys of the columns of values; empty to find one.
      series: key of the column that tells series apart, "restart" for a clock that starts
        again, or None.
      replicates: whether several columns of values are series of one law, and not
        quantities with a law each.
      effort: how hard to search.
    """

    time: str | None = None
    values: tuple[str, ...] = ()
    series: str | None = None
    replicates: bool = False
    effort: str = "default"

    @property
    def is_system(self) -> bool:
        """Whether several quantities have a law each."""
        return len(self.values) > 1 and not self.replicates


class Table:
    """A file that can be read as a table.

    Attributes:
      contents: the file.
      columns: what they are called, by the keys that `Asked` has for them.
      header, rows: names of all columns, and their first cells, to be shown.
    """

    def __init__(self, contents: Contents):
        """
        Raises:
          TrajectoryError: if it cannot be read, or is too large.
        """
        for size, most in ((len(contents.raw), LARGEST), (_unpacked(contents.raw), MOST_UNPACKED)):
            if size > most:
                raise TrajectoryError(
                    f"{str(contents)!r} has more than {most // 2**20} MB; leave out what is not "
                    "needed, or use python -m nsode_jax.discover."
                )
        self.contents = contents
        self._sheet, _ = open_table(contents)
        names = self._sheet.names
        self._keys = [_key(self._sheet, column) for column in range(len(names))]
        self.header = tuple(name or str(column + 1) for column, name in enumerate(names))
        self.columns = {
            key: name for key, name in zip(self._keys, self.header, strict=True) if key is not None
        }
        head = self._sheet.frame.head(_PREVIEW_ROWS)
        self.rows = [
            tuple(_cell(cell) for cell in row) for row in head.itertuples(index=False, name=None)
        ]

    def guess(self) -> Asked:
        """The columns that the table suggests; none where it does not."""
        try:
            choice = choose_columns(self._sheet)
        except TrajectoryError:
            return Asked()
        values = [self._keys[column] for column in choice.values]
        return Asked(self._keys[choice.time], tuple(key for key in values if key is not None))

    def read(self, asked: Asked) -> Measurements | Quantities:
        """The data, as the command reads them.

        Raises:
          TrajectoryError: in a line what is wrong with them.
        """
        if asked.is_system:
            values = list(asked.values)
            return read_quantities(self.contents, values, asked.time, series=asked.series)
        return read_measurements(
            self.contents,
            asked.time,
            ",".join(asked.values) or None,
            series=asked.series,
            replicates=len(asked.values) > 1,
        )


def what_was_read(read: Measurements | Quantities) -> str:
    """Points, names and times in a line."""
    if isinstance(read, Quantities):
        return system.what_was_read(read, len(read.names))
    return scalar.what_was_read(read)


def time_and_value(read: Measurements | Quantities) -> tuple[str, str]:
    """What time and value are called; the quantities of a system have names of their own."""
    return (read.time_name, "y") if isinstance(read, Quantities) else read.names


def _unpacked(raw: bytes) -> int:
    """Bytes of a file without its compression, counted to just beyond what it may have."""
    try:
        if raw.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(raw)) as file:
                return len(file.read(MOST_UNPACKED + 1))
        if raw.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                return sum(part.file_size for part in archive.infolist())
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        pass  # Reading it will say so.
    return len(raw)


def _key(sheet: Sheet, column: int) -> str | None:
    """What finds a column, one of several too: its name, or else its number, or nothing does."""
    for key in (sheet.names[column], str(column + 1)):
        with contextlib.suppress(TrajectoryError):
            if "," not in key and find_column(sheet, key) == column:
                return key
    return None


def _cell(cell: object) -> str:
    text = "" if cell is None or cell != cell else str(cell).strip()
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
