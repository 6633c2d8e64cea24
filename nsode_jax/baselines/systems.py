"""SINDy and Operon on several quantities: a law for the slope of each, then the best system.

Neither knows about time, and each fits one slope after the other as a function of all
quantities, smoothed (`slopes.differentiate`). Of the best laws of each quantity that
system is taken whose solution fits the observations best, as for one quantity
(`scalar.ranked_by_solution`), since nothing else of theirs chooses between settings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.baselines.operon import operon_front
from nsode_jax.baselines.scalar import distinct, extra, information_criterion
from nsode_jax.baselines.sindy import sparse_laws
from nsode_jax.baselines.slopes import differentiate
from nsode_jax.dynamics.system import integrate
from nsode_jax.expressions.expression import Expression

_DEGREES = (1, 2, 3)
_FOURIER = ("sin", "cos")
_MOST_SYSTEMS = 625
_TOLERANCE = 1e-6
_MAX_STEPS = 5_000

Laws = tuple[Expression, ...]


def sindy(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, "time states"], names: tuple[str, ...]
) -> Laws:
    """SINDy's system: polynomials of degree 1 to 3, with and without sines and cosines.

    Args:
      t, y: the observations.
      names: of the quantities.

    Raises:
      NotInstalled: if PySINDy is missing.
      BaselineError: if it fails.
    """
    smooth, slopes = smoothed(t, y)
    with extra("PySINDy"):
        laws = [sparse_laws(smooth, s, _DEGREES, functions=_FOURIER, names=names) for s in slopes.T]
    return best_system(laws, t, y, smooth, slopes)


def operon(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, "time states"], names: tuple[str, ...]
) -> Laws:
    """Operon's system, of the Pareto front of each quantity.

    Args:
      t, y: the observations.
      names: of the quantities.

    Raises:
      NotInstalled: if PyOperon is missing.
      BaselineError: if it fails.
    """
    smooth, slopes = smoothed(t, y)
    with extra("PyOperon"):
        laws = [operon_front(smooth, slope, seed=0, names=names) for slope in slopes.T]
    return best_system(laws, t, y, smooth, slopes)


def smoothed(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, "time states"]
) -> tuple[Float[np.ndarray, "time states"], Float[np.ndarray, "time states"]]:
    """Each quantity by `differentiate`: smoothed values and estimates of dy/dt."""
    found = [differentiate(t, column) for column in y.T]
    return np.stack([one.y for one in found], 1), np.stack([one.slope for one in found], 1)


def best_system(
    laws: Sequence[Iterable[Expression]],
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, "time states"],
    smooth: Float[np.ndarray, "time states"],
    slopes: Float[np.ndarray, "time states"],
) -> Laws:
    """The system whose solution has the least n log(e^2) + k log n, summed over quantities.

    Of each quantity the best few laws by the same criterion of their slopes are tried, all
    with all; e^2 has the floor of `scalar.ranked_by_solution`, k counts constants.

    Args:
      laws: candidates for each quantity.
      t, y: the observations.
      smooth, slopes: smoothed values and estimates of dy/dt.
    """
    each = round(_MOST_SYSTEMS ** (1 / len(laws)))

    def by_slope(law: Expression, slope: Float[np.ndarray, " time"]) -> float:
        return information_criterion(law.evaluate(*smooth.T) - slope, slope, law)

    best = [
        sorted(distinct(candidates), key=lambda law: by_slope(law, slope))[:each]
        for candidates, slope in zip(laws, slopes.T, strict=True)
    ]

    def by_solution(system: Laws) -> tuple[float, float]:
        solved = integrate(
            system, smooth[0], t, rtol=_TOLERANCE, atol=_TOLERANCE, max_steps=_MAX_STEPS
        )
        quantities = range(len(system))
        return (
            sum(
                information_criterion(solved[:, k] - y[:, k], y[:, k], system[k])
                for k in quantities
            ),
            sum(by_slope(system[k], slopes[:, k]) for k in quantities),
        )

    return min(itertools.product(*best), key=by_solution)
