"""Initial guesses spread over what the constants of a skeleton may be.

A sine or an exponential has many local optima in its constants, so a fit needs several
starts. Those here are quasi-random (Halton, 1960): the first few cover the range, more
cover it more densely, and all are the same every time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy.stats import qmc

from nsode_jax.expressions.constants import exponent_constants, linear_constants
from nsode_jax.expressions.expression import Skeleton
from nsode_jax.fitting.guesses import InitialGuess

STARTS = 8
"""So many, two steps from each and eight from the best of them, found 80 of the 89 laws of
a test set that the enumeration holds; three starts of five steps each found 69, sixteen of
three 81."""

_SMALLEST, _LARGEST = 0.3, 10.0
_POSITIVE_SHARE = 0.7
_SMALLEST_EXPONENT, _LARGEST_EXPONENT, _LEAST_EXPONENT = 0.4, 8.0, -4.0
_WHOLE_EXPONENTS = np.array([2.0, 3.0, -1.0, 2.0, 4.0, -2.0, 3.0, 0.5])
_ANY = 1.1
"""Where a constant begins that is solved for; 1 may be no constant in a skeleton."""


def spread_guesses(skeleton: Skeleton) -> Iterator[InitialGuess]:
    """Guesses for data of ordinary size: all constants free, and whole exponents that stay.

    Constants on which f depends linearly are solved for, so skeletons of no others have
    one start.
    """
    exponents = exponent_constants(skeleton)
    nonlinear = ~linear_constants(skeleton)
    starts = np.full((STARTS if nonlinear.any() else 1, skeleton.num_constants), _ANY)
    inner = nonlinear & ~exponents
    points = _points(max(1, int(nonlinear.sum())))
    share = np.zeros_like(starts)
    share[:, nonlinear] = points[: len(starts), : nonlinear.sum()]
    starts[:, inner] = _of_any_sign(share[:, inner])
    starts[:, exponents] = _exponents(share[:, exponents])
    everything = np.ones(skeleton.num_constants, bool)
    yield InitialGuess(skeleton.with_constants(starts[0]), everything, starts)
    if exponents.any():
        turn = np.arange(len(starts))[:, None] + 3 * np.arange(exponents.sum())
        starts = starts.copy()
        starts[:, exponents] = _WHOLE_EXPONENTS[turn % _WHOLE_EXPONENTS.size]
        # Exponents that are packed as 2 are compiled as squares, and stay so.
        yield InitialGuess(
            skeleton.with_constants(np.where(exponents, 3.0, starts[0])), ~exponents, starts
        )


@functools.cache
def _points(dimensions: int) -> Float[np.ndarray, "starts dimensions"]:
    """Evenly spread over the unit cube; 0, the first point of the sequence, is left out."""
    return qmc.Halton(dimensions, scramble=False).random(STARTS + 1)[1:]


def _of_any_sign(share: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Of either sign, the logarithm of the magnitude uniform."""
    side = 2 * share - 1
    magnitude = _SMALLEST * (_LARGEST / _SMALLEST) ** np.abs(side)
    return np.where(side < 0, -magnitude, magnitude)


def _exponents(share: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Positive more often than negative, likewise uniform."""
    positive = share / _POSITIVE_SHARE
    negative = (share - _POSITIVE_SHARE) / (1 - _POSITIVE_SHARE)
    return np.where(
        share < _POSITIVE_SHARE,
        _SMALLEST_EXPONENT * (_LARGEST_EXPONENT / _SMALLEST_EXPONENT) ** positive,
        -_SMALLEST_EXPONENT * (-_LEAST_EXPONENT / _SMALLEST_EXPONENT) ** negative,
    )


__all__ = ["STARTS", "spread_guesses"]
