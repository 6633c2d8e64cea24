"""Levenberg and Marquardt's method, as MINPACK has it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares


def minimized(
    residual: Callable[[Float[np.ndarray, " parameters"]], Float[np.ndarray, " observations"]],
    jacobian: Callable[
        [Float[np.ndarray, " parameters"]], Float[np.ndarray, "observations parameters"]
    ],
    start: Float[np.ndarray, " parameters"],
    *,
    tolerance: float,
    iterations: int,
) -> bool:
    """Whether the method met its tolerance; the functions keep the best that they were given.

    Args:
      residual: what is to be small; at least as many as parameters.
      jacobian: its derivatives.
      start: where to begin.
      tolerance: relative, of the sum of squares and of the parameters.
      iterations: most evaluations of the residual.
    """
    result = least_squares(
        residual,
        start,
        jac=jacobian,  # pyright: ignore[reportArgumentType]
        method="lm",
        x_scale="jac",
        ftol=tolerance,
        xtol=tolerance,
        gtol=1e-12,
        max_nfev=iterations,
    )
    return result.status > 0
