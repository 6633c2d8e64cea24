"""What discovery finds, as data: laws with their fit and uncertainty, and the data fitted."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import USER
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.noise_scale import NoiseScale
from nsode_jax.results import callables, prediction, rounding, source, uncertainty
from nsode_jax.results.formatting import probability_text
from nsode_jax.selection.catalogue import Catalogue, NamedLaw
from nsode_jax.selection.naming import Name, NamedParameter, name_of

if TYPE_CHECKING:
    import pandas as pd
    import sympy


@dataclasses.dataclass(frozen=True, repr=False)
class Candidate:
    """A law dy/dt = f(y), fitted to the data, in the data's units.

    Attributes:
      expression: f.
      y0s: fitted value at the first time, per trajectory.
      start_times: the first time, per trajectory.
      r2: share of the data's variance that the solutions from `y0s` explain, at
        most 1; -inf if the law has no solution over the observed times.
      residual_rms: root mean square of solution minus data, in units of y; values
        count by their precision, here and in r2 (`Trajectory.noise`). Where noise grows with
        values over decades it is that of their size; divided by `Result.noise_scale.factor` it
        is a share of each value.
      score: what candidates are ranked by, lower is better.
      log_probability: of the network's proposal that the law descends from; NaN if
        it descends from none.
      converged: whether the fit of the solution to the data met its tolerance.
      probability: posterior probability that this law is right, by the scores; what those of
        all candidates leave of 1 is that none of them is.
      held_out_rms: the same over the last quarter of each series, predicted by a fit
        without it, and over the first; inf if the solution does not reach it, NaN
        where this was not tried. It takes no part in the ranking.
      goodness_of_fit: probability that a right law leaves residuals as large as these, or
        larger: by chi-squared where errors of measurement are known; for the first candidates by
        the test for lack of fit where several series share their times; else NaN.
      covariance: of the constants, in the order of `expression.constants`, shape
        [constants, constants]; zero for those that were not fitted (the 2 of a
        square). None where the data do not determine them.
      freedom: degrees of freedom of the noise as the covariance has it; infinite where errors
        of measurement are known.
      origin: where the law comes from, such as "network", "library" or "user", and
        whether the search has changed it since; empty if unknown.
      end_times: the last time, per trajectory; empty if unknown.
      observed: the smallest and the largest value of the data, in units of y; NaN if
        unknown.
      own_laws: named laws of the user's own, by which the law may be called.
    """

    expression: Expression
    y0s: tuple[float, ...]
    start_times: tuple[float, ...]
    r2: float
    residual_rms: float
    score: float
    log_probability: float = math.nan
    converged: bool = False
    probability: float = math.nan
    held_out_rms: float = math.nan
    goodness_of_fit: float = math.nan
    # Arrays can be neither compared nor hashed; the fit tells laws apart without them.
    covariance: Float[np.ndarray, "constants constants"] | None = dataclasses.field(
        default=None, compare=False
    )
    freedom: float = math.inf
    origin: str = ""
    end_times: tuple[float, ...] = ()
    observed: tuple[float, float] = (math.nan, math.nan)
    own_laws: tuple[NamedLaw, ...] = dataclasses.field(default=(), compare=False, repr=False)

    @property
    def y0(self) -> float:
        """Fitted value at `start_time`; of the first trajectory, if there are several."""
        return self.y0s[0]

    @property
    def start_time(self) -> float:
        """The first time of the data; of the first trajectory, if there are several."""
        return self.start_times[0]

    # --- the law -------------------------------------------------------------

    @property
    def infix(self) -> str:
        """f as text, constants in full precision; `rounded` has those for people."""
        return self.expression.infix

    @property
    def asked_for(self) -> bool:
        """Whether the law is one of the user's own, as it was given."""
        return self.origin == USER

    @property
    def complexity(self) -> int:
        """Number of operators, variables and constants."""
        return self.expression.complexity

    @property
    def name(self) -> Name | None:
        """What science calls the law, with its customary parameters; None if nothing.

        It counts over the range of the data only: there the named law equals this one.
        """
        return self.named("", "")

    @property
    def parameters(self) -> tuple[NamedParameter, ...]:
        """The customary parameters of the law by its name; none if it has no name."""
        return self.name.parameters if self.name else ()

    def named(self, value_unit: str, time_unit: str) -> Name | None:
        """The same with units of the parameters, from those of y and t, such as "g/L" and "h"."""
        units = (value_unit, time_unit)
        if units not in self._names:
            covariance = self.covariance
            if covariance is not None and not np.isfinite(covariance).all():
                covariance = None
            self._names[units] = name_of(
                self.expression,
                *self.observed,
                covariance,
                value_unit=value_unit,
                time_unit=time_unit,
                catalogue=Catalogue.load(self.own_laws),
            )
        return self._names[units]

    @functools.cached_property
    def _names(self) -> dict[tuple[str, str], Name | None]:
        """Those that were looked for, which takes a while, by their units."""
        return {}

    @functools.cached_property
    def rounded_constants(self) -> tuple[float, ...]:
        """The constants for display, in as few digits as give the fitted solution.

        See `rounding.rounded_constants`.
        """
        spans = tuple(end - start for start, end in zip(self.start_times, self.end_times))
        return rounding.rounded_constants(
            self.expression, self.standard_errors, self.y0s, spans, self.residual_rms
        )

    def rounded(self) -> Expression:
        """f for display, its constants as `rounded_constants`, no minus in front if avoidable."""
        rounded = self.expression.skeleton.with_constants(self.rounded_constants)
        return rounded.rounded(rounding.MOST_DIGITS)  # Which only puts the terms in order.

    def latex(self, digits: int | None = None) -> str:
        """f in LaTeX, constants as in `rounded`, or all with so many significant digits."""
        if digits is None:
            return self.rounded().latex(rounding.MOST_DIGITS)
        return self.expression.latex(digits)

    def to_sympy(self) -> sympy.Expr:
        """f as a SymPy expression in the symbol `y`."""
        return self.expression.to_sympy()

    def to_callable(self, backend: str = "numpy") -> Callable[[Any], Any]:
        """f as a function of an array, in `numpy` or `jax`; see `callables.to_callable`."""
        return callables.to_callable(self.expression, backend)

    def to_source(self, backend: str = "numpy") -> str:
        """The law as the text of a Python program, y of shape [1]; see `source.program`."""
        return source.program(("y",), ("y",), (), (self.expression,), backend)

    def vector_field(self) -> Callable[[Any, Any, Any], Any]:
        """(t, y, args) -> dy/dt in JAX, for `diffrax.ODETerm`.

        `args` is None for the fitted constants, or an array of others; see
        `callables.vector_field`.
        """
        return callables.vector_field(self.expression)

    # --- its uncertainty -----------------------------------------------------

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """Of each constant, in the order of `expression.constants`.

        Zero for constants that were not fitted, NaN where the data do not
        determine them.
        """
        return uncertainty.standard_errors(self.covariance, len(self.expression.constants))

    @property
    def confidence_intervals(self) -> tuple[tuple[float, float], ...]:
        """(low, high) of each constant that hold its true value with 95% probability.

        From the linearized fit, noise as large as the errors of measurement say, or else as
        the residuals do, as alike from one observation to the next as these are, and given
        that the law has the right form; by Student's t.
        """
        return uncertainty.confidence_intervals(
            self.expression.constants, self.standard_errors, self.freedom
        )

    def constants_table(self) -> pd.DataFrame:
        """Value, standard error, 95% interval per constant; see `uncertainty.constants_table`."""
        return uncertainty.constants_table((self.expression,), self.covariance, self.freedom)

    def rate_standard_error(self, y: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Standard error of f at each y; see `uncertainty.rate_standard_error`."""
        return uncertainty.rate_standard_error(self.expression, self.covariance, y)

    # --- its solutions -------------------------------------------------------

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
        start, y0 = self.start_times[trajectory], self.y0s[trajectory]
        return prediction.solution(self.expression, start, y0, t)

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
          blows up or leaves the domain of f; where f is 0 at the edge it rests).

        Raises:
          ValueError: if the times are not increasing, or lie before the data.
        """
        if y0 is not None:
            return prediction.predict(self.expression, float(y0), t)
        start, fitted = self.start_times[trajectory], self.y0s[trajectory]
        return prediction.predict(self.expression, fitted, t, start)

    def __str__(self) -> str:
        return f"dy/dt = {self.rounded().infix}"

    def __repr__(self) -> str:
        return f"<Candidate: {self}, probability {probability_text(self.probability)}>"


@dataclasses.dataclass(frozen=True)
class Result:
    """What was found in one series, or in several that follow one law.

    Attributes:
      candidates: laws, best first; at least one, and the first one has a solution
        over the observed times.
      trajectories: the data as fitted (cleaned, and thinned if they were long).
      notes: sentences about what was done to the data and what to be wary of.
      seconds: how long it took.
      tried: what each source of candidates chose from, in words, such as "187 named
        laws"; empty if unknown.
      limits: values of which only a limit was known, for each series; () for none at all.
    """

    candidates: tuple[Candidate, ...]
    trajectories: tuple[Trajectory, ...]
    notes: tuple[str, ...]
    seconds: float
    tried: tuple[str, ...] = ()
    limits: tuple[Limits, ...] = ()

    @property
    def best(self) -> Candidate:
        """The first candidate."""
        return self.candidates[0]

    @property
    def trajectory(self) -> Trajectory:
        """The data as fitted; the first trajectory, if there are several."""
        return self.trajectories[0]

    @functools.cached_property
    def noise_scale(self) -> NoiseScale:
        """The scale in which the values are alike noisy; that of y unless they span decades."""
        return Dataset(self.trajectories).noise_scale

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
