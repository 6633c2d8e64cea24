"""One law for many series: constants of each series' own, and such as all series share.

Without shared constants every series is a fit by itself. With some, all are fitted at once.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import least_squares

from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.fitting.contradiction import p_of_sharing
from nsode_jax.fitting.moderated import moderated
from nsode_jax.fitting.own_covariances import known_constants
from nsode_jax.fitting.trajectory_fitting import (
    FULL,
    LEAST_SINGULAR,
    Problem,
    Stopping,
)
from nsode_jax.fitting.trust_region import BudgetSpent
from nsode_jax.observed.dataset import Dataset

LawOf = Callable[[Float[np.ndarray, " constants"]], Expression]
"""The law with given constants."""

_MOST_STEPS = 400_000
"""Of the solver, for one series."""

KNOWN = 10**9
"""Degrees of freedom of what is not estimated: Student's t is normal then."""

_LEAST_NOISE = 1e-9
"""Of the spread: series that are exact do not count infinitely more than others."""

_ASTRAY = 3.0
"""Residuals this many times the usual one are looked at again."""

_MOST_ITERATIONS = 40
_TOLERANCE = 1e-10
_TINY = 1e-6
"""Constants smaller than this share of the others' begin there: one of 0 has no scale."""


@dataclasses.dataclass(frozen=True, eq=False)
class OwnConstants:
    """A law fitted to many series.

    Attributes:
      constants: of each series, those that are shared repeated, shape [series, constants].
      y0s: fitted values at the first times, shape [series].
      residual_rms: root mean square of solution minus data, in units of y; inf where a
        series has no solution, shape [series].
      covariances: of the constants of each series; NaN where the data do not determine
        them, shape [series, constants, constants].
      freedom: degrees of freedom by which each series' noise was estimated, by its residuals
        and by those of all, `KNOWN` where that was not needed, shape [series].
      converged: whether the fits met their tolerance, shape [series].
      shared_p_value: probability of series as different as these if they share the constants
        that they were made to; NaN for none, and where too little is known.
    """

    constants: Float[np.ndarray, "series constants"]
    y0s: Float[np.ndarray, " series"]
    residual_rms: Float[np.ndarray, " series"]
    covariances: Float[np.ndarray, "series constants constants"]
    freedom: Int[np.ndarray, " series"]
    converged: Bool[np.ndarray, " series"]
    shared_p_value: float = math.nan

    @property
    def standard_errors(self) -> Float[np.ndarray, "series constants"]:
        """Of the constants; NaN where the data do not determine them."""
        return np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))


def fit_own_constants(
    series: Sequence[Dataset],
    law_of: LawOf,
    starts: Float[np.ndarray, "series constants"],
    y0s: Sequence[float],
    shared: Bool[np.ndarray, " constants"] | None = None,
    stopping: Stopping = FULL,
    bounds: Bounds | None = None,
) -> OwnConstants:
    """Fits constants and initial values so that the solutions meet the data.

    Args:
      series: each the data of one.
      law_of: the law with given constants.
      starts: constants to start from, for each series.
      y0s: initial values to start from.
      shared: which constants are the same in all series; none if left out.
      stopping: tolerance and most iterations of the fits of single series.
      bounds: of the constants, if they have any.

    Returns:
      The fit. With shared constants each series counts by the noise that it shows when it
      is fitted alone, or by its known errors; series that no solution meets take no part.
    """
    starts = _nonzero(starts)
    fit_alone = functools.partial(_alone, law_of=law_of, stopping=stopping, bounds=bounds)
    alone = [fit_alone(*one) for one in zip(series, starts, y0s, strict=True)]
    # Where a fit went astray, the others know where to begin.
    errors = np.array([problem.best_rms for problem, _ in alone])
    usual = np.median(errors)
    if math.isfinite(usual):
        good = [problem.best * problem.scale for problem, _ in alone if problem.best_rms <= usual]
        middle = np.median(good, axis=0)[:-1]
        for i in np.flatnonzero(~(errors <= _ASTRAY * usual)).tolist():
            again = fit_alone(series[i], middle, y0s[i])
            if again[0].best_rms < alone[i][0].best_rms:
                alone[i] = again
    problems = [problem for problem, _ in alone]
    converged = [met for _, met in alone]
    shared = np.zeros(starts.shape[1], bool) if shared is None else shared
    noise, freedom = _noise(problems)
    shared_p_value = math.nan
    if shared.any() and math.isfinite(usual):
        alike = 1.0 / np.array([problem.spread for problem in problems])
        weights = np.where(np.isfinite(noise), noise, alike)
        separate = problems
        problems, met = _together(series, law_of, separate, weights, shared, bounds)
        shared_p_value = p_of_sharing(separate, problems, noise, freedom, shared)
        converged = [met and math.isfinite(problem.best_rms) for problem in problems]
        noise, freedom = _noise(problems, int(shared.sum()))
    number = starts.shape[1]
    solved = np.array([math.isfinite(problem.best_rms) for problem in problems])
    final = np.array([problem.best * problem.scale for problem in problems])
    final[~solved] = math.nan
    return OwnConstants(
        constants=final[:, :number],
        y0s=final[:, number],
        residual_rms=np.array([problem.best_rms * problem.spread for problem in problems]),
        covariances=known_constants(problems, noise, shared).covariances,
        freedom=freedom,
        converged=np.array(converged),
        shared_p_value=shared_p_value,
    )


def _nonzero(starts: Float[np.ndarray, "series constants"]) -> Float[np.ndarray, "..."]:
    """The starts, none of them 0."""
    least = _TINY * (np.median(np.abs(starts), axis=0) + np.finfo(float).tiny)
    return np.where(np.abs(starts) < least, least, starts)


def _alone(
    data: Dataset,
    start: np.ndarray,
    y0: float,
    *,
    law_of: LawOf,
    stopping: Stopping,
    bounds: Bounds | None,
) -> tuple[Problem, bool]:
    """The fit of one series by itself, and whether it met its tolerance."""
    start = start if bounds is None else bounds.reflected(start)
    problem = Problem(data, law_of, start, _MOST_STEPS, bounds)
    try:
        for firsts in ([y0], [float(data.y[0])], problem.from_middles()):
            problem.residual(problem.start(firsts))
        if math.isfinite(problem.best_rms) and problem.best.size <= problem.data.size:
            return problem, problem.minimized(problem.best, stopping)
    except BudgetSpent:
        pass
    return problem, False


def _noise(
    problems: Sequence[Problem], shared: int = 0
) -> tuple[Float[np.ndarray, " series"], Int[np.ndarray, " series"]]:
    """Standard deviation of each series' noise, relative to its spread, and degrees of freedom.

    Known, or estimated by its residuals and by what is usual in all; NaN if nothing tells.

    Args:
      problems: the fits.
      shared: how many of their constants are one for all.
    """
    known = [problem.sigma for problem in problems]
    spreads = np.array([problem.spread for problem in problems])
    if None not in known:
        return np.array(known) / spreads, np.full(len(problems), KNOWN)
    solved = np.array([math.isfinite(problem.best_rms) for problem in problems])
    squares = np.array([problem.best_rms**2 * problem.data.size for problem in problems])
    own = np.array([problem.data.size - problem.best.size for problem in problems])
    freedom = own + shared - shared / max(int(solved.sum()), 1)
    variances, known_by = moderated(squares * spreads**2, freedom)
    noise = np.maximum(np.sqrt(variances) / spreads, _LEAST_NOISE)
    return noise, np.floor(known_by + 1e-9).astype(int)


# --- constants that are shared ---------------------------------------------------


class _Together:
    """All series at once: columns of their own for each, and such as all of them have.

    Attributes:
      problems: of the series that have a solution.
      columns: of all parameters, which are each problem's.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        noise: Float[np.ndarray, " series"],
        shared: Bool[np.ndarray, " constants"],
    ):
        self.problems, self.noise = problems, noise
        number, is_shared = int(shared.sum()), np.append(shared, False)
        self.columns = []
        for i in range(len(problems)):
            columns = np.arange(is_shared.size)
            columns[is_shared] = np.arange(number)
            own = int((~is_shared).sum())
            columns[~is_shared] = number + own * i + np.arange(own)
            self.columns.append(columns)
        self.ends = np.cumsum([0] + [problem.data.size for problem in problems])

    def start(self) -> Float[np.ndarray, " parameters"]:
        values = np.zeros(self.columns[-1].max() + 1)
        for problem, columns in zip(self.problems, self.columns, strict=True):
            values[columns] = problem.best
        return values

    def bounds(
        self,
    ) -> tuple[Float[np.ndarray, " parameters"], Float[np.ndarray, " parameters"]]:
        """Of the relative parameters; what is shared begins alike, so its scale is the same."""
        size = self.columns[-1].max() + 1
        low, high = np.full(size, -math.inf), np.full(size, math.inf)
        for problem, columns in zip(self.problems, self.columns, strict=True):
            if problem.bounds is not None:
                low[columns], high[columns] = problem.bounds.relative(problem.scale)
        return low, high

    def residual(self, parameters: Float[np.ndarray, " parameters"]) -> Float[np.ndarray, " all"]:
        parts = zip(self.problems, self.columns, self.noise, strict=True)
        return np.concatenate([p.residual(parameters[own]) / noise for p, own, noise in parts])

    def jacobian(
        self, parameters: Float[np.ndarray, " parameters"]
    ) -> Float[np.ndarray, "all parameters"]:
        result = np.zeros((self.ends[-1], parameters.size))
        for i, (problem, own) in enumerate(zip(self.problems, self.columns, strict=True)):
            rows = slice(self.ends[i], self.ends[i + 1])
            result[rows, own] = problem.jacobian(parameters[own]) / self.noise[i]
        return result


def _together(
    series: Sequence[Dataset],
    law_of: LawOf,
    alone: Sequence[Problem],
    noise: Float[np.ndarray, " series"],
    shared: Bool[np.ndarray, " constants"],
    bounds: Bounds | None,
) -> tuple[list[Problem], bool]:
    """All series with shared constants, from where each went alone.

    Returns:
      The problems, `best` of each being the joint fit, and whether the tolerance was met.
    """
    constants = np.array([(problem.best * problem.scale)[: shared.size] for problem in alone])
    common = np.median(constants[:, shared], axis=0)
    constants[:, shared] = common
    moved = np.array([_with_shared(problem, shared, common) for problem in alone])
    if bounds is not None:
        constants, moved = bounds.reflected(constants), bounds.reflected(moved)
    problems = []
    for data, before, *starts in zip(series, alone, constants, moved, strict=True):
        options = [Problem(data, law_of, start, bounds=bounds) for start in starts]
        for problem in options:
            for y0 in (before.first_values(before.best), problem.from_middles()):
                problem.residual(problem.start(y0))
        problems.append(min(options, key=lambda problem: problem.best_rms))
    usable = [i for i, problem in enumerate(problems) if math.isfinite(problem.best_rms)]
    if not usable:
        return problems, False
    joint = _Together([problems[i] for i in usable], noise[usable], shared)
    fit = least_squares(
        joint.residual,
        joint.start(),
        jac=joint.jacobian,  # pyright: ignore[reportArgumentType]
        bounds=joint.bounds() if bounds is not None else (-math.inf, math.inf),
        x_scale="jac",
        ftol=_TOLERANCE,
        xtol=_TOLERANCE,
        gtol=1e-12,
        max_nfev=_MOST_ITERATIONS,
    )
    for problem, own in zip(joint.problems, joint.columns, strict=True):
        # The best of all together is not the best of each.
        problem.best_rms = math.inf
        problem.residual(fit.x[own])
    return problems, fit.status > 0


def _with_shared(
    problem: Problem, shared: Bool[np.ndarray, " constants"], values: Float[np.ndarray, " shared"]
) -> Float[np.ndarray, " constants"]:
    """Constants of a series, some with other values, the rest where that changes least.

    To first order: of values far from 0 all constants must change together, by little.
    """
    place, number = problem.best.copy(), shared.size
    moved = np.append(shared, np.zeros(place.size - number, bool))
    change = values / problem.scale[moved] - place[moved]
    place[moved] += change
    linear = problem.linearized(problem.best) if math.isfinite(problem.best_rms) else None
    if linear is not None:
        away, rest = linear.jacobian[:, moved] @ change, linear.jacobian[:, ~moved]
        size = np.sqrt((rest**2).sum(axis=0))
        size[size == 0.0] = 1.0
        cutoff = LEAST_SINGULAR * problem.nearness
        place[~moved] -= np.linalg.lstsq(rest / size, away, rcond=cutoff)[0] / size
    return (place * problem.scale)[:number]
