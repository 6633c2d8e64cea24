"""Whether residuals are alike from one observation to the next, which independent noise is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from nsode_jax.fitting.linearized import autocorrelation

_SIGNIFICANT = 2.58  # Standard deviations: one in a hundred by chance.


class Pattern(NamedTuple):
    """How the residuals of one or several series follow one another.

    Attributes:
      changes: of their sign.
      expected: so many by chance.
      deviation: of the changes from that, in standard deviations.
      autocorrelation: of neighbouring residuals.
      pairs: of neighbours.
    """

    changes: int
    expected: float
    deviation: float
    autocorrelation: float
    pairs: int

    @property
    def is_systematic(self) -> bool:
        """Whether neighbours are alike beyond chance."""
        alike = self.autocorrelation * math.sqrt(self.pairs) > _SIGNIFICANT
        return alike or self.deviation < -_SIGNIFICANT

    @property
    def alternates(self) -> bool:
        """Whether neighbours differ in sign beyond chance."""
        return self.deviation > _SIGNIFICANT and not self.is_systematic

    @property
    def counted(self) -> str:
        """The changes of sign beside those by chance, in words."""
        times = "time" if self.changes == 1 else "times"
        return (
            f"they change sign {self.changes} {times} where chance would give about "
            f"{self.expected:.0f} (autocorrelation {self.autocorrelation:.2f})"
        )


def pattern_of(series: Sequence[Float[np.ndarray, " _"]]) -> Pattern:
    """How residuals follow one another, by the runs test of Wald and Wolfowitz (1940).

    Args:
      series: finite residuals over time of each series, alike noisy.
    """
    changes, expected, variance = 0, 0.0, 0.0
    for residuals in series:
        positive = residuals[residuals != 0] > 0
        n, ups = positive.size, int(positive.sum())
        if n < 2:
            continue
        product = 2.0 * ups * (n - ups)
        changes += int((positive[1:] != positive[:-1]).sum())
        expected += product / n
        variance += product * (product - n) / (n**2 * (n - 1))
    deviation = (changes - expected) / math.sqrt(variance) if variance > 0 else 0.0
    pairs = sum(max(len(residuals) - 1, 0) for residuals in series)
    return Pattern(changes, expected, deviation, autocorrelation(series), pairs)
