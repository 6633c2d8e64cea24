"""What to measure next tells laws apart sooner than a measurement at random."""

import dataclasses
import re

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.reporting.next_measurement import next_measurement
from nsode_jax.results.result import Candidate, Result

TRUTH = Expression.from_infix("0.5*y - 0.05*y**2")
RIVAL = Expression.from_infix("0.5*y*log(30/y)")
NOISE = 0.05


def _result(seed: int) -> Result:
    """Growth that was watched up to a third of its capacity, and two laws that fit it."""
    t = np.linspace(0.0, 4.0, 15)
    y = solve(TRUTH, 0.5, t) + NOISE * np.random.default_rng(seed).normal(size=t.size)
    data = Dataset.of([Trajectory(t, y)])
    laws = []
    for law in (TRUTH, RIVAL):
        fit = fit_trajectories(data, law, (0.5,), Origin("test"))
        laws.append(
            Candidate(
                fit.expression, fit.y0s, (0.0,), fit.r2, fit.residual_rms, 0.0, probability=0.5
            )
        )
    return Result(tuple(laws), data.trajectories, (), 1.0)


def _odds(result: Result, time: float, rng: np.random.Generator) -> float:
    """Logarithm of the odds of the true law that an observation at a time brings."""
    seen = solve(TRUTH, 0.5, np.array([0.0, time]))[-1] + NOISE * rng.normal()
    misses = [(law.predict([time])[0] - seen) / NOISE for law in result.candidates]
    return (misses[1] ** 2 - misses[0] ** 2) / 2


@pytest.mark.parametrize("seed", range(3))
def test_measuring_there_decides_sooner_than_at_random(seed):
    result, rng = _result(seed), np.random.default_rng(seed)
    advice = next_measurement(result)
    assert advice is not None and advice.laws == 2 and 4.0 < advice.time <= 8.0
    there = np.mean([_odds(result, advice.time, rng) for _ in range(20)])
    anywhere = np.median([_odds(result, rng.uniform(0.1, 8.0), rng) for _ in range(60)])
    assert there > 3.0 and there > 2 * anywhere
    assert advice.difference == np.nanmax(advice.differences)
    # A new series that begins where no law has been watched.
    assert advice.start > result.trajectory.y.max()
    assert f"at t = {advice.time:.3g}" in str(advice)


@pytest.mark.parametrize("start", [2459000.0, 1.7e9])
def test_times_have_the_digits_that_their_range_asks_for(start):
    result = _result(0)
    laws = [dataclasses.replace(law, start_times=(start,)) for law in result.candidates]
    series = Trajectory(result.trajectory.t + start, result.trajectory.y)
    advice = next_measurement(Result(tuple(laws), (series,), (), 1.0))
    before = next_measurement(result)
    assert advice is not None and before is not None
    told = float(re.search(r"at t = ([\d.]+)", str(advice))[1])
    assert told - start == pytest.approx(before.time, abs=0.03)
    assert "e+" not in str(advice)


def test_where_no_observation_decides_that_is_said():
    result = _result(0)
    best = result.candidates[0]
    twin = dataclasses.replace(best, y0s=(best.y0 + 0.001,))
    advice = next_measurement(dataclasses.replace(result, candidates=(best, twin)))
    assert advice is not None and advice.difference < 0.5
    assert "2 laws matter; no single observation would decide between them" in str(advice)
    assert "at t =" not in str(advice)


def test_one_law_alone_asks_for_nothing():
    result = _result(0)
    sure = dataclasses.replace(result.candidates[1], probability=0.001)
    assert next_measurement(dataclasses.replace(result, candidates=result.candidates[:1])) is None
    assert (
        next_measurement(dataclasses.replace(result, candidates=(result.candidates[0], sure)))
        is None
    )


def test_laws_without_a_solution_are_left_out():
    result = _result(0)
    ends = dataclasses.replace(result.candidates[1], expression=Expression.from_infix("y**3"))
    advice = next_measurement(dataclasses.replace(result, candidates=(result.candidates[0], ends)))
    assert advice is not None and np.isnan(advice.differences[-1])
    assert np.isfinite(advice.difference)
