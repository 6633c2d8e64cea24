"""The data of a system: named, cleaned and thinned runs, or one line on why they cannot be used."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.dynamics.system import MOST_OBSERVED, TIME, System
from nsode_jax.dynamics.trajectory import clean
from nsode_jax.dynamics.vectors import TrajectoryError, as_numbers, as_times, times_alike
from nsode_jax.expressions.expression import is_variable_name
from nsode_jax.observed.forcing import MeasuredInput, held, thinned
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.observed.rows import completed, require_enough, usable
from nsode_jax.observed.thinning import rows_to_keep

MAX_POINTS, MAX_POINTS_IN_ALL, _LEAST_OF_A_RUN = 300, 1500, 50
"""Of one run, longer ones are thinned; of all together, but so many of each."""


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
    several = _are_runs(t, y)
    values = _with_columns_alike(list(y), "quantities") if several else [y]
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
    shared_time = not (several and _is_nested(t))
    times = [t] * len(values) if shared_time else list(t)
    if inputs is None or not several:
        forced = [inputs] * len(values)
    elif _are_runs(t, inputs):
        forced = _with_columns_alike(list(inputs), "inputs")
    else:
        forced = [inputs] * len(values) if shared_time else list(inputs)
    if not len(forced) == len(times) == len(values):
        raise TrajectoryError(
            f"There are {len(values)} runs of values, {len(times)} of times and {len(forced)} of "
            "inputs; all need as many."
        )
    us = [_table(u) if u is not None else np.empty((len(c), 0)) for u, c in zip(forced, columns)]
    if any(u.shape[1] != us[0].shape[1] for u in us):
        raise TrajectoryError("All runs need the same inputs.")
    own, notes = _names(names, values[0], "y", number)
    other, more = _names(input_names, forced[0], "u", us[0].shape[1], own)
    system = System(own, other, explicit_time, order)
    notes += more
    times, converted = times_alike(times)
    notes += converted
    # No predators in a control: what changes in other runs may be constant in one.
    may_rest = [
        name
        for name, of_runs in zip(own, zip(*(part.T for part in columns), strict=True))
        if not all(map(_is_constant, of_runs))
    ]
    runs, said, rows, driven = [], [], [], []
    for place, (t_of, y_of, u_of) in enumerate(zip(times, columns, us, strict=True), start=1):
        with _named(place, len(values)):
            rows.append(as_times(t_of)[0])
            driven.append(_inputs(rows[-1], y_of, u_of))
    for name, of_runs in zip(other, np.concatenate(us).T, strict=True):
        if _is_constant(of_runs):
            raise TrajectoryError(f"The input {name} is constant; leave it out.")
    system = dataclasses.replace(system, held=held(other, driven))
    notes += [
        f"{name} changes in steps: each value was taken to hold until the next row."
        for name in system.held
    ]
    most = max(_LEAST_OF_A_RUN, min(MAX_POINTS, MAX_POINTS_IN_ALL // len(values)))
    for place, which in enumerate(zip(rows, columns, us, driven, strict=True), start=1):
        with _named(place, len(values)):
            run, its_notes = _run(*which, system, may_rest, most)
        runs.append(run)
        said.append(its_notes)
    data = Observations(system, tuple(runs))
    if any(run.noise_sizes is not None for run in runs):
        data = data.with_noise(1.0 / data.weights)
    return data, [*notes, *_of_runs(said)]


@contextlib.contextmanager
def _named(place: int, number: int) -> Iterator[None]:
    """Says of which run it is that data cannot be used."""
    try:
        yield
    except TrajectoryError as error:
        if number == 1:
            raise
        raise TrajectoryError(f"Run {place} of {number}: {error}") from None


def _of_runs(said: Sequence[Sequence[str]]) -> list[str]:
    """The notes on all runs, each once, with the runs that it is on."""
    places: dict[str, list[str]] = {}
    for place, notes in enumerate(said, start=1):
        for note in notes:
            places.setdefault(note, []).append(str(place))
    if len(said) == 1:
        return list(places)
    found = []
    for note, runs in places.items():
        which = f"Run {', '.join(runs)} of {len(said)}" if len(runs) < len(said) else "Each run"
        found.append(f"{which}: {note}")
    return found


def _are_runs(t: Any, values: Any) -> bool:
    """Whether these are several runs rather than the rows of a table.

    Lists of one quantity are runs if they are as long as their times.
    """
    if not isinstance(values, (list, tuple)) or not values:
        return False
    if all(np.ndim(part) == 2 for part in values):
        return True
    if any(np.ndim(part) != 1 for part in values):
        return False
    times = list(t) if _is_nested(t) else [t] * len(values)
    return [len(part) for part in values] == [len(one) for one in times]


def _is_nested(t: Any) -> bool:
    """Whether these are times of each run rather than one series of them."""
    return isinstance(t, (list, tuple)) and len(t) > 0 and np.ndim(t[0]) > 0


def _with_columns_alike(parts: list[Any], what: str) -> list[Any]:
    """Tables with named columns in the order of the first."""
    names = [list(part.columns) if hasattr(part, "columns") else None for part in parts]
    first = names[0]
    for place, these in enumerate(names):
        if first is None or these is None or these == first:
            continue
        if sorted(map(str, these)) != sorted(map(str, first)):
            raise TrajectoryError(
                f"Run {place + 1} of {len(parts)} has the {what} {', '.join(map(str, these))}, "
                f"the first {', '.join(map(str, first))}; all runs need the same."
            )
        parts[place] = parts[place][first]
    return parts


def _table(values: Any) -> Float[np.ndarray, "time columns"]:
    """Columns of numbers as an array; missing ones are NaN."""
    columns = _columns(values)
    try:
        return np.stack([as_numbers(column, "values") for column in columns], axis=1)
    except ValueError:
        raise TrajectoryError(
            "Quantities that are measured together need columns of numbers of one length."
        ) from None


def _columns(values: Any) -> list[Any]:
    """Those of a DataFrame, of an array or of a list of rows; of one quantity the only one."""
    if hasattr(values, "iloc") and np.ndim(values) == 2:
        return [values.iloc[:, k] for k in range(values.shape[1])]
    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    except ValueError:  # Rows of several lengths, which are no numbers.
        return [values]
    if array.ndim > 2:
        raise TrajectoryError(f"The values must be an array [time, quantities], got {array.shape}.")
    return [array[:, k] for k in range(array.shape[1])] if array.ndim == 2 else [array]


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


def _inputs(
    t: Float[np.ndarray, " times"],
    y: Float[np.ndarray, "time observed"],
    u: Float[np.ndarray, "rows inputs"],
) -> list[MeasuredInput]:
    """The inputs of one run, each in all rows that have it."""
    if len({len(t), len(y), len(u)}) > 1:
        raise TrajectoryError(
            f"There are {len(t)} times, {len(y)} rows of values and {len(u)} of inputs; "
            "all need as many."
        )
    return [MeasuredInput.of(t, column) for column in u.T]


def _run(
    t: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, "rows observed"],
    u: Float[np.ndarray, "rows inputs"],
    inputs: Sequence[MeasuredInput],
    system: System,
    may_rest: Sequence[str],
    most: int,
) -> tuple[Run, list[str]]:
    """One run, cleaned and thinned, and notes; some quantities may be constant in it."""
    t, y, u = completed(t, y, u, system.holds)
    rows = usable(t, y, u, inputs, system)
    kept, columns, notes = t[rows], [], []
    if rows.size < len(y):
        notes.append(_on_gaps(len(y), len(y) - rows.size, (*system.observed, *system.inputs)))
    require_enough(t, y, u, rows, system)
    changing = [name for name, y in zip(system.observed, y[rows].T) if not _is_constant(y)]
    trajectory = None
    for name, column in zip(system.observed, y[rows].T, strict=True):
        if changing and name not in changing and name in may_rest:
            columns.append(column[0])
            continue
        try:
            trajectory, its_notes = clean(kept, column)
        except TrajectoryError as error:
            raise TrajectoryError(f"{name}: {error}") from None
        columns.append(trajectory.y)
    assert trajectory is not None
    notes += its_notes
    times = trajectory.t
    columns = [np.broadcast_to(column, times.shape) for column in columns]
    values = np.array(columns).T
    chosen = rows_to_keep(times, values, most)
    notes += _on_thinning(times, chosen)
    values, last = values[chosen], float(times[chosen[-1]])
    sizes = None
    if trajectory.noise is not None:  # Some rows are means of several of the same time.
        sizes = np.broadcast_to(trajectory.noise[chosen, None], values.shape)
    if not inputs:
        return Run(times[chosen], values, np.empty((chosen.size, 0)), sizes), notes
    input_times, forced, more = thinned(inputs, system.holds, last)
    if np.array_equal(input_times, times[chosen]):
        input_times = None
    run = Run(times[chosen], values, forced, sizes, input_times, system.holds)
    return run, [*notes, *more]


def _on_gaps(rows: int, dropped: int, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{dropped} of {rows} rows dropped: a value is missing."
    return (
        f"{dropped} of {rows} rows dropped: where one of {', '.join(names)} is missing, a row is "
        "left out for all quantities."
    )


def _on_thinning(t: Float[np.ndarray, " time"], chosen: Int[np.ndarray, " kept"]) -> list[str]:
    if chosen.size == t.size:
        return []
    if chosen[-1] == t.size - 1:
        return [f"{t.size} points thinned to {chosen.size} for fitting."]
    thinned = "" if chosen[-1] < chosen.size else f", thinned to {chosen.size}"
    return [
        f"Of {t.size} points the first {chosen[-1] + 1}{thinned} were used, to the time "
        f"{t[chosen[-1]]:.6g}: so few of the whole run do not follow its changes; give later parts "
        "as runs of their own."
    ]


def _is_constant(values: Float[np.ndarray, " rows"]) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and np.ptp(known) == 0.0)
