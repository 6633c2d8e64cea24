"""The columns that an HDF5 file holds: its vectors, and the frames that pandas wrote."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd  # Slow to import, see `sheet`.

_OF_PANDAS = re.compile(r"axis\d+(_(level|label)\d+)?|block\d+_(items|values)")
_MOST_COLUMNS = 20  # Of a matrix that is a table and no picture.
_SHOWN = 5


def read_hdf(raw: bytes) -> tuple[pd.DataFrame, list[str]]:
    """Columns of numbers and text of one length, the longest that several have, and notes.

    pandas would read more of its own files, but would also run what a file's author pickled
    into them.

    Raises:
      ValueError: if there are none.
    """
    import h5py
    import pandas as pd

    datasets: dict[str, Any] = {}
    with h5py.File(io.BytesIO(raw), "r") as file:
        file.visititems(
            lambda path, node: (
                datasets.update({path: node}) if isinstance(node, h5py.Dataset) else None
            )
        )
        columns = {}
        for path in datasets:
            columns |= _columns_of(path, datasets)
    lengths = Counter(map(len, columns.values()))
    if not any(column.dtype.kind in "iuf" for column in columns.values()):
        raise ValueError("it holds no vectors of numbers")
    length = max(lengths, key=lambda length: (lengths[length] > 1, length))
    short = Counter(path.rpartition("/")[2] for path in columns)
    kept = {
        name if short[name := path.rpartition("/")[2]] == 1 else path: column
        for path, column in columns.items()
        if len(column) == length
    }
    left = [path for path, column in columns.items() if len(column) != length]
    shown = ", ".join(left[:_SHOWN]) + (", ..." if len(left) > _SHOWN else "")
    notes = [f"Left out, as they have not {length} rows as the others: {shown}."] if left else []
    return pd.DataFrame(kept), notes


def _columns_of(path: str, datasets: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The columns of a dataset by their paths; none where it is no table."""
    import h5py

    node = datasets[path]
    group, _, name = path.rpartition("/")
    frame = f"{group}/" if group else ""
    if _OF_PANDAS.fullmatch(name) and f"{frame}axis0" in datasets:
        return _columns_of_frame(frame, datasets) if name == "axis0" else {}
    if node.ndim == 1 and h5py.check_string_dtype(node.dtype) is not None:
        return {path: node.asstr(errors="replace")[:]}
    if node.dtype.kind not in "iuf" or not 1 <= node.ndim <= 2:
        return {}
    values = np.asarray(node)
    if node.ndim == 1 or node.shape[1] == 1:
        return {path: values.reshape(-1)}
    if node.shape[1] > min(_MOST_COLUMNS, node.shape[0]):
        return {}
    return {f"{path} {column + 1}": values[:, column] for column in range(node.shape[1])}


def _columns_of_frame(frame: str, datasets: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The columns of a frame of pandas in their order, times in its row labels first."""
    columns = {}
    for path, node in datasets.items():
        if re.fullmatch(rf"{re.escape(frame)}block\d+_values", path) and node.dtype.kind in "iuf":
            labels = _labels(datasets[path.removesuffix("_values") + "_items"])
            columns |= zip(labels, np.asarray(node).T, strict=True)
    found = {}
    rows = datasets.get(f"{frame}axis1")
    kind = "" if rows is None else str(rows.attrs.get("kind", ""))
    if unit := re.search(r"datetime64(?:\[(\w+)\])?", kind):
        found[f"{frame}t"] = np.asarray(rows).astype(f"datetime64[{unit[1] or 'ns'}]")
    elif rows is not None and rows.dtype.kind == "f":
        found[f"{frame}t"] = np.asarray(rows)
    order = [label for label in _labels(datasets[f"{frame}axis0"]) if label in columns]
    return found | {f"{frame}{label}": columns[label] for label in order}


def _labels(node: Any) -> list[str]:
    return [bytes(label).decode("utf-8", "replace") for label in node[:]]
