"""One constant over many series: may they share one value?"""

from __future__ import annotations

import dataclasses
import math

from nsode_jax.expressions.display import value_with_error
from nsode_jax.results.formatting import value_within

EQUAL = 0.01
"""Probability of a scatter as wide as seen, below which constants are not called equal."""

_SEEN = 0.005
"""Of the range of a constant, by which values are told apart."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One constant over all series.

    Attributes:
      name: of the constant.
      mean, standard_error: of all series, each weighted by its precision; NaN where the data of
        at most one of several determine it.
      median, low, high: of the values of the series.
      p_value: probability of values as different as these if all series shared one; NaN
        for a constant that they were made to share, or of which too little is known.
    """

    name: str
    mean: float
    standard_error: float
    median: float
    low: float
    high: float
    p_value: float

    @property
    def may_be_shared(self) -> bool:
        """Whether the series do not contradict one value for all."""
        return self.p_value >= EQUAL

    @property
    def is_common(self) -> bool:
        """Whether the mean says something: one value for all is imposed, or possible."""
        return self.may_be_shared or not math.isnan(self.mean) and math.isnan(self.p_value)

    @property
    def range_text(self) -> str:
        """Such as `0.61 to 1.2`."""
        return f"{self._shown(self.low)} to {self._shown(self.high)}"

    @property
    def median_text(self) -> str:
        """The median in as many digits as the range."""
        return self._shown(self.median)

    def _shown(self, value: float) -> str:
        return value_within(value, _SEEN * (self.high - self.low) or math.inf)

    def __str__(self) -> str:
        if math.isnan(self.median):
            return f"{self.name}: the data of no series determine it"
        if math.isnan(self.mean):
            return f"{self.name}: {self.median:.4g} in the only series whose data determine it"
        if math.isnan(self.p_value):
            return f"{self.name} = {value_with_error(self.mean, self.standard_error)}"
        spread = f"{self.name}: {self.range_text}, median {self.median_text}"
        if not self.may_be_shared:
            return f"{spread}; differs between the series ({p_said(self.p_value)})"
        mean = value_with_error(self.mean, self.standard_error)
        return f"{spread}; one value for all is possible: {mean} (p = {self.p_value:.2g})"


def p_text(p_value: float) -> str:
    """A small probability, as people read it."""
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.2g}"


def p_said(p_value: float) -> str:
    """Such as `p = 0.003` or `p < 0.0001`."""
    text = p_text(p_value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
