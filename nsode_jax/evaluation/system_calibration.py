"""Whether the stated probabilities of systems mean what they say.

    python -m nsode_jax.evaluation.system_calibration results.jsonl

Driven and coupled textbook systems are observed with noise of 1% and 5% of the standard
deviation of each quantity. Kept are the probability that is stated of the form of the first
system found (coefficients aside, as `discover` says how sure one may be), and whether that is the
true one's. What is in the file already is not run again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from nsode_jax.discovery.pipeline import DiscoveryError
from nsode_jax.evaluation import coupled_systems, driven_systems
from nsode_jax.evaluation.driven_systems import Case, same_structure
from nsode_jax.evaluation.json_lines import Line, Tasks, command
from nsode_jax.reporting.certainty import first_form_probability

ALL = (*driven_systems.CASES, *coupled_systems.CASES)
NOISES = (0.01, 0.05)
_EDGES = (0.0, 0.5, 0.75, 0.9, 1.0)


def evaluate(case: Case, noise: float, seed: int) -> dict[str, Any]:
    """A line of the results."""
    rng = np.random.default_rng([seed, round(1000 * noise), *case.name.encode()])
    line: dict[str, Any] = {"name": case.name, "noise": noise, "seed": seed}
    line["quantities"] = len(case.system.observed)
    try:
        found = case.found(noise, rng)
    except DiscoveryError as error:
        return line | {"error": str(error), "probability": 0.0, "right": False}
    line["laws"] = [law.rounded(4).infix for law in found.best.laws]
    return line | {
        "probability": first_form_probability(found),
        "right": same_structure(found.best.laws, case.expressions),
    }


def table(lines: Iterable[dict[str, Any]]) -> str:
    """Stated probabilities and shares of right systems, by groups and by what was stated."""
    lines = list(lines)
    groups = {"all": lines}
    for noise in NOISES:
        groups[f"- {noise:.0%} noise"] = [line for line in lines if line["noise"] == noise]
    for number, name in ((1, "one quantity"), (2, "two"), (3, "three")):
        groups[f"- {name}"] = [line for line in lines if line["quantities"] == number]
    for low, high in pairwise(_EDGES):
        groups[f"- stated {low:.0%} to {high:.0%}"] = [
            line for line in lines if low < line["probability"] <= high
        ]
    rows = ["| systems | number | first is right | it was stated |", "|---|---|---|---|"]
    for name, group in groups.items():
        if group:
            right = np.mean([line["right"] for line in group])
            told = np.mean([line["probability"] for line in group])
            rows.append(f"| {name} | {len(group)} | {right:.0%} | {told:.0%} |")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not in the file yet, and prints the table."""

    def tasks(options: argparse.Namespace) -> Tasks:
        return {
            (case.name, noise, seed): partial(evaluate, case, noise, seed)
            for seed in range(options.seeds)
            for noise in NOISES
            for case in ALL
        }

    def told(line: Line) -> str:
        return f"{line['name']}, {line['noise']:.0%}: {line['right']}"

    flags = {"--seeds": {"type": int, "default": 1, "help": "samples of noise (default: 1)"}}
    key = ("name", "noise", "seed")
    return command(argv, "system_calibration", __doc__, flags, tasks, key, told, table)


if __name__ == "__main__":
    sys.exit(main())
