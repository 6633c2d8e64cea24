"""Compares methods on test sets with known laws: python -m nsode_jax.evaluate --sets textbook

Writes one JSON line per problem to DIR/METHOD/SET.jsonl and prints a table. A run that
was interrupted goes on where it stopped.

  python -m nsode_jax.evaluate --sets textbook,classic --method nsode+refine
  python -m nsode_jax.evaluate --sets iv-500,skeletons --method nsode --decoding paper
  python -m nsode_jax.evaluate --sets odebench --method sindy --noise 0.05 --drop 0.5
  python -m nsode_jax.evaluate report DIR --out REPORT

The last one makes tables and figures of all results below DIR.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nsode_jax.baselines.scalar import NotInstalled
from nsode_jax.console.arguments import InputError, Parser
from nsode_jax.console.terminal import output_may_end
from nsode_jax.evaluation import console
from nsode_jax.evaluation.methods import METHODS
from nsode_jax.evaluation.report import write_report
from nsode_jax.evaluation.results import Data, ReportError
from nsode_jax.evaluation.runner import EvaluationError, Task, run
from nsode_jax.evaluation.testsets import TEST_SETS
from nsode_jax.search.effort import EFFORTS
from nsode_jax.system.files import in_words, require_folder
from nsode_jax.system.workers import usable_cores

_TIME_LIMIT = 3600.0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m nsode_jax.evaluate",
        usage="%(prog)s [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _ask_of_the_problems(parser.add_argument_group("the problems").add_argument)
    _ask_of_the_method(parser.add_argument_group("the method").add_argument)
    _ask_of_the_work(parser.add_argument_group("the work").add_argument)
    return parser


def _ask_of_the_problems(add: Callable) -> None:
    add(
        "--sets",
        default="textbook",
        help=f"test sets, separated by commas, of: {', '.join(TEST_SETS)} (default: textbook)",
    )
    add(
        "--noise",
        type=float,
        default=0.0,
        metavar="SIGMA",
        help="noise as a share of each value (default: 0)",
    )
    add(
        "--drop", type=float, default=0.0, metavar="SHARE", help="share of points lost (default: 0)"
    )


def _ask_of_the_method(add: Callable) -> None:
    add(
        "--method",
        default="nsode+refine",
        choices=tuple(METHODS),
        help="nsode and nsode-paper are the network alone, nsode+refine is discovery, "
        "nsode-unnamed that without named laws (default: nsode+refine)",
    )
    add("--weights", help="shipped weights by name, or a folder (default: small)")
    add(
        "--effort",
        choices=tuple(EFFORTS),
        help="nsode+refine: how much work a discovery is (default: default)",
    )
    add(
        "--beams",
        type=int,
        help="width of the beam search (default: 1536; nsode+refine: by the effort, per view)",
    )
    add("--samples", type=int, help="nsode+refine: laws drawn beside them (default: by the effort)")
    add(
        "--decoding",
        choices=("ours", "paper"),
        default="ours",
        help="nsode: with a grammar, constants merged and the series scaled into the network's "
        "range, or as in the paper, which is the method nsode-paper (default: ours)",
    )
    add("--seed", type=int, default=0, help="random seed (default: 0)")


def _ask_of_the_work(add: Callable) -> None:
    add(
        "--batch",
        type=int,
        help="series that a method is given at once; the network decodes them together "
        f"(default: {METHODS['nsode'].together} for the network alone, else 1)",
    )
    add(
        "--problems",
        type=int,
        metavar="NUMBER",
        help="of each set, for a slow method: a random sample, the same for all (default: all)",
    )
    add(
        "--processes",
        type=int,
        default=usable_cores(),
        help="worker processes; 0 works in this process, without a time limit "
        "(default: the number of cores)",
    )
    add(
        "--time-limit",
        type=float,
        default=_TIME_LIMIT,
        metavar="SECONDS",
        help=f"after this a problem is given up, a miss (default: {_TIME_LIMIT:g})",
    )
    add(
        "--out",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder of the result files (default: results)",
    )


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    arguments = _parser().parse_args(argv)
    arguments.sets = list(dict.fromkeys(filter(None, arguments.sets.split(","))))
    if arguments.decoding == "paper":
        if arguments.method not in ("nsode", "nsode-paper"):
            raise EvaluationError(
                f"--decoding paper has no meaning for the method {arguments.method}"
            )
        arguments.method = "nsode-paper"
    _check(arguments)
    return arguments


def _check(arguments: argparse.Namespace) -> None:
    unknown = [name for name in arguments.sets if name not in TEST_SETS]
    if unknown or not arguments.sets:
        what = f"unknown test set {unknown[0]!r}" if unknown else "--sets names no test set"
        raise EvaluationError(f"{what}: known are {', '.join(TEST_SETS)}")
    least_beams = 0 if arguments.method in ("nsode+refine", "nsode-unnamed") else 1
    limits = {
        "beams": (least_beams, math.inf),
        "samples": (0, math.inf),
        "batch": (1, math.inf),
        "problems": (1, math.inf),
        "noise": (0, 1),
        "drop": (0, 0.9),
        "processes": (0, math.inf),
        "time_limit": (1, math.inf),
    }
    for name, (low, high) in limits.items():
        value = getattr(arguments, name)
        if value is not None and not low <= value <= high:
            range_of = f"at least {low}" if high == math.inf else f"between {low} and {high}"
            option = name.replace("_", "-")
            raise EvaluationError(f"--{option} must be {range_of}, got {value}")


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of the method: its defaults, and what was given."""
    method = METHODS[arguments.method]
    settings = dict(method.defaults)
    for name in ("weights", "effort", "beams", "samples"):
        value = getattr(arguments, name)
        if value is None:
            continue
        if name not in settings:
            raise EvaluationError(f"--{name} has no meaning for the method {arguments.method}")
        settings[name] = value
    return {**settings, "seed": arguments.seed}


def _evaluate(arguments: argparse.Namespace) -> None:
    settings = _settings(arguments)
    require_folder(arguments.out, "--out")
    for name in arguments.sets:
        data = Data(name, arguments.noise, arguments.drop)
        _evaluate_set(Task(data, arguments.method, settings), arguments)


def _evaluate_set(task: Task, arguments: argparse.Namespace) -> None:
    def started(done: int, of: int) -> None:
        if done:
            print(f"{task.path(arguments.out)}: {done} of {of} problems are done already")
        print(console.header(task.data.title))

    results = run(
        task,
        arguments.out,
        processes=arguments.processes,
        together=arguments.batch,
        most=arguments.problems,
        time_limit=arguments.time_limit,
        started=started,
        finished=lambda result: print(console.row(result), flush=True),
    )
    print(console.totals(results), flush=True)


def _report(argv: Sequence[str]) -> None:
    parser = Parser(
        prog="python -m nsode_jax.evaluate report",
        description="Makes tables and figures of the results of evaluations.",
    )
    parser.add_argument("results", type=Path, help="folder of the result files")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="folder of the report (default: report)",
    )
    arguments = parser.parse_args(argv)
    require_folder(arguments.out, "--out")
    for path in write_report(arguments.results, arguments.out):
        print(path)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Returns:
      0, or 2 where an argument or a file cannot be used (one line says which).
    """
    argv = sys.argv[1:] if argv is None else argv
    try:
        with output_may_end():
            if argv[:1] == ["report"]:
                _report(argv[1:])
            else:
                _evaluate_or_complain(_parse(argv))
    except (InputError, EvaluationError, ReportError, OSError) as error:
        print(f"nsode_jax.evaluate: error: {in_words(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("nsode_jax.evaluate: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _evaluate_or_complain(arguments: argparse.Namespace) -> None:
    from nsode_jax.modeling.pretrained import WeightsError  # JAX is slow to import.

    try:
        _evaluate(arguments)
    except (WeightsError, NotInstalled) as error:
        raise EvaluationError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
