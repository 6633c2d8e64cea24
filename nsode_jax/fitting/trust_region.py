"""Least squares of a few parameters in a trust region; and how well they are determined.

MINPACK's own method (`method="lm"`) is as good, but where a Jacobian is all but singular the
translation in SciPy 1.15 and later gives steps that depend on where its arrays lie in memory: the
same search twice, and laws that were not fitted to the end differed in their fifth digit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares


class BudgetSpent(Exception):
    """The fit has used up its steps of the solver; raised by the functions that are minimized."""


def minimized(
    residual: Callable[[Float[np.ndarray, " parameters"]], Float[np.ndarray, " observations"]],
    jacobian: Callable[
        [Float[np.ndarray, " parameters"]], Float[np.ndarray, "observations parameters"]
    ],
    start: Float[np.ndarray, " parameters"],
    *,
    tolerance: float,
    iterations: int,
    bounds: tuple[Float[np.ndarray, " parameters"], Float[np.ndarray, " parameters"]] | None = None,
) -> bool:
    """Whether the method met its tolerance; the functions keep the best that they were given.

    Args:
      residual: what is to be small; at least as many as parameters.
      jacobian: its derivatives.
      start: where to begin.
      tolerance: relative, of the sum of squares and of the parameters.
      iterations: most evaluations of the residual.
      bounds: the least and the greatest value of each parameter, if they have any; the start is
        within.
    """
    with np.errstate(all="ignore"):  # Of derivatives of solutions that run away.
        result = least_squares(
            residual,
            start,
            jac=jacobian,  # pyright: ignore[reportArgumentType]
            method="trf",
            bounds=(-np.inf, np.inf) if bounds is None else bounds,
            x_scale="jac",
            ftol=tolerance,
            xtol=tolerance,
            gtol=1e-12,
            max_nfev=iterations,
        )
    return result.status > 0


def root_of_inverse(
    jacobian: Float[np.ndarray, "observations parameters"],
    least_singular: float,
    size: Float[np.ndarray, " parameters"] | None = None,
) -> Float[np.ndarray, "parameters parameters"] | None:
    """A root R of the inverse of J'J = (R R')^-1, from which covariances are made.

    Args:
      jacobian: J.
      least_singular: of J with columns of unit length, relative to its largest singular value;
        below is rounding.
      size: lengths of the columns before a part of them was taken away, to which they are
        relative then; their own if left out.

    Returns:
      None where J does not determine all parameters.
    """
    lengths = np.sqrt((jacobian**2).sum(axis=0)) if size is None else size
    if len(jacobian) < lengths.size or not (np.isfinite(lengths).all() and (lengths > 0).all()):
        return None
    _, singular, v = np.linalg.svd(jacobian / lengths, full_matrices=False)
    if singular[-1] < least_singular * max(singular[0], 1.0):
        return None
    return v.T / singular / lengths[:, None]
