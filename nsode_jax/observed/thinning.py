"""Which rows of a long run are kept: few, but enough to follow what it does."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import PchipInterpolator

from nsode_jax.observed.smoothing import noise_of_neighbours

_MISSED = 0.15
"""Share of a quantity's spread by which a curve through the rows that are kept may miss others:
with six rows a period or so."""

_NOISE = 2.0
"""Distances of values from where their neighbours lead, by which noise alone is missed."""


def evenly_spread(size: int, most: int) -> Int[np.ndarray, " chosen"]:
    """All places, or so many at most, evenly spread."""
    return np.linspace(0, size - 1, min(size, most)).round().astype(int)


def rows_to_keep(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, "time observed"], most: int
) -> Int[np.ndarray, " chosen"]:
    """So many rows at most, evenly spread over the run, or over its beginning.

    An oscillation of which less than two rows a period are kept looks like a slower one (Shannon
    1949, Proc. IRE 37). So they are spread over as much of the run as they can follow.

    Args:
      t: increasing times.
      y: values, finite.
      most: rows.
    """
    shown = t.size
    while shown > most:
        chosen = evenly_spread(shown, most)
        if _follow(t[:shown], y[:shown], chosen):
            return chosen
        shown = max(most, shown // 2)
    return np.arange(shown)


def _follow(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, "time observed"],
    chosen: Int[np.ndarray, " chosen"],
) -> bool:
    """Whether curves through the chosen rows lead to where the others are."""
    curves = PchipInterpolator(t[chosen], y[chosen])(t)
    missed = np.sqrt(np.mean((y - curves) ** 2, axis=0))
    noise = np.array([noise_of_neighbours(t, column) for column in y.T])
    return bool((missed <= _NOISE * noise + _MISSED * y.std(axis=0)).all())
