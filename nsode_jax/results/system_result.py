"""What discovery finds in several quantities, or in laws that depend on time, as data."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.dop853_system import NO_INPUTS, Inputs
from nsode_jax.dynamics.measured_inputs import measured_inputs
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.dynamics.vectors import times_as_counted
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.notation import latex_name
from nsode_jax.fitting.system_problem import laws_with_constants
from nsode_jax.observed.observations import Run
from nsode_jax.results import source, system_callables, uncertainty
from nsode_jax.results.formatting import probability_text
from nsode_jax.results.rounding import MOST_DIGITS, digits_together
from nsode_jax.selection.named_systems import named_system

if TYPE_CHECKING:
    import pandas as pd
    import sympy

_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SystemCandidate:
    """One law for each quantity, fitted together, in the data's units.

    Attributes:
      system: what the variables of the laws are.
      laws: right-hand sides, in the order of the quantities: of dy/dt, or of dv/dt in a
        system of second order.
      states: fitted at the first time of each piece, those of a run one after the other.
      start_times, end_times: of each run.
      r2: share of the variance that the solutions explain, the mean of all quantities.
      r2s: the same of each quantity.
      residuals: root mean square of solution minus data of each quantity, in its units.
      score: what candidates are ranked by, lower is better.
      probability: posterior probability by the scores; less than 1 in all where there is noise,
        in which the right system may not be among the candidates.
      covariance: of the constants of all laws, one law after the other, from the Fisher
        matrix of the joint fit; None where the data do not determine them.
      freedom: degrees of freedom of the noise as the covariance has it.
      segments: pieces into which each run was cut for fitting; 1 if solutions over the
        whole run were fitted. r2 and residuals are of the pieces.
      shared: pairs of constants, by their number among all, that are opposite by the fit.
      converged: whether the fit met its tolerance.
      asked_for: whether the system is one of the user's own, as it was given.
    """

    system: System
    laws: tuple[Expression, ...]
    states: Float[np.ndarray, "pieces states"]
    start_times: tuple[float, ...]
    end_times: tuple[float, ...]
    r2: float
    r2s: tuple[float, ...]
    residuals: tuple[float, ...]
    score: float
    probability: float = math.nan
    covariance: Float[np.ndarray, "constants constants"] | None = None
    freedom: float = math.inf
    segments: int = 1
    shared: tuple[tuple[int, int], ...] = ()
    converged: bool = False
    asked_for: bool = False

    @property
    def starts(self) -> Float[np.ndarray, "runs states"]:
        """Fitted states at the first time of each run."""
        return self.states[:: self.segments]

    @property
    def _sizes(self) -> Float[np.ndarray, " states"]:
        """What values of each state are judged by: a virus is millions, the cells are a few."""
        sizes = np.abs(self.states).max(axis=0)
        known = sizes[sizes > 0]
        return np.where(sizes > 0, sizes, known.min() if known.size else 1.0)

    @property
    def equations(self) -> tuple[Expression, ...]:
        """A right-hand side for each state, the known ones of velocities included."""
        return self.system.equations(self.laws)

    @property
    def complexity(self) -> int:
        """Number of operators, variables and constants of all laws."""
        return sum(law.complexity for law in self.laws)

    @property
    def constants(self) -> tuple[float, ...]:
        """Of all laws, one after the other."""
        return tuple(constant for law in self.laws for constant in law.constants)

    def with_constants(
        self, constants: Sequence[float] | Float[np.ndarray, " constants"]
    ) -> tuple[Expression, ...]:
        """The laws with other constants, those of all laws one after the other."""
        skeletons = [law.skeleton for law in self.laws]
        return laws_with_constants(skeletons, np.asarray(constants, np.float64))

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """Of each constant: 0 for those that were not fitted, NaN where nothing is known."""
        return uncertainty.standard_errors(self.covariance, len(self.constants))

    @property
    def confidence_intervals(self) -> tuple[tuple[float, float], ...]:
        """(low, high) of each constant that hold the true value with 95% probability.

        By Student's t, given that the laws have the right form.
        """
        return uncertainty.confidence_intervals(self.constants, self.standard_errors, self.freedom)

    def constants_table(self) -> pd.DataFrame:
        """Value, standard error, 95% interval per constant; see `uncertainty.constants_table`."""
        return uncertainty.constants_table(
            self.laws, self.covariance, self.freedom, self.left_sides
        )

    @functools.cached_property
    def name(self) -> str | None:
        """What science calls systems of this form; None if nothing."""
        return named_system(self.equations, self.system.states)

    @property
    def left_sides(self) -> tuple[str, ...]:
        """What each law is of: dx/dt, or d²x/dt²."""
        names = self.system.observed
        if self.system.order == 2:
            return tuple(f"d²{name}/dt²" for name in names)
        return tuple(f"d{name}/dt" for name in names)

    @functools.cached_property
    def digits(self) -> int:
        """Significant ones of constants with which the printed laws are the fitted ones."""
        noise = math.sqrt(max(1.0 - min(self.r2s, default=1.0), 0.0))
        return digits_together(self.constants, self.covariance, noise)

    def rounded(self, digits: int | None = None) -> tuple[Expression, ...]:
        """The laws for display, constants in `digits`, or to so many; all of what is known."""
        shown = digits or self.digits
        values = [
            constant if error == 0.0 else float(f"{constant:.{shown}g}")
            for constant, error in zip(self.constants, self.standard_errors, strict=True)
        ]
        # Rounded once more, which only puts the terms in order.
        return tuple(law.rounded(MOST_DIGITS) for law in self.with_constants(values))

    def latex(self, digits: int | None = None) -> str:
        """The system in LaTeX, as an `aligned` environment; constants as in `rounded`."""
        rows = [f"{left} &= {right}" for left, right in self.latex_rows(digits)]
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def latex_rows(self, digits: int | None = None) -> list[tuple[str, str]]:
        """Both sides of each equation in LaTeX."""
        rows = []
        for name, law in zip(self.system.observed, self.rounded(digits), strict=True):
            symbol = latex_name(name)
            if self.system.order == 2:
                left = rf"\frac{{d^2{symbol}}}{{dt^2}}"
            else:
                left = rf"\frac{{d{symbol}}}{{dt}}"
            right = law.latex(MOST_DIGITS)
            # Factors by mere juxtaposition would be one word.
            rows.append((left, re.sub(r"(?<=[A-Za-z}]) (?=\\mathrm|[A-Za-z])", r" \\, ", right)))
        return rows

    def to_sympy(self) -> list[sympy.Basic]:
        """The system as SymPy equations of functions of `t`."""
        import sympy  # Slow to import.

        t = sympy.Symbol("t")
        functions = {name: sympy.Function(name)(t) for name in self.system.states}
        functions |= {name: sympy.Function(name)(t) for name in self.system.inputs}
        symbols = {sympy.Symbol(name): function for name, function in functions.items()}
        return [
            sympy.Eq(
                functions[state].diff(t), equation.to_sympy().xreplace(symbols), evaluate=False
            )
            for state, equation in zip(self.system.states, self.equations, strict=True)
        ]

    def to_callable(self, backend: str = "numpy") -> Callable[..., Any]:
        """The right-hand sides as a function f(y, u, t); see `system_callables.to_callable`."""
        return system_callables.to_callable(self.system, self.equations, backend)

    def vector_field(
        self, inputs: Callable[[Any], Any] | None = None
    ) -> Callable[[Any, Any, Any], Any]:
        """(t, y, args) -> dy/dt in JAX, for diffrax; see `system_callables.vector_field`."""
        return system_callables.vector_field(self.system, self.equations, inputs)

    def to_source(self, backend: str = "numpy") -> str:
        """The system as the text of a Python program; see `source.program`."""
        system = self.system
        return source.program(
            system.observed, system.states, system.inputs, self.equations, backend
        )

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: Float[np.ndarray, " states"]
        | Sequence[float]
        | Mapping[str, float]
        | float
        | None = None,
        *,
        inputs: Float[np.ndarray, "time inputs"]
        | Float[np.ndarray, " time"]
        | Inputs
        | None = None,
        run: int = 0,
    ) -> Float[np.ndarray, "time states"]:
        """The solution of the system at given times.

        Args:
          t: strictly increasing times.
          y0: states at t[0], velocities last, or by their names; a number will do for a
            single one. Without it the solution is the fitted one of
            a run, from the start of its data.
          inputs: measured at these times, if the system has any, and held from each to the next
            where they are in `system.held`; without y0 from the first time of the run on.
          run: whose fitted solution.

        Returns:
          The states, shape [time, states]; NaN from where the solution ceases to exist.

        Raises:
          ValueError: if times, states or inputs are not what they should be.
        """
        times = times_as_counted(t)
        if not times.size or not np.isfinite(times).all() or not (np.diff(times) > 0).all():
            raise ValueError("predict needs finite, strictly increasing times")
        if run not in range(len(self.starts)):
            raise ValueError(f"run is one of {len(self.starts)}, counted from 0; got {run}")
        curves = self._inputs(times, inputs)
        if y0 is not None:
            start = self._start(y0)
            elapsed = times
        else:
            start = self.starts[run]
            if times[0] < self.start_times[run]:
                raise ValueError("the times lie before the data; give y0, the states at t[0]")
            if times[0] > self.start_times[run] and not isinstance(inputs, Inputs | None):
                raise ValueError(
                    "the inputs are not known from the first time of the run on, "
                    f"{self.start_times[run]:.6g}; begin there, or give y0, the states at t[0]"
                )
            elapsed = np.unique(np.concatenate([[self.start_times[run]], times]))
        if elapsed.size == 1:
            return start[None].copy()
        solved = integrate(
            self.equations, start, elapsed, curves, rtol=_TOLERANCE, atol=_TOLERANCE * self._sizes
        )
        return solved[-times.size :]

    def solutions(
        self, run: Run, number: int = 0, points: int | None = None
    ) -> list[tuple[Float[np.ndarray, " time"], Float[np.ndarray, "time states"]]]:
        """The fitted solution of a run, in the pieces it was fitted in.

        Args:
          run: the data.
          number: of the run among all.
          points: evenly spaced times in a run; None for those of the data.

        Returns:
          Times and states of each piece, NaN where there is no solution.
        """
        found = []
        first = number * self.segments
        for rows, y0 in zip(run.pieces(self.segments), self.states[first:], strict=False):
            t = run.t[rows]
            if points is not None:
                # Up to where the next piece begins, so that no gap is drawn.
                end = run.t[min(rows.stop, len(run) - 1)]
                share = (end - t[0]) / (run.t[-1] - run.t[0])
                t = np.linspace(t[0], end, max(2, round(points * share)))
            found.append((t, self.predict(t, y0.tolist(), inputs=run.inputs)))
        return found

    def _start(self, y0: Any) -> Float[np.ndarray, " states"]:
        """The states that `predict` was given."""
        names = self.system.states
        if isinstance(y0, Mapping) and set(y0) == set(names):
            y0 = [y0[name] for name in names]
        try:
            start = np.atleast_1d(np.asarray(y0, np.float64))
        except (TypeError, ValueError):
            start = np.empty(0)
        if start.shape != (len(names),):
            values = "1 value" if len(names) == 1 else f"{len(names)} values"
            raise ValueError(f"y0 needs {values}: {', '.join(names)}")
        return start

    def _inputs(self, t: np.ndarray, inputs: np.ndarray | Inputs | None) -> Inputs:
        names = self.system.inputs
        if not names:
            return NO_INPUTS
        if isinstance(inputs, Inputs):
            return inputs
        values = np.empty(0) if inputs is None else np.asarray(inputs, np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.shape != (t.size, len(names)):
            raise ValueError(
                f"predict needs the inputs {', '.join(names)} at the same times, an array of shape "
                f"({t.size}, {len(names)})"
            )
        return measured_inputs(t, values, self.system.holds)

    def __str__(self) -> str:
        pairs = zip(self.left_sides, self.rounded(), strict=True)
        return "\n".join(f"{left} = {law.infix}" for left, law in pairs)

    def __repr__(self) -> str:
        laws = "; ".join(str(self).splitlines())
        return f"<SystemCandidate: {laws}, probability {probability_text(self.probability)}>"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SystemResult:
    """What was found in runs of one system.

    Attributes:
      candidates: systems, best first.
      runs: the data as fitted.
      notes: sentences about what was done to the data and what to be wary of.
      seconds: how long it took.
    """

    candidates: tuple[SystemCandidate, ...]
    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def best(self) -> SystemCandidate:
        """The first candidate."""
        return self.candidates[0]

    @property
    def system(self) -> System:
        """What was measured."""
        return self.best.system
