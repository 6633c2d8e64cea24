"""Which rows of a run count, and what is said of those that do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.dynamics.system import System
from nsode_jax.dynamics.trajectory import MIN_POINTS, in_time
from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.observed.forcing import MeasuredInput


def completed(
    t: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, "rows observed"],
    u: Float[np.ndarray, "rows inputs"],
    holds: Sequence[bool],
) -> tuple[
    Float[np.ndarray, " fewer"],
    Float[np.ndarray, "fewer observed"],
    Float[np.ndarray, "fewer inputs"],
]:
    """Rows of one time that hold a part of its values each, as rows with all of them.

    Two loggers write them so. Where one row of a time is complete all stay as they are; inputs
    that are held need not be there.
    """
    table = np.hstack([y, u])
    needed = np.concatenate([np.ones(y.shape[1], bool), ~np.array(holds, bool)])
    rows = np.flatnonzero(np.isfinite(t))
    order, occasion, _ = in_time(t[rows])
    rows = rows[order]
    whole = np.isfinite(table[rows][:, needed]).all(axis=1)
    apart = (np.bincount(occasion) > 1) & (np.bincount(occasion, weights=whole) == 0)
    kept = np.ones(t.size, bool)
    for number in np.flatnonzero(apart):
        of = rows[slice(*np.searchsorted(occasion, [number, number + 1]))]
        stacked = np.full((of.size, table.shape[1]), np.nan)
        for column, values in enumerate(table[of].T):
            known = values[np.isfinite(values)]
            stacked[: known.size, column] = known
        table[of] = stacked
        kept[of] = np.isfinite(stacked).any(axis=1)
    return t[kept], table[kept, : y.shape[1]], table[kept, y.shape[1] :]


def usable(
    t: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, "rows observed"],
    u: Float[np.ndarray, "rows inputs"],
    inputs: Sequence[MeasuredInput],
    system: System,
) -> Int[np.ndarray, " usable"]:
    """Rows with all quantities in which all inputs are known, held ones from rows before."""
    known = np.isfinite(y).all(axis=1)
    of_input = zip(system.inputs, system.holds, inputs, u.T, strict=True)
    for name, hold, measured, column in of_input:
        there = np.isfinite(column)
        if hold and measured.t.size:
            there |= t >= measured.t[0]
        elif (known & ~there).any():
            places = np.flatnonzero(known & np.isfinite(t))
            ends = places[np.argsort(t[places], kind="stable")[[0, -1]]] if places.size else []
            if there.any() and not there[ends].all():
                raise TrajectoryError(
                    f"The input {name} is not known to the ends of the data; leave out the rows "
                    "without it."
                )
        known = known & there
    rows = np.flatnonzero(known)
    if not rows.size and np.isfinite(y).any(axis=0).all():
        raise TrajectoryError(
            f"No row has values of all of {', '.join((*system.observed, *system.inputs))}, which "
            "the laws of a system need at the same times."
        )
    return rows


def require_enough(
    t: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, "rows observed"],
    u: Float[np.ndarray, "rows inputs"],
    rows: Int[np.ndarray, " usable"],
    system: System,
) -> None:
    """Refuses too few rows, and says which columns they lack."""
    if (enough := np.isfinite(t[rows]).sum()) >= MIN_POINTS:
        return
    told = (np.isnan(column).sum() for column in (*y.T, *u.T))
    empty = [
        f"{name} is missing in {missing}"
        for name, missing in zip((*system.observed, *system.inputs), told, strict=True)
        if missing
    ]
    why = f" (of {count(len(t), 'row')} {', '.join(empty)})" if empty else ""
    raise TrajectoryError(
        f"Only {count(int(enough), 'usable row')}{why}; at least {MIN_POINTS} are needed."
    )
