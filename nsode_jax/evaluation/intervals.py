"""How often the 95% intervals of constants hold the true ones, where the form is right.

    python -m nsode_jax.evaluation.intervals results.jsonl

Laws of five kinds are fitted to their own solutions: with noise of 3% of the standard deviation
that is independent from one observation to the next or alike (autocorrelations of 0.3 to 0.8), and
without noise as solvers give them (`solve_ivp` as it is, and LSODA to a millionth). Beside the
intervals as they are told, those that independent noise would have. What is in the file already
is not run again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import scipy.stats
from jaxtyping import Float
from scipy.integrate import solve_ivp

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.evaluation.json_lines import Line, Tasks, command
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.linearized import dependence
from nsode_jax.fitting.trajectory_fitting import covariance, fit_trajectories, linearized
from nsode_jax.observed.dataset import Dataset

LAWS = {
    "logistic growth": ("1.3*y - 0.7*y**2", 0.1, 6.0),
    "approach to a limit": ("2.5 - 0.8*y", 0.1, 6.0),
    "Gompertz growth": ("-0.37*y*log(0.21*y)", 0.1, 10.0),
    "overdamped pendulum": ("1.3*sin(1.7*y)", 0.1, 4.0),
    "saturation": ("0.9/(0.4 + y)", 0.2, 5.0),
}
"""Laws, first values and durations."""

ALIKE = (0.0, 0.3, 0.6, 0.8)
"""Autocorrelations of the noise."""

SOLVERS = {
    "solve_ivp as it is": {},
    "LSODA to a millionth": {"method": "LSODA", "rtol": 1e-6, "atol": 1e-8},
}
POINTS = (20, 60)
NOISE = 0.03
_ACCURATE = {"method": "LSODA", "rtol": 1e-11, "atol": 1e-12}
_PROBABILITY = 0.95
_SPREAD = 0.2
"""Of the logarithm of the first value, from one series to the next."""


def data_of(law: str, kind: str, points: int, seed: int) -> Dataset:
    """A solution with noise of an autocorrelation, or with the errors of a solver."""
    text, first, end = LAWS[law]
    f = Expression.from_infix(text).compile()
    rng = np.random.default_rng([points, seed])
    t = np.linspace(0.0, end, points)
    y0 = [first * np.exp(_SPREAD * rng.standard_normal())]
    settings = SOLVERS.get(kind, _ACCURATE)
    y = solve_ivp(lambda _, y: [f(y[0])], (0.0, end), y0, t_eval=t, **settings).y[0]
    if kind not in SOLVERS:
        y = y + NOISE * y.std() * _noise(rng, points, float(kind))
    return Dataset.of([Trajectory(t, y)])


def _noise(rng: np.random.Generator, points: int, alike: float) -> Float[np.ndarray, " time"]:
    """Of variance 1, each value as like the one before as asked for."""
    noise = rng.standard_normal(points)
    for i in range(1, points):
        noise[i] = alike * noise[i - 1] + np.sqrt(1 - alike**2) * noise[i]
    return noise


def evaluate(law: str, kind: str, points: int, seeds: int) -> Line:
    """How many true constants the intervals hold, as told and if noise were independent."""
    true = canonicalize(Expression.from_infix(LAWS[law][0]))
    line: Line = {"law": law, "kind": kind, "points": points, "seeds": seeds}
    held, independent, number = 0, 0, 0
    for seed in range(seeds):
        data = data_of(law, kind, points, seed)
        fit = fit_trajectories(data, true, [data.y[0]], Origin("given", 0.0))
        known, linear = covariance(data, fit), linearized(data, fit)
        if known is None or linear is None:
            continue
        quantile = scipy.stats.t.ppf((1 + _PROBABILITY) / 2, linear.freedom)
        errors = np.sqrt(np.diag(known))
        fitted = errors > 0.0  # Plain exponents are not.
        half = quantile * errors[fitted]
        away = np.abs(np.array(fit.expression.constants) - true.constants)[fitted]
        factor = dependence([linear.residual], linear.jacobian.shape[1])
        held += int((away <= half).sum())
        independent += int((away <= half / np.sqrt(factor)).sum())
        number += away.size
    return line | {"constants": number, "held": held, "independent": independent}


def table(lines: Iterable[Line]) -> str:
    """Percent of the constants that intervals of 95% hold, by kind of noise."""
    lines = list(lines)
    rows = [
        "| noise | " + " | ".join(f"{points} points" for points in POINTS) + " |",
        "|---" * (1 + len(POINTS)) + "|",
    ]
    for kind in (*map(str, ALIKE), *SOLVERS):
        cells = []
        for points in POINTS:
            chosen = [one for one in lines if (one["kind"], one["points"]) == (kind, points)]
            number = sum(line["constants"] for line in chosen) or 1
            told, plain = (
                100 * sum(line[name] for line in chosen) / number
                for name in ("held", "independent")
            )
            cells.append(f"{told:.0f} ({plain:.0f})")
        name = f"none: {kind}" if kind in SOLVERS else f"autocorrelation {kind}"
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not in the file yet, and prints the table."""

    def tasks(options) -> Tasks:
        return {
            (law, kind, points, options.seeds): partial(evaluate, law, kind, points, options.seeds)
            for law in LAWS
            for kind in (*map(str, ALIKE), *SOLVERS)
            for points in POINTS
        }

    def told(line: Line) -> str:
        share = f"{line['held']} of {line['constants']}"
        return f"{line['law']}, {line['kind']}, {line['points']} points: {share}"

    flags = {"--seeds": {"type": int, "default": 50, "help": "series of each (default: 50)"}}
    key = ("law", "kind", "points", "seeds")
    return command(argv, "intervals", __doc__, flags, tasks, key, told, table)


if __name__ == "__main__":
    sys.exit(main())
