"""A fit to first order, and how well its parameters are known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.fitting.trust_region import root_of_inverse

Groups = Sequence[Sequence[Int[np.ndarray, " _"]]]
"""Numbers of rows: of each series in each group."""

_BEYOND_CHANCE = 2.0
"""Standard deviations of the autocorrelation of independent noise, 1 / sqrt(n)."""

_LEAST_FREEDOM = 0.5
"""Degrees of freedom below which residuals do not tell how large the noise is."""


@dataclasses.dataclass(frozen=True, eq=False)
class Linearized:
    """A fit to first order about its constants and initial values.

    Attributes:
      residual: solution minus data, weighted, relative to the spread, shape [observations].
      jacobian: its derivatives by the relative constants and the initial values, shape
        [observations, parameters].
    """

    residual: Float[np.ndarray, " observations"]
    jacobian: Float[np.ndarray, "observations parameters"]

    @property
    def freedom(self) -> int:
        """Observations beyond those that the parameters need."""
        return self.residual.size - self.jacobian.shape[1]

    @property
    def rms(self) -> float:
        """Root mean square of the residual."""
        return float(np.sqrt(np.mean(self.residual**2)))

    def weighted(self, weights: Float[np.ndarray, " observations"]) -> Linearized:
        """The same with its rows multiplied by weights."""
        return Linearized(weights * self.residual, weights[:, None] * self.jacobian)

    def with_residuals_bounded(self, factors: Float[np.ndarray, " observations"]) -> Linearized:
        """A robust fit as one by least squares that has the same covariance.

        Large residuals count as those at the bound, which no constant changes: the derivative of
        what is bounded is 1 for so many as lie within. (Huber 1981, Robust Statistics, section
        7.6, with the correction for few observations.)

        Args:
          factors: of the noise under which least squares are the robust fit, as which rows are
            weighted; 1 within the bound, shape [observations].
        """
        number, parameters = self.jacobian.shape
        within = max(float(np.mean(factors == 1.0)), 1.0 / number)
        larger = (1 + parameters / number * (1 - within) / within) / within
        return Linearized(larger * self.residual / factors, factors[:, None] * self.jacobian)

    def root_of_covariance(
        self, groups: Groups, least_singular: float
    ) -> Float[np.ndarray, "parameters parameters"] | None:
        """A root R: the covariance of the parameters is R R' times the variance of the residuals.

        Args:
          groups: the rows of each series in the order of time, those together whose noise has
            one autocorrelation; every row belongs to one. The noise of all has one size.
          least_singular: see `root_of_inverse`.

        Returns:
          None where the data do not determine all parameters.
        """
        root = root_of_inverse(self.jacobian, least_singular)
        if root is None:
            return None
        # With P = (J'J)^-1 the covariance is P J' D J P, D the variances of the rows.
        moved = self.jacobian @ root
        for group in groups:
            rows = np.concatenate(group)
            moved[rows] *= np.sqrt(self._dependence(group, _leverage(moved[rows])))
        _, triangle = np.linalg.qr(moved)
        return root @ triangle.T

    def noise_of_groups(self, groups: Groups, least_singular: float) -> list[GroupNoise] | None:
        """What the noise of each group, which has a size of its own, does to the parameters.

        Parameters take as many observations of a group as its leverage, the trace of its part of
        the hat matrix J P J' (Hoaglin and Welsch 1978, Am. Stat. 32): nearly all of them those
        of a precise group beside noisy ones.

        Args:
          groups: as of `root_of_covariance`, such as each quantity in all runs.
          least_singular: see `root_of_inverse`.

        Returns:
          For each group; the covariance of the parameters is the sum of all. None where the data
          do not determine all parameters, or leave none of a group to tell its noise.
        """
        root = root_of_inverse(self.jacobian, least_singular)
        if root is None:
            return None
        moved, found = self.jacobian @ root, []
        for group in groups:
            rows = np.concatenate(group)
            taken = _leverage(moved[rows])
            freedom = rows.size - taken
            if freedom < _LEAST_FREEDOM:
                return None
            variance = float(self.residual[rows] @ self.residual[rows]) / freedom
            variance *= self._dependence(group, taken)
            _, triangle = np.linalg.qr(np.sqrt(variance) * moved[rows])
            found.append(GroupNoise(root @ triangle.T, freedom))
        return found

    def _dependence(self, group: Sequence[Int[np.ndarray, " _"]], taken: float) -> float:
        return dependence([self.residual[rows] for rows in group], taken)


@dataclasses.dataclass(frozen=True, eq=False)
class GroupNoise:
    """What the noise of some of the observations does to the parameters.

    Attributes:
      root: R, the part R R' of their covariance is by this noise.
      freedom: of these observations, those beyond what the parameters take; its degrees of
        freedom.
    """

    root: Float[np.ndarray, "parameters _"]
    freedom: float


def _leverage(moved: Float[np.ndarray, "rows parameters"]) -> float:
    """Of rows of the Jacobian times a root of the inverse: the parameters that these rows fit."""
    return float((moved**2).sum())


def autocorrelation(series: Sequence[Float[np.ndarray, " _"]]) -> float:
    """Of neighbouring residuals, within their series; 0 if there are none."""
    total = sum(float(each @ each) for each in series)
    return sum(float(each[1:] @ each[:-1]) for each in series) / (total or 1.0)


def dependence(series: Sequence[Float[np.ndarray, " _"]], parameters: float) -> float:
    """By what factor the variances of parameters are larger than with independent noise.

    Noise with the autocorrelation a leaves n observations as much to tell of what changes slowly
    as n (1 - a) / (1 + a) independent ones have (Bayley and Hammersley 1946, J. R. Stat. Soc.
    Suppl. 8). The residuals of p parameters are less alike than the noise was, by about
    (1 + a) p / n. What may well be chance is none.

    Args:
      series: residuals of a fit in the order of time; they have one autocorrelation.
      parameters: that were fitted to them.

    Returns:
      At least 1; at most the number of observations.
    """
    number, a = sum(map(len, series)), autocorrelation(series)
    a += (1 + a) * parameters / max(number, 1)
    if a * math.sqrt(number) < _BEYOND_CHANCE:
        return 1.0
    a = min(a, (number - 1) / (number + 1))
    return (1 + a) / (1 - a)
