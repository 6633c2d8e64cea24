"""The data of a system: named, cleaned and thinned runs, or one line on why they cannot be used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.system import MOST_OBSERVED, TIME, System
from nsode_jax.dynamics.trajectory import TrajectoryError, clean
from nsode_jax.expressions.expression import is_variable_name
from nsode_jax.observed.observations import Observations, Run

MAX_POINTS = 300
"""Of one run; longer ones are thinned."""


def read_runs(
    t: Any,
    y: Any,
    inputs: Any,
    *,
    names: Sequence[str] | None,
    input_names: Sequence[str] | None,
    explicit_time: bool,
    order: int,
) -> tuple[Observations, list[str]]:
    """The runs of what a user gives, and notes on what was done to them.

    Args:
      t, y, inputs, names, input_names, explicit_time, order: as of `discover_system`.

    Raises:
      TrajectoryError: if the data cannot be used.
      ValueError: if a name or an option is not what it should be.
    """
    several = isinstance(y, (list, tuple)) and bool(y) and all(np.ndim(p) == 2 for p in y)
    values = list(y) if several else [y]
    columns = [_table(part) for part in values]
    number = columns[0].shape[1]
    if number > MOST_OBSERVED:
        raise TrajectoryError(
            f"There are {number} quantities, a column each; a system has {MOST_OBSERVED} at most. "
            "If they are series of one quantity, give a list of them: list(y.T), or list(y) for "
            "rows."
        )
    if any(part.shape[1] != number for part in columns):
        raise TrajectoryError("All runs need the same quantities.")
    forced = [None] * len(values) if inputs is None else list(inputs) if several else [inputs]
    shared_time = not several or np.ndim(t[0]) == 0
    times = [t] * len(values) if shared_time else list(t)
    if not len(forced) == len(times) == len(values):
        raise TrajectoryError(
            f"There are {len(values)} runs of values, {len(times)} of times and {len(forced)} of "
            "inputs; all need as many."
        )
    us = [_table(u) if u is not None else np.empty((len(c), 0)) for u, c in zip(forced, columns)]
    own, notes = _names(names, values[0], "y", number)
    other, more = _names(input_names, forced[0], "u", us[0].shape[1], own)
    system = System(own, other, explicit_time, order)
    notes += more
    runs = []
    for place, which in enumerate(zip(times, columns, us, strict=True), start=1):
        try:
            run, its_notes = _run(*which, system)
        except TrajectoryError as error:
            if not several or len(values) == 1:
                raise
            raise TrajectoryError(f"Run {place} of {len(values)}: {error}") from None
        runs.append(run)
        notes += its_notes
    return Observations(system, tuple(runs)), notes


def _table(values: Any) -> Float[np.ndarray, "time columns"]:
    """Columns of numbers as an array; missing ones are NaN."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise TrajectoryError(
            "Quantities that are measured together need columns of numbers of one length."
        ) from None
    if array.ndim not in (1, 2):
        raise TrajectoryError(f"The values must be an array [time, quantities], got {array.shape}.")
    return array.reshape(len(array), -1)


def _names(
    given: Sequence[str] | None, values: Any, letter: str, number: int, taken: Sequence[str] = ()
) -> tuple[tuple[str, ...], list[str]]:
    """Names that can stand in a formula, those of the columns if possible; and notes."""
    names = given if given is not None else getattr(values, "columns", None)
    if names is None:
        names = [letter] if number == 1 else [f"{letter}{k + 1}" for k in range(number)]
    if len(names) != number:
        raise ValueError(f"there are {len(names)} names for {number} columns")
    found, notes = [], []
    for name in map(str, names):
        usable = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or letter
        if usable[0].isdigit():
            usable = f"{letter}_{usable}"
        if usable == TIME or not is_variable_name(usable):
            usable = f"{usable}_"
        first, again = usable, 2
        while usable in (*found, *taken):
            usable, again = f"{first}_{again}", again + 1
        found.append(usable)
        if usable != name:
            notes.append(f"{name!r} is called {usable} in the laws.")
    return tuple(found), notes


def _run(
    t: Any,
    y: Float[np.ndarray, "time observed"],
    u: Float[np.ndarray, "rows inputs"],
    system: System,
) -> tuple[Run, list[str]]:
    """One run, cleaned and thinned, and notes."""
    lengths = {len(t), len(y), len(u)}
    if len(lengths) > 1:
        raise TrajectoryError(
            f"There are {len(t)} times, {len(y)} rows of values and {len(u)} of inputs; "
            "all need as many."
        )
    known = np.isfinite(y).all(axis=1)
    for name, column in zip(system.inputs, u.T, strict=True):
        missing = known & ~np.isfinite(column)
        if missing.any() and not np.isfinite(column[np.flatnonzero(known)[[0, -1]]]).all():
            raise TrajectoryError(
                f"The input {name} is not known to the ends of the data; leave out the rows "
                "without it."
            )
    known &= np.isfinite(u).all(axis=1)
    rows = np.flatnonzero(known)
    kept, columns, notes = np.asarray(t)[rows], [], []
    if rows.size < len(y):
        notes.append(f"{len(y) - rows.size} of {len(y)} rows dropped: a value is missing.")
    trajectory = None
    for name, column in zip(system.observed, y[rows].T, strict=True):
        try:
            trajectory, its_notes = clean(kept, column)
        except TrajectoryError as error:
            raise TrajectoryError(f"{name}: {error}") from None
        columns.append(trajectory.y)
    assert trajectory is not None
    notes += its_notes
    forced = [_averaged(kept, column, len(trajectory)) for column in u[rows].T]
    times = trajectory.t
    if times.size > MAX_POINTS:
        chosen = np.linspace(0, times.size - 1, MAX_POINTS).round().astype(int)
        notes.append(f"{times.size} points thinned to {MAX_POINTS} for fitting.")
    else:
        chosen = np.arange(times.size)
    values = np.array(columns).T[chosen]
    inputs = np.array(forced).T[chosen] if forced else np.empty((chosen.size, 0))
    return Run(times[chosen], values, inputs), notes


def _averaged(t: np.ndarray, u: np.ndarray, number: int) -> np.ndarray:
    """An input in the order of the times; its repeated times as those of the quantities."""
    if np.ptp(u) == 0.0:
        raise TrajectoryError("An input is constant; leave it out.")
    values = clean(t, u)[0].y
    if values.size != number:
        raise TrajectoryError(
            "The inputs have other times than the quantities; give both at the same times."
        )
    return values
