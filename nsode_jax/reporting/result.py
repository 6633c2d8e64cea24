"""What discovery finds: laws with their fit, their uncertainty and their solutions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting import export

if TYPE_CHECKING:
    import pandas as pd
    import sympy
    from matplotlib.figure import Figure

CONFIDENCE = 1.96
"""Standard errors on either side of a value that make its 95% interval."""

_MAX_SOLVER_STEPS = 2000

_FEWEST_DIGITS, _MOST_DIGITS, _UNCERTAIN_DIGITS = 2, 6, 4
"""Significant digits of a constant for display; the last where its error is unknown."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A law dy/dt = f(y), fitted to the data, in the data's units.

    Attributes:
      expression: f.
      y0s: fitted value at the first time, per trajectory.
      start_times: the first time, per trajectory.
      r2: share of the data's variance that the solutions from `y0s` explain, at
        most 1; -inf if the law has no solution over the observed times.
      residual_rms: root mean square of solution minus data, in units of y; values
        count by their precision, here and in r2 (`Trajectory.noise`).
      score: what candidates are ranked by, lower is better; see `rank`.
      log_probability: of the network's proposal that the law descends from; NaN if
        it descends from a law that is always tried.
      converged: whether the fit of the solution to the data met its tolerance.
      weight: posterior probability of this law if one of the candidates is the
        right one, by their scores; see `rank.weights_of`.
      held_out_rms: the same over the last quarter of each series, predicted by a fit
        without it, and over the first; inf if the solution does not reach it, NaN
        where this was not tried. It takes no part in the ranking.
      covariance: of the constants, in the order of `expression.constants`, shape
    origin: str = ""
        [constants, constants]; zero for those that were not fitted (the 2 of a
        square). None where the data do not determine them.
      origin: where the law came from, such as "network", "library, evolved" or "user".
    """

    expression: Expression
    y0s: tuple[float, ...]
    start_times: tuple[float, ...]
    r2: float
    residual_rms: float
    score: float
    log_probability: float = math.nan
    converged: bool = False
    weight: float = math.nan
    held_out_rms: float = math.nan
    # Arrays can be neither compared nor hashed; the fit tells laws apart without them.
    covariance: Float[np.ndarray, "constants constants"] | None = dataclasses.field(
        default=None, compare=False
    )

    @property
    def y0(self) -> float:
        """Fitted value at `start_time`; of the first trajectory, if there are several."""
        return self.y0s[0]

    @property
    def start_time(self) -> float:
        """The first time of the data; of the first trajectory, if there are several."""
        return self.start_times[0]

    @property
    def infix(self) -> str:
        """f as text, constants in full precision."""
        return self.expression.infix

    @property
    def complexity(self) -> int:
        """Number of operators, variables and constants."""
        return self.expression.complexity

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """Of each constant, in the order of `expression.constants`.

        Zero for constants that were not fitted, NaN where the data do not
        determine them.
        """
        if self.covariance is None:
            return (math.nan,) * len(self.expression.constants)
        return tuple(float(s) for s in np.sqrt(np.diag(self.covariance)))

    @property
    def confidence_intervals(self) -> tuple[tuple[float, float], ...]:
        """(low, high) of each constant that hold its true value with 95% probability.

        From the linearized fit, noise taken as independent and equally large, and
        given that the law has the right form.
        """
        return tuple(
            (c - CONFIDENCE * s, c + CONFIDENCE * s)
            for c, s in zip(self.expression.constants, self.standard_errors)
        )

    @property
    def rounded_constants(self) -> tuple[float, ...]:
        """Each constant to the second digit of its standard error: 0.5321 for an error of 0.0034.

        Two to six significant digits, four where the error is unknown.
        """
        return tuple(
            float(f"{c:.{_digits(c, s)}g}")
            for c, s in zip(self.expression.constants, self.standard_errors)
        )

    def rounded(self) -> Expression:
        """f for display, its constants as `rounded_constants`, no minus in front if avoidable."""
        rounded = self.expression.skeleton.with_constants(self.rounded_constants)
        return rounded.rounded(_MOST_DIGITS)  # Which only puts the terms in order.

    def constants_table(self) -> pd.DataFrame:
        """Value, standard error and 95% interval per constant; see `export.constants_table`."""
        return export.constants_table(self)

    def rate_standard_error(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Standard error of f at each y that follows from those of the constants.

        Returns:
          Same shape as y; NaN where f or the errors are undefined.
        """
        y = np.asarray(y, np.float64)
        if self.covariance is None:
            return np.full(y.shape, np.nan)
        constants = np.array(self.expression.constants)
        errors = np.array(self.standard_errors)
        fitted = np.flatnonzero(errors > 0)
        gradient = np.zeros((constants.size, *y.shape))
        for i in fitted:
            # A step within the error: the band shows what that error does.
            step = min(1e-4 * abs(constants[i]), 0.01 * errors[i]) or 1e-8
            above, below = constants.copy(), constants.copy()
            above[i] += step
            below[i] -= step
            skeleton = self.expression.skeleton
            with np.errstate(all="ignore"):
                difference = skeleton.with_constants(above).evaluate(y) - skeleton.with_constants(
                    below
                ).evaluate(y)
            gradient[i] = difference / (2 * step)
        with np.errstate(all="ignore"):
            variance = np.einsum("i...,ij,j...->...", gradient, self.covariance, gradient)
            return np.sqrt(np.maximum(variance, 0.0))

    def latex(self, digits: int = 4) -> str:
        """f in LaTeX, constants with so many significant digits."""
        return self.expression.latex(digits)

    def to_sympy(self) -> sympy.Expr:
        """f as a SymPy expression in the symbol `y`."""
        return self.expression.to_sympy()

    def to_callable(self, backend: str = "numpy") -> Callable[[Any], Any]:
        """f as a function of an array, in `numpy` or `jax`; see `export.to_callable`."""
        return export.to_callable(self.expression, backend)

    def vector_field(self) -> Callable[[Any, Any, Any], Any]:
        """(t, y, args) -> dy/dt in JAX, for `diffrax.ODETerm`.

        `args` is None for the fitted constants, or an array of others; see
        `export.vector_field`.
        """
        return export.vector_field(self.expression)

    def solution(
        self, t: Float[np.ndarray, " time"] | Sequence[float], trajectory: int = 0
    ) -> Float[np.ndarray, " time"]:
        """The fitted solution at any times, in any order, before the data too.

        Args:
          t: finite times, shape [time].
          trajectory: whose fitted solution, if there are several.

        Returns:
          Values, shape [time]; NaN where the solution does not exist, which before
          the data is common: what settles comes from far away.

        Raises:
          ValueError: if a time is not finite.
        """
        t = np.asarray(t, np.float64)
        if t.ndim != 1 or not np.isfinite(t).all():
            raise ValueError("solution needs a list of finite times")
        start, y0 = self.start_times[trajectory], self.y0s[trajectory]
        result = np.full(t.shape, y0, np.float64)
        for sign, side in ((1.0, t > start), (-1.0, t < start)):
            if side.any():
                elapsed, place = np.unique(np.abs(t[side] - start), return_inverse=True)
                times = sign * np.concatenate([[0.0], elapsed])
                result[side] = _solve_while_it_exists(self.expression, y0, times)[1:][place]
        return result

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: float | None = None,
        trajectory: int = 0,
    ) -> Float[np.ndarray, " time"]:
        """The solution of the law at given times.

        Args:
          t: increasing times, shape [time].
          y0: value at t[0]. Without it the solution is the fitted one, and times
            must not lie before the data.
          trajectory: whose fitted solution, if there are several.

        Returns:
          Values, shape [time]; NaN from where the solution ceases to exist (it
          blows up or leaves the domain of f).

        Raises:
          ValueError: if the times are not increasing, or lie before the data.
        """
        times = np.atleast_1d(np.asarray(t, np.float64))
        if times.ndim != 1 or not times.size or not np.isfinite(times).all():
            raise ValueError("predict needs a list of finite times")
        if not (np.diff(times) > 0).all():
            raise ValueError("predict needs strictly increasing times")
        if y0 is not None:
            return _solve_while_it_exists(self.expression, float(y0), times)
        start, fitted = self.start_times[trajectory], self.y0s[trajectory]
        if times[0] < start:
            raise ValueError(
                f"the time {times[0]:g} lies before the data, which start at "
                f"{start:g}; give y0, the value at the first time"
            )
        if times[0] == start:
            return _solve_while_it_exists(self.expression, fitted, times)
        times = np.concatenate([[start], times])
        return _solve_while_it_exists(self.expression, fitted, times)[1:]


@dataclasses.dataclass(frozen=True)
class Discovery:
    """What was found in one series, or in several that follow one law.

    Attributes:
      candidates: laws, best first; at least one, and the first one has a solution
        over the observed times.
      trajectories: the data as fitted (cleaned, and thinned if they were long).
      notes: sentences about what was done to the data and what to be wary of.
      seconds: how long it took.
    """

    candidates: tuple[Candidate, ...]
    trajectories: tuple[Trajectory, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def best(self) -> Candidate:
        """The first candidate."""
        return self.candidates[0]

    @property
    def trajectory(self) -> Trajectory:
        """The data as fitted; the first trajectory, if there are several."""
        return self.trajectories[0]

    @property
    def pareto_front(self) -> tuple[Candidate, ...]:
        """Candidates that no shorter one fits as well as, shortest first."""
        front: list[Candidate] = []
        for candidate in sorted(self.candidates, key=lambda c: (c.complexity, c.residual_rms)):
            if not math.isfinite(candidate.residual_rms):
                continue
            if not front or candidate.residual_rms < front[-1].residual_rms:
                front.append(candidate)
        return tuple(front)

    def table(self, limit: int | None = None) -> pd.DataFrame:
        """The candidates, best first, `limit` of them at most; see `export.candidates_table`."""
        return export.candidates_table(self, limit)

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: float | None = None,
        trajectory: int = 0,
    ) -> Float[np.ndarray, " time"]:
        """The solution of the best law at increasing times; see `Candidate.predict`."""
        return self.best.predict(t, y0, trajectory)

    def to_sympy(self) -> sympy.Expr:
        """The best f as a SymPy expression in the symbol `y`."""
        return self.best.to_sympy()

    def to_latex(self) -> str:
        """The best f in LaTeX, rounded for display."""
        return self.best.rounded().latex(_MOST_DIGITS)

    def to_callable(self, backend: str = "numpy") -> Callable[[Any], Any]:
        """The best f as a function of an array, in `numpy` or `jax`."""
        return self.best.to_callable(backend)

    def plot(
        self, path: str | Path | None = None, time_name: str = "t", value_name: str = "y"
    ) -> Figure:
        """The picture of the data, the solution and the law; see `plot.plot`."""
        from nsode_jax.reporting.plot import plot  # Matplotlib is slow to import.

        return plot(self, path, time_name, value_name)

    def save(self, path: str | Path) -> None:
        """Writes everything to a JSON file; see `persistence.save`."""
        from nsode_jax.reporting import persistence  # It builds on this file.

        persistence.save(self, path)

    @staticmethod
    def load(path: str | Path) -> Discovery:
        """What `save` wrote, number by number; see `persistence.load`."""
        from nsode_jax.reporting import persistence

        return persistence.load(path)

    def __str__(self) -> str:
        return export.as_text(self)

    def __repr__(self) -> str:
        best = self.best.rounded().infix
        return f"<Discovery: dy/dt = {best}, best of {len(self.candidates)}>"

    def _repr_html_(self) -> str:
        return export.as_html(self)

    def _repr_markdown_(self) -> str:
        return export.as_markdown(self)


def _digits(constant: float, error: float) -> int:
    """Significant digits of a constant up to the second digit of its standard error."""
    if math.isnan(error):
        return _UNCERTAIN_DIGITS
    if error == 0.0 or constant == 0.0:
        return _MOST_DIGITS
    if math.isinf(error):
        return _FEWEST_DIGITS
    first, last = decimal_exponent(constant, 17), decimal_exponent(error, 2) - 1
    return min(max(first - last + 1, _FEWEST_DIGITS), _MOST_DIGITS)


def decimal_exponent(value: float, digits: int = 2) -> int:
    """Power of ten of the first digit of a number rounded to so many."""
    return int(f"{value:.{digits - 1}e}".split("e")[1])


def _scale(expression: Expression, y0: float, t: Float[np.ndarray, " time"]) -> float:
    """Size of the values near the start; one that starts at 0 is judged by its first step."""
    if y0 or t.size < 2:
        return abs(y0) or 1.0
    step = abs(float(expression.evaluate(0.0)) * (t[1] - t[0]))
    return step if 0.0 < step < math.inf else 1.0


def _solve_while_it_exists(
    expression: Expression, y0: float, t: Float[np.ndarray, " time"]
) -> Float[np.ndarray, " time"]:
    """The solution at the times, which rise or fall; NaN from where there is none."""
    # The law does not know the time, and the solver refuses a first step that is lost
    # in the rounding of large times.
    t = t - t[0]
    tolerance = 1e-9 * _scale(expression, y0, t)

    def attempt(count: int) -> np.ndarray | None:
        if count < 2:
            return np.full(count, y0)
        return solve(expression, y0, t[:count], atol=tolerance, max_steps=_MAX_SOLVER_STEPS)

    result = np.full(t.shape, np.nan)
    good, bad = 1, t.size + 1
    count = t.size
    while good < bad - 1 or count == 1:
        solution = attempt(count)
        if solution is None:
            bad = count
        else:
            result[:count] = solution
            good = count
        if good == t.size:
            break
        count = (good + bad) // 2
        if count in (good, bad):
            break
    result[0] = y0
    return result
