"""The scale in which noise is alike everywhere, for values that span decades.

Counts of bacteria, concentrations of a drug, viral loads: what spans decades is mostly
measured to a share of itself, sigma^2 = (y^2 + a^2) / k^2, with a the level below which values
drown. In z = k asinh(y / a) such noise is alike everywhere (Durbin, Hardin, Hawkins and Rocke
2002, Bioinformatics 18). Smoothing, quadrature and differences are done in this scale: in that
of y the errors of the large values would hide all that the small ones tell.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import Trajectory, typical
from nsode_jax.observed.splines import lagrange_weights

_WIDE = 30.0
"""Ratio of large to small values from which on the scale of their noise is looked for."""

_LARGE, _SMALL = 0.9, 0.1
"""Quantiles of the magnitudes that are large and small ones."""

_LEVELS = 40
_LEAST_LEVEL = 1e-290

_VARIED = 10.0
"""Ratio of the largest to the smallest noise below which the scale of y itself will do."""

_AGREEING = 0.3
"""Root mean square by which the logarithm of noise may deviate from such a form."""

_HALF = 2  # Neighbours on either side that foretell a value.
_FEWEST = 8

_Values = Float[np.ndarray, "*values"]


@dataclasses.dataclass(frozen=True)
class NoiseScale:
    """z = k asinh(y / a), or y itself if a is infinite.

    Attributes:
      level: a, in units of y.
      factor: k; the noise of y is sqrt(y^2 + a^2) / k times that of z.
    """

    level: float = math.inf
    factor: float = 1.0

    @property
    def linear(self) -> bool:
        """Whether z is y itself."""
        return math.isinf(self.level)

    def forward(self, y: _Values) -> _Values:
        """z of y."""
        return y if self.linear else self.factor * np.arcsinh(y / self.level)

    def inverse(self, z: _Values) -> _Values:
        """y of z."""
        return z if self.linear else self.level * np.sinh(z / self.factor)

    def size(self, y: _Values) -> _Values:
        """What errors are a share of: sqrt(y^2 + a^2), or 1 in the scale of y itself."""
        return np.ones_like(y) if self.linear else np.hypot(y, self.level)

    def slope(self, y: _Values) -> _Values:
        """dz/dy."""
        return self.factor / self.size(y)


LINEAR = NoiseScale()


def levels(y: Float[np.ndarray, " observations"]) -> Float[np.ndarray, " levels"]:
    """Levels that noise may have: from about the largest magnitude down to the smallest."""
    size = np.abs(y)
    largest = float(size.max())
    if not largest:
        return np.zeros(0)
    smallest = max(float(size[size > 0].min()), _LEAST_LEVEL)
    return np.geomspace(largest / 3, smallest / 3, _LEVELS)


def scale_of(
    y: Float[np.ndarray, " observations"], noise: Float[np.ndarray, " observations"]
) -> NoiseScale:
    """The scale in which values of known relative noise are alike noisy.

    Args:
      y: values.
      noise: their relative standard deviations.

    Returns:
      That of y itself if the noise hardly varies or does not vary with the values so.
    """
    if noise.max() < _VARIED * noise.min() or not y.any():
        return LINEAR
    tried = levels(y)
    logs = np.log(np.hypot(y, tried[:, None])) - np.log(noise)  # [levels, observations]
    deviations = logs.std(axis=1)
    best = int(deviations.argmin())
    # Most values may lie below the level, where noise of any other kind is constant as well.
    above = np.abs(y) > tried[best]
    if max(deviations[best], logs[best][above].std()) > _AGREEING:
        return LINEAR
    return NoiseScale(float(tried[best]), math.exp(logs[best].mean()))


def expected_noise(series: Sequence[Trajectory]) -> Float[np.ndarray, " observations"] | None:
    """How noisy values that span decades are, before a law is known that tells more.

    The likeliest level is that in whose scale neighbours foretell values best: the likelihood
    of a transformation, as Box and Cox have it (1964, J. R. Stat. Soc. B 26).

    Args:
      series: the series of one law. Where their values are means of some more, some fewer
        measurements (`Trajectory.noise`), that counts too.

    Returns:
      Relative standard deviations, the mean of 1 / square being 1, shape [observations]; None
      for values that do not span decades, whose noise is known to be of such a form or is that
      of the series already, or whose errors are known.
    """
    if any(one.sigma is not None for one in series):
        return None
    y = np.concatenate([one.y for one in series])
    so_far = np.concatenate([1.0 / one.weights for one in series])
    if not scale_of(y, so_far).linear:
        return None
    size = np.abs(y)
    small, large = np.quantile(size, [_SMALL, _LARGE])
    if not large > _WIDE * small:
        return None
    scales = [LINEAR, *(NoiseScale(float(level)) for level in levels(y))]
    scale = max(scales, key=lambda scale: _log_likelihood(scale, series))
    if scale.linear:
        return None
    noise = so_far / scale.slope(np.concatenate([_smoothed(one.y, scale) for one in series]))
    return noise / typical(noise)


def _log_likelihood(scale: NoiseScale, series: Sequence[Trajectory]) -> float:
    """That the values deviate from what their neighbours foretell by noise alike in a scale."""
    parts = [_foretold(one, scale) for one in series if len(one) >= _FEWEST]
    if not parts:
        return 0.0
    deviations, slopes = (np.concatenate(column) for column in zip(*parts, strict=True))
    square = float(np.mean(deviations**2))
    if not square > 0.0:
        return -math.inf
    return float(np.log(slopes).sum()) - deviations.size / 2 * math.log(square)


def _foretold(
    series: Trajectory, scale: NoiseScale
) -> tuple[Float[np.ndarray, " inner"], Float[np.ndarray, " inner"]]:
    """Deviations from what neighbours foretell, of noise 1, in a scale; and its slopes."""
    t, y = series.t, series.y
    inner = np.arange(_HALF, t.size - _HALF)
    others = inner[:, None] + np.r_[-_HALF:0, 1 : _HALF + 1]
    weights = lagrange_weights(t[others], t[inner])
    z = scale.forward(y)
    deviations = (weights * z[others]).sum(axis=1) - z[inner]
    squares = series.weights**-2.0
    expected = squares[inner] + (weights**2 * squares[others]).sum(axis=1)
    return deviations / np.sqrt(expected), scale.slope(y[inner])


def _smoothed(y: Float[np.ndarray, " time"], scale: NoiseScale) -> Float[np.ndarray, " time"]:
    """Values with half of their neighbours' mean: noise must not follow each value's own."""
    z = np.pad(scale.forward(y), 1, mode="edge")
    return scale.inverse((z[:-2] + 2 * z[1:-1] + z[2:]) / 4)
