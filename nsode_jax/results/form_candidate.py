"""A form of law with the constants of every series."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float, Int

from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.results import callables, prediction
from nsode_jax.results.comparison import Comparison
from nsode_jax.results.formatting import probability_text
from nsode_jax.results.uncertainty import quantile
from nsode_jax.selection.named_formula import NamedFormula

SHOWN = 5
"""So many series are named."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FormCandidate:
    """A form of law with the constants of every series, in the data's units.

    Attributes:
      formula: f, with names for its constants.
      name: what science calls the law; empty if it has no name.
      meanings: of the constants, if it has one.
      constants: shape [series, constants]; NaN where a series has no solution.
      covariances: of the constants of each series; NaN where the data do not determine
        them, shape [series, constants, constants].
      freedom: degrees of freedom by which the noise of each series is known, shape [series].
      y0s: fitted values at the first times, shape [series].
      start_times: the first times.
      residual_rms: root mean square of solution minus data, in units of y, shape [series].
      r2: share of each series' variance that the solution explains, shape [series].
      score: what forms are ranked by, lower is better; NaN if nothing was compared.
      probability: posterior probability of the form, by the scores.
      origin: where the form comes from.
      converged: whether the fit of each series met its tolerance.
      shared: names of constants that are the same in all series.
      bounds: within which the constants were to be; None for no such.
      goodness_of_fit: probability of so bad a fit of all series if the form and the known
        errors of measurement are right; NaN where they are unknown.
      labels: what the series are called; () if they have numbers only.
      shared_p_value: probability of series as different as these if they share the constants
        that they were made to; NaN for none, and where too little is known.
    """

    formula: NamedFormula
    name: str
    meanings: tuple[str, ...]
    constants: Float[np.ndarray, "series constants"]
    covariances: Float[np.ndarray, "series constants constants"]
    freedom: Int[np.ndarray, " series"]
    y0s: Float[np.ndarray, " series"]
    start_times: tuple[float, ...]
    residual_rms: Float[np.ndarray, " series"]
    r2: Float[np.ndarray, " series"]
    score: float
    probability: float
    origin: str
    converged: np.ndarray
    shared: tuple[str, ...] = ()
    bounds: Bounds | None = None
    goodness_of_fit: float = math.nan
    labels: tuple[str, ...] = ()
    shared_p_value: float = math.nan

    @property
    def names(self) -> tuple[str, ...]:
        """Of the constants."""
        return self.formula.names

    @property
    def standard_errors(self) -> Float[np.ndarray, "series constants"]:
        """Of the constants; NaN where the data do not determine them."""
        return np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))

    @property
    def confidence_intervals(self) -> Float[np.ndarray, "series constants 2"]:
        """(low, high) that hold the true values with 95% probability, by Student's t.

        If the form is right. They end where constants may not be.
        """
        shared = [name in self.shared for name in self.names]  # One constant has one interval.
        freedom = np.where(shared, self.freedom.max(), self.freedom[:, None])
        half = np.asarray(quantile(freedom.astype(np.float64))) * self.standard_errors
        ends = np.stack([self.constants - half, self.constants + half], axis=-1)
        if self.bounds is None:
            return ends
        return np.clip(ends, self.bounds.low[:, None], self.bounds.high[:, None])

    @property
    def pressed(self) -> Bool[np.ndarray, "series constants"]:
        """Which constants are at a bound: without it the data would have them beyond."""
        if self.bounds is None:
            return np.zeros(self.constants.shape, bool)
        return self.bounds.pressed(self.constants, self.standard_errors)

    def law(self, series: int | str) -> Expression:
        """f of one series, by its number from 0 or its label.

        Raises:
          ValueError: if the series has no solution, or there is no such series.
        """
        place = self._place(series)
        if not np.isfinite(self.constants[place]).all():
            raise ValueError(f"series {series} has no solution by {self.formula.text}")
        return self.formula.with_values(self.constants[place])

    def to_callable(
        self, backend: str = "numpy", trajectory: int | str = 0
    ) -> Callable[[Any], Any]:
        """`law` of one series as a function of arrays; see `callables.to_callable`."""
        return callables.to_callable(self.law(trajectory), backend)

    def solution(
        self, t: Float[np.ndarray, " time"] | Sequence[float], series: int | str
    ) -> Float[np.ndarray, " time"]:
        """The fitted solution of one series at any times; NaN where it does not exist."""
        place = self._place(series)
        if not np.isfinite(self.constants[place]).all():
            return np.full(np.shape(t), np.nan)
        start, y0 = self.start_times[place], float(self.y0s[place])
        return prediction.solution(self.law(place), start, y0, t)

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: float | None = None,
        trajectory: int | str = 0,
    ) -> Float[np.ndarray, " time"]:
        """The solution of the law of one series at given times.

        Args:
          t: increasing times, shape [time].
          y0: value at t[0]. Without it the solution is the fitted one, and times
            must not lie before the data of the series.
          trajectory: whose constants, and whose fitted solution: the number of the series,
            from 0, or its label.

        Returns:
          Values, shape [time]; NaN from where the solution ceases to exist (it
          blows up or leaves the domain of f; where f is 0 at the edge it rests).

        Raises:
          ValueError: if the times are not increasing, or lie before the data, if there is no
            such series, or if it has no solution by this form.
        """
        law = self.law(trajectory)
        if y0 is not None:
            return prediction.predict(law, float(y0), t)
        place = self._place(trajectory)
        return prediction.predict(law, float(self.y0s[place]), t, self.start_times[place])

    def _place(self, series: int | str) -> int:
        """The number of a series, from 0, that is given by it or by its label."""
        if isinstance(series, str):
            if series not in self.labels:
                known = f"; they are {first_of(self.labels)}" if self.labels else ""
                raise ValueError(f"there is no series {series!r}{known}")
            return self.labels.index(series)
        number = len(self.constants)
        if series not in range(number):
            raise ValueError(f"trajectory is one of {number}, counted from 0; got {series}")
        return int(series)

    def compared(self) -> tuple[Comparison, ...]:
        """Each constant over all series: may they share one value?"""
        return tuple(self._compared(place, name) for place, name in enumerate(self.names))

    def _compared(self, place: int, name: str) -> Comparison:
        values, errors = self.constants[:, place], self.standard_errors[:, place]
        known = np.isfinite(values) & (errors > 0)
        if not known.any():
            return Comparison(name, *(math.nan,) * 6)
        values, errors, freedom = values[known], errors[known], self.freedom[known]
        low, median, high = (float(np.quantile(values, q)) for q in (0.0, 0.5, 1.0))
        if name in self.shared or len(self.constants) == 1:
            return Comparison(name, float(values[0]), float(errors[0]), median, low, high, math.nan)
        if values.size < 2:
            return Comparison(name, math.nan, math.nan, median, low, high, math.nan)
        weights = errors**-2.0
        mean = float(np.average(values, weights=weights))
        # Errors that few points tell are wide by Student's t; as normal deviates of the
        # same probability they add up to chi-squared.
        ratio = np.abs(values - mean) / errors
        tail = scipy.stats.t.logsf(ratio, np.maximum(freedom, 1))
        deviates = scipy.stats.norm.isf(np.exp(np.maximum(tail, -700.0)))
        p_value = float(scipy.stats.chi2.sf(np.sum(deviates**2), values.size - 1))
        return Comparison(name, mean, float(weights.sum() ** -0.5), median, low, high, p_value)

    def __str__(self) -> str:
        head = f"dy/dt = {self.formula.text}"
        return f"{head}  ({self.name})" if self.name else head

    def __repr__(self) -> str:
        return f"<FormCandidate: {self}, probability {probability_text(self.probability)}>"


def first_of(labels: Sequence[str]) -> str:
    """Such as `3, 7`, or `A1, A2, A3, A4, A5 and 91 more`."""
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return f"{', '.join(labels[:SHOWN])}{more}"
