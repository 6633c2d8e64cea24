"""Laws of second order, with time or with measured inputs: how well `discover` does on them.

    python -m nsode_jax.evaluation.driven_systems results.jsonl

The laws are textbook ones of our own choice, with exact answers: nothing was fitted to them.
Each is observed without noise and with 1% and 3% (of the standard deviation of each quantity).
Of the first system found it is asked whether it has the structure of the true one (the same
terms with the same functions and exponents; equal up to rewriting), how many of the true
constants its 95% intervals hold, and how well it predicts another run, from other initial
values, with another input: R2 over all quantities, weighted by their variance. What is in the
file already is not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.pipeline import DiscoveryError
from nsode_jax.discovery.systems import discover_system
from nsode_jax.dynamics.measured_inputs import measured_inputs
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.evaluation.json_lines import SEED, Line, Tasks, command
from nsode_jax.evaluation.metrics import GOOD_SOLUTION_R2
from nsode_jax.evaluation.odebench_systems import r2
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.reporting.system_discovery import SystemDiscovery
from nsode_jax.results.system_result import SystemCandidate
from nsode_jax.search.variants import with_coefficients

NOISES = (0.0, 0.01, 0.03)


@dataclasses.dataclass(frozen=True)
class Case:
    """A system whose laws are known.

    Attributes:
      name: of the system.
      system: what is observed.
      laws: the right-hand sides that are looked for.
      starts: initial values of all states, of the run that is observed and of another one.
      duration, points: of the observation.
      inputs: one for each run, functions of the time.
    """

    name: str
    system: System
    laws: tuple[str, ...]
    starts: tuple[tuple[float, ...], tuple[float, ...]]
    duration: float
    points: int = 150
    inputs: tuple[Callable[[np.ndarray], np.ndarray], ...] = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The true laws."""
        return tuple(Expression.from_infix(law, self.system.variables) for law in self.laws)

    @property
    def t(self) -> Float[np.ndarray, " time"]:
        """When it is observed."""
        return np.linspace(0.0, self.duration, self.points)

    def input(self, run: int) -> Float[np.ndarray, "time inputs"]:
        """The measured inputs of a run."""
        columns = [self.inputs[run](self.t)] if self.inputs else []
        return np.array(columns).reshape(len(columns), self.points).T

    def run(self, number: int) -> Float[np.ndarray, "time states"]:
        """The observed quantities without noise: of the run that is seen (0), of another (1)."""
        solved = integrate(
            self.system.equations(self.expressions),
            self.starts[number],
            self.t,
            measured_inputs(self.t, self.input(number)),
            max_steps=100_000,
        )
        return solved[:, : len(self.system.observed)]

    def found(self, noise: float, rng: np.random.Generator) -> SystemDiscovery:
        """What `discover` finds in the run that is seen, measured with noise.

        Args:
          noise: its standard deviation, as a share of that of each quantity.
          rng: draws it.

        Raises:
          DiscoveryError: if it finds nothing.
        """
        clean, system = self.run(0), self.system
        return discover_system(
            self.t,
            clean + noise * clean.std(axis=0) * rng.standard_normal(clean.shape),
            inputs=self.input(0) if system.inputs else None,
            explicit_time=system.explicit_time,
            order=system.order,
            names=system.observed,
            input_names=system.inputs or None,
        )


def _pulses(t: np.ndarray) -> np.ndarray:
    return np.sin(0.9 * t) + np.sin(2.3 * t + 1.0)


def _steps(t: np.ndarray) -> np.ndarray:
    return np.tanh(8 * np.sin(0.7 * t))


_POSITION = System(("x",), order=2)
_IN_TIME = System(("y",), explicit_time=True)

CASES = (
    Case("harmonic oscillator", _POSITION, ("-4.1*x",), ((1.0, 0.0), (0.3, 1.5)), 10.0),
    Case("damped oscillator", _POSITION, ("-4.1*x - 0.4*v",), ((1.0, 0.0), (-0.5, 1.0)), 10.0),
    Case("free fall with drag", _POSITION, ("0.05*v**2 - 9.81",), ((100.0, 0.0), (50.0, 5.0)), 4.0),
    Case("pendulum", _POSITION, ("-9.81*sin(x)",), ((2.0, 0.0), (1.0, 1.5)), 8.0),
    Case("damped pendulum", _POSITION, ("-9.81*sin(x) - 0.3*v",), ((2.4, 0.0), (1.0, 2.0)), 10.0),
    Case("Duffing", _POSITION, ("0.9*x - 1.2*x**3 - 0.2*v",), ((0.1, 0.8), (-1.6, 0.0)), 20.0),
    Case("van der Pol", _POSITION, ("1.5*v - 1.3*x**2*v - 1.1*x",), ((0.5, 0.0), (2.5, 1.0)), 20.0),
    Case("forced linear law", _IN_TIME, ("1.3*cos(2.1*t) - 0.7*y",), ((2.0,), (-1.0,)), 10.0),
    Case("ramp", _IN_TIME, ("0.4*t - 0.8*y",), ((1.0,), (3.0,)), 8.0),
    Case("fading reaction", _IN_TIME, ("-0.9*y*exp(-0.5*t)",), ((5.0,), (2.0,)), 8.0),
    Case(
        "seasonal growth", _IN_TIME, ("0.8*y - 0.16*y**2 + 0.5*sin(2*t)*y",), ((0.5,), (4.0,)), 15.0
    ),
    Case(
        "forced oscillator",
        System(("x",), explicit_time=True, order=2),
        ("1.2*cos(1.4*t) - 4*x - 0.5*v",),
        ((1.0, 0.0), (0.0, -1.0)),
        20.0,
    ),
    Case(
        "seasonal epidemic",
        System(("s", "i"), explicit_time=True),
        (
            "0.2 - 0.2*s - 1.5*s*i - 0.5*cos(0.9*t)*s*i",
            "1.5*s*i + 0.5*cos(0.9*t)*s*i - 0.7*i",
        ),
        ((0.9, 0.1), (0.6, 0.3)),
        25.0,
    ),
    Case(
        "RC circuit, measured voltage",
        System(("y",), inputs=("u",)),
        ("1.25*u - 1.25*y",),
        ((0.0,), (1.0,)),
        10.0,
        inputs=(_pulses, _steps),
    ),
    Case(
        "heated room with a measured heater",
        System(("y",), inputs=("u",)),
        ("0.9*u - 0.25*y + 3",),
        ((15.0,), (20.0,)),
        15.0,
        inputs=(_steps, _pulses),
    ),
    Case(
        "driven mass, measured force",
        System(("x",), inputs=("u",), order=2),
        ("2*u - 3*x - 0.6*v",),
        ((0.0, 0.0), (1.0, 0.0)),
        15.0,
        inputs=(_pulses, _steps),
    ),
)


def same_structure(found: Sequence[Expression], truth: Sequence[Expression]) -> bool:
    """Whether all laws have the same structure in canonical form.

    Signs do not count, nor whether a coefficient is exactly 1.
    """
    try:
        return all(
            structure(_general(one)) == structure(_general(other))
            for one, other in zip(found, truth, strict=True)
        )
    except ExpressionError:
        return False


def _general(law: Expression) -> Expression:
    return with_coefficients(canonicalize(law))


def within(best: SystemCandidate, truth: Sequence[Expression]) -> tuple[int, int]:
    """How many of the true constants lie in the 95% intervals of a system of the same structure.

    Those that have none, as exponents that were not fitted, do not count; a coefficient that is
    said to be exactly 1 has to be that.
    """
    errors = {
        abs(constant): (high - low) / 2
        for constant, (low, high) in zip(best.constants, best.confidence_intervals, strict=True)
        if high > low
    }
    errors[_general(Expression(("y",))).constants[0]] = 0.0  # What stands for exactly 1.
    held = [
        abs(abs(value) - abs(true)) <= errors[abs(value)]
        for law, other in zip(best.laws, truth, strict=True)
        for value, true in zip(_general(law).constants, _general(other).constants, strict=True)
        if abs(value) in errors
    ]
    return sum(held), len(held)


def evaluate(case: Case, noise: float, seed: int) -> Line:
    """A line of the results."""
    rng = np.random.default_rng([seed, round(1000 * noise), CASES.index(case)])
    system = case.system
    started = time.perf_counter()
    line: Line = {"name": case.name, "noise": noise, "seed": seed}
    try:
        best = case.found(noise, rng).best
    except DiscoveryError as error:
        return line | {"error": str(error), "seconds": round(time.perf_counter() - started, 2)}
    line["seconds"] = round(time.perf_counter() - started, 2)
    line["laws"] = [law.rounded(4).infix for law in best.laws]
    line["structure"] = same_structure(best.laws, case.expressions)
    if line["structure"]:
        line["within"], line["constants"] = within(best, case.expressions)
    other = integrate(
        system.equations(best.laws),
        case.starts[1],
        case.t,
        measured_inputs(case.t, case.input(1)),
        max_steps=100_000,
    )[:, : len(system.observed)]
    predicted = r2(case.run(1), other if np.isfinite(other).all() else None)
    return line | {"generalization_r2": predicted}


def table(lines: Iterable[Line]) -> str:
    """A row for each system, as Markdown, and the totals of each noise."""
    found: dict[str, dict[float, Line]] = {}
    for line in lines:
        found.setdefault(line["name"], {})[line["noise"]] = line
    rows = [
        "| law | " + " | ".join(f"{noise:.0%} noise" for noise in NOISES) + " |",
        "|---" * (1 + len(NOISES)) + "|",
    ]
    for name, by_noise in found.items():
        cells = [_cell(by_noise.get(noise)) for noise in NOISES]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    totals = []
    for noise in NOISES:
        here = [by_noise[noise] for by_noise in found.values() if noise in by_noise]
        right = sum(line.get("structure", False) for line in here)
        held = sum(line.get("within", 0) for line in here)
        of = sum(line.get("constants", 0) for line in here)
        good = sum((line.get("generalization_r2") or -np.inf) > GOOD_SOLUTION_R2 for line in here)
        totals.append(f"{right}, {good} of {len(here)}; {held} of {of} constants")
    return "\n".join([*rows, f"| right structure, other run predicted | {' | '.join(totals)} |"])


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    score = line.get("generalization_r2")
    told = "no solution" if score is None else f"{score:.3f}"
    return f"**right**, {told}" if line.get("structure") else told


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what is not in the file yet, and prints the table."""

    def tasks(options: argparse.Namespace) -> Tasks:
        return {
            (case.name, noise, options.seed): partial(evaluate, case, noise, options.seed)
            for case in CASES
            for noise in NOISES
        }

    def told(line: Line) -> str:
        laws = "; ".join(line.get("laws", [line.get("error", "")]))
        return f"{line['name']}, {line['noise']:.0%}: {laws} ({line['seconds']} s)"

    key = ("name", "noise", "seed")
    return command(argv, "driven_systems", __doc__, {"--seed": SEED}, tasks, key, told, table)


if __name__ == "__main__":
    sys.exit(main())
