"""From a file to what is asked of it: the columns as guessed and as the visitor wants them.

What the visitor chooses becomes the options of the command, so that the page reads, refuses and
finds what the command does.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gzip
import io
import re
import shlex
import zipfile
import zlib
from pathlib import PurePath

from nsode_jax.console import scalar, system
from nsode_jax.console.arguments import parse
from nsode_jax.console.commands import command_of
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.columns import find_column
from nsode_jax.tables.files import Contents, open_table
from nsode_jax.tables.quantities import Quantities
from nsode_jax.tables.roles import columns_of_values, errors_of, suggest_roles
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.table import Measurements

LARGEST = 10 * 2**20
"""Bytes that a file may have."""

MOST_UNPACKED = 10 * LARGEST
"""Bytes that a compressed file may have without its compression."""

MOST_TEXT = 500_000
"""Characters that may be pasted."""

CONTROLS = {
    "--time": "time",
    "--value": "values",
    "--series": "series",
    "--replicates": "series of one quantity: replicates, wells",
    "--constants own": "constants of its own in each series",
    "--each": "a law of its own for each series",
    "--input": "measured inputs",
    "--sigma": "errors of measurement",
    "--from": "first time to use",
    "--to": "last time to use",
    "--decimal": "decimal mark",
    "--thousands": "mark of thousands",
    "--dates": "order of dates",
    "--explicit-time": "laws may depend on the time",
    "--order 2": "second order",
    "--robust": "outliers count less",
    "--zero-at-zero": "nothing comes from nothing",
    "--try": "a law to try",
    "--known": "known part",
    "--form": "known form",
    "--bounds": "bounds of constants",
    "--shared": "shared constants",
}
"""What the options of the command are called on the page."""

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
      own: what each of several series has of its own: nothing, its "constants", or its "law".
      inputs: keys of the columns of measured inputs.
      errors: keys of the columns of standard deviations: one for all values, or one for each.
      sigma: one standard deviation for all values, where there is no such column.
      start, end: first and last time to use.
      decimal, thousands: marks in the numbers, where they can be read in two ways.
      dates: whether the day or the month comes first in dates, where they do not tell.
      explicit_time: whether laws may depend on the time.
      second_order: whether positions are measured, whose accelerations have laws.
      robust: whether values far from the law count less.
      zero_at_zero: whether f(0) must be 0.
      tried: a law to be tried too.
      known: a part of the law, or the law with a gap.
      form: the law but for the values of its constants; nothing is searched then.
      bounds: where the constants of the form may be.
      shared: which of its constants are the same in all series that have their own.
      effort: how hard to search.

    All but `effort` that is text is as it was written; empty, it is not asked for.
    """

    time: str | None = None
    values: tuple[str, ...] = ()
    series: str | None = None
    replicates: bool = False
    own: str = ""
    inputs: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    sigma: str = ""
    start: str = ""
    end: str = ""
    decimal: str = ""
    thousands: str = ""
    dates: str = ""
    explicit_time: bool = False
    second_order: bool = False
    robust: bool = False
    zero_at_zero: bool = False
    tried: str = ""
    known: str = ""
    form: str = ""
    bounds: str = ""
    shared: str = ""
    effort: str = "default"

    @property
    def has_several_columns(self) -> bool:
        """Whether several columns are quantities or replicates."""
        return len(self.values) > 1

    @property
    def has_columns_of_series(self) -> bool:
        """Whether each of several columns is a series."""
        return self.has_several_columns and self.replicates

    @property
    def has_several_series(self) -> bool:
        """Whether there may be several series of one law."""
        return self.series is not None or self.has_columns_of_series

    @property
    def has_own_constants(self) -> bool:
        """Whether each of several series has constants of its own."""
        return self.has_several_series and self.own == "constants"

    @property
    def has_own_laws(self) -> bool:
        """Whether each of several series has a law of its own."""
        return self.has_several_series and self.own == "law"

    def options(self, file: str | Contents) -> argparse.Namespace:
        """The options of the command that asks the same of a file."""
        options = parse(["file", *self._arguments()])
        options.file = file
        return options

    def command(self, file: str) -> str:
        """The same as a line for a terminal."""
        folder = [f"--out={PurePath(file).stem}_laws"] if self.has_own_laws else []
        return shlex.join(["nsode-discover", file, *self._arguments(), *folder])

    def _arguments(self) -> list[str]:
        named = {
            "--time": self.time,
            "--value": ",".join(self.values),
            "--series": self.series,
            "--input": ",".join(self.inputs),
            "--sigma": ",".join(self.errors) or self.sigma,
            "--from": self.start,
            "--to": self.end,
            "--decimal": self.decimal,
            "--thousands": self.thousands,
            "--dates": self.dates,
            "--try": self.tried,
            "--known": self.known,
            "--form": self.form,
            "--bounds": self.bounds if self.form else "",
            "--shared": self.shared if self.has_own_constants else "",
            "--effort": "" if self.form else self.effort,
        }
        switches = {
            "--replicates": self.has_columns_of_series,
            "--constants=own": self.has_own_constants,
            "--each": self.has_own_laws,
            "--explicit-time": self.explicit_time,
            "--order=2": self.second_order,
            "--robust": self.robust,
            "--zero-at-zero": self.zero_at_zero,
        }
        given = [f"{name}={value}" for name, value in named.items() if value]
        return [*given, *(name for name, on in switches.items() if on)]


class Table:
    """A file that can be read as a table.

    Attributes:
      contents: the file.
      columns: what they are called, by the keys that `Asked` has for them.
      error_columns: those that can be named as errors; numbers are errors themselves.
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
        self.error_columns = {key: name for key, name in self.columns.items() if key in names}
        head = self._sheet.frame.head(_PREVIEW_ROWS)
        self.rows = [
            tuple(_cell(cell) for cell in row) for row in head.itertuples(index=False, name=None)
        ]

    def guess(self) -> Asked:
        """The roles that the columns suggest; none where they do not."""
        try:
            roles = suggest_roles(self._sheet)
        except TrajectoryError:
            return Asked()
        series = self._keys[roles.series] if isinstance(roles.series, int) else roles.series
        return Asked(
            self._keys[roles.time],
            self._of(roles.values),
            series,
            replicates=len(roles.values) > 1,
            inputs=self._of(roles.inputs),
            errors=self._as_errors(roles.errors),
        )

    def errors_of(self, asked: Asked) -> tuple[str, ...]:
        """The columns of errors that the values suggest, where errors count."""
        if asked.has_several_columns and not asked.has_columns_of_series:
            return ()
        values = tuple(self._keys.index(key) for key in asked.values)
        return self._as_errors(errors_of(self._sheet, values))

    def _as_errors(self, columns: tuple[int, ...]) -> tuple[str, ...]:
        keys = self._of(columns)
        return keys if all(key in self.error_columns for key in keys) else ()

    def all_values(self, asked: Asked) -> tuple[str, ...]:
        """All columns of numbers that may hold values."""
        roles = (asked.time, asked.series, *asked.inputs, *asked.errors)
        taken = tuple(self._keys.index(key) for key in roles if key in self.columns)
        return self._of(columns_of_values(self._sheet, taken))

    def _of(self, columns: tuple[int, ...]) -> tuple[str, ...]:
        keys = [self._keys[column] for column in columns]
        return tuple(key for key in keys if key is not None)

    def ends(self, asked: Asked) -> tuple[str, str]:
        """The first and the last time, as they are written; empty where none is known."""
        if asked.time not in self._keys:
            return "", ""
        cells = self._sheet.text(self._keys.index(asked.time))
        return (_cell(cells.iloc[0]), _cell(cells.iloc[-1])) if len(cells) else ("", "")

    def read(self, asked: Asked) -> Measurements | Quantities:
        """The data, as the command reads them.

        Raises:
          TrajectoryError, InputError: in a line what is wrong with them.
        """
        options = asked.options(self.contents)
        return command_of(options).read_input(options)


def what_was_read(read: Measurements | Quantities) -> str:
    """Points, names and times in a line."""
    if isinstance(read, Quantities):
        return system.what_was_read(read)
    return scalar.what_was_read(read)


def in_words_of_the_page(message: str) -> str:
    """What the command says, with the page's names for its options."""
    message = message.removeprefix("argument ").removesuffix(" (--help lists the options)")
    names = "|".join(map(re.escape, CONTROLS))
    return re.sub(rf"(?:{names})(?![\w-])", lambda match: f"“{CONTROLS[match[0]]}”", message)


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
