"""The methods we compare with: SINDy, gplearn, Operon and AI Feynman.

None of them knows about time. Each fits a function from y to an estimate of dy/dt
(paper, section 3.2 and appendix E). The paper took finite differences, which are useless
on noisy data; here all four are given the slopes of local polynomials chosen by
cross-validation (`slopes.differentiate`). And where a method has many candidates but no good
way to choose between them, the choice is by their solutions (`ranked_by_solution`).
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shutil
from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import Float

from nsode_jax.baselines.feynman import FeynmanError, feynman_front
from nsode_jax.baselines.genetic import evolved_programs
from nsode_jax.baselines.operon import operon_front
from nsode_jax.baselines.sindy import finite_differences, sparse_laws
from nsode_jax.baselines.slopes import Slopes, differentiate
from nsode_jax.dynamics.solve import Budget, solve
from nsode_jax.dynamics.trajectory import Trajectory, clean
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.expressions.canonical import NotRepresentable, canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.system.files import one_line

FEYNMAN_PYTHON = "NSODE_AIFEYNMAN_PYTHON"
"""Environment variable with the Python interpreter that has AI Feynman."""

_SINDY_DEGREES = (1, 2, 3)
_MAX_PROGRAMS = 200


class BaselineError(Exception):
    """Why a baseline has no answer for a series, in one line for the user."""


class NotInstalled(Exception):
    """What must be installed before a baseline can be used, in one line for the user."""


# --- the methods --------------------------------------------------------------


def sindy(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], *, degree: int | None, seed: int
) -> list[Expression]:
    """SINDy (Brunton et al. 2016) as PySINDy implements it.

    Given a degree, the grid is the paper's: 10 thresholds, 8 ridge penalties and 5 orders
    of finite differences, over polynomials with sin, cos, exp, sqrt and log. The slopes of
    `differentiate` are a sixth choice, and polynomials alone a second library. Without a
    degree, as on ODEBench, the finite differences are left out: degrees take their place.
    The choice is not by the slopes of the second half of the series, where most solutions
    rest, but by solutions (after Mangan et al. 2017); on ODEBench that is better.

    Args:
      t, y: the observations, shape [time].
      degree: the highest power of y; None for a choice from 1 to 3.
      seed: of nothing: SINDy has no random numbers.

    Returns:
      Laws, best first, without repetitions.

    Raises:
      NotInstalled: if PySINDy is missing.
      BaselineError: if it fails, or the series cannot be used.
    """
    del seed
    series = _usable(t, y)
    slopes = differentiate(series.t, series.y)
    with extra("PySINDy"):
        if degree is None:
            laws = sparse_laws(slopes.y, slopes.slope, _SINDY_DEGREES)
        else:
            laws = sparse_laws(slopes.y, slopes.slope, [degree])
            for slope in finite_differences(series.t, series.y):
                laws += sparse_laws(series.y, slope, [degree])
    return ranked_by_solution(laws, series, slopes)


def gplearn(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], *, seed: int
) -> list[Expression]:
    """Genetic programming by gplearn, with the paper's settings (appendix E).

    Args:
      t, y: the observations, shape [time].
      seed: of the evolution.

    Returns:
      At most 200 different programs of the last generations, those of the highest R^2
      of the slopes first ("best performance across all final programs").

    Raises:
      NotInstalled: if gplearn is missing.
      BaselineError: if it fails, or the series cannot be used.
    """
    series = _usable(t, y)
    slopes = differentiate(series.t, series.y)
    with extra("gplearn"):
        programs = evolved_programs(slopes.y, slopes.slope, seed)
        return list(itertools.islice(distinct(programs), _MAX_PROGRAMS))


def operon(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], *, seed: int
) -> list[Expression]:
    """Operon (Burlacu et al. 2020): genetic programming with fitted constants.

    Args:
      t, y: the observations, shape [time].
      seed: of the evolution.

    Returns:
      The Pareto front of error and length, best first by `ranked_by_solution`; by
      Operon's own criterion, description length, the pick is often too short.

    Raises:
      NotInstalled: if PyOperon is missing.
      BaselineError: if it fails, or the series cannot be used.
    """
    series = _usable(t, y)
    slopes = differentiate(series.t, series.y)
    with extra("PyOperon"):
        laws = operon_front(slopes.y, slopes.slope, seed)
    return ranked_by_solution(laws, series, slopes)


def aifeynman(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], *, seed: int
) -> list[Expression]:
    """AI Feynman 2.0 (Udrescu et al. 2020), with the paper's settings (appendix E).

    It runs for many minutes, in an environment of its own (`feynman`).

    Args:
      t, y: the observations, shape [time].
      seed: of its data split and networks; its brute force is limited by the clock.

    Returns:
      Its Pareto front, best first by `ranked_by_solution`.

    Raises:
      NotInstalled: if there is no such environment.
      BaselineError: if it fails, or the series cannot be used.
    """
    series = _usable(t, y)
    python = os.environ.get(FEYNMAN_PYTHON, "")
    if not shutil.which(python):
        raise NotInstalled(
            "AI Feynman needs an environment of its own, with numpy below 1.24: set "
            f"{FEYNMAN_PYTHON} to the path of its Python interpreter, not to {python!r}"
        )
    slopes = differentiate(series.t, series.y)
    try:
        laws = feynman_front(slopes.y, slopes.slope, seed, python)
    except FeynmanError as error:
        raise BaselineError(f"AI Feynman failed: {error}") from error
    return ranked_by_solution(laws, series, slopes)


@contextlib.contextmanager
def extra(library: str) -> Iterator[None]:
    """Says which extra to install where the library is missing, and what it failed with."""
    try:
        yield
    except ImportError as error:
        raise NotInstalled(
            f"{library} needs the extra `baselines`: pip install 'nsode_jax[baselines]'"
        ) from error
    except (ValueError, ArithmeticError, RuntimeError, MemoryError) as error:
        reason = one_line(error)
        raise BaselineError(f"{library} failed: {type(error).__name__}: {reason}") from error


def _usable(t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]) -> Trajectory:
    try:
        return clean(t, y)[0]
    except TrajectoryError as error:
        raise BaselineError(str(error)) from error


# --- candidates ---------------------------------------------------------------

_FLOOR = 1e-3
_MAX_STEPS = 5_000
_MAX_EVALUATIONS = 200_000


def ranked_by_solution(
    laws: Iterable[Expression], series: Trajectory, slopes: Slopes
) -> list[Expression]:
    """The different laws, in the order of the information criterion of their solutions.

    n log(e^2 + (0.001 s)^2) + k log n, where e is the root mean square error of the
    solution that starts at the first smoothed value, s the standard deviation of the n
    observations and k the number of constants. Without the floor, the longest law would
    win on clean data for the fourth digit. Laws without a solution come last, by how
    well they fit the slopes.
    """

    def criterion(law: Expression) -> tuple[float, float]:
        budget = Budget(_MAX_EVALUATIONS)
        solution = solve(law, slopes.y[0], series.t, max_steps=_MAX_STEPS, budget=budget)
        with np.errstate(all="ignore"):
            misfit = float(np.mean((law.evaluate(slopes.y) - slopes.slope) ** 2))
        misfit = misfit if math.isfinite(misfit) else math.inf
        if solution is None:
            return math.inf, misfit
        return information_criterion(solution - series.y, series.y, law), misfit

    return sorted(distinct(laws), key=criterion)


def information_criterion(
    error: Float[np.ndarray, " time"], observed: Float[np.ndarray, " time"], law: Expression
) -> float:
    """That of `ranked_by_solution`; inf where the error is not finite.

    Args:
      error: of the law, shape [time].
      observed: what it is an error of, shape [time].
      law: whose constants count.
    """
    with np.errstate(over="ignore"):
        left = float(np.mean(error**2)) + (_FLOOR * float(observed.std())) ** 2
    if not math.isfinite(left):
        return math.inf
    return len(error) * math.log(left) + len(law.constants) * math.log(len(error))


def distinct(laws: Iterable[Expression]) -> Iterator[Expression]:
    """The laws in canonical form, without repetitions, as far as others can use them.

    A law without a canonical form stays as it is. Left out are those too long or too
    deeply nested to be read back or to be solved.
    """
    seen = set()
    for law in laws:
        try:
            with contextlib.suppress(NotRepresentable):
                law = canonicalize(law)
            if law not in seen and Expression.from_infix(law.infix, law.variables) == law:
                law.compile()
                seen.add(law)
                yield law
        except (ExpressionError, SyntaxError, MemoryError, RecursionError):
            continue
