"""Whether the first observations follow the law of the others: a lag phase does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import linalg, stats

from nsode_jax.fitting.linearized import Linearized
from nsode_jax.residuals.noise import CLEAN, RANDOM, SIGNIFICANCE, alike, directions

_MOST = 1 / 3
"""Share of the observations that may be called the first."""

_LENGTHS = 16
"""So many lengths of the beginning are tried, evenly on a scale of ratios."""

_FEWEST, _FEWEST_LEFT = 2, 6
_MORE_THAN_ONE = 0.01
_UNDETERMINED = 1e-6
_SIMULATED = 999


class Beginning(NamedTuple):
    """Observations that do not follow the law of the others.

    Attributes:
      until: the last of their times.
      side: 1.0 if most of them lie above the law that the others follow, -1.0 below.
    """

    until: float
    side: float


def odd_beginning(
    linear: Linearized, times: Float[np.ndarray, " observations"]
) -> Beginning | None:
    """The first observations, if the law explains the others clearly better without them.

    The law is fitted again, to first order, without those up to some time; how much of the sum
    of squares goes is an F statistic (Cook and Weisberg 1982, Residuals and Influence in
    Regression, section 3.6). Of several such times the one with the least probability counts.
    How often it is as small by chance is simulated: normal residuals, their fitted directions
    removed, give a false alarm in at most `SIGNIFICANCE` of series of any length (Davison and
    Hinkley 1997, Bootstrap Methods, section 4.2). A single outlier is none, and where the others
    do not look like noise either, the law is wrong everywhere.

    Args:
      linear: the fit of all of them.
      times: of the observations, of several series one after the other.

    Returns:
      The beginning; None where there is none, and for data too clean to tell.
    """
    count = linear.residual.size
    basis = directions(linear.jacobian)
    if linear.rms < CLEAN or count - basis.shape[1] < _FEWEST_LEFT:
        return None
    projection = np.eye(count) - basis @ basis.T
    residual = projection @ linear.residual
    drawn = np.random.default_rng(0).standard_normal((_SIMULATED, count)) @ projection
    sets = [np.flatnonzero(times <= until) for until in ends_of_beginning(times)]
    chances, simulated = [], np.ones(_SIMULATED)
    for first in sets:
        chance = _chance(np.vstack([residual, drawn]), projection, first)
        chances.append(chance[0])
        simulated = np.minimum(simulated, chance[1:])
    if not chances or (1 + (simulated <= min(chances)).sum()) > SIGNIFICANCE * (1 + _SIMULATED):
        return None
    first = sets[int(np.argmin(chances))]
    deleted = linalg.solve(projection[np.ix_(first, first)], residual[first], assume_a="pos")
    left = residual - projection[:, first] @ deleted
    others = np.delete(np.arange(count), first)
    if np.mean(alike(drawn[:, others]) < alike(left[others])) > RANDOM:
        return None
    if not _more_than_one(residual, projection, first):
        return None
    # A residual is the law minus the observation.
    return Beginning(float(times[first].max()), float(-np.sign(np.median(deleted)) or 1.0))


def ends_of_beginning(times: Float[np.ndarray, " observations"]) -> list[float]:
    """Times that may end the beginning: so many points at least, and a third of them at most."""
    each = np.unique(times)
    before = np.searchsorted(np.sort(times), each, side="right")
    possible = each[(before >= _FEWEST) & (before <= _MOST * times.size)]
    if not possible.size:
        return []
    places = np.geomspace(1, possible.size, min(_LENGTHS, possible.size)).round().astype(int) - 1
    return possible[np.unique(places)].tolist()


def _gain(
    residuals: Float[np.ndarray, "*simulated observations"],
    projection: Float[np.ndarray, "observations observations"],
    left_out: np.ndarray,
) -> Float[np.ndarray, "*simulated"]:
    """By how much the sum of squares falls without some observations; 0 if they are needed."""
    own = projection[np.ix_(left_out, left_out)]
    values, vectors = np.linalg.eigh(own)
    if values[0] < _UNDETERMINED:
        return np.zeros(residuals.shape[:-1])
    return np.asarray(((residuals[..., left_out] @ vectors) ** 2 / values).sum(axis=-1))


def _chance(
    residuals: Float[np.ndarray, "simulated observations"],
    projection: Float[np.ndarray, "observations observations"],
    left_out: np.ndarray,
) -> Float[np.ndarray, " simulated"]:
    """Probability of so large a gain, by F; 1 where too few observations are left."""
    freedom = round(float(np.trace(projection))) - left_out.size
    if freedom < _FEWEST_LEFT:
        return np.ones(len(residuals))
    gain = _gain(residuals, projection, left_out)
    rest = np.maximum((residuals**2).sum(axis=1) - gain, 1e-300)
    return stats.f.sf(gain / left_out.size / (rest / freedom), left_out.size, freedom)


def _more_than_one(
    residual: Float[np.ndarray, " observations"],
    projection: Float[np.ndarray, "observations observations"],
    first: np.ndarray,
) -> bool:
    """Whether leaving out the worst of them alone is clearly not enough."""
    alone = max(float(_gain(residual, projection, np.array([i]))) for i in first)
    together = float(_gain(residual, projection, first))
    freedom = round(float(np.trace(projection))) - first.size
    rest = max(float(residual @ residual) - together, 1e-300)
    ratio = (together - alone) / (first.size - 1) / (rest / freedom)
    return bool(stats.f.sf(ratio, first.size - 1, freedom) < _MORE_THAN_ONE)
