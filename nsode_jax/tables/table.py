"""Reading a series from a file with a table."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import Trajectory, TrajectoryError, clean
from nsode_jax.tables.text import Table, as_text, decode, parse_text
from nsode_jax.tables.times import read_times

_NAMED_AS_TIME = re.compile(r"(t|time|times|zeit|temps|tiempo)([^a-z].*)?", re.IGNORECASE)


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
    labels = as_text(table.frame[_find_column(table, series)]).to_numpy()
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

    t: Float[np.ndarray, " row"]
    y: Float[np.ndarray, " row"]
    notes: tuple[str, ...]
    names: tuple[str, str]
    table: Table

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
        text, notes = decode(raw, shown)
        table = parse_text(text, shown)
    hidden = () if series is None else (_find_column(table, series),)
    time_column, value_column, choice = _choose_columns(table, time, value, hidden)
    t, time_name, time_notes = _read_time_column(table, time_column)
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


# --- the file ----------------------------------------------------------------


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


def _parse_parquet(raw: bytes, file: str) -> Table:
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
    return Table(file, frame.set_axis(range(1, len(frame) + 1), axis=0), names)


# --- choosing columns --------------------------------------------------------


def _choose_columns(
    table: Table, time: str | None, value: str | None, hidden: Sequence[int] = ()
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


def _no_two_columns(table: Table, usable: list[int]) -> TrajectoryError:
    found = f", only one column ({table.label(usable[0])})" if len(usable) == 1 else ""
    names = [name[:60] for name in table.names if name][:20]
    found += f" (columns: {', '.join(map(repr, names))})" if names and not found else ""
    return TrajectoryError(
        f"{table.file} has no two columns of numbers{found}; two are needed, one for time (or "
        "dates) and one for the value."
    )


def _is_row_number(table: Table, column: int) -> bool:
    """Whether this is the unnamed column of row numbers that pandas and R write."""
    if column != 0 or table.names[0] not in ("", "Unnamed: 0") or table.kind(0) != "number":
        return False
    numbers, _ = _read_numbers(table, 0)
    return np.array_equal(numbers, np.arange(len(numbers)) + numbers[0])


def _find_column(table: Table, wanted: str) -> int:
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


def _look_swapped(t: Float[np.ndarray, " row"], y: Float[np.ndarray, " row"]) -> bool:
    """Whether the values would do as times and the times would not."""
    usable = np.isfinite(t) & np.isfinite(y)
    steps, rises = np.diff(t[usable]), np.diff(y[usable])
    one_way = (rises > 0).all() or (rises < 0).all()
    return bool(one_way and (steps < 0).any() and (steps > 0).any())


# --- from cells to numbers ---------------------------------------------------


def _read_numbers(table: Table, column: int) -> tuple[Float[np.ndarray, " row"], list[str]]:
    """The column's numbers, NaN where there is none, and notes."""
    import pandas as pd

    cells = table.frame[column]
    if cells.dtype.kind in "iuf":
        return cells.to_numpy(np.float64, na_value=np.nan), []
    text = as_text(cells)
    if table.decimal_comma:
        dotted = text.str.contains(".", regex=False, na=False)
        text = text.where(dotted, text.str.replace(",", ".", regex=False))
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    bad = text.notna().to_numpy() & np.isnan(numbers)
    return numbers, table.unreadable(column, bad, "number")


def _read_time_column(
    table: Table, column: int
) -> tuple[Float[np.ndarray, " row"], str, list[str]]:
    """The column's numbers, or numbers for its dates; its name with their unit; and notes."""
    if table.kind(column) != "number":
        return read_times(table, column)
    numbers, notes = _read_numbers(table, column)
    return numbers, table.names[column] or "t", notes
