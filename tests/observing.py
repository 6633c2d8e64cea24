"""Systems of known laws, observed."""

import numpy as np

from nsode_jax.dynamics.system import integrate
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.observations import Observations, Run


def observed(system, equations, start, noise=0.0, runs=1):
    random, t = np.random.default_rng(0), np.linspace(0.0, 8.0, 120)
    laws = [Expression.from_infix(text, system.variables) for text in equations]
    parts = []
    for run in range(runs):
        y = integrate(system.equations(laws), np.array(start) * (1 + 0.2 * run), t)
        y = y[:, : len(system.observed)]
        parts.append(Run(t, y + noise * random.standard_normal(y.shape), np.empty((t.size, 0))))
    return Observations(system, tuple(parts)), laws
