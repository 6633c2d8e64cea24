"""What is found in many series whose law has constants of each series' own, as data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.stats
from jaxtyping import Bool, Float, Int

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.display import value_with_error
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.results import callables, prediction
from nsode_jax.results.diagnostics import POOR_R2
from nsode_jax.results.formatting import probability_text, value_within
from nsode_jax.results.source import program_of_series
from nsode_jax.results.uncertainty import quantile
from nsode_jax.selection.named_formula import NamedFormula

if TYPE_CHECKING:
    import pandas as pd

_EQUAL = 0.01
"""Probability of a scatter as wide as seen, below which constants are not called equal."""

_SEEN = 0.005
"""Of the range of a constant, by which values are told apart."""

_CONSPICUOUS = 3.0
"""Times the usual residual, relative to the spread of the series."""

SHOWN = 5


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
        return self.p_value >= _EQUAL

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
            p = p_text(self.p_value)
            equals = "" if p.startswith("<") else "= "
            return f"{spread}; differs between the series (p {equals}{p})"
        mean = value_with_error(self.mean, self.standard_error)
        return f"{spread}; one value for all is possible: {mean} (p = {self.p_value:.2g})"


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
                known = f"; they are {_first_of(self.labels)}" if self.labels else ""
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


@dataclasses.dataclass(frozen=True, eq=False)
class FormResult:
    """What `discover_own_constants` finds.

    Attributes:
      candidates: forms, best first.
      trajectories: the series, as they were fitted.
      labels: what they are called.
      notes: what was done to the data.
      seconds: how long it took.
      tried: what the forms were chosen from, in words.
    """

    candidates: tuple[FormCandidate, ...]
    trajectories: tuple[Trajectory, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    tried: tuple[str, ...] = ()

    @property
    def best(self) -> FormCandidate:
        """The form with the best score."""
        return self.candidates[0]

    def constants(self, rank: int = 1) -> pd.DataFrame:
        """The constants of every series by the form of this rank.

        Returns:
          A row per series: for each constant its value, `_error` (standard error), `_low`
          and `_high` (95% interval), then `y0`, `residual_rms` and `r2`.
        """
        import pandas as pd  # Slow to import.

        one = self.candidates[rank - 1]
        errors, intervals = one.standard_errors, one.confidence_intervals
        columns: dict[str, np.ndarray] = {}
        for place, name in enumerate(one.names):
            columns[name] = one.constants[:, place]
            columns[f"{name}_error"] = errors[:, place]
            columns[f"{name}_low"] = intervals[:, place, 0]
            columns[f"{name}_high"] = intervals[:, place, 1]
        columns |= {"y0": one.y0s, "residual_rms": one.residual_rms, "r2": one.r2}
        return pd.DataFrame(columns, index=pd.Index(self.labels, name="series"))

    def table(self, limit: int | None = None) -> pd.DataFrame:
        """The forms, best first, `limit` of them at most."""
        import pandas as pd  # Slow to import.

        rows = [
            {
                "rank": rank,
                "formula": one.formula.text,
                "name": one.name,
                "constants": len(one.names),
                "median_r2": float(np.median(one.r2)),
                "probability": one.probability,
                "score": one.score,
                "origin": one.origin,
            }
            for rank, one in enumerate(self.candidates[:limit], start=1)
        ]
        return pd.DataFrame(rows)

    def to_source(self) -> str:
        """The best form as the text of a Python program, with the constants of every series."""
        best = self.best
        known = np.flatnonzero(np.isfinite(best.constants).all(axis=1))
        labels = [self.labels[series] for series in known]
        starts = [(best.start_times[series], float(best.y0s[series])) for series in known]
        return program_of_series(best.formula, labels, best.constants[known], starts)

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Labels of series that the best form has no solution for."""
        solved = np.isfinite(self.best.residual_rms)
        return tuple(label for label, ok in zip(self.labels, solved, strict=True) if not ok)

    @property
    def remarks_on_bounds(self) -> tuple[str, ...]:
        """A sentence for each constant of the best form that is at its bound in some series."""
        return tuple(
            f"{name} is pressed against its bound{self._where(at_bound)}: the data would have it "
            "beyond, and its error, as if it were free, says little"
            for name, at_bound in zip(self.best.names, self.best.pressed.T, strict=True)
            if at_bound.any()
        )

    @property
    def remarks_on_fit(self) -> tuple[str, ...]:
        """A sentence if the best form has solutions that hardly explain some series."""
        poor = np.isfinite(self.best.r2) & (self.best.r2 < POOR_R2)
        if not poor.any():
            return ()
        cause = "the form" if self.best.bounds is None else "the form, or a bound,"
        return (
            f"R² is below {POOR_R2}{self._where(poor)}: do not trust the constants there; the "
            f"noise is too large, or {cause} does not fit",
        )

    def _where(self, chosen: Bool[np.ndarray, " series"]) -> str:
        """Such as ` for 3, 7`: the first of the chosen series; nothing if there is only one."""
        which = [label for label, is_chosen in zip(self.labels, chosen) if is_chosen]
        return f" for {_first_of(which)}" if len(self.labels) > 1 else ""

    @property
    def conspicuous(self) -> tuple[str, ...]:
        """Labels of series whose relative residual is far above the usual one."""
        left = 1 - self.best.r2
        usual = float(np.median(left))
        far = np.isfinite(left) & (left > _CONSPICUOUS**2 * usual)
        return tuple(label for label, is_far in zip(self.labels, far, strict=True) if is_far)


def p_text(p_value: float) -> str:
    """A small probability, as people read it."""
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.2g}"


def _first_of(labels: Sequence[str]) -> str:
    """Such as `3, 7`, or `A1, A2, A3, A4, A5 and 91 more`."""
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return f"{', '.join(labels[:SHOWN])}{more}"
