"""Scores exported weights without refinement and writes the one line of result.json.

    python launch/pretrain_scores.py --workdir RUN --out OUT --seconds 70

For each problem the network reads up to four rescaled views of the clean trajectory.
A skeleton is found if, in the units of a view, the canonical skeleton of the law is
among those of the candidates: a lower bound of what discovery can make of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_STARTED = time.monotonic()
_ROWS = 64
"""Views that are decoded as one batch."""


def main() -> None:
    """Writes the result without scores, then after each test set again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workdir", type=Path, required=True, help="of the training run")
    parser.add_argument("--out", type=Path, required=True, help="folder of result.json")
    parser.add_argument("--sets", default="textbook,odebench,iv", help="test sets")
    parser.add_argument("--limit", type=int, default=100, help="most problems of a set")
    parser.add_argument("--beams", type=int, default=128, help="beams, and as many samples")
    parser.add_argument("--seconds", type=float, default=70.0, help="0: no scores, only result")
    parser.add_argument("--workers", type=int, default=1, help="processes that compare")
    parser.add_argument("--before", type=float, default=0.0, help="seconds spent before this")
    arguments = parser.parse_args()
    result = _training_result(arguments.workdir)

    def write() -> None:
        seconds = round(arguments.before + time.monotonic() - _STARTED, 1)
        line = json.dumps({**result, "seconds": seconds})
        (arguments.out / "result.json").write_text(line + "\n")

    write()  # Something is there, whatever happens to the rest.
    if arguments.seconds:
        try:
            for name, score in _score_sets(arguments):
                result["scores"][name] = score
                write()
        except Exception as error:  # The training's numbers must come through.
            result["scores"]["error"] = f"{type(error).__name__}: {error}"[:500]
        write()
    print((arguments.out / "result.json").read_text(), end="", flush=True)


def _training_result(workdir: Path) -> dict[str, Any]:
    """What the plan, the metrics and the weights of a run tell."""
    plan = json.loads((workdir / "plan.json").read_text())
    lines = []
    if (workdir / "metrics.jsonl").is_file():
        for line in (workdir / "metrics.jsonl").read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                pass  # Cut off by a kill.
    train = [line for line in lines if line.get("kind") == "train"]
    validation = [line for line in lines if line.get("kind") == "validation"]
    model: dict[str, Any] = {}
    if (workdir / "weights" / "model.json").is_file():
        model = json.loads((workdir / "weights" / "model.json").read_text())
    settings = plan["settings"]
    steps = max((line["step"] for line in lines), default=0)
    # From the second half: the first includes compilation.
    medians = _medians(train[len(train) // 2 :])
    return {
        "card": plan["situation"]["device"],
        "jax": plan["situation"]["jax"],
        "model": model.get("model", plan["situation"]["model"]),
        "init_from": settings.get("init_from", ""),
        "batch_size": settings["batch_size"],
        "steps": steps,
        "planned_steps": settings["steps"],
        "samples": steps * settings["batch_size"],
        "samples_seen_by_weights": model.get("card", {}).get("samples_seen"),
        "samples_per_second": medians.get("samples_per_second"),
        "utilization": medians.get("flops_utilization"),
        "input_wait": medians.get("input_wait"),
        "rates": plan["rates"],
        "train": medians,
        "validation": _medians(validation[-1:]),
        "scores": {},
    }


def _medians(lines: Sequence[dict[str, Any]]) -> dict[str, float]:
    numbers: dict[str, list[float]] = {}
    for line in lines:
        for name, value in line.items():
            if isinstance(value, (int, float)) and name != "step":
                numbers.setdefault(name, []).append(value)
    return {name: round(statistics.median(values), 5) for name, values in numbers.items()}


def _score_sets(arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and score of each test set, until the time is up."""
    from nsode_jax.decoding.propose import Proposer
    from nsode_jax.dynamics.trajectory import Trajectory
    from nsode_jax.evaluation.testsets import TEST_SETS
    from nsode_jax.observed.scaling import candidate_views
    from nsode_jax.system.workers import Workers

    proposer = Proposer.from_pretrained(arguments.workdir / "weights")
    with Workers(arguments.workers) as workers:
        for name in filter(None, arguments.sets.split(",")):
            problems = TEST_SETS[name]()[: arguments.limit]
            rows = []  # (problem, view, trajectory in the view)
            for index, problem in enumerate(problems):
                trajectory = Trajectory(problem.t, problem.solve())
                # A shifted law has another skeleton in the units of the data.
                views = [v for v in candidate_views(trajectory) if not v.b]
                rows += [(index, view, view.apply(trajectory)) for view in views]
            found = {"beams": set(), "beams_and_samples": set()}
            done = True
            for start in range(0, len(rows), _ROWS):
                if time.monotonic() - _STARTED > arguments.seconds:
                    done = False
                    break
                some = rows[start : start + _ROWS]
                # Always the same number of rows: one compilation.
                padded = some + [some[-1]] * (_ROWS - len(some))
                for kind, samples in (("beams", 0), ("beams_and_samples", arguments.beams)):
                    proposals = proposer.propose(
                        [row[2] for row in padded], beams=arguments.beams, samples=samples
                    )
                    tasks = [
                        (problems[index].law, view, [e for e, _ in candidates])
                        for (index, view, _), candidates in zip(some, proposals)
                    ]
                    hits = workers.map(_is_among, tasks)
                    found[kind] |= {row[0] for row, hit in zip(some, hits) if hit}
            yield (
                name,
                {
                    "problems": len(problems),
                    **{kind: len(indices) for kind, indices in found.items()},
                    **({} if done else {"complete": False}),
                },
            )


def _is_among(task: tuple[Any, Any, list[Any]]) -> bool:
    """Whether a law in the units of a view has the skeleton of one of the candidates."""
    from nsode_jax.expressions.canonical import TimeLimitExceeded, canonicalize
    from nsode_jax.expressions.expression import ExpressionError
    from nsode_jax.observed.scaling import AffineView

    law, view, candidates = task
    one_of_each = {expression.skeleton.key: expression for expression in candidates}
    try:
        # z = y/a, s = t/c backwards.
        target = AffineView(0.0, 1.0 / view.c, 0.0, 1.0 / view.a).restore(law).skeleton.key
    except (ExpressionError, TimeLimitExceeded):
        return False
    if target in one_of_each:
        return True
    for expression in one_of_each.values():
        try:
            if canonicalize(expression).skeleton.key == target:
                return True
        except (ExpressionError, TimeLimitExceeded):
            continue
    return False


if __name__ == "__main__":
    main()
