"""Variances of many series that are alike but not the same, each told by few observations.

The variance of a series with three degrees of freedom is often far too small by chance, and then
the series would count far too much. So each is drawn towards what is usual among all, by as much
as their own spread is what chance would give (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3, 3).
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

_LEAST = 1e-5
"""Of the median: smaller variances are no smaller, as their logarithms would decide all."""

_MANY = 1e4
"""Degrees of freedom beyond which the variances are the same."""


def moderated(
    squares: Float[np.ndarray, " series"], freedom: Float[np.ndarray, " series"]
) -> tuple[Float[np.ndarray, " series"], Float[np.ndarray, " series"]]:
    """The variance of each series, and by how many degrees of freedom it is known.

    Args:
      squares: sum of squared residuals of each; what is not finite tells nothing.
      freedom: degrees of freedom of each; none tells nothing.

    Returns:
      The variances, NaN where nothing tells of any; and their degrees of freedom, those of all
      series together at most.
    """
    tells = np.isfinite(squares) & (freedom > 0)
    if not tells.any():
        return np.full(squares.shape, math.nan), np.zeros(squares.shape)
    total = float(freedom[tells].sum())
    usual, weight = _prior(squares[tells], freedom[tells])
    own_squares, own_freedom = np.where(tells, squares, 0.0), np.where(tells, freedom, 0.0)
    if math.isinf(weight):
        return np.full(squares.shape, usual), np.full(squares.shape, total)
    known = own_freedom + weight
    return (own_squares + weight * usual) / known, np.minimum(known, total)


def _prior(
    squares: Float[np.ndarray, " told"], freedom: Float[np.ndarray, " told"]
) -> tuple[float, float]:
    """What variance is usual, and as how many degrees of freedom that counts.

    As infinitely many where the variances differ by no more than chance.
    """
    pooled, own = float(squares.sum() / freedom.sum()), squares / freedom
    if own.size < 2 or not pooled > 0.0:
        return pooled, math.inf
    logs = np.log(np.maximum(own, _LEAST * (np.median(own) or pooled)))
    centred = logs - digamma(freedom / 2) + np.log(freedom / 2)
    more = float(np.var(centred, ddof=1) - np.mean(polygamma(1, freedom / 2)))
    if more <= float(polygamma(1, _MANY / 2)):
        return pooled, math.inf
    half = brentq(lambda log: float(polygamma(1, math.exp(log))) - more, -20.0, math.log(_MANY))
    assert isinstance(half, float)  # And no report on the search: none was asked for.
    weight = 2 * math.exp(half)
    mean = float(np.mean(centred)) + float(digamma(weight / 2)) - math.log(weight / 2)
    return math.exp(mean), weight
