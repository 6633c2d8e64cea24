"""Laws said to fit a series of data so well, and the order in which they are ranked."""

import math

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.selection.ranking import rank

T = np.linspace(0.0, 4.0, 50)
DATA = Dataset.of([Trajectory(T, 0.3 + np.exp(-T) * math.pi)])
FORM = integral_form(DATA)
SPREAD = DATA.y.std()
ORIGIN = Origin("test")


def fit_of(text: str, relative_rms: float, origin: Origin = ORIGIN) -> Fit:
    r2 = 1 - relative_rms**2 if math.isfinite(relative_rms) else -math.inf
    return Fit(Expression.from_infix(text), (3.0,), relative_rms * SPREAD, r2, True, origin)


def order_of(*fits: Fit) -> list[str]:
    return [fit.expression.infix for fit, _ in rank(fits, DATA, FORM)]
