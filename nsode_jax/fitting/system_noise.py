"""What the residuals of a fitted system tell of noise: does it grow with the values?"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from nsode_jax.fitting.observations import Observations
from nsode_jax.fitting.shooting import SystemFit, solutions_of

_FEWEST = 20
"""Points that tell how noise grows."""

_LEAST_SIZE = 0.05
"""Of the largest value: noise does not fall below what belongs to it."""

_LEAST_RANGE = 1.5
_EXPLAINED = 0.9
"""Share of the variance that a law must explain, for what it leaves to be noise."""

_EXACT = 1e-4
"""Of the spread; residuals below are those of a solver."""

_CONVINCING, _CONVINCING_FEW = 7.0, 100.0
"""Twice a logarithm of likelihoods, and what is divided by the number of points and added: in
noise of one size about true solutions it is exceeded in 1% of series at most, of 20 to 150
points."""


def with_growing_noise(
    data: Observations, fit: SystemFit
) -> tuple[Observations, tuple[str, ...]] | None:
    """The data with the sizes of noise that the residuals of a system show.

    For each quantity noise that is proportional to the solution must tell its residuals far
    better than noise of one size.

    Returns:
      The data and the names of the quantities whose noise grows; None if that of none does.
    """
    if fit.diverged:
        return None
    solved = solutions_of(data, fit)
    left = np.concatenate([run.y - y for run, y in zip(data.runs, solved, strict=True)])
    values = np.concatenate(solved)
    sizes, growing = np.ones_like(values), []
    for k, name in enumerate(data.system.observed):
        unexplained = (fit.residuals[k] / data.spread[k]) ** 2
        size = _grows(left[:, k], values[:, k])
        if _EXACT**2 < unexplained < 1 - _EXPLAINED and size is not None:
            sizes[:, k] = size
            growing.append(name)
    if not growing:
        return None
    ends = np.cumsum([len(run) for run in data.runs])[:-1]
    parts = zip(data.runs, np.split(sizes, ends), strict=True)
    runs = tuple(dataclasses.replace(run, noise_sizes=part) for run, part in parts)
    return dataclasses.replace(data, runs=runs), tuple(growing)


def _grows(
    left: Float[np.ndarray, " time"], values: Float[np.ndarray, " time"]
) -> Float[np.ndarray, " time"] | None:
    """Relative sizes of noise that grows with the values; None if it is of one size."""
    size = np.abs(values)
    size = np.sqrt(size**2 + (_LEAST_SIZE * size.max()) ** 2)
    number = left.size
    if number < _FEWEST or not size.max() > _LEAST_RANGE * size.min():
        return None
    constant = number * np.log(np.mean(left**2))
    proportional = number * np.log(np.mean((left / size) ** 2)) + 2 * np.log(size).sum()
    if constant - proportional < _CONVINCING + _CONVINCING_FEW / number:
        return None
    return size / size.mean()
