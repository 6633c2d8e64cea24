"""Systems of known laws, observed."""

import numpy as np

from nsode_jax.discovery.systems import as_candidates
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.observations import Observations, Run
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.trajectory_fitting import ROUGH
from nsode_jax.reporting.system_discovery import SystemDiscovery


def observed(system, equations, start, noise=0.0, runs=1):
    random, t = np.random.default_rng(0), np.linspace(0.0, 8.0, 120)
    laws = [Expression.from_infix(text, system.variables) for text in equations]
    parts = []
    for run in range(runs):
        y = integrate(system.equations(laws), np.array(start) * (1 + 0.2 * run), t)
        y = y[:, : len(system.observed)]
        parts.append(Run(t, y + noise * random.standard_normal(y.shape), np.empty((t.size, 0))))
    return Observations(system, tuple(parts)), laws


def discovered(system, equations, start, noise=0.02, runs=1, segments=1, notes=()):
    """What discovery would give, had it found these equations, and a wrong system beside them."""
    data, laws = observed(system, equations, start, noise, runs)
    origins = (Origin("test"),) * len(laws)
    right = fit_system(data, laws, origins, stopping=ROUGH, segments=segments)
    flat = [Expression.from_infix("0.1", system.variables)] * len(laws)
    wrong = fit_system(data, flat, origins, stopping=ROUGH)
    candidates = as_candidates(data, [(right, -100.0), (wrong, -90.0)])
    return SystemDiscovery(candidates, data.runs, tuple(notes), 1.5)


PREY = System(("prey", "hunters"))
PREY_LAWS = ("1.1*prey - 0.8*prey*hunters", "0.6*prey*hunters - 0.9*hunters")


def prey_discovery(**options):
    """Of Lotka and Volterra's system."""
    return discovered(PREY, PREY_LAWS, (1.0, 1.3), **options)
