"""From where a table comes: files of many kinds, standard input, the clipboard."""

from __future__ import annotations

import contextlib
import csv
import datetime
import difflib
import gzip
import importlib
import io
import os
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.system.files import one_line
from nsode_jax.tables.cells import DATA, kind_of
from nsode_jax.tables.encoding import decode
from nsode_jax.tables.hdf import read_hdf
from nsode_jax.tables.layout import parse_text
from nsode_jax.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

STANDARD_INPUT = "-"
CLIPBOARD = "clipboard"

_SHEETS = {
    ".xlsx": ("Excel", "openpyxl"),
    ".xlsm": ("Excel", "openpyxl"),
    ".ods": ("OpenDocument", "odf"),
}
_FRAMES = {
    ".parquet": ("Parquet", "pyarrow"),
    ".feather": ("Feather", "pyarrow"),
    ".arrow": ("Feather", "pyarrow"),
    ".h5": ("HDF5", "h5py"),
    ".hdf5": ("HDF5", "h5py"),
    ".hdf": ("HDF5", "h5py"),
}
_ARCHIVE = b"PK\x03\x04"
_CLOCKS_FROM, _AFTER_CLOCKS = datetime.datetime(1899, 12, 31), datetime.datetime(1900, 3, 1)
_FEWEST = 3  # Numbers of a column of a sheet that holds data.
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x89HDF\r\n\x1a\n": ".h5"}


@dataclass(frozen=True)
class Contents:
    """A file that is not on the disk.

    Attributes:
      name: of the file; its ending counts as that of a path.
      raw: what it holds.
    """

    name: str
    raw: bytes

    def __str__(self) -> str:
        return self.name


Source = str | Path | Contents
"""From where a table comes."""


def open_table(path: Source) -> tuple[Sheet, list[str]]:
    """The cells of a file, and notes.

    Args:
      path: text (which may be gzipped), Excel (.xlsx), OpenDocument (.ods), Parquet, Feather
        or HDF5; "-" for standard input; "clipboard" for what was copied
        from a spreadsheet, unless there is such a file; or what a file holds.

    Raises:
      TrajectoryError: if it cannot be read.
    """
    shown, suffix = repr(str(path)), Path(str(path)).suffix.lower()
    given = "" if isinstance(path, Contents) else str(path)
    if given == CLIPBOARD and not Path(CLIPBOARD).exists():
        return parse_text(_from_clipboard(), "The clipboard"), []
    if given == STANDARD_INPUT:
        shown = "Standard input"
    raw = _read_bytes(path, shown)
    suffix = next((s for magic, s in _MAGIC.items() if raw.startswith(magic)), suffix)
    if suffix in _FRAMES:
        return _from_frame(raw, suffix, shown)
    if suffix in _SHEETS or raw.startswith(_ARCHIVE):
        _require_spreadsheet(raw, shown)
        return _from_spreadsheet(raw, suffix if suffix in _SHEETS else ".xlsx", shown)
    if raw.startswith(b"\xd0\xcf\x11\xe0"):
        raise TrajectoryError(f"{shown} is an old Excel file (.xls); save it as .xlsx or CSV.")
    text, notes = decode(raw, shown)
    return parse_text(text, shown), notes


def _require_spreadsheet(raw: bytes, shown: str) -> None:
    """Refuses other archives than spreadsheets are."""
    try:
        names = zipfile.ZipFile(io.BytesIO(raw)).namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return  # What reads spreadsheets says what is wrong with it.
    if not any(name.startswith("xl/") or name == "content.xml" for name in names):
        raise TrajectoryError(
            f"{shown} is an archive without a spreadsheet in it; give the file with the table."
        )


def _read_bytes(path: Source, shown: str) -> bytes:
    try:
        if isinstance(path, Contents):
            raw = path.raw
        elif str(path) == STANDARD_INPUT:
            raw = sys.stdin.buffer.read()
        else:
            raw = Path(path).read_bytes()
        if raw.startswith(b"\x1f\x8b"):
            raw = gzip.decompress(raw)
    except FileNotFoundError:
        raise TrajectoryError(f"There is no file {shown}{_instead(str(path))}") from None
    except IsADirectoryError:
        raise TrajectoryError(
            f"{shown} is a folder; give a file with columns of numbers."
        ) from None
    except (OSError, ValueError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise TrajectoryError(f"{shown} cannot be read: {reason}.") from None
    if not raw.strip():
        raise TrajectoryError(f"{shown} is empty.")
    return raw


def _instead(path: str) -> str:
    """What may be meant by the path of a file that there is not."""
    if "://" in path:
        return "; download what stands on the web first."
    folder, name, there = Path(path).parent, Path(path).name, []
    with contextlib.suppress(OSError):
        there = os.listdir(folder)
    near = difflib.get_close_matches(name, there, n=1, cutoff=0.8)
    return f"; did you mean {str(folder / near[0])!r}?" if near else "."


def _from_clipboard() -> str:
    from pandas.io import clipboard

    try:
        text = clipboard.clipboard_get() or ""
    except Exception as error:  # Each system has its own.
        raise TrajectoryError(f"The clipboard cannot be read: {_reason(error)}.") from None
    if not text.strip():
        raise TrajectoryError("The clipboard is empty.")
    return text


def _reason(error: Exception) -> str:
    """What another package says of a failure, short and in one line."""
    return one_line(error)[:200].rstrip(".")


def _from_frame(raw: bytes, suffix: str, shown: str) -> tuple[Sheet, list[str]]:
    what, package = _FRAMES[suffix]
    notes: list[str] = []
    try:
        import pandas as pd

        if what == "Parquet":
            frame = pd.read_parquet(io.BytesIO(raw))
        elif what == "Feather":
            frame = pd.read_feather(io.BytesIO(raw))
        else:
            frame, notes = read_hdf(raw)
    except ImportError:
        raise TrajectoryError(
            f"{shown} is {'an' if what[0] == 'H' else 'a'} {what} file, which {package} reads; "
            f"install it: pip install {package}."
        ) from None
    except Exception as error:  # pyarrow and tables have many.
        raise TrajectoryError(
            f"{shown} cannot be read as {what}: {_reason(error)}; save it anew, or as CSV."
        ) from None
    frame, remarks = _with_row_labels(frame)
    names = [one_line(name) for name in frame.columns]
    frame = frame.set_axis(range(len(names)), axis=1)
    sheet = Sheet(shown, frame.set_axis(range(1, len(frame) + 1), axis=0), names)
    return sheet, [*notes, *remarks]


def _with_row_labels(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The frame with its row labels as columns, where pandas likes to keep times, and notes.

    Whole numbers without a name are what is left of the numbers of rows.
    """
    labels = frame.index
    if labels.nlevels > 1 or labels.name is not None or labels.dtype.kind not in "iu":
        times = labels.nlevels == 1 and labels.dtype.kind in "fmM" and "t" not in frame.columns
        name = "t" if times and labels.name is None else None
        return frame.reset_index(allow_duplicates=True, names=name), []
    if (np.diff(labels.to_numpy()) == 1).all():
        return frame, []
    shown = ", ".join(map(str, labels[:3]))
    return frame, [
        f"The row labels of the frame ({shown}, ...) were left out; if they are times, store them "
        "as a column."
    ]


def _from_spreadsheet(raw: bytes, suffix: str, shown: str) -> tuple[Sheet, list[str]]:
    what, module = _SHEETS[suffix]
    try:
        import pandas as pd

        importlib.import_module(module)
        engine = "odf" if module == "odf" else "openpyxl"
        sheets = pd.read_excel(
            io.BytesIO(raw), sheet_name=None, header=None, dtype=object, engine=engine
        )
    except ImportError:
        raise TrajectoryError(
            f"{shown} is an {what} file; reading it needs the extra `excel`: "
            "pip install 'nsode_jax[excel]'."
        ) from None
    except Exception as error:  # Of zip files, XML and what the engines make of them.
        raise TrajectoryError(
            f"{shown} cannot be read as {what}: {_reason(error)}; save it anew, or as CSV."
        ) from None
    filled = {name: frame for name, frame in sheets.items() if frame.notna().any(axis=None)}
    if not filled:
        raise TrajectoryError(f"{shown} is empty.")
    name = next((name for name, frame in filled.items() if _has_numbers(frame)), next(iter(filled)))
    frame, notes = filled[name], []
    if len(filled) > 1:
        others = ", ".join(repr(str(other)) for other in [*filled][:6] if other != name)
        notes = [f"The sheet {str(name)!r} was read; the file has others too ({others})."]
    return parse_text(_as_csv(frame), shown), notes


def _has_numbers(frame: pd.DataFrame) -> bool:
    """Whether two columns, or two rows, may hold data."""
    data = frame.map(lambda cell: kind_of(_cell_text(cell)) in (*DATA, "dressed"))
    return any(int((data.sum(axis=axis) >= _FEWEST).sum()) > 1 for axis in (0, 1))


def _as_csv(frame: pd.DataFrame) -> str:
    """The cells as text, numbers with all their digits."""
    out = io.StringIO()
    columns = [_with_long_clocks(frame[column].tolist()) for column in frame.columns]
    writer = csv.writer(out, lineterminator="\n")
    for row in zip(*columns, strict=True):
        writer.writerow([_cell_text(cell) for cell in row])
    return out.getvalue()


def _with_long_clocks(cells: list[object]) -> list[object]:
    """Cells of a column, with clock times beyond 24 h as what they are.

    A cell formatted as h:mm holds days since 1899-12-31, and comes as a date from 1 on. A
    column of nothing later holds no dates.
    """
    late = [cell for cell in cells if isinstance(cell, datetime.datetime) and cell == cell]
    if not late or max(late) >= _AFTER_CLOCKS:
        return cells
    return [
        cell - _CLOCKS_FROM if isinstance(cell, datetime.datetime) and cell == cell else cell
        for cell in cells
    ]


def _cell_text(cell: object) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, datetime.datetime):
        midnight = cell.time() == datetime.time()
        return f"{cell:%Y-%m-%d}" if midnight else cell.isoformat(sep=" ")
    if isinstance(cell, datetime.time):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        hours, rest = divmod(cell.total_seconds(), 3600)
        return f"{hours:.0f}:{int(rest // 60):02d}:{rest % 60:06.3f}"
    return one_line(cell)
