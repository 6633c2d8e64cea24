"""Values of which only a limit is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class Limits:
    """Values of a series of which only a limit is known: "<0.1".

    Attributes:
      t: times.
      limit: the limits, NaN where none is told ("BLQ").
      below: whether the value is below its limit, rather than above.
    """

    t: Float[np.ndarray, " limit"]
    limit: Float[np.ndarray, " limit"]
    below: Bool[np.ndarray, " limit"]

    def __post_init__(self):
        for name, kind in (("t", np.float64), ("limit", np.float64), ("below", bool)):
            object.__setattr__(self, name, np.asarray(getattr(self, name), kind))
        if not self.t.shape == self.limit.shape == self.below.shape or self.t.ndim != 1:
            raise ValueError("limits need as many times as limits and sides")

    def rescaled(self, t0: float, c: float, b: float, a: float) -> Limits:
        """In the units z = (y - b) / a and s = (t - t0) / c, a positive."""
        return Limits((self.t - t0) / c, (self.limit - b) / a, self.below)
