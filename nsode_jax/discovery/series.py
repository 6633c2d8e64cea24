"""The data of a discovery: one series or several, cleaned, thinned, with fair warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nsode_jax.discovery.measurement_errors import errors_of_series, on_one_scale
from nsode_jax.dynamics.trajectory import MIN_POINTS, Trajectory, clean
from nsode_jax.dynamics.vectors import TrajectoryError, count, times_alike
from nsode_jax.observed.turning import rises_and_falls

MAX_POINTS = 1200
"""Longer series are reduced to so many points before fitting."""

MAX_POINTS_IN_ALL = 1200
"""So many all series of one law keep together."""

_MIN_POINTS_EACH = 24
_LISTED = 6
_FEWEST_EACH = 4
"""Of several series: each has an initial value of its own, and a curve through it."""


def read_series(
    t: Any,
    y: Any,
    sigma: Any = None,
    most_in_all: int = MAX_POINTS_IN_ALL,
    fewest: int = MIN_POINTS,
) -> tuple[tuple[Trajectory, ...], tuple[str, ...]]:
    """Clean and not too long trajectories of what a user gives as times and values.

    Args:
      t: times of one series, shape [time]; or a list of such for several series, or
        the times that all of them share.
      y: values likewise.
      sigma: standard deviations of the measurements: a number, an array [time], for several
        series a list of such; None if unknown.
      most_in_all: points to which several series together are reduced.
      fewest: points that are needed, in all.

    Returns:
      The trajectories, and sentences about what was done to them and what to be
      wary of.

    Raises:
      TrajectoryError: if a series cannot be used.
    """
    if not _is_several(y):
        if _is_several(t):
            raise TrajectoryError("There are several series of times but one of values.")
        trajectory, notes = _prepare(t, y, MAX_POINTS, fewest, sigma)
        return on_one_scale([trajectory]), tuple(notes)
    errors = errors_of_series(sigma, len(y))
    times = list(t) if _is_several(t) else [t] * len(y)
    if len(times) != len(y):
        raise TrajectoryError(f"There are {len(times)} series of times but {len(y)} of values.")
    if len(y) == 1:
        trajectory, notes = _prepare(times[0], y[0], MAX_POINTS, fewest, errors[0])
        return on_one_scale([trajectory]), tuple(notes)
    times, notes = times_alike(times)
    most = max(_MIN_POINTS_EACH, min(MAX_POINTS, most_in_all // len(y)))
    trajectories: list[Trajectory] = []
    places: dict[str, list[int]] = {}
    for number, (ti, yi, its) in enumerate(zip(times, y, errors, strict=True), start=1):
        try:
            trajectory, its_notes = _prepare(ti, yi, most, min(fewest, _FEWEST_EACH), its)
        except TrajectoryError as error:
            raise TrajectoryError(f"Series {number} of {len(y)}: {error}") from None
        trajectories.append(trajectory)
        for note in its_notes:
            places.setdefault(note, []).append(number)
    points = sum(map(len, trajectories))
    if points < fewest:
        raise TrajectoryError(
            f"All series together have {count(points, 'usable point')}; at least {fewest} are "
            "needed."
        )
    of_some = (f"Series {_listed(numbers)}: {note}" for note, numbers in places.items())
    return on_one_scale(trajectories), (*notes, *of_some)


def _listed(numbers: Sequence[int]) -> str:
    """Numbers as a list, which stops after a few."""
    shown = ", ".join(map(str, numbers[:_LISTED]))
    more = len(numbers) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _is_several(values: Any) -> bool:
    """Whether these are series rather than numbers."""
    return (
        isinstance(values, (list, tuple))
        and len(values) > 0
        and all(np.ndim(value) == 1 or np.shape(value)[1:] == (1,) for value in values)
    )


def _prepare(
    t: Any, y: Any, max_points: int, fewest: int, sigma: Any
) -> tuple[Trajectory, list[str]]:
    trajectory, cleaning_notes = clean(t, y, fewest, sigma)
    trajectory, thinning_notes = thin(trajectory, max_points)
    return trajectory, [*cleaning_notes, *thinning_notes, *_warnings(trajectory)]


def thin(
    trajectory: Trajectory, max_points: int = MAX_POINTS
) -> tuple[Trajectory, tuple[str, ...]]:
    """At most `max_points` points that stand for a longer series.

    The series is cut into blocks, half of them spread evenly over the rows and
    half over the changes of y, so that a short transient in a long record keeps
    its points. A block of five or more points becomes the value of its
    least-squares parabola in the middle, at the ends of the series at these: noise is
    averaged, and the curvature of clean data is not. Smaller blocks become one of their
    points. The noise of each is that of what it stands for.

    Args:
      trajectory: any series.
      max_points: most points to return.

    Returns:
      The points, and a note if there were more.
    """
    total = len(trajectory)
    if total <= max_points:
        return trajectory, ()
    t, y, weights = trajectory.t, trajectory.y, trajectory.weights

    coarse = np.linspace(0, total, min(total, 4096) + 1).astype(int)
    means = np.add.reduceat(y, coarse[:-1]) / np.diff(coarse)
    change = np.abs(np.diff(means, prepend=means[0]))
    # A noisy or steadily changing record has changes everywhere: only what stands
    # out counts (beyond 5 standard deviations if all of it is noise).
    change = np.maximum(change - 8 * np.median(change), 0.0)
    even = np.full(change.size, 1.0 / change.size)
    density = even if change.sum() == 0 else (even + change / change.sum()) / 2
    position = np.concatenate([[0.0], np.cumsum(density)]) / density.sum()
    edges = np.interp(np.linspace(0, 1, max_points + 1), position, coarse)
    edges = np.unique(np.round(edges).astype(int))

    blocks = list(zip(edges[:-1], edges[1:], strict=True))
    times, values, noise = (np.empty(len(blocks)) for _ in range(3))
    for i, (start, end) in enumerate(blocks):
        # Values at all times of the series are asked for: its ends stay.
        at_start, at_end = i == 0, i == len(blocks) - 1
        if end - start < 5:
            chosen = start if at_start else end - 1 if at_end else (start + end - 1) // 2
            times[i], values[i], noise[i] = t[chosen], y[chosen], 1 / weights[chosen]
            continue
        times[i] = t[start] if at_start else t[end - 1] if at_end else t[start:end].mean()
        unit = (t[end - 1] - t[start]) / 2
        design = np.vander((t[start:end] - times[i]) / unit, 3, increasing=True)
        shares = np.linalg.pinv(design * weights[start:end, None])[0]
        noise[i] = np.sqrt(shares @ shares)
        level = y[start]
        values[i] = level + shares @ (weights[start:end] * (y[start:end] - level))
    note = (
        f"The series has {total} points; laws were fitted to {len(blocks)} that stand for them "
        "(local averages or samples), and R2 refers to those."
    )
    return Trajectory(times, values, noise, trajectory.sigma), (note,)


# --- what to be wary of ----------------------------------------------------------


def _warnings(trajectory: Trajectory) -> list[str]:
    """A word where no law dy/dt = f(y) can explain the data: they rise and fall."""
    if rises_and_falls(trajectory):
        return [
            "The values rise and fall by more than noise, but every solution of dy/dt = f(y) only "
            "rises or only falls: no such law can explain this series. Try laws of second order "
            "(--order 2), of the time (--explicit-time), with an input or with other quantities."
        ]
    return []
