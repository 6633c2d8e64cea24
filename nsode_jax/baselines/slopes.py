"""Estimates of dy/dt for methods that know nothing of time."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

_DEGREES = (2, 4)
_NUM_WINDOWS = 10
_FREEDOM_WEIGHT = 1.4


@dataclasses.dataclass(frozen=True, eq=False)
class Slopes:
    """What a regression of dy/dt on y is given.

    Attributes:
      y: smoothed values, shape [time].
      slope: estimates of dy/dt, shape [time].
    """

    y: Float[np.ndarray, " time"]
    slope: Float[np.ndarray, " time"]


def differentiate(t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]) -> Slopes:
    """Values and slopes of local polynomials, chosen by generalized cross-validation.

    On clean data the narrowest windows win, and this is close to a finite difference; on
    noisy data wide ones, and this is a Savitzky-Golay filter, here for uneven times too.
    Degrees of freedom count 1.4 times, against following the noise of short series.

    Args:
      t: strictly increasing times, at least 8, shape [time].
      y: values, shape [time].
    """
    widest = max(7, t.size // 2)
    windows = sorted({int(width) | 1 for width in np.geomspace(5, widest, _NUM_WINDOWS)})

    def fits() -> Iterator[tuple[float, Slopes]]:
        for degree, window in itertools.product(_DEGREES, windows):
            if degree + 1 < window <= t.size:
                values, slopes, leverage = local_polynomials(t, y, window, degree)
                freedom = 1 - _FREEDOM_WEIGHT * leverage.mean()
                error = np.mean((y - values) ** 2) / freedom**2 if freedom > 0 else np.inf
                yield float(error), Slopes(values, slopes)

    return min(fits(), key=lambda fit: fit[0])[1]


def local_polynomials(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], window: int, degree: int
) -> tuple[Float[np.ndarray, " time"], Float[np.ndarray, " time"], Float[np.ndarray, " time"]]:
    """A least-squares polynomial around each time.

    Args:
      t: strictly increasing times, shape [time].
      y: values, shape [time].
      window: consecutive points of each fit, centered but at the ends; more than
        `degree` and at most [time]. With degree + 1 points it is a finite difference.
      degree: of the polynomials, at least 1.

    Returns:
      Its values and slopes at the times, and each point's leverage: the weight of its
      value in its own fit, below 1 where the window exceeds degree + 1.
    """
    index = np.arange(t.size)
    start = np.clip(index - window // 2, 0, t.size - window)
    columns = start[:, None] + np.arange(window)
    away = t[columns] - t[:, None]
    reach = np.abs(away).max(axis=1)
    powers = (away / reach[:, None])[..., None] ** np.arange(degree + 1)
    weights = np.linalg.pinv(powers)  # [time, degree + 1, window]
    values = (weights[:, 0] * y[columns]).sum(axis=1)
    slopes = (weights[:, 1] * y[columns]).sum(axis=1) / reach
    return values, slopes, weights[index, 0, index - start]
