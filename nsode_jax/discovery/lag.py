"""Whether a common law after a lag phase is likelier than the best law of the whole series.

The law that is found for a series with a lag bends to it, so that its residuals do not show the
lag. What shows it is that nothing happens at first, and then a simple law holds: with one more
parameter, the end of the lag, it explains the whole series.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.fitting.fit import NAMED, Fit, Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.scaling import AffineView
from nsode_jax.residuals.beginning import ends_of_beginning
from nsode_jax.results.formatting import time_text
from nsode_jax.search.population import draft_laws
from nsode_jax.search.sources import Proposal
from nsode_jax.selection.score import SYSTEMATIC, residual_floor, score

_LAWS = ("0.5*y", "0.5*y - 0.4*y**2", "0.5*y - 0.4*y*log(y)", "0.5 - 0.4*y")
"""Exponential, logistic and Gompertz growth, and the approach to a limit."""

_PRICE = 8.0
"""Score of a lag phase: one series in fifty has one. Lags of two observations were claimed of
simulated laws that have none; three are asked for since, and none is claimed of 96 such laws
(`evaluation/lag_phases.py`, 2026-11-29)."""

_DIGITS = 4
_FEWEST, _FEWEST_LEFT = 3, 6
"""Observations of a lag, and of each series after it."""


class Lag(NamedTuple):
    """A lag phase and the law after it.

    Attributes:
      until: the last time of the lag, since the first time.
      later: the first time after it, likewise.
      count: number of observations in the lag.
      fit: of the law, in the units of the data.
    """

    until: float
    later: float
    count: int
    fit: Fit


def lag_phase(data: Dataset, form: Regression, best: Fit) -> Lag | None:
    """The likeliest lag phase, if with a common law it is likelier than the best law.

    Args:
      data: series that begin at the same time.
      form: the same, prepared for fitting.
      best: the best law of them.
    """
    relative = best.residual_rms / data.spread
    if form.exact or not SYSTEMATIC < relative < math.inf:
        return None
    floor = residual_floor(data, form)
    least, found = score(best.expression, relative, form, floor), None
    times = np.concatenate([series.t for series in data])
    for until in ends_of_beginning(times):
        lagging = int((times <= until).sum())
        if lagging < _FEWEST * len(data):
            continue
        if min(int((series.t > until).sum()) for series in data) < _FEWEST_LEFT:
            break
        parts = [_without(series, until) for series in data]
        reduced = Dataset(tuple(series for series, _ in parts))
        within = sum(squares for _, squares in parts)
        for fit in _fits(reduced):
            squares = reduced.count * fit.residual_rms**2 + within
            left = math.sqrt(squares / data.count) / data.spread
            value = score(fit.expression, left, form, floor) + math.log(data.count) + _PRICE
            if value < least:
                least = value
                later = float(times[times > until].min())
                found = Lag(until, later, lagging, fit)
    return found


def lag_note(
    data: Dataset, form: Regression, best: Fit, units: AffineView, starts: Sequence[float]
) -> tuple[str, ...]:
    """A sentence on the lag phase, if there is one, for the person with the data.

    Args:
      data: the series, in working units.
      form: the same, prepared for fitting.
      best: the best law of them.
      units: working units.
      starts: the first time of each series.
    """
    if data.frame is not None or len(set(starts)) > 1 or best.diverged:
        return ()
    lag = lag_phase(data, form, best)
    if lag is None:
        return ()
    try:
        law = units.restore(lag.fit.expression).rounded(_DIGITS)
    except ExpressionError:
        return ()
    until, later = (time_text(starts[0] + units.c * time) for time in (lag.until, lag.later))
    return (
        f"A lag phase of {lag.count} points (until {until}), then dy/dt = {law.infix}, is likelier "
        f"than the best law of the whole series. To find the law of what follows, try --from "
        f"{later} (in Python, the times from there on).",
    )


def _without(series: Trajectory, until: float) -> tuple[Trajectory, float]:
    """The series from the end of the lag on, and the sum of squares within the lag.

    What was constant until then was observed as often as there are points: its weighted mean is
    the first value.
    """
    first, weights = series.t <= until, series.weights
    square = weights[first] ** 2
    mean = float(np.average(series.y[first], weights=square))
    noise = np.concatenate([[1 / math.sqrt(square.sum())], 1 / weights[~first]])
    t = np.concatenate([[until], series.t[~first]])
    y = np.concatenate([[mean], series.y[~first]])
    return (
        dataclasses.replace(series, t=t - until, y=y, noise=noise),
        float((square * (series.y[first] - mean) ** 2).sum()),
    )


def _fits(data: Dataset) -> list[Fit]:
    """The common laws fitted to what follows the lag."""
    form = integral_form(data)
    laws = [Proposal(Expression.from_infix(law), Origin(NAMED)) for law in _LAWS]
    fits = [
        fit_trajectories(data, draft.expression, form.y0s, draft.origin)
        for draft in draft_laws(form, laws)
    ]
    return [fit for fit in fits if not fit.diverged]
