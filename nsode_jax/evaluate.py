"""Runs discovery on test sets with known laws: python -m nsode_jax.evaluate --sets textbook

Writes one JSON line per problem to DIR/<set>.jsonl and prints a table. A run
that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import sys
import time
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.discover import EFFORTS, DiscoveryError, discover
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import TrajectoryError
from nsode_jax.evaluation.metrics import (
    METRICS,
    Score,
    allclose,
    evaluation_points,
    first_rank,
    r2,
    skeleton_recovered,
)
from nsode_jax.evaluation.testsets import TEST_SETS, Problem
from nsode_jax.expressions.expression import Expression

_SEARCH = ("weights", "effort", "beams", "samples", "seed")
_SETTINGS = (*_SEARCH, "noise", "drop")
_GOOD_R2 = 0.9
"""ODEBench's threshold for a solution."""
_LINE_START = '{"name": '
_MAX_SOLVER_STEPS = 20_000
_COLUMNS = "{:<28} {:<34} {:>8} {:>8} {:>9} {:>6}"


class EvaluationError(Exception):
    """What stands in the way, in one line for the user."""


def evaluate_problem(problem: Problem, settings: dict[str, Any]) -> dict[str, Any]:
    """Discovers the law from the problem's trajectory and scores all candidates.

    Args:
      problem: the law, its initial value and its time grid.
      settings: `weights`, `effort`, `beams`, `samples` and `seed`, as `discover` takes
        them; `noise` and `drop`, see `observe`.

    Returns:
      One line of the result file. `candidates` come in the order of discovery's
      ranking; `rank` gives, for each metric, the first candidate that satisfies
      it (from 1) or None; `error` says why there are no candidates.
      `reconstruction_r2` compares the first candidate's solution from the true initial
      value with the clean trajectory, `generalization_r2` the one from the problem's
      other initial value, if there is one; None where there is no solution.
    """
    y = problem.solve()
    t, observed = observe(problem, y, settings["noise"], settings["drop"], settings["seed"])
    start = time.perf_counter()
    try:
        found = discover(t, observed, **{name: settings[name] for name in _SEARCH})
        candidates, error = found.candidates, None
    except (TrajectoryError, DiscoveryError) as refusal:
        candidates, error = (), str(refusal)
    seconds = time.perf_counter() - start

    scores = _score(problem, y, [candidate.expression for candidate in candidates])
    return {
        "name": problem.name,
        "truth": problem.law.infix,
        "expressible": problem.expression is not None,
        "y0": problem.y0,
        **settings,
        "seconds": round(seconds, 3),
        "error": error,
        **(_solution_scores(problem, y, candidates[0].expression) if candidates else {}),
        "rank": {metric: first_rank(scores, metric) for metric in METRICS},
        "candidates": [
            {
                "formula": candidate.infix,
                "complexity": candidate.complexity,
                "solution_r2": _finite(candidate.r2),
                "r2": _finite(score.r2),
                "skeleton": score.skeleton,
                "allclose": score.allclose,
            }
            for candidate, score in zip(candidates, scores)
        ],
    }


def observe(
    problem: Problem, y: Float[np.ndarray, "time"], noise: float, drop: float, seed: int
) -> tuple[Float[np.ndarray, "kept"], Float[np.ndarray, "kept"]]:
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


def _solution_scores(
    problem: Problem, y: Float[np.ndarray, "time"], law: Expression
) -> dict[str, float | None]:
    """How well the law's solutions meet the clean ones, from both initial values."""

    def compare(truth: Float[np.ndarray, "time"], y0: float) -> float | None:
        solution = solve(law, y0, problem.t, max_steps=_MAX_SOLVER_STEPS)
        return None if solution is None else _finite(r2(truth, solution))

    scores = {"reconstruction_r2": compare(y, problem.y0)}
    if problem.other_y0 is not None:
        other = problem.solve(problem.other_y0)
        scores["generalization_r2"] = compare(other, problem.other_y0)
    return scores


def _score(
    problem: Problem, y: Float[np.ndarray, "time"], expressions: Sequence[Expression]
) -> list[Score]:
    points = evaluation_points(y)
    truth = problem.law.evaluate(points)
    recovered: dict[str, bool] = {}  # By skeleton: the values of constants do not matter.
    scores = []
    for expression in expressions:
        key = expression.skeleton.key
        if key not in recovered:
            recovered[key] = problem.expression is not None and skeleton_recovered(
                problem.expression, expression
            )
        values = expression.evaluate(points)
        scores.append(Score(recovered[key], r2(truth, values), allclose(truth, values)))
    return scores


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def read_results(path: pathlib.Path, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The finished lines of a result file; a line cut off by a kill is removed.

    Raises:
      EvaluationError: if the file holds results of other settings, or no results.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    complete, cut_off = text[: text.rfind("\n") + 1], text[text.rfind("\n") + 1 :]
    try:
        if not cut_off.startswith(_LINE_START[: len(cut_off)]):
            raise TypeError("not a line of ours")
        results = [json.loads(line) for line in complete.splitlines()]
        for result in results:
            differing = [s for s in _SETTINGS if result[s] != settings[s]]
            if differing:
                found = ", ".join(f"{s} {result[s]}" for s in differing)
                raise EvaluationError(f"{path} holds results of {found}: choose another --out")
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path} is not a result file: choose another --out") from error
    if cut_off:
        path.write_text(complete, encoding="utf-8")
    return results


def evaluate_set(name: str, out: pathlib.Path, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Evaluates what DIR/<name>.jsonl lacks and prints a row per problem.

    Returns:
      The results of all problems of the set, in its order.
    """
    path = out / f"{name}.jsonl"
    done = {result["name"]: result for result in read_results(path, settings)}
    problems = TEST_SETS[name]()
    if done:
        print(f"{path}: {len(done)} of {len(problems)} problems are done already")
    print(_COLUMNS.format(name, "best formula", "skeleton", "allclose", "R2", "s"))
    for problem in problems:
        if problem.name not in done:
            result = evaluate_problem(problem, settings)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, allow_nan=False) + "\n")
            done[problem.name] = result
        print(_row(done[problem.name]), flush=True)
    results = [done[problem.name] for problem in problems]
    print(_totals(results))
    return results


def _row(result: dict[str, Any]) -> str:
    def rank(metric: str) -> str:
        value = result["rank"][metric]
        return "-" if value is None else f"#{value}"

    formula, fit = f"({result['error'] or 'no candidates'})", "-"
    if result["candidates"]:
        best = result["candidates"][0]
        formula = Expression.from_infix(best["formula"]).rounded(3).infix
        fit = "-" if best["r2"] is None else f"{best['r2']:.5f}"
    return _COLUMNS.format(
        _shortened(result["name"], 28),
        _shortened(formula, 34),
        rank("skeleton"),
        rank("allclose"),
        _shortened(fit, 9),
        f"{result['seconds']:.1f}",
    )


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _totals(results: Sequence[dict[str, Any]]) -> str:
    """Per metric, how many problems satisfy it: by any candidate, by the first."""
    lines = [f"of {len(results)} problems          any candidate   first candidate"]
    for metric in METRICS:
        ranks = [result["rank"][metric] for result in results]
        found, first = sum(r is not None for r in ranks), sum(r == 1 for r in ranks)
        lines.append(f"  {metric:<24} {found:>10} {first:>17}")
    for name in ("reconstruction", "generalization"):
        key = f"{name}_r2"
        if any(key in result for result in results):
            good = sum((result.get(key) or -math.inf) > _GOOD_R2 for result in results)
            lines.append(f"  {name + ' R2 > 0.9':<40} {good / len(results):>10.1%}")
    return "\n".join(lines) + "\n"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        raise EvaluationError(message)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m nsode_jax.evaluate", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--sets",
        default="textbook",
        help=f"test sets, separated by commas, of: {', '.join(TEST_SETS)} (default: textbook)",
    )
    parser.add_argument(
        "--weights", default="small", help="name of shipped weights, or a folder (default: small)"
    )
    parser.add_argument(
        "--effort",
        default="default",
        choices=tuple(EFFORTS),
        help="how much work a discovery is (default: default)",
    )
    parser.add_argument("--beams", type=int, help="beams per view (default: by the effort)")
    parser.add_argument(
        "--samples", type=int, help="laws drawn beside the beams (default: by the effort)"
    )
    parser.add_argument(
        "--noise",
        type=float,
        default=0.0,
        metavar="SIGMA",
        help="noise as a share of each value (default: 0)",
    )
    parser.add_argument(
        "--drop", type=float, default=0.0, metavar="SHARE", help="share of points lost (default: 0)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path("results"),
        metavar="DIR",
        help="folder of the result files (default: results)",
    )
    arguments = parser.parse_args(argv)
    arguments.sets = list(dict.fromkeys(filter(None, arguments.sets.split(","))))
    unknown = [name for name in arguments.sets if name not in TEST_SETS]
    if unknown or not arguments.sets:
        what = f"unknown test set {unknown[0]!r}" if unknown else "--sets names no test set"
        raise EvaluationError(f"{what}: known are {', '.join(TEST_SETS)}")
    for name, limit in (("beams", math.inf), ("samples", math.inf), ("noise", 1), ("drop", 0.9)):
        value = getattr(arguments, name)
        if value is not None and not 0 <= value <= limit:
            range_of = "at least 0" if limit == math.inf else f"between 0 and {limit}"
            raise EvaluationError(f"--{name} must be {range_of}, got {value}")
    return arguments


def _run(arguments: argparse.Namespace) -> None:
    settings = {name: getattr(arguments, name) for name in _SETTINGS}
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets:
        evaluate_set(name, arguments.out, settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Returns:
      0, or 2 where an argument or a file cannot be used (one line says which).
    """
    try:
        arguments = _parse(argv)
        # JAX is slow to import.
        from nsode_jax.decoding.compiled import keep_compiled_programs
        from nsode_jax.modeling.pretrained import WeightsError

        keep_compiled_programs()
        try:
            _run(arguments)
        except WeightsError as error:
            raise EvaluationError(str(error)) from error
    except (EvaluationError, OSError) as error:
        print(f"nsode_jax.evaluate: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
