"""Whether known errors of measurement account for the residuals of a fitted law."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import stats

from nsode_jax.expressions.constants import is_plain
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import Fit


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


def chi_squared(data: Dataset, fit: Fit) -> ChiSquared | None:
    """Of a fit; None where errors are unknown, and where there is no more data than numbers."""
    numbers = sum(not is_plain(constant) for constant in fit.expression.constants)
    freedom = data.count - numbers - len(data)
    if data.sigma is None or freedom < 1:
        return None
    return ChiSquared(data.count * (fit.residual_rms / data.sigma) ** 2, freedom)


def goodness_of_fit(data: Dataset, fit: Fit) -> float:
    """Probability of so bad a fit if law and errors are right; NaN where it is not known."""
    found = chi_squared(data, fit)
    return math.nan if found is None else found.probability
