"""Bounds on constants, such as K > 0."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

_PRESSED = 1e-3
"""Of a standard error: a constant that near to its bound would be beyond it without."""

_TOUCHING = 1e-6
"""Of its magnitude, where the standard error is unknown."""

_LEAST = 1e-300


@dataclasses.dataclass(frozen=True, eq=False)
class Bounds:
    """The least and the greatest value that each constant may have; infinite for no such.

    Attributes:
      low, high: shape [constants].
    """

    low: Float[np.ndarray, " constants"]
    high: Float[np.ndarray, " constants"]

    @classmethod
    def of(cls, given: Any, names: Sequence[str]) -> Bounds | None:
        """Those of named constants; None if none are given.

        Args:
          given: a mapping, (low, high) by the name of a constant; None for no such bound.
          names: of all constants, in their order.

        Raises:
          ValueError: if there is no such constant, nothing between its bounds, or if they are no
            such pair.
        """
        if not isinstance(given, Mapping):
            raise ValueError(f"bounds are {{name: (low, high)}}, got {given!r}")
        if unknown := [name for name in given if name not in names]:
            raise ValueError(
                f"the law has the constants {', '.join(names)}; there is no "
                f"{', '.join(unknown)} to be bounded"
            )
        low, high = np.full(len(names), -math.inf), np.full(len(names), math.inf)
        for name, ends in given.items():
            place = names.index(name)
            least, greatest = _pair(name, ends)
            low[place] = -math.inf if least is None else least
            high[place] = math.inf if greatest is None else greatest
            if not low[place] < high[place]:
                raise ValueError(f"nothing is between the bounds of {name}: {least}, {greatest}")
        return cls(low, high) if given else None

    def holds(self, values: Float[np.ndarray, "*of constants"]) -> bool:
        """Whether all values are within."""
        return bool(((self.low <= values) & (values <= self.high)).all())

    def reflected(self, values: Float[np.ndarray, "*of constants"]) -> Float[np.ndarray, "..."]:
        """The values, mirrored at their bounds until they are within; none 0: that has no scale."""
        low, high = (
            np.broadcast_to(self.low, values.shape),
            np.broadcast_to(self.high, values.shape),
        )
        result = np.array(values, np.float64)
        below, above = np.isfinite(low), np.isfinite(high)
        one = below & ~above
        result[one] = low[one] + np.abs(result[one] - low[one])
        one = above & ~below
        result[one] = high[one] - np.abs(high[one] - result[one])
        both = below & above
        width = high[both] - low[both]
        result[both] = low[both] + width - np.abs(width - (result[both] - low[both]) % (2 * width))
        return np.where(np.abs(result) < _LEAST, np.where(high > 0, _LEAST, -_LEAST), result)

    def relative(
        self, scale: Float[np.ndarray, " parameters"]
    ) -> tuple[Float[np.ndarray, " parameters"], Float[np.ndarray, " parameters"]]:
        """Those of parameters that are divided by a scale; such beyond the constants have none."""
        more = np.full(scale.size - self.low.size, math.inf)
        return np.append(self.low, -more) / scale, np.append(self.high, more) / scale

    def pressed(
        self,
        values: Float[np.ndarray, "series constants"],
        errors: Float[np.ndarray, "series constants"],
    ) -> Bool[np.ndarray, "series constants"]:
        """Which constants of a fit are at a bound: without it they would be beyond.

        Args:
          values: as fitted.
          errors: their standard errors; NaN where they are unknown.
        """
        near = np.where(errors > 0, _PRESSED * errors, _TOUCHING * np.abs(values) + 1e-300)
        return (values - self.low < near) | (self.high - values < near)


def _pair(name: str, ends: Any) -> tuple[float | None, float | None]:
    """The two ends that a user gave."""
    try:
        given = () if isinstance(ends, str) else ends
        least, greatest = (None if end is None else float(end) for end in given)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds of {name} are (low, high), None for no such bound; got {ends!r}"
        ) from None
    return least, greatest
