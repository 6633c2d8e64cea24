"""ODEBench's 40 systems of two to four quantities: how well `discover` and others do on them.

    python -m nsode_jax.evaluation.odebench_systems results.jsonl [--method sindy]

observes each system from both of its initial values at 150 points of [0, 10] (LSODA at
tolerances 1e-5 and 1e-7), and compares the solutions of the first system found with the true
ones: from the same initial values (reconstruction) and from the other ones, which were
never seen (generalization). R2 is over all quantities, weighted by their variance; above 0.9
counts. Systems that are in the file already are not run again.
"""

from __future__ import annotations

import argparse
import importlib.resources
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

from nsode_jax.baselines.scalar import BaselineError
from nsode_jax.baselines.systems import Laws, operon, sindy
from nsode_jax.discovery.pipeline import DiscoveryError, discover
from nsode_jax.discovery.systems import discover_system
from nsode_jax.evaluation.json_lines import SEED, Line, Tasks, command
from nsode_jax.evaluation.metrics import GOOD_SOLUTION_R2
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.selection.named_systems import named_system

POINTS = 150
_RTOL, _ATOL = 1e-5, 1e-7
_MAX_EVALUATIONS = 200_000

States = Float[np.ndarray, "time states"]


def discovered(t: Float[np.ndarray, " time"], y: States, names: tuple[str, ...]) -> Laws:
    """The first law or system that `discover` finds."""
    if len(names) == 1:
        return (discover(t, y[:, 0]).best.expression,)
    return discover_system(t, y, names=names).best.laws


METHODS: Mapping[str, Callable[..., Laws]] = {
    "discover": discovered,
    "sindy": sindy,
    "operon": operon,
}
"""From times, observations and names to a law for each quantity."""


def systems() -> list[dict[str, Any]]:
    """The systems as published: name, equations in x_0, x_1, ..., two initial values."""
    file = importlib.resources.files("nsode_jax.evaluation") / "data" / "odebench_systems.json"
    return json.loads(file.read_text(encoding="utf-8"))["equations"]


def true_laws(entry: dict[str, Any]) -> Laws:
    """The true equations, one for each quantity."""
    names = quantities(entry)
    # Abs(x) and cot(x) are no operators of ours.
    texts = (
        text.replace("Abs(x_1)", "sqrt(x_1**2)").replace("cot(x_1)", "cos(x_1)/sin(x_1)")
        for text in entry["equation_with_values"]
    )
    return tuple(Expression.from_infix(text, names) for text in texts)


def quantities(entry: dict[str, Any]) -> tuple[str, ...]:
    """Their names in the equations."""
    return tuple(f"x_{k}" for k in range(entry["dim"]))


def solve(laws: Sequence[Expression], y0: Sequence[float], t: np.ndarray) -> States | None:
    """The solution by the benchmark's own solver; None where there is none."""
    functions, left = [law.compile() for law in laws], _MAX_EVALUATIONS

    def derivative(_, y):
        nonlocal left
        left -= 1
        if left < 0:
            raise ArithmeticError("too many evaluations")
        values = [*map(float, y)]
        return [f(*values) for f in functions]

    try:
        with np.errstate(all="ignore"):
            solved = solve_ivp(
                derivative, (t[0], t[-1]), y0, method="LSODA", t_eval=t, rtol=_RTOL, atol=_ATOL,
                first_step=1e-6, min_step=1e-10,
            )  # fmt: skip
    except (ArithmeticError, ValueError):
        return None
    complete = solved.success and solved.y.shape[1] == t.size and np.isfinite(solved.y).all()
    return solved.y.T if complete else None


def r2(truth: States, prediction: States | None) -> float | None:
    """R2 over all quantities, weighted by their variance; None without a solution."""
    if prediction is None:
        return None
    left = float(((truth - prediction) ** 2).sum())
    return 1.0 - left / float(((truth - truth.mean(axis=0)) ** 2).sum())


def evaluate(
    entry: dict[str, Any], first: int, method: str, noise: float, drop: float, seed: int
) -> Line:
    """A line of the results: one system, observed from one of its initial values."""
    start, end = entry["t_span"]
    t = np.linspace(start, end, POINTS)
    truth = [solve(true_laws(entry), y0, t) for y0 in entry["initial_conditions"]]
    seen, other = truth[first], truth[1 - first]
    if seen is None or other is None:
        raise ValueError(f"{entry['name']}: the true system has no solution")
    random = np.random.default_rng([seed, entry["id"], first])
    noisy = seen * (1 + noise * random.standard_normal(seen.shape))
    kept = np.sort(random.choice(POINTS, round(POINTS * (1 - drop)), replace=False))
    started = time.perf_counter()
    line = {"id": entry["id"], "first": first, "name": entry["name"], "dim": entry["dim"]}
    line |= {"method": method, "noise": noise, "drop": drop, "seed": seed}
    try:
        found = METHODS[method](t[kept], noisy[kept], quantities(entry))
    except (DiscoveryError, BaselineError) as error:
        return line | {"error": str(error), "seconds": time.perf_counter() - started}
    line["seconds"] = round(time.perf_counter() - started, 2)
    starts = (seen[0], other[0])
    line["reconstruction_r2"], line["generalization_r2"] = (
        r2(clean, solve(found, y0, t)) for clean, y0 in zip((seen, other), starts)
    )
    return line | {"laws": [law.infix for law in found]}


def named() -> frozenset[int]:
    """Those of the systems that the package's own table lists: for ours they are no surprise."""
    return frozenset(
        entry["id"]
        for entry in systems()
        if named_system([canonicalize(law) for law in true_laws(entry)], quantities(entry))
    )


def summary(lines: Iterable[Line]) -> str:
    """Percent reconstruction and generalization and median seconds by number of quantities."""
    lines, listed = list(lines), named()
    groups = {str(dim): [line for line in lines if line["dim"] == dim] for dim in (2, 3, 4)}
    groups["named"] = [line for line in lines if line["id"] in listed]
    groups["others"] = [line for line in lines if line["id"] not in listed]
    groups["all"] = lines
    rows = ["states  runs    rec    gen  seconds"]
    for name, chosen in groups.items():
        if not chosen:
            continue
        shares = [
            100
            * np.mean([(line.get(f"{kind}_r2") or -np.inf) > GOOD_SOLUTION_R2 for line in chosen])
            for kind in ("reconstruction", "generalization")
        ]
        seconds = float(np.median([line["seconds"] for line in chosen]))
        numbers = f"{shares[0]:5.1f}  {shares[1]:5.1f}  {seconds:7.1f}"
        rows.append(f"{name:>6}  {len(chosen):4d}  {numbers}")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not in the file yet, and prints the summary."""

    def tasks(options: argparse.Namespace) -> Tasks:
        setting = options.method, options.noise, options.drop, options.seed
        return {
            (entry["id"], first, *setting): partial(evaluate, entry, first, *setting)
            for entry in systems()
            for first in (0, 1)
        }

    def told(line: Line) -> str:
        return f"{line['id']}{'ab'[line['first']]} {line['name']}: {line.get('generalization_r2')}"

    about = "ODEBench's systems of several quantities."
    flags = {
        "--method": {"choices": METHODS, "default": "discover", "help": "default: %(default)s"},
        "--noise": {"type": float, "default": 0.0, "help": "sigma of y (1 + sigma xi)"},
        "--drop": {"type": float, "default": 0.0, "help": "share of the points left out"},
        "--seed": SEED,
    }
    key = ("id", "first", "method", "noise", "drop", "seed")
    return command(argv, "odebench_systems", about, flags, tasks, key, told, summary)


if __name__ == "__main__":
    sys.exit(main())
