"""Values that span decades: how well `discover` does on them.

    python -m nsode_jax.evaluation.wide_series results.jsonl

Laws of our own choice with solutions over two to six decades, measured with relative noise, as
counts, concentrations and loads are. Of the first law found it is asked whether it has the form
of the true one, and how far its solution from the true first value is from the true one, as the
root mean square of the logarithm of their ratio: large values alone decide nothing. What is in
the file already is not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.pipeline import DiscoveryError, discover
from nsode_jax.dynamics.solve import solve
from nsode_jax.evaluation.json_lines import SEED, Line, Tasks, command
from nsode_jax.expressions.expression import Expression
from nsode_jax.selection.form import form_of
from nsode_jax.selection.naming import name_of

NOISES = (0.0, 0.1)
POINTS = (12, 30)
_SAME = 1e-3


@dataclasses.dataclass(frozen=True)
class Case:
    """A law whose solution spans decades.

    Attributes:
      name: of what follows it.
      law: dy/dt, of y.
      start: the first value.
      duration: of the observation.
    """

    name: str
    law: str
    start: float
    duration: float

    @property
    def expression(self) -> Expression:
        """The law."""
        return Expression.from_infix(self.law)

    def solution(
        self, points: int, law: Expression | None = None
    ) -> Float[np.ndarray, " time"] | None:
        """That of the law, or of another one, from the first value on; None if there is none."""
        return solve(law or self.expression, self.start, np.linspace(0.0, self.duration, points))


CASES = (
    Case("bacteria", "0.9*y - 9e-10*y**2", 1e3, 24.0),
    Case("tumor (Gompertz)", "0.25*y*log(1e9/y)", 1e2, 20.0),
    Case("tumor (theta-logistic)", "0.6*y - 6e-4*y**1.5", 50.0, 30.0),
    Case("cells in excess", "0.35*y", 10.0, 30.0),
    Case("invaders with immigration", "3 + 0.5*y", 1.0, 22.0),
    Case("virus under therapy", "20 - 0.8*y", 1e6, 20.0),
    Case("drug, saturable elimination", "-3e4*y/(y + 500)", 1e5, 3.35),
    Case("recombination", "-2e-3*y**2", 1e5, 60.0),
    Case("decay of first and second order", "-0.3*y - 1e-5*y**2", 1e5, 20.0),
    Case("evaporating film", "-0.02*y**1.5", 1e6, 3.0),
)


def evaluate(case: Case, points: int, noise: float, seed: int) -> Line:
    """A line of the results."""
    exact = case.solution(points)
    assert exact is not None
    rng = np.random.default_rng([seed, points, *case.name.encode()])
    y = exact * (1 + noise * rng.standard_normal(points))
    line: Line = {"name": case.name, "points": points, "noise": noise, "seed": seed}
    try:
        best = discover(np.linspace(0.0, case.duration, points), y).best
    except DiscoveryError as error:
        return line | {"error": str(error), "right": False, "error_of_logs": None}
    found = case.solution(points, best.expression)
    missed = math.inf
    if found is not None and (found > 0).all():
        missed = float(np.sqrt(np.mean(np.log(found / exact) ** 2)))
    return line | {
        "law": best.rounded().infix,
        "probability": round(best.probability, 3),
        "right": missed < _SAME or _alike(best.expression, case.expression, exact),
        "error_of_logs": missed if math.isfinite(missed) else None,
    }


def _alike(law: Expression, other: Expression, y: Float[np.ndarray, " time"]) -> bool:
    """Whether laws have one form, or one name: y*(a - b*log(y)) is Gompertz' law too."""
    names = [name_of(each, float(y.min()), float(y.max())) for each in (law, other)]
    named = [name.law.name for name in names if name is not None]
    return form_of(law) == form_of(other) or (len(named) == 2 and named[0] == named[1])


def table(lines: Iterable[Line]) -> str:
    """A row for each law, as Markdown, and how many are right in each column."""
    columns = [(noise, points) for noise in NOISES for points in POINTS]
    found: dict[str, dict[tuple[float, int], Line]] = {}
    for line in lines:
        found.setdefault(line["name"], {})[line["noise"], line["points"]] = line
    heads = [f"{noise:.0%} noise, {points} points" for noise, points in columns]
    rows = ["| law | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    for name, cells in found.items():
        rows.append(f"| {name} | {' | '.join(_cell(cells.get(at)) for at in columns)} |")
    totals = [
        f"{sum(cells[at]['right'] for cells in found.values() if at in cells)} of {len(found)}"
        for at in columns
    ]
    return "\n".join([*rows, f"| right | {' | '.join(totals)} |"])


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    error = line["error_of_logs"]
    told = "no solution" if error is None else f"{error:.2g}"
    return f"**right**, {told}" if line["right"] else told


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not in the file yet, and prints the table."""

    def tasks(options: argparse.Namespace) -> Tasks:
        return {
            (case.name, points, noise, options.seed): partial(
                evaluate, case, points, noise, options.seed
            )
            for noise in NOISES
            for points in POINTS
            for case in CASES
        }

    def told(line: Line) -> str:
        return f"{line['name']}, {line['noise']:.0%}: {line.get('law', '')}"

    key = ("name", "points", "noise", "seed")
    return command(argv, "wide_series", __doc__, {"--seed": SEED}, tasks, key, told, table)


if __name__ == "__main__":
    sys.exit(main())
