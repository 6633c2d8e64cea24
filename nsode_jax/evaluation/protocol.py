"""Problems and a method: observe trajectories, find laws, score them against the truth."""

from __future__ import annotations

import datetime
import functools
import math
import platform
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.solve import solve
from nsode_jax.evaluation.methods import (
    METHODS,
    Answer,
    MethodError,
    Outcome,
    Series,
    degree_of,
    weights_of,
)
from nsode_jax.evaluation.metrics import METRICS, Score, evaluation_points, first_rank, r2, score
from nsode_jax.evaluation.testsets import Problem
from nsode_jax.expressions.expression import Expression
from nsode_jax.results import prediction
from nsode_jax.system.workers import usable_cores

SHOWN = 10
"""So many candidates stand in a result, beside those that the ranks name."""

_MAX_SOLVER_STEPS = 20_000


def observe(
    problem: Problem, y: Float[np.ndarray, " time"], noise: float, drop: float, seed: int
) -> tuple[Float[np.ndarray, " kept"], Float[np.ndarray, " kept"]]:
    """A clean trajectory as it would be measured, by ODEBench's protocol.

    Args:
      problem: whose trajectory it is; each has its own random numbers.
      y: the clean trajectory, shape [time].
      noise: sigma of y (1 + sigma xi) with standard normal xi.
      drop: share of the points that is lost, drawn uniformly.
      seed: of the random numbers.

    Returns:
      Times and values of the points that are left.
    """
    rng = np.random.default_rng([seed, zlib.crc32(problem.name.encode())])
    noisy = y * (1 + noise * rng.standard_normal(y.size))
    count = round(y.size * (1 - drop))
    kept = np.sort(rng.choice(y.size, count, replace=False))
    return problem.t[kept], noisy[kept]


def evaluate_problems(
    problems: Sequence[Problem],
    method: str,
    settings: dict[str, Any],
    noise: float = 0.0,
    drop: float = 0.0,
) -> list[dict[str, Any]]:
    """Finds laws for the problems' trajectories by one method, all at once, and scores them.

    Args:
      problems: laws, their initial values and time grids.
      method: a name in `METHODS`.
      settings: of the method, and `seed`.
      noise, drop: see `observe`.

    Returns:
      A line of a result file for each. `rank` gives, for each metric, the first candidate
      that satisfies it (from 1) or None; `candidates` holds the first ten and those;
      `error` says why there are none. `reconstruction_r2` compares the first candidate's
      solution from the true initial value with the clean trajectory,
      `generalization_r2` the one from the problem's other initial value, if there is
      one; None where there is no solution. `seconds` is the method's time, scores not
      included, shared evenly by the problems.
    """
    clean = [problem.solve() for problem in problems]
    series = [
        Series(*observe(problem, y, noise, drop, settings["seed"]), _hints(problem, method))
        for problem, y in zip(problems, clean)
    ]
    start = time.perf_counter()
    outcomes = METHODS[method].fit(series, **settings)
    seconds = (time.perf_counter() - start) / len(problems)
    return [
        {
            **describe(problem, method, settings, noise, drop),
            "seconds": round(seconds, 3),
            **_scored(problem, y, outcome),
        }
        for problem, y, outcome in zip(problems, clean, outcomes, strict=True)
    ]


def _hints(problem: Problem, method: str) -> dict[str, Any]:
    if not METHODS[method].wants_degree:
        return {}
    # ODEBench's protocol selects without the truth; it is the set with a second start.
    told = problem.other_y0 is None
    return {"degree": degree_of(problem.expression) if told else None}


def _scored(problem: Problem, y: Float[np.ndarray, " time"], outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, MethodError):
        answers, error = [], str(outcome)
    else:
        answers, error = outcome, None if outcome else "the method has no candidates"
    return {
        "error": error,
        **(_solution_scores(problem, y, answers[0].expression) if answers else {}),
        **_candidate_scores(problem, y, answers),
    }


def describe(
    problem: Problem, method: str, settings: dict[str, Any], noise: float, drop: float
) -> dict[str, Any]:
    """The part of a result that is known before the method runs."""
    return {
        "name": problem.name,
        "truth": problem.law.infix,
        "complexity": problem.expression.complexity if problem.expression else None,
        "expressible": problem.expression is not None,
        "y0": problem.y0,
        "method": method,
        **settings,
        **weights_of(settings),
        "noise": noise,
        "drop": drop,
        "machine": _machine(),
        "date": datetime.date.today().isoformat(),
    }


def failed(
    problem: Problem,
    method: str,
    settings: dict[str, Any],
    noise: float,
    drop: float,
    error: str,
    seconds: float,
) -> dict[str, Any]:
    """The result of a problem whose process was ended or died."""
    return {
        **describe(problem, method, settings, noise, drop),
        "seconds": round(seconds, 3),
        "error": error,
        **_candidate_scores(problem, np.zeros(2), []),
    }


def _solution_scores(
    problem: Problem, y: Float[np.ndarray, " time"], law: Expression | None
) -> dict[str, float | None]:
    """How well the law's solutions meet the clean ones, from both initial values."""

    def compare(truth: Float[np.ndarray, " time"], y0: float) -> float | None:
        if law is None:
            return None
        solution = solve(law, y0, problem.t, max_steps=_MAX_SOLVER_STEPS)
        if solution is None:  # Our own solver goes on where a law comes to rest, as -sqrt(y) does.
            solution = prediction.solution(law, float(problem.t[0]), y0, problem.t)
        return _finite(r2(truth, solution))

    scores = {"reconstruction_r2": compare(y, problem.y0)}
    if problem.other_y0 is not None:
        other = problem.solve(problem.other_y0)
        scores["generalization_r2"] = compare(other, problem.other_y0)
    return scores


def _candidate_scores(
    problem: Problem, y: Float[np.ndarray, " time"], answers: Sequence[Answer]
) -> dict[str, Any]:
    scores = score(
        problem.law,
        problem.expression,
        evaluation_points(y),
        [answer.expression for answer in answers],
        always=SHOWN,
    )
    ranks = {metric: first_rank(scores, metric) for metric in METRICS}
    shown = sorted({*range(1, min(SHOWN, len(answers)) + 1), *filter(None, ranks.values())})
    return {
        "num_candidates": len(answers),
        "rank": ranks,
        "candidates": [_shown(k, answers[k - 1], scores[k - 1]) for k in shown],
    }


def _shown(rank: int, answer: Answer, score: Score) -> dict[str, Any]:
    law = answer.expression
    return {
        "rank": rank,
        "formula": None if law is None else law.infix,
        "complexity": None if law is None else law.complexity,
        "solution_r2": answer.solution_r2,
        "r2": _finite(score.r2),
        "skeleton": score.skeleton,
        "allclose": score.allclose,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


@functools.cache
def _machine() -> str:
    """The processor and the number of cores this process may use."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {usable_cores()} cores"
