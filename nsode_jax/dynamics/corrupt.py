"""What measurement does to a solution: noise, gaps, few points, a short window.

Paper, appendix A, names noise and dropped samples as extensions of the training
data; real series need them.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.dynamics.trajectory import MIN_POINTS
from nsode_jax.system.settings import require_at_least_1, require_shares

_COVERED = 0.95
"""Of the time of all points, by those that are kept."""


@dataclasses.dataclass(frozen=True)
class CorruptionConfig:
    """How clean solutions are turned into observations. The default leaves them.

    Attributes:
      noisy_share: share of the series that get noise.
      min_noise, max_noise: noise level relative to the series' standard
        deviation (additive) or to each value (multiplicative), log-uniform.
      sparse_share: share of the series reduced to few points, at least the fewest
        that discovery accepts, at equal distances or not.
      irregular_share: share of the sparse series whose times are irregular.
      dropped_share: share of the series that lose some of their points at random.
      max_dropped: largest share of its points that such a series loses.
      window_share: share of the series cut to a shorter time window, which then
        starts at time 0.
      min_window: shortest window, as a share of the whole.
      copies: observations made of each fresh solution of a bank, which takes longer
        to make; in epochs over a stored data set each is made anew anyway.
    """

    noisy_share: float = 0.0
    min_noise: float = 1e-3
    max_noise: float = 0.1
    sparse_share: float = 0.0
    irregular_share: float = 0.5
    dropped_share: float = 0.0
    max_dropped: float = 0.5
    window_share: float = 0.0
    min_window: float = 0.25
    copies: int = 1

    def __post_init__(self):
        require_shares(
            self,
            "noisy_share",
            "sparse_share",
            "irregular_share",
            "dropped_share",
            "max_dropped",
            "window_share",
            "min_window",
        )
        require_at_least_1(self, "copies")
        if not 0.0 < self.min_noise <= self.max_noise:
            raise ValueError(
                f"noise must satisfy 0 < min_noise <= max_noise, "
                f"got {self.min_noise}, {self.max_noise}"
            )


def evenly_spaced(available: int, count: int) -> Int[np.ndarray, " kept"]:
    """Every so-manyth of a number of points, to have at most `count` of them.

    Rounded places of `count` points would be at distances that differ, as those of a series
    that was measured at equal times do not. So either the last few points are left out, or
    there are fewer, but no fewer than `MIN_POINTS` if there may be so many.

    Args:
      available: number of points.
      count: most to keep, from 2 to `available`.
    """
    stride = (available - 1) // (count - 1)
    fewer = (available - 1) // (stride + 1) + 1
    if stride * (count - 1) < _COVERED * (available - 1) and fewer >= min(MIN_POINTS, count):
        stride += 1
    return np.arange(0, available, stride)[:count]


def corrupt(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, "time ..."],
    max_points: int,
    config: CorruptionConfig,
    rng: np.random.Generator,
    *,
    from_zero: bool = True,
) -> tuple[Float[np.ndarray, " kept"], Float[np.ndarray, "kept ..."]]:
    """Observations of a clean solution.

    Args:
      t: times on a fine grid, shape [time].
      y: a solution there, shape [time], of several quantities [time, states], which are
        observed together and are as noisy.
      max_points: most points to keep.
      config: what to do.
      rng: random numbers.
      from_zero: whether the first time becomes 0.

    Returns:
      Times and noisy values, `kept` <= max_points of them.
    """
    first, last = 0, t.size - 1
    if rng.random() < config.window_share:
        length = max(int(rng.uniform(config.min_window, 1.0) * last), MIN_POINTS)
        first = int(rng.integers(0, last - length + 1))
        last = first + length
    available = last - first + 1
    count = min(max_points, available)
    regular = True
    if rng.random() < config.sparse_share:
        # Log-uniform: short series are common in practice, and differ most.
        count = int(np.exp(rng.uniform(np.log(MIN_POINTS), np.log(count + 1))))
        count = min(max(count, MIN_POINTS), available)
        regular = rng.random() >= config.irregular_share
    if regular:
        index = first + evenly_spaced(available, count)
    else:
        index = first + np.sort(rng.choice(available, count, replace=False))
    if rng.random() < config.dropped_share:
        kept = round(index.size * (1.0 - rng.uniform(0.0, config.max_dropped)))
        index = np.sort(rng.choice(index, max(kept, min(MIN_POINTS, index.size)), replace=False))
    t, y = t[index] - (t[index[0]] if from_zero else 0.0), y[index]
    if rng.random() < config.noisy_share:
        level = np.exp(rng.uniform(np.log(config.min_noise), np.log(config.max_noise)))
        scale = np.abs(y) if rng.random() < 0.5 else np.std(y, axis=0, keepdims=True)
        y = y + level * scale * rng.standard_normal(y.shape)
    return t, y
