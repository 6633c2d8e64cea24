"""Several columns of a table as quantities that were measured together."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.tables.files import Source
from nsode_jax.tables.table import read_measurements


@dataclasses.dataclass(frozen=True, eq=False)
class Quantities:
    """Runs of several quantities, one below the other in the table.

    Attributes:
      times: of each run, shape [rows], as the table has them: in any order, and again and again.
      values: of each run, shape [rows, quantities]; NaN where a cell is empty.
      inputs: of each run likewise, shape [rows, inputs].
      names, input_names: of the columns.
      time_name: of the column of times.
      notes: what was done to the table.
    """

    times: tuple[Float[np.ndarray, " _"], ...]
    values: tuple[Float[np.ndarray, "_ quantities"], ...]
    inputs: tuple[Float[np.ndarray, "_ inputs"], ...]
    names: tuple[str, ...]
    input_names: tuple[str, ...]
    time_name: str
    notes: tuple[str, ...]

    @property
    def complete(self) -> tuple[Float[np.ndarray, " _"], ...]:
        """Increasing times of each run at which all quantities are known."""
        return tuple(
            functools.reduce(np.intersect1d, [np.unique(t[np.isfinite(column)]) for column in y.T])
            for t, y in zip(self.times, self.values, strict=True)
        )


def read_quantities(
    path: Source,
    quantities: Sequence[str] | None = None,
    time: str | None = None,
    *,
    inputs: Sequence[str] = (),
    **reading: Any,
) -> Quantities:
    """Reads columns that were measured together.

    Args:
      path: the file; see `read_measurements`.
      quantities: their columns, by name or number; None for the only one that there is.
      time: the column of times; None to find it.
      inputs: columns of measured inputs likewise.
      reading: `series`, `start`, `end`, `decimal`, `thousands` and `dates` of `read_measurements`.

    Raises:
      TrajectoryError: as `read_measurements`, and for values of which only a limit is known.
    """
    read = read_measurements(path, time, quantities, inputs=inputs, **reading)
    read.require_no_limits()
    times, values = zip(*read.together, strict=True)
    names, last = read.columns, len(read.columns) - len(inputs)
    return Quantities(
        times,
        tuple(each[:, :last] for each in values),
        tuple(each[:, last:] for each in values),
        names[:last],
        names[last:],
        read.names[0],
        read.notes,
    )
