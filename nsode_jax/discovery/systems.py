"""From several measured quantities to coupled laws: smooth, search each, combine, fit together."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.pipeline import DiscoveryError
from nsode_jax.dynamics.system import MOST_OBSERVED, System
from nsode_jax.dynamics.trajectory import TrajectoryError, clean
from nsode_jax.fitting.components import component_forms
from nsode_jax.fitting.observations import Observations, Run
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.fitting.shooting import SystemFit, covariance
from nsode_jax.reporting.system_discovery import SystemDiscovery
from nsode_jax.reporting.system_result import SystemCandidate
from nsode_jax.search.combine import CombineConfig, SystemSearch
from nsode_jax.search.equations import draft_equations, share_terms
from nsode_jax.search.sparse import SparseConfig
from nsode_jax.selection.score import posterior_probabilities

MAX_POINTS = 300
"""Of one run; longer ones are thinned."""

_RETURNED = 30
_WITH_UNCERTAINTY = 10


@dataclasses.dataclass(frozen=True)
class SystemEffort:
    """How much work the discovery of a system takes."""

    sparse: SparseConfig
    combine: CombineConfig


SYSTEM_EFFORTS = {
    "fast": SystemEffort(
        SparseConfig(width=12, exchanged=5),
        CombineConfig(drafts=6, combinations=15, fitted=4, rounds=1, staged=3),
    ),
    "default": SystemEffort(SparseConfig(), CombineConfig()),
    "thorough": SystemEffort(
        SparseConfig(width=60, most_terms=9, exchanged=30),
        CombineConfig(drafts=20, combinations=150, fitted=20, rounds=8, staged=40),
    ),
}


def discover_system(
    t: Any,
    y: Any,
    *,
    inputs: Any = None,
    explicit_time: bool = False,
    order: int = 1,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    effort: str = "default",
    progress: Progress = silent,
) -> SystemDiscovery:
    """Finds dy_k/dt = f_k(y, u, t) behind one run of several quantities, or behind several runs.

    Args:
      t: times, shape [time]; for several runs a list of such, or the times they share.
      y: values, an array [time, quantities] or a DataFrame with a column for each; a list
        of such for several runs. Rows with missing values are dropped.
      inputs: measured inputs likewise.
      explicit_time: whether laws may depend on the time.
      order: 2 where positions are measured and velocities are not: d²y/dt² = f(y, v).
      names, input_names: of the columns, where they are no DataFrame's.
      effort: "fast", "default" or "thorough".
      progress: called with a stage and the share done of it.

    Returns:
      Ranked systems in the data's units.

    Raises:
      TrajectoryError: if the data cannot be used.
      DiscoveryError: if no system was found that has a solution near the data.
      ValueError: if an option is not what it should be.
    """
    started = time.monotonic()
    if effort not in SYSTEM_EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(SYSTEM_EFFORTS)}, got {effort!r}")
    work = SYSTEM_EFFORTS[effort]
    progress("reading the data", 0.0)
    several = isinstance(y, (list, tuple)) and all(np.ndim(part) == 2 for part in y)
    values = list(y) if several else [y]
    columns = [_table(part) for part in values]
    number = columns[0].shape[1]
    if number > MOST_OBSERVED:
        raise TrajectoryError(
            f"There are {number} quantities; a system has {MOST_OBSERVED} at most."
        )
    forced = [None] * len(values) if inputs is None else list(inputs) if several else [inputs]
    us = [_table(u) if u is not None else np.empty((len(c), 0)) for u, c in zip(forced, columns)]
    system = System(
        _names(names, values[0], "y", number),
        _names(input_names, forced[0], "u", us[0].shape[1]),
        explicit_time,
        order,
    )
    shared_time = not several or np.ndim(t[0]) == 0
    times = [t] * len(values) if shared_time else list(t)
    runs, notes = [], []
    for which in zip(times, columns, us, strict=True):
        run, its_notes = _run(*which, system)
        runs.append(run)
        notes += its_notes
    data = Observations(system, tuple(runs))
    forms = component_forms(data)
    span = max(float(np.ptp(run.t)) for run in runs)
    drafts = []
    for name, form in zip(system.observed, forms, strict=True):
        progress(f"searching the equation of {name}", 0.0)
        drafts.append(draft_equations(form, system, span, work.combine.drafts, work.sparse))
    if len(drafts) > 1:
        drafts = share_terms(forms, system, drafts, work.combine.drafts, work.sparse)
    ranked = SystemSearch(data, drafts, work.combine).run(progress)
    ranked = [(fit, score) for fit, score in ranked if not fit.diverged][:_RETURNED]
    if not ranked:
        raise DiscoveryError("No system of laws was found that has a solution near the data.")
    found = as_candidates(data, ranked)
    notes += _remarks(found[0])
    return SystemDiscovery(found, data.runs, tuple(notes), time.monotonic() - started)


def as_candidates(
    data: Observations, ranked: Sequence[tuple[SystemFit, float]]
) -> tuple[SystemCandidate, ...]:
    """Fits with their scores, best first, as a user sees them."""
    shares = posterior_probabilities([score for _, score in ranked])
    candidates = []
    for place, ((fit, score), share) in enumerate(zip(ranked, shares, strict=True)):
        left, spread = fit.residuals**2, data.spread**2
        candidates.append(
            SystemCandidate(
                system=data.system,
                laws=fit.laws,
                states=fit.states,
                start_times=tuple(float(run.t[0]) for run in data.runs),
                end_times=tuple(float(run.t[-1]) for run in data.runs),
                r2=1 - float(left.sum() / spread.sum()),
                r2s=tuple(float(1 - r) for r in left / spread),
                residuals=tuple(float(r) for r in fit.residuals),
                score=score,
                probability=share,
                covariance=covariance(data, fit) if place < _WITH_UNCERTAINTY else None,
                segments=fit.segments,
                shared=tuple((tie.place, tie.partner) for tie in fit.ties),
                converged=fit.converged,
            )
        )
    return tuple(candidates)


def _remarks(best: SystemCandidate) -> list[str]:
    notes = []
    if best.segments > 1:
        notes.append(
            "No solution follows the data all the way; they were fitted in "
            f"{best.segments} pieces, and R2 is that of the pieces."
        )
    if best.shared:
        notes.append(
            "A term that two equations have with opposite signs was given one constant: what "
            "leaves one quantity enters another."
        )
    if best.probability < 0.5:
        notes.append("Other systems are about as probable; the data cannot tell them apart.")
    return notes


# --- the data ----------------------------------------------------------------


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


def _names(given: Sequence[str] | None, values: Any, letter: str, number: int) -> tuple[str, ...]:
    """Of the columns; those of a DataFrame if they can stand in a formula."""
    names = given if given is not None else getattr(values, "columns", None)
    if names is None:
        plain = (letter,) if number == 1 else tuple(f"{letter}{k + 1}" for k in range(number))
        return plain
    if len(names) != number:
        raise ValueError(f"there are {len(names)} names for {number} columns")
    return tuple("".join(c if c.isalnum() else "_" for c in str(name)) for name in names)


def _run(
    t: Any,
    y: Float[np.ndarray, "time observed"],
    u: Float[np.ndarray, "time inputs"],
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
        raise TrajectoryError("The inputs have other times than the quantities.")
    return values
