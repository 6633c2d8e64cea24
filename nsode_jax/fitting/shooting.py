"""All constants and initial values of a system at once, from its solutions.

Single shooting fits one solution to each run; where each run is cut into segments, each of
them has initial values of its own (multiple shooting).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.linearized import Linearized
from nsode_jax.fitting.system_problem import SOLVER_TOLERANCE, Problem, Tie
from nsode_jax.fitting.trajectory_fitting import Stopping
from nsode_jax.fitting.trust_region import BudgetSpent, minimized
from nsode_jax.observed.observations import Observations

_REWEIGHTED = 2
_LEAST_SINGULAR = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class SystemFit:
    """A system of laws whose constants and initial values were fitted together.

    Attributes:
      laws: the right-hand sides that were looked for.
      states: fitted at the first time of each segment, those of a run one after the other.
      residuals: root mean square of solution minus data per quantity, weighted, in its units;
        inf if there is no solution.
      segments: into how many pieces each run was cut, 1 if it was not.
      converged: whether the fit met its tolerance.
      ties: constants that are shared.
      origins: where each law came from.
    """

    laws: tuple[Expression, ...]
    states: Float[np.ndarray, "segments states"]
    residuals: Float[np.ndarray, " observed"]
    segments: int
    converged: bool
    ties: tuple[Tie, ...]
    origins: tuple[Origin, ...]

    @property
    def starts(self) -> Float[np.ndarray, "runs states"]:
        """Fitted states at the first time of each run."""
        return self.states[:: self.segments]

    @property
    def diverged(self) -> bool:
        """Whether there is no solution near the data."""
        return not np.isfinite(self.residuals).all()

    @property
    def asked_for(self) -> bool:
        """Whether somebody wants to see how this very system does."""
        return all(origin.asked_for for origin in self.origins)

    @property
    def key(self) -> tuple[str, ...]:
        """The structures of the laws."""
        return tuple(map(structure, self.laws))


@dataclasses.dataclass(frozen=True, eq=False)
class Uncertainty:
    """How well the constants of a system are known.

    Attributes:
      covariance: of the constants of all laws; zeros for those that are not fitted.
      freedom: degrees of freedom of the variances in it, the fewest that one has.
    """

    covariance: Float[np.ndarray, "constants constants"]
    freedom: float


def fit_system(
    data: Observations,
    laws: Sequence[Expression],
    origins: Sequence[Origin],
    *,
    ties: tuple[Tie, ...] = (),
    stopping: Stopping,
    segments: int = 1,
    states: Float[np.ndarray, "segments states"] | None = None,
    noise: Float[np.ndarray, " observed"] | None = None,
) -> SystemFit:
    """Fits all constants and initial values, from the constants of the laws.

    Args:
      data: the runs.
      laws: as many as the system has quantities.
      origins: of the laws, passed on.
      ties: constants that stay opposite to others.
      stopping: tolerance and limit of the iterations.
      segments: into how many pieces each run is cut.
      states: at the first time of each segment, to start from; smoothed, if left out.
      noise: standard deviations of the quantities, by which their residuals are weighed
        against each other; by the smooth curves, if left out.
    """
    problem = Problem(data, laws, ties, segments, states, noise)
    start = problem.start()
    converged = False
    try:
        problem.residual(start)
        enough = problem.size > start.size
        if stopping.iterations and enough and math.isfinite(problem.best_rms):
            converged = minimized(
                problem.residual,
                problem.jacobian,
                start,
                tolerance=stopping.tolerance,
                iterations=stopping.iterations,
            )
    except BudgetSpent:
        pass
    fitted = problem.laws(problem.best)
    states = problem.states(problem.best)
    residuals = problem.residuals_of(problem.best)
    return SystemFit(fitted, states, residuals, segments, converged, ties, tuple(origins))


def refitted(
    data: Observations, fit: SystemFit, stopping: Stopping, ties: tuple[Tie, ...] | None = None
) -> SystemFit:
    """The fit continued, each quantity counting by the noise that the fit leaves.

    Repeated, that leads to where the product of all residuals is least: the likeliest system
    when every quantity has a noise of its own.
    """
    again = fit
    for _ in range(_REWEIGHTED):
        again = fit_system(
            data,
            again.laws,
            again.origins,
            ties=fit.ties if ties is None else ties,
            stopping=stopping,
            segments=again.segments,
            states=again.states,
            noise=again.residuals,
        )
        if again.diverged:
            break
    return again


def linearized(data: Observations, fit: SystemFit) -> list[Linearized] | None:
    """The fit to first order, for each quantity; None without a solution near the data.

    The observations of all runs stand one after the other.
    """
    problem = Problem(data, fit.laws, fit.ties, fit.segments, fit.states, data.spread)
    linear, number = problem.linearized(), problem.observed
    if linear is None:
        return None
    # [time * observed] --> [observed, time]
    return [
        Linearized(linear.residual[k::number], linear.jacobian[k::number]) for k in range(number)
    ]


def covariance(
    data: Observations, fit: SystemFit
) -> Float[np.ndarray, "constants constants"] | None:
    """Covariance of the constants of all laws: that of `uncertainty`."""
    known = uncertainty(data, fit)
    return None if known is None else known.covariance


def uncertainty(data: Observations, fit: SystemFit) -> Uncertainty | None:
    """How well the constants of all laws are known, from the linearized solutions.

    Each quantity has a noise of its own size and autocorrelation.

    Returns:
      None where the data do not determine the constants or the noise of a quantity.
    """
    problem = Problem(data, fit.laws, fit.ties, fit.segments, fit.states, fit.residuals)
    linear = problem.linearized()
    if linear is None or linear.freedom < 1:
        return None
    number, ends = problem.observed, np.cumsum([0, *map(len, data.runs)])
    # [time * observed]: of each quantity all runs that show its noise.
    groups = [
        [
            number * np.arange(*run) + k
            for run, changes in zip(itertools.pairwise(ends), data.changing[:, k], strict=True)
            if changes
        ]
        for k in range(number)
    ]
    noises = linear.noise_of_groups(groups, _LEAST_SINGULAR)
    if noises is None:
        return None
    spreads = [problem.constants_by(noise.root) for noise in noises]
    freedom = least_freedom(
        np.array([(spread**2).sum(axis=1) for spread in spreads]),
        np.array([noise.freedom for noise in noises]),
    )
    covariance = np.sum([spread @ spread.T for spread in spreads], axis=0)
    # Of exact data nothing is known better than the solver, whose errors are alike.
    least = (SOLVER_TOLERANCE * problem.values) ** 2 * (np.diag(covariance) > 0.0)
    return Uncertainty(covariance + np.diag(least), freedom)


def least_freedom(
    variances: Float[np.ndarray, "quantities constants"], freedom: Float[np.ndarray, " quantities"]
) -> float:
    """Degrees of freedom of the variance of that constant whose variance is known least.

    A sum of estimated variances V_k has about (sum of V_k)² / (sum of V_k² / n_k) (Satterthwaite
    1946, Biometrics Bulletin 2): those of one quantity, if all is by its noise.

    Args:
      variances: of each constant by the noise of each quantity; zero if it is not fitted.
      freedom: of the noise of each quantity, n_k.

    Returns:
      The least of `freedom` where there are no variances.
    """
    largest = variances.max(axis=0)
    shares = variances[:, largest > 0] / largest[largest > 0]
    squares = (shares**2 / freedom[:, None]).sum(axis=0)
    return float(min(shares.sum(axis=0) ** 2 / squares, default=freedom.min()))
