"""LSODA of ODEPACK, as SciPy has it; a failure is no solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.integrate import ODEintWarning, odeint

_SUCCESS = "Integration successful."


class EvaluationsSpent(Exception):
    """Ends LSODA from within the function that it calls."""


def lsoda(
    derivative: Callable,
    y0: Float[np.ndarray, " states"],
    t: Float[np.ndarray, " time"],
    *,
    rtol: float,
    atol: float | Float[np.ndarray, " states"],
    max_steps: int,
    longest_step: float = 0.0,
) -> Float[np.ndarray, "time states"] | None:
    """The solution of dy/dt = derivative(y, t) from y0 at t[0].

    Args:
      derivative: may raise `EvaluationsSpent`.
      y0: values at t[0].
      t: increasing times.
      rtol, atol: tolerances, the absolute one of all states or of each.
      max_steps: between two neighbouring times.
      longest_step: 0 for any.

    Returns:
      None where there is no solution up to the last time, or none within these limits.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", ODEintWarning)
            if not np.isfinite(derivative(y0, t[0])).all():
                return None
            y, info = odeint(
                derivative, y0, t, rtol=rtol, atol=atol, mxstep=max_steps, hmax=longest_step,
                full_output=True,
            )  # fmt: skip
    except EvaluationsSpent:
        return None
    # A failed run still returns numbers, so both the status and the values count.
    return y if info["message"] == _SUCCESS and np.isfinite(y).all() else None
