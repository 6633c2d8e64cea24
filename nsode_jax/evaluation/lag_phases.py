"""How often a lag phase is told of, where there is one and where there is none.

    python -m nsode_jax.evaluation.lag_phases results.jsonl

Series without a lag are simulated laws of the prior with noise. Series with one are of laws of
growth and of an approach to a limit, at rest for a tenth to three tenths of the time. Each is
searched with the effort "fast", and it is asked whether the result's notes tell of a lag, and
whether its end is told to a twelfth of the time. What is in the file already is not run again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from nsode_jax.discovery.pipeline import DiscoveryError, discover
from nsode_jax.dynamics.solve import solve
from nsode_jax.evaluation.json_lines import Line, Tasks, command
from nsode_jax.evaluation.simulated_laws import NOISES, simulate
from nsode_jax.expressions.expression import Expression

LAWS = {
    "exponential growth": ("0.25*y", 0.5),
    "logistic growth": ("0.6*y - 0.06*y**2", 0.5),
    "Gompertz growth": ("0.9*y - 0.4*y*log(y)", 0.2),
    "approach to a limit": ("3 - 0.4*y", 0.5),
}
"""Laws and first values."""

NONE = "none"
LAG_NOISES = (0.02, 0.05)
POINTS = (20, 40)
SHARES = (0.1, 0.2, 0.3)
"""Of the time."""

_DURATION = 12.0
_CLOSE = 1 / 12


def without_lag(seed: int) -> Line:
    """Whether a lag is claimed of a simulated law that has none."""
    case = simulate(seed)
    told = _told(case.t, case.y)
    return {"law": NONE, "noise": case.noise, "points": case.t.size, "seed": seed, "told": told}


def with_lag(law: str, noise: float, points: int, share: float) -> Line:
    """Whether the lag is told of, and its end."""
    text, first = LAWS[law]
    t = np.linspace(0.0, _DURATION, points)
    lag = share * _DURATION
    later = np.concatenate([[0.0], t[t > lag] - lag])
    solution = solve(Expression.from_infix(text), first, later)
    if solution is None:
        raise ValueError(f"{law} has no solution")
    y = np.concatenate([np.full(int((t <= lag).sum()), first), solution[1:]])
    rng = np.random.default_rng([points, round(1000 * noise), round(10 * share), len(law)])
    told = _told(t, y + noise * y.std() * rng.standard_normal(points))
    line = {"law": law, "noise": noise, "points": points, "seed": round(100 * share), "told": told}
    return {**line, "close": told is not None and abs(told - lag) <= _CLOSE * _DURATION}


def _told(t: np.ndarray, y: np.ndarray) -> float | None:
    """The end of the lag that the result tells of; None if it tells of none."""
    try:
        found = discover(t, y, effort="fast")
    except DiscoveryError:
        return None
    told = [re.search(r"lag phase of .*until ([-+.\de]+)\)", note) for note in found.notes]
    return next((float(match[1]) for match in told if match), None)


def table(lines: Iterable[Line]) -> str:
    """Shares of the series of which a lag was told."""
    lines = list(lines)
    groups = {"no lag": [line for line in lines if line["law"] == NONE]}
    lagging = [line for line in lines if line["law"] != NONE]
    groups["a lag"] = lagging
    groups |= {f"- {law}": [line for line in lagging if line["law"] == law] for law in LAWS}
    for noise in LAG_NOISES:
        groups[f"- {noise:.0%} noise"] = [line for line in lagging if line["noise"] == noise]
    rows = ["| series with | number | told of a lag | and of its end |", "|---|---|---|---|"]
    for name, group in groups.items():
        if group:
            told = sum(line["told"] is not None for line in group)
            close = sum(line.get("close", False) for line in group)
            rows.append(f"| {name} | {len(group)} | {told} | {close if name != 'no lag' else ''} |")
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not in the file yet, and prints the table."""

    def tasks(options) -> Tasks:
        noisy = [s for s in range(5 * options.number) if NOISES[s // 3 % len(NOISES)]]
        found = {
            (law, noise, points, round(100 * share)): partial(with_lag, law, noise, points, share)
            for law in LAWS
            for noise in LAG_NOISES
            for points in POINTS
            for share in SHARES
        }
        for seed in noisy[: options.number]:
            case = simulate(seed)
            found[NONE, case.noise, case.t.size, seed] = partial(without_lag, seed)
        return found

    def told(line: Line) -> str:
        return f"{line['law']}, {line['noise']:.0%}, {line['points']} points: {line['told']}"

    flags = {"--number": {"type": int, "default": 96, "help": "series without a lag (default: 96)"}}
    key = ("law", "noise", "points", "seed")
    return command(argv, "lag_phases", __doc__, flags, tasks, key, told, table)


if __name__ == "__main__":
    sys.exit(main())
