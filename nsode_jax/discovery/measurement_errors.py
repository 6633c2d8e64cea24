"""Errors of measurement, known or relative to each other, on one scale for all series."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory, typical
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.observed.dataset import Dataset
from nsode_jax.selection.score import RELATIVE_FLOOR


def errors_of_series(sigma: Any, number: int) -> list[Any]:
    """What was given for each of several series: a number for all, or one entry for each.

    Args:
      sigma: standard deviations, in units of y; None if unknown.
      number: of series.

    Raises:
      TrajectoryError: if there are more or fewer entries than series.
    """
    if sigma is None or not np.iterable(sigma):
        return [sigma] * number
    entries = list(sigma)
    if len(entries) != number:
        raise TrajectoryError(
            f"There are {number} series of values but {len(entries)} of errors (sigma); "
            "give one number for all, or a list of a number or an array for each."
        )
    return entries


def on_one_scale(series: Sequence[Trajectory]) -> tuple[Trajectory, ...]:
    """The series with errors as multiples of what is typical of all together.

    Errors that are unknown are so, but means of many values are known better than single ones.

    Raises:
      TrajectoryError: if errors are known of some series only.
    """
    known = [one.sigma is not None for one in series]
    if any(known) and not all(known):
        raise TrajectoryError(
            "Measurement errors (sigma) are given for some series and not for others; give them "
            "for all."
        )
    errors = [(one.sigma or 1.0) / one.weights for one in series]
    size = typical(np.concatenate(errors))
    scaled = [one.with_errors(each, size) for one, each in zip(series, errors, strict=True)]
    if all(known):
        return tuple(scaled)
    return tuple(dataclasses.replace(one, sigma=None) for one in scaled)


def judged_by_their_errors(data: Dataset) -> tuple[Dataset, tuple[str, ...]]:
    """The data as they are, or without the size of errors that are too small to be judged by.

    Solutions are fitted to so many digits only. What is known more exactly is fitted as if
    the errors were unknown; how they compare with each other still counts.

    Returns:
      The data, and a note where the size of the errors was left out.
    """
    if data.sigma is None or data.sigma > RELATIVE_FLOOR * data.spread:
        return data, ()
    series = tuple(dataclasses.replace(one, sigma=None) for one in data)
    note = (
        f"The measurement errors (typically {data.sigma:.2g}) are below a hundred-thousandth of "
        "the spread of the values, finer than solutions are fitted; only how they compare with "
        "each other was used, and no goodness of fit is stated."
    )
    return dataclasses.replace(data, trajectories=series), (note,)
