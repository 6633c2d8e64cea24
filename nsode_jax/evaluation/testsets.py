"""Test sets: equations whose law is known, with initial values and time grids.

`textbook` and `classic` are the paper's (section 3.1, appendix D). `iv`,
`constants`, `skeletons` and `iv-163` are drawn after the paper's and committed
(`draw_testsets`; `NOT_DRAWN` says which problems training does not know from the shipped
bank); `iv-500` and `constants-250` are random samples of two of them, for
methods that take long. `iv-163-even` is an older draw of iv-163. `odebench` is the
one-dimensional part of ODEBench (d'Ascoli et al. 2024).
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import scipy.special
from jaxtyping import Float

from nsode_jax.dynamics.solve import solve
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression

_MAX_INITIAL_VALUE = 5.0
_MIN_RANGE = 0.1
_MAX_DRAWS = 1000


@dataclasses.dataclass(frozen=True)
class NumericLaw:
    """A law f(y) that the operators of our table cannot express.

    Attributes:
      infix: its formula as published; for people only.
      function: f on an array of any shape.
    """

    infix: str
    function: Callable[[Float[np.ndarray, "..."]], Float[np.ndarray, "..."]]

    def evaluate(self, y: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
        """f at each y in float64; NaN or inf where f is undefined."""
        with np.errstate(all="ignore"):
            return np.asarray(self.function(np.asarray(y, np.float64)), np.float64)

    def compile(self) -> Callable[[float], float]:
        """f as a scalar function, as the solver calls it."""
        return lambda y: float(self.evaluate(y))


@dataclasses.dataclass(frozen=True)
class Problem:
    """One equation with one initial value.

    Attributes:
      name: unique within its test set.
      law: the true f of dy/dt = f(y). The committed sets keep theirs as it was drawn,
        in the canonical form of then.
      y0: value at t = 0.
      duration: solutions cover [0, duration].
      num_points: points of the regular time grid.
      rtol, atol: tolerances of LSODA.
      other_y0: another initial value to test generalization on, if the set has one.
    """

    name: str
    law: Expression | NumericLaw
    y0: float
    duration: float = 4.0
    num_points: int = 1024
    rtol: float = 1e-9
    atol: float = 1e-9
    other_y0: float | None = None

    @property
    def expression(self) -> Expression | None:
        """The law, or None where our operators cannot express it."""
        return self.law if isinstance(self.law, Expression) else None

    @property
    def t(self) -> Float[np.ndarray, " time"]:
        """The regular time grid."""
        return np.linspace(0.0, self.duration, self.num_points)

    def solve(self, y0: float | None = None) -> Float[np.ndarray, " time"]:
        """The clean trajectory on `t` from `y0` (the problem's own if not given).

        Raises:
          ValueError: if LSODA finds no solution.
        """
        start = self.y0 if y0 is None else y0
        y = solve(self.law, start, self.t, rtol=self.rtol, atol=self.atol)
        if y is None:
            raise ValueError(f"{self.name}: dy/dt = {self.law.infix} has no solution from {start}")
        return y


# (name, the column "Equation" of the paper's table, y0)
_TEXTBOOK = (
    ("autonomous Riccati", "0.6*y**2 + 2*y + 0.1", -0.2),
    ("autonomous Stuart-Landau", "-2.2/2*y**3 + 1.31*y", 0.1),
    ("autonomous Bernoulli", "-1.3*y + 2.1*y**2.2", 0.6),
    ("compound interest", "0.1*y", 9.0),
    ("Newton's law of cooling", "-0.1*(y - 3)", 9.0),
    ("Logistic equation", "0.23*y*(1 - y)", 9.0),
    ("Logistic equation with harvesting", "0.23*y*(1 - 0.33*y) - 0.5", 9.0),
    ("Logistic equation with harvesting 2", "2*y*(1 - y/3) - 0.5", 0.7),
    ("Solow-Swan", "y**0.5*(0.9*8 - (3 + 2.5)*y**(1 - 0.5))", 0.1),
    ("Tank draining", "-sqrt(2*9.81)*(2/9)**2*sqrt(y)", 1.0),
    (
        "Draining water through a funnel",
        "-(0.5**2/4)*sqrt(2*9.81)*(sin(1)/cos(1))**2*y**(-1.5)",
        3.0,
    ),
    ("velocity of a body thrown vertically upwards", "-9.81 - 0.9*y/8.2", 0.1),
)


def _law(text: str) -> Expression:
    return canonicalize(Expression.from_infix(text))


def textbook() -> tuple[Problem, ...]:
    """The paper's 12 textbook equations (table "Equations of the textbook dataset").

    Where the table's columns disagree the equation counts, not its rounded form.
    """
    return tuple(Problem(name, _law(text), y0) for name, text, y0 in _TEXTBOOK)


def classic() -> tuple[Problem, ...]:
    """26 scalar functions of the classic benchmarks, read as dy/dt = f(y).

    After McDermott et al. 2012. The paper draws y0 from (-5, 5) and does not
    print it. Ours is the first draw, from a stream seeded by the name, that can
    be solved and that moves by at least 0.1: a trajectory resting at an
    equilibrium tells nothing about the law.
    """
    problems = []
    for entry in _read("classic_1d.json"):
        name, text = entry["name"], entry["expr"]
        law: Expression | NumericLaw
        if text == "harmonic(y)":
            law = NumericLaw(text, lambda y: scipy.special.digamma(y + 1) + np.euler_gamma)
        else:
            law = _law(text.replace("Abs(y)", "sqrt(y**2)"))
        problems.append(_with_random_start(Problem(name, law, y0=np.nan)))
    return tuple(problems)


def _with_random_start(problem: Problem) -> Problem:
    random = np.random.default_rng(zlib.crc32(problem.name.encode()))
    for _ in range(_MAX_DRAWS):
        y0 = random.uniform(-_MAX_INITIAL_VALUE, _MAX_INITIAL_VALUE)
        y = solve(problem.law, y0, problem.t, rtol=problem.rtol, atol=problem.atol)
        if y is not None and np.ptp(y) >= _MIN_RANGE:
            return dataclasses.replace(problem, y0=y0)
    raise ValueError(f"{problem.name}: no suitable initial value in {_MAX_DRAWS} draws")


def odebench() -> tuple[Problem, ...]:
    """The 23 scalar equations of ODEBench, each from both of its initial values.

    Grid and tolerances are the benchmark's: t in [0, 10], 150 points, rtol 1e-5,
    atol 1e-7. The names end in `a` and `b` for the two initial values.
    """
    problems = []
    for entry in _read("odebench_1d.json"):
        law = _law(entry["expr_y"])
        first, second = entry["initial_conditions"]
        start, end = entry["t_span"]
        for letter, y0, other_y0 in (("a", first, second), ("b", second, first)):
            problems.append(
                Problem(
                    name=f"{entry['id']}{letter} {entry['name']}",
                    law=law,
                    y0=y0,
                    duration=end - start,
                    num_points=150,
                    rtol=1e-5,
                    atol=1e-7,
                    other_y0=other_y0,
                )
            )
    return tuple(problems)


def _drawn(name: str, first: int | None = None) -> Callable[[], tuple[Problem, ...]]:
    """A committed set, or its first problems: a random sample, as the order is random."""

    def problems() -> tuple[Problem, ...]:
        rows = [line.split("\t") for line in _text(f"{name}.tsv").splitlines()[:first]]
        return tuple(Problem(row[0], Expression.from_infix(row[2]), float(row[1])) for row in rows)

    return problems


def write_drawn(path: Path, rows: Iterable[tuple[str, Expression, float]]) -> None:
    """Writes problems as `_drawn` reads them: a line each of name, y0 and f, between tabs."""
    lines = (f"{name}\t{y0!r}\t{law.infix}\n" for name, law, y0 in rows)
    path.write_text("".join(lines), encoding="utf-8")


def _read(file_name: str) -> list[dict]:
    return json.loads(_text(file_name))["equations"]


def _text(file_name: str) -> str:
    file = importlib.resources.files("nsode_jax.evaluation") / "data" / file_name
    return file.read_text(encoding="utf-8")


NOT_DRAWN = {"iv": 480, "constants": 196, "iv-163": 45}
"""So many problems have skeletons that configs/small.py does not draw from the bank: these are
of more operators than its prior's trees. (When the sets were drawn it drew them.)"""

TEST_SETS: dict[str, Callable[[], tuple[Problem, ...]]] = {
    "iv": _drawn("iv"),
    "iv-500": _drawn("iv", first=500),
    "constants": _drawn("constants"),
    "constants-250": _drawn("constants", first=250),
    "skeletons": _drawn("skeletons"),
    "iv-163": _drawn("iv-163"),
    "iv-163-even": _drawn("iv-163-even"),
    "textbook": textbook,
    "classic": classic,
    "odebench": odebench,
}
