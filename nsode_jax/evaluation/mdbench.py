"""MDBench's protocol on the 63 systems of ODEBench: slopes beyond the data, in noise.

    python -m nsode_jax.evaluation.mdbench results.jsonl --snr 20 [--method sindy]

A method sees the first 80% of one run of 150 points, noise y (1 + xi) with a variance of
10^(-SNR/10). Its laws are asked for the slopes at the last 20%, at the noisy states; the error is
the sum of squared differences from the true slopes over that of the squared true slopes, of all
quantities together. `--method truth` takes the true system in place of a discovered one: what the
noise of the states alone amounts to. Complexity counts operators, variables and constants of all
laws. What is in the file already is not run again.

Source: Bideh et al., "MDBench: Benchmarking Data-Driven Methods for Model Discovery" (2025).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np

from nsode_jax.baselines.scalar import BaselineError
from nsode_jax.discovery.pipeline import DiscoveryError
from nsode_jax.evaluation.json_lines import SEED, Line, Tasks, command
from nsode_jax.evaluation.odebench_systems import (
    METHODS,
    POINTS,
    States,
    quantities,
    solve,
    systems,
    true_laws,
)
from nsode_jax.expressions.expression import Expression

SEEN = 0.8
TRUTH = "truth"
GOOD = 0.01
"""Errors below are counted: slopes right to a tenth of their size."""


def equations() -> list[dict[str, Any]]:
    """All 63: name, `dim` equations in x_0, x_1, ..., initial values of the first run, times."""
    file = files("nsode_jax.evaluation") / "data" / "odebench_1d.json"
    scalar = json.loads(file.read_text(encoding="utf-8"))["equations"]
    return [
        {**entry, "equation_with_values": [entry["equation_with_values"]]}
        | {"initial_conditions": [[y0] for y0 in entry["initial_conditions"]]}
        for entry in scalar
    ] + systems()


def nmse(true: States, found: States) -> float | None:
    """Squared error of all slopes relative to their squares; None where a law is undefined."""
    with np.errstate(all="ignore"):
        error = float(((true - found) ** 2).sum() / (true**2).sum())
    return error if np.isfinite(error) else None


def slopes(laws: Sequence[Expression], y: States) -> States:
    """What laws give at each state, NaN or inf where one is undefined there."""
    return np.stack([law.evaluate(*y.T) for law in laws], axis=1)


def evaluate(entry: dict[str, Any], method: str, snr: float | None, seed: int) -> Line:
    """A line of the results: one system at one ratio of signal to noise, in dB; None for none."""
    start, end = entry["t_span"]
    t = np.linspace(start, end, POINTS)
    system = true_laws(entry)
    y = solve(system, entry["initial_conditions"][0], t)
    if y is None:
        raise ValueError(f"{entry['name']}: the true system has no solution")
    random = np.random.default_rng([seed, entry["id"]])
    sigma = 0.0 if snr is None else 10 ** (-snr / 20)
    noisy = y * (1 + sigma * random.standard_normal(y.shape))
    seen = round(SEEN * POINTS)
    line: Line = {"id": entry["id"], "name": entry["name"], "dim": entry["dim"]}
    line |= {"method": method, "snr": snr, "seed": seed}
    true = slopes(system, y[seen:])
    if method == TRUTH:
        return line | {"seconds": 0.0, "nmse": nmse(true, slopes(system, noisy[seen:]))}
    started = time.perf_counter()
    try:
        laws = METHODS[method](t[:seen], noisy[:seen], quantities(entry))
    except (DiscoveryError, BaselineError) as error:
        return line | {"error": str(error), "seconds": time.perf_counter() - started}
    line["seconds"] = round(time.perf_counter() - started, 2)
    line["nmse"] = nmse(true, slopes(laws, noisy[seen:]))
    line["complexity"] = sum(len(law.prefix) for law in laws)
    return line | {"laws": [law.infix for law in laws]}


def summary(lines: Iterable[Line]) -> str:
    """By method and noise: quartiles of the error, the share of small ones, median complexity."""
    rows = ["method     snr  runs   quartiles of the error    below 0.01  complexity  seconds"]
    lines = list(lines)
    groups = {(line["method"], line["snr"]) for line in lines}
    for method, snr in sorted(groups, key=_least_noise_first):
        chosen = [line for line in lines if (line["method"], line["snr"]) == (method, snr)]
        errors = [math.inf if line.get("nmse") is None else line["nmse"] for line in chosen]
        # No interpolation: the error of a failure is infinite.
        quartiles = np.quantile(errors, (0.25, 0.5, 0.75), method="lower")
        complexity = [line["complexity"] for line in chosen if "complexity" in line]
        rows.append(
            f"{method:9} {'none' if snr is None else snr:>4}  {len(chosen):4d}  "
            + "  ".join(f"{value:7.1e}" for value in quartiles)
            + f"  {100 * np.mean(np.array(errors) < GOOD):9.1f}%"
            + (f"  {np.median(complexity):10.0f}" if complexity else " " * 12)
            + f"  {np.median([line['seconds'] for line in chosen]):7.1f}"
        )
    return "\n".join(rows)


def _least_noise_first(group: tuple[str, float | None]) -> tuple[float, str]:
    method, snr = group
    return -(math.inf if snr is None else snr), method


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not in the file yet, and prints the summary."""

    def tasks(options: argparse.Namespace) -> Tasks:
        setting = options.method, options.snr, options.seed
        return {
            (entry["id"], *setting): partial(evaluate, entry, *setting) for entry in equations()
        }

    def told(line: Line) -> str:
        return f"{line['id']} {line['name']}: {line.get('nmse')}"

    flags = {
        "--method": {
            "choices": [*METHODS, TRUTH],
            "default": "discover",
            "help": "truth asks the true system itself; default: %(default)s",
        },
        "--snr": {
            "type": float,
            "help": "signal to noise in dB: 40, 30, 20 or 10 as published; none if left out",
        },
        "--seed": SEED,
    }
    about = "MDBench's protocol on ODEBench: slopes beyond the data."
    key = ("id", "method", "snr", "seed")
    return command(argv, "mdbench", about, flags, tasks, key, told, summary)


if __name__ == "__main__":
    sys.exit(main())
