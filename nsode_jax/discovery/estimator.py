"""Discovery as a scikit-learn regressor: fit(t, y), predict(t)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Self, TypeGuard

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_random_state, metadata_routing
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from nsode_jax.discovery.pipeline import DiscoveryError, discover
from nsode_jax.dynamics.trajectory import CONSTANT_RELATIVE_RANGE, MIN_POINTS, Trajectory
from nsode_jax.dynamics.vectors import as_written, count
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results.result import Candidate
from nsode_jax.search.effort import SOURCES
from nsode_jax.search.sources import CandidateSource
from nsode_jax.selection.belief import NamedLaws

Series = Float[np.ndarray, " time"] | Float[np.ndarray, "time 1"] | Sequence[float]

_DOUBLINGS, _HALVINGS = 100, 10
"""Of a time span, by which the end of a solution is found: to a thousandth of it."""


class NSODERegressor(RegressorMixin, BaseEstimator):
    """Finds the law dy/dt = f(y) behind a series, and predicts by solving it.

    Like `IsotonicRegression` it has one feature, the time, as an array [time] or
    [time, 1]. It regresses y on t by a single solution of the law, so y may only rise
    or only fall. Times may be unsorted and repeated (values at one time are
    averaged); NaN is refused, as is usual in scikit-learn, whereas `discover` itself
    drops such rows.

    Where no law can be found (y is constant, there are fewer than 8 different times,
    or no proposed law has a solution near the data) `fit` warns and takes the law
    dy/dt = 0, whose solution is the mean. What else to be wary of stands in
    `discovery_.notes`.

    Args:
      weights: name or path of the network's weights.
      effort: `fast`, `default` or `thorough`; decides `beams` and `samples` where
        those are None.
      beams: proposals of the beam search per view of the data; 0 for none.
      samples: laws drawn from the network per view. If both are 0, the network is
        not even loaded.
      sources: where candidate laws come from: names in `SOURCES`, or objects that follow
        the protocol `CandidateSource`.
      candidates: laws of your own, such as "0.5*y*(1 - y/600)", to be tried too.
      operators: that laws may use beside + - * /; all if left out.
      max_symbols: most operators, variables and constants of a law.
      zero_at_zero: whether f(0) must be 0.
      known: a part of f that is known, or f with a gap for the rest, as of `discover`.
      robust: whether values far from the law count less, for data with outliers.
      named_laws: named laws of your own beside those of the package, as of `discover`.
      random_state: seed of everything random: a whole number, a RandomState, or None
        for another result every time.

    Attributes (after `fit`):
      discovery_: the `Discovery`, with everything that was found.
      expression_: f of the best law, an `Expression`.
      candidates_: the candidates as a table, `Discovery.table()`.
      n_features_in_: 1.

    Example:
      >>> model = NSODERegressor(beams=0, samples=0).fit(t, y)
      >>> model.expression_, model.predict([10.0, 20.0])
    """

    # The first argument of these is data, not metadata to be routed.
    __metadata_request__fit = {"t": metadata_routing.UNUSED}
    __metadata_request__predict = {
        "t": metadata_routing.UNUSED,
        "trajectory": metadata_routing.UNUSED,
    }

    def __init__(
        self,
        weights: str = "small",
        *,
        effort: str = "default",
        beams: int | None = None,
        samples: int | None = None,
        sources: Sequence[str | CandidateSource] = SOURCES,
        candidates: Sequence[str | Expression] = (),
        operators: Sequence[str] | None = None,
        max_symbols: int | None = None,
        zero_at_zero: bool = False,
        known: str | None = None,
        robust: bool = False,
        named_laws: NamedLaws = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.weights = weights
        self.effort = effort
        self.beams = beams
        self.samples = samples
        self.sources = sources
        self.candidates = candidates
        self.operators = operators
        self.max_symbols = max_symbols
        self.zero_at_zero = zero_at_zero
        self.known = known
        self.robust = robust
        self.named_laws = named_laws
        self.random_state = random_state

    def fit(
        self,
        t: Series | Sequence[Series],
        y: Series | Sequence[Series],
        sigma: float | Series | Sequence[float | Series] | None = None,
    ) -> Self:
        """Discovers the law.

        Args:
          t: times, shape [time] or [time, 1]; or a list of such arrays, if several
            series follow one law and do not share their times; `score` then judges the
            first.
          y: values, shape [time]; or a list of such arrays.
          sigma: known standard deviations of the measurements, in units of y: a number, an
            array [time], for several series a list of such; see `discover`.

        Returns:
          The estimator.

        Raises:
          ValueError: if the data cannot be used: NaN, several columns, or values too
            large to compute with (a `TrajectoryError`).
          WeightsError: if the weights are missing or damaged.
        """
        if y is None:
            raise ValueError("NSODERegressor requires y to be passed, but the target y is None.")
        if _is_list_of_series(y):
            shared = not _is_list_of_series(t)
            if not shared and len(t) != len(y):
                raise ValueError(f"There are {len(t)} series of times but {len(y)} of values.")
            times = [_times(series) for series in ([t] * len(y) if shared else t)]
            values = [_values(series) for series in y]
            errors: Any = sigma
        else:
            times, values, errors = [_times(t)], [_values(y)], None if sigma is None else [sigma]
        discovery = self._discover(times, values, errors)
        self.n_features_in_ = 1
        self.discovery_ = discovery
        self.expression_ = discovery.best.expression
        self.candidates_ = discovery.table()
        return self

    def predict(self, t: Series, trajectory: int = 0) -> Float[np.ndarray, " time"]:
        """The fitted solution at any times, in any order, before the data too.

        A solution need not exist for ever: it may blow up, or leave the domain of f.
        Beyond that moment its last value is held, with a warning; `Candidate.solution`
        gives NaN there.

        Args:
          t: times, shape [time] or [time, 1].
          trajectory: whose solution, if several series were fitted.

        Returns:
          Values, shape [time], all finite.

        Raises:
          NotFittedError: before `fit`.
          ValueError: if a time is NaN, or there is no such trajectory.
        """
        check_is_fitted(self)
        times = _times(t)
        fitted = len(self.discovery_.trajectories)
        if not 0 <= trajectory < fitted:
            raise ValueError(f"trajectory must be from 0 to {fitted - 1}, got {trajectory}")
        best = self.discovery_.best
        values = best.solution(times, trajectory)
        missing = np.isnan(values)
        if missing.any():
            warnings.warn(
                f"The solution does not exist at {missing.sum()} of {times.size} times, as it "
                "blows up or leaves the domain of f; its last value is held there.",
                stacklevel=2,
            )
            data = self.discovery_.trajectories[trajectory]
            start, span = best.start_times[trajectory], float(np.ptp(data.t))
            after = times > start
            for side, length in ((missing & after, span), (missing & ~after, -span)):
                if side.any():
                    values[side] = _last_value(best, trajectory, length)
        return values

    def _discover(
        self, t: list[Float[np.ndarray, " time"]], y: list[Float[np.ndarray, " time"]], sigma: Any
    ) -> Discovery:
        """What `discover` finds, or the constant law."""
        averaged = [_averaged(*series) for series in zip(t, y)]
        if reason := _why_no_law_can_be_told(averaged):
            return _constant_law(averaged, reason)
        try:
            return discover(
                t,
                y,
                weights=self.weights,
                effort=self.effort,
                beams=self.beams,
                samples=self.samples,
                sources=self.sources,
                candidates=self.candidates,
                operators=self.operators,
                max_symbols=self.max_symbols,
                zero_at_zero=self.zero_at_zero,
                known=self.known,
                robust=self.robust,
                named_laws=self.named_laws,
                sigma=sigma,
                seed=self._seed(),
            )
        except DiscoveryError as error:
            return _constant_law(averaged, str(error))

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.regressor_tags.poor_score = True  # On data that depend on more than a time.
        return tags


# --- the data ----------------------------------------------------------------------


def _is_list_of_series(y: Any) -> TypeGuard[Sequence[Series]]:
    """Whether y is a list of arrays; a list of one-number lists is a column instead."""
    return (
        isinstance(y, list | tuple)
        and len(y) > 0
        and all(np.ndim(series) == 1 and np.size(series) > 1 for series in y)
    )


_FLOATS: Any = (np.float64, np.float32, np.float16)
"""Types that are left as they are until `as_written`; others become the first."""


def _times(t: Any) -> Float[np.ndarray, " time"]:
    if np.asarray(t).dtype.kind in "mM":  # Which would become nanoseconds, or others.
        raise ValueError(
            "NSODERegressor takes times as numbers, not dates or durations: "
            'give (t - t[0]) / np.timedelta64(1, "h"), say, here and in `predict`.'
        )
    t = as_written(check_array(t, ensure_2d=False, dtype=_FLOATS, input_name="t"))
    if t.ndim == 2 and t.shape[1] != 1:
        raise ValueError(
            f"X has {t.shape[1]} features, but NSODERegressor is expecting 1 features as input: "
            "the time, of shape [time] or [time, 1]."
        )
    return t.reshape(-1)


def _values(y: Any) -> Float[np.ndarray, " time"]:
    y = column_or_1d(y, warn=True)
    return as_written(check_array(y, ensure_2d=False, dtype=_FLOATS, input_name="y"))


def _averaged(t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]) -> Trajectory:
    """Times in order, values at one time averaged."""
    check_consistent_length(t, y)
    times, place, size = np.unique(t, return_inverse=True, return_counts=True)
    return Trajectory(times, np.bincount(place, weights=y) / size)


def _is_constant(y: Float[np.ndarray, " time"]) -> bool:
    return bool(np.ptp(y) <= CONSTANT_RELATIVE_RANGE * np.abs(y).max())


def _why_no_law_can_be_told(trajectories: Sequence[Trajectory]) -> str:
    """A sentence, if all series have too few points or none changes; else nothing."""
    points = sum(map(len, trajectories))
    if points < MIN_POINTS:
        return f"{count(points, 'different time')} in all; at least {MIN_POINTS} are needed."
    if all(_is_constant(trajectory.y) for trajectory in trajectories):
        return "The values do not change."
    return ""


# --- where no law or no solution exists ----------------------------------------------


def _constant_law(trajectories: Sequence[Trajectory], reason: str) -> Discovery:
    """The law dy/dt = 0 as if it had been discovered, with a warning."""
    note = f"The law dy/dt = 0 stands in, since none was found: {reason}"
    warnings.warn(note, stacklevel=4)  # Where `fit` was called.
    y0s = tuple(float(trajectory.y.mean()) for trajectory in trajectories)
    y = np.concatenate([trajectory.y for trajectory in trajectories])
    residual = np.concatenate([data.y - y0 for data, y0 in zip(trajectories, y0s)])
    unexplained = 0.0 if _is_constant(y) else float(residual.var() / y.var())
    law = Candidate(
        expression=Expression((0.0,)),
        y0s=y0s,
        start_times=tuple(float(trajectory.t[0]) for trajectory in trajectories),
        end_times=tuple(float(trajectory.t[-1]) for trajectory in trajectories),
        r2=1.0 - unexplained,
        residual_rms=float(np.sqrt(np.mean(residual**2))),
        score=math.nan,  # There is none to compare it with.
        converged=True,
        covariance=np.zeros((1, 1)),
    )
    return Discovery((law,), tuple(trajectories), (note,), 0.0)


def _last_value(candidate: Candidate, trajectory: int, length: float) -> float:
    """The value shortly before the end of the solution.

    Where that is does not depend on the times at which a prediction is wanted, so
    that each prediction is the same alone and among others.

    Args:
      candidate: a law whose solution ends.
      trajectory: which solution.
      length: a time span that the end is found by, negative for the past.
    """
    start = candidate.start_times[trajectory]

    def value(elapsed: float) -> float:
        return float(candidate.solution([start + elapsed], trajectory)[0])

    exists, fails = 0.0, length
    while math.isfinite(value(fails)) and abs(fails) < 2.0**_DOUBLINGS * abs(length):
        exists, fails = fails, 2 * fails
    for _ in range(_HALVINGS):
        middle = (exists + fails) / 2
        if math.isfinite(value(middle)):
            exists = middle
        else:
            fails = middle
    return value(exists)
