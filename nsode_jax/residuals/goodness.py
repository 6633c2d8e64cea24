"""Whether errors of measurement account for the residuals of a fitted law.

They are known, or what replicates tell of them. The variance within the times that several
series share is no measure by itself: each series has an initial value of its own, and what
follows from that is scatter too. About the solutions of a fitted law it is. But then nothing is
gained by taking it for known: it is the same sum of squares for all laws, which the likelihood
with a variance to be estimated holds already, and it is not known exactly. What replicates do
tell is whether the law misses what they have in common, which noise does not: the test for lack
of fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from nsode_jax.expressions.constants import is_plain
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.linearized import Linearized
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.noise import CLEAN, directions

_NOTHING = 1e-9  # Of a sum of squares.
_FEWEST = 10
"""Degrees of freedom within shared times below which replicates tell too little."""

_FEWEST_LEFT = 4
"""Degrees of freedom below which series with constants of their own tell too little."""

_SAME_TIME = 1e-9  # Of the span.


class ChiSquared(NamedTuple):
    """The sum of squared residuals, each divided by its standard deviation.

    Attributes:
      value: of the sum.
      freedom: observations beyond the fitted constants and initial values: what is expected.
    """

    value: float
    freedom: int

    @property
    def probability(self) -> float:
        """Of so large a sum, or a larger one, if the law and the errors are right."""
        return float(stats.chi2.sf(self.value, self.freedom))


def freedom_of(data: Dataset, fit: Fit) -> int:
    """Observations beyond the fitted constants and initial values."""
    numbers = sum(not is_plain(constant) for constant in fit.expression.constants)
    return data.count - numbers - len(data)


def chi_squared(data: Dataset, fit: Fit) -> ChiSquared | None:
    """Of a fit; None where errors are unknown, and where there is no more data than numbers."""
    freedom = freedom_of(data, fit)
    if data.sigma is None or freedom < 1:
        return None
    return ChiSquared(data.count * (fit.residual_rms / data.sigma) ** 2, freedom)


def goodness_of_fit(data: Dataset, fit: Fit) -> float:
    """Probability of so bad a fit if law and errors are right; NaN where it is not known."""
    found = chi_squared(data, fit)
    return math.nan if found is None else found.probability


class LackOfFit(NamedTuple):
    """What series that share times tell of a law.

    Attributes:
      probability: that a right law misses as much of what the series have in common.
      scatter: root mean square of what they have not, relative to the spread of the data.
      freedom: degrees of freedom of that.
    """

    probability: float
    scatter: float
    freedom: int


def lack_of_fit(
    linear: Linearized, times: Float[np.ndarray, " observations"], weights: np.ndarray
) -> LackOfFit | None:
    """The F test for lack of fit with replicates (Draper and Smith 1998, section 2.1).

    To the constants and initial values of the fit a value for each time that is shared is added;
    how much of the sum of squares goes with those is compared with what is left, to first order.

    Args:
      linear: the fit.
      times: of the observations, on one clock for all series.
      weights: of the observations, shape [observations].

    Returns:
      The test; None where too few times are shared, where the series do not scatter, and for
      data too clean to tell.
    """
    span = float(np.ptp(times)) or 1.0
    _, group = np.unique(np.round((times - times.min()) / span / _SAME_TIME), return_inverse=True)
    shared = np.flatnonzero(np.bincount(group) > 1)
    if not shared.size or linear.rms < CLEAN:
        return None
    common = weights[:, None] * (group[:, None] == shared)
    split = _split(linear, common)
    if split.freedom < _FEWEST or not split.added:
        return None
    if split.rest <= _NOTHING * split.gain:
        return None  # Series that are the same in all digits are copies, no replicates.
    return LackOfFit(split.f_test, math.sqrt(split.rest / split.freedom), split.freedom)


def constants_differ(
    linear: Linearized, lengths: Sequence[int], sigma: float | None = None
) -> float:
    """Probability of series as different as these if the constants of the law are common to all.

    To the constants and initial values of the fit the same constants for each series are added,
    and the sum of squares that goes with them is compared with what is left (F test), or with
    the known errors (chi-squared), to first order.

    Args:
      linear: the fit with common constants; its initial values come last.
      lengths: number of observations of each series.
      sigma: known standard deviation of an observation, relative to the spread of the data.

    Returns:
      NaN for one series, where too little is left to tell the noise, and for data too clean.
    """
    number = linear.jacobian.shape[1] - len(lengths)
    if len(lengths) < 2 or not number or linear.rms < CLEAN:
        return math.nan
    which = np.repeat(np.arange(len(lengths)), lengths)
    own = [linear.jacobian[:, :number] * (which == i)[:, None] for i in range(len(lengths))]
    split = _split(linear, np.hstack(own))
    if sigma is not None:
        return float(stats.chi2.sf(split.gain / sigma**2, split.added))
    if split.freedom < _FEWEST_LEFT or not split.added:
        return math.nan
    return split.f_test


class _Split(NamedTuple):
    """What more parameters would explain of the sum of squares, and what not."""

    gain: float
    added: int
    rest: float
    freedom: int

    @property
    def f_test(self) -> float:
        """Probability of so large a gain by chance."""
        if self.rest <= 0.0:
            return 0.0 if self.gain > 0.0 else math.nan
        ratio = self.gain / self.added / (self.rest / self.freedom)
        return float(stats.f.sf(ratio, self.added, self.freedom))


def _split(linear: Linearized, more: Float[np.ndarray, "observations more"]) -> _Split:
    """By columns beside the Jacobian of a fit, to first order."""
    fitted = directions(linear.jacobian)
    residual = linear.residual - fitted @ (fitted.T @ linear.residual)
    added = directions(more - fitted @ (fitted.T @ more))
    freedom = residual.size - fitted.shape[1] - added.shape[1]
    gain = float(np.sum((added.T @ residual) ** 2))
    return _Split(gain, added.shape[1], float(residual @ residual) - gain, freedom)
