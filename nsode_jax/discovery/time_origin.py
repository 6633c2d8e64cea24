"""Times far from 0, such as years: laws that depend on them are searched near the data's start.

Of 1900 to 1920 powers are hardly told apart, and exp(-t/2) is nothing at all. The laws that are
found have t - 1900 in place of the time.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from nsode_jax.dynamics.system import TIME
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import UNIT
from nsode_jax.expressions.prefix import substituted
from nsode_jax.observed.observations import Observations
from nsode_jax.results.system_result import SystemCandidate

_ROUNDING = 1e-9  # 0.00123 are 123 steps of 0.00001, and no less.


def origin_of(data: Observations) -> float:
    """A round time near the first; 0 where laws do not know the time, or it begins near 0."""
    start = min(float(run.t[0]) for run in data.runs)
    span = max(float(run.t[-1]) for run in data.runs) - start
    if not data.system.explicit_time or abs(start) <= span:
        return 0.0
    step = 10.0 ** math.floor(math.log10(span))
    return float(f"{step * math.floor(start / step + _ROUNDING):.12g}")


def counted_from(data: Observations, origin: float) -> Observations:
    """The data with times counted from the origin."""
    runs = (
        dataclasses.replace(
            run,
            t=run.t - origin,
            input_times=None if run.input_times is None else run.input_times - origin,
        )
        for run in data.runs
    )
    return dataclasses.replace(data, runs=tuple(runs))


def at_given_times(data: Observations, given: Observations) -> Observations:
    """The data with the times that were given."""
    pairs = zip(data.runs, given.runs, strict=True)
    runs = (dataclasses.replace(a, t=b.t, input_times=b.input_times) for a, b in pairs)
    return dataclasses.replace(data, runs=tuple(runs))


def in_given_times(candidate: SystemCandidate, origin: float) -> SystemCandidate:
    """The system as one of the times that were given, its constants and their errors the same."""
    moved = [_in_given_times(law, origin) for law in candidate.laws]
    # Places of the fitted constants among all, which the origins are too.
    places = np.flatnonzero(np.concatenate([fitted for _, fitted in moved]))
    number = sum(fitted.size for _, fitted in moved)
    known = candidate.covariance
    if known is not None:
        known = np.zeros((number, number))
        known[np.ix_(places, places)] = candidate.covariance
    return dataclasses.replace(
        candidate,
        laws=tuple(law for law, _ in moved),
        start_times=tuple(t + origin for t in candidate.start_times),
        end_times=tuple(t + origin for t in candidate.end_times),
        covariance=known,
        shared=tuple((int(places[a]), int(places[b])) for a, b in candidate.shared),
    )


def _in_given_times(law: Expression, origin: float) -> tuple[Expression, np.ndarray]:
    """The law with t - origin for t; and which of its constants are not the origin."""
    prefix = substituted(law.prefix, {TIME: ("add", TIME, -origin)})
    moved = Expression(prefix, law.variables)
    # Of all numbers.
    ours = [token != TIME for token in law.prefix if token == TIME or not isinstance(token, str)]
    pairs = zip(moved.prefix, moved.skeleton.tokens, strict=True)
    kinds = [kind for token, kind in pairs if not isinstance(token, str)]
    return moved, np.array([own for own, kind in zip(ours, kinds) if kind != UNIT], bool)
