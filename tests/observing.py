"""Known laws and systems, observed."""

import dataclasses
import math

import numpy as np

from nsode_jax.discovery.own_constants import discover_own_constants
from nsode_jax.discovery.systems import as_candidates
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.trajectory_fitting import ROUGH
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.system_discovery import SystemDiscovery
from nsode_jax.results.result import Candidate
from nsode_jax.results.system_result import SystemCandidate

TIMES = np.linspace(0.0, 8.0, 120)


def observed(system, equations, start, noise=0.0, runs=1, t=TIMES):
    random = np.random.default_rng(0)
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


def system_candidate_of(system, *texts):
    """A system with these laws, whose constants nothing is known of."""
    laws = tuple(Expression.from_infix(text, system.variables) for text in texts)
    number = len(system.observed)
    return SystemCandidate(
        system, laws, np.ones((1, len(system.states))), (0.0,), (1.0,), 1.0, (1.0,) * number,
        (0.1,) * number, 0.0,
    )  # fmt: skip


def logistic_discovery(notes=()):
    """Of logistic growth in one noisy series, and of a decay that does not fit."""
    t = np.linspace(0.0, 8.0, 40)
    right = law_through("0.9*y - 0.3*y**2", 0.1, t)
    y = right.predict(t) + 0.02 * np.random.default_rng(0).standard_normal(t.size)
    wrong = dataclasses.replace(law_through("-0.1*y", 2.0, t), probability=0.1)
    right = dataclasses.replace(
        right, probability=0.9, covariance=np.diag([0.004, 0.002, 0.0]) ** 2
    )
    candidates = (measured(law, t, y) for law in (right, wrong))
    return Discovery(tuple(candidates), (Trajectory(t, y),), tuple(notes), 1.5)


def plate_discovery(notes=()):
    """Of logistic growth in three series, each with its own rate, and of a form that is worse."""
    t, noise = np.linspace(0.0, 8.0, 25), np.random.default_rng(0)
    laws = [law_through(f"{rate}*y - {rate / 2}*y**2", 0.1, t) for rate in (0.7, 0.9, 1.2)]
    values = [law.predict(t) + 0.01 * noise.standard_normal(t.size) for law in laws]
    labels = ("A1", "<b>", "A3")
    right, wrong = (
        discover_own_constants(t, values, labels=labels, law=law)
        for law in ("r*y*(1 - y/K)", "a - b*y")
    )
    best = dataclasses.replace(
        right.best,
        name="logistic growth",
        meanings=("growth rate", "carrying capacity"),
        probability=0.9,
    )
    other = dataclasses.replace(wrong.best, probability=0.1)
    return dataclasses.replace(
        right, candidates=(best, other), notes=tuple(notes), tried=("named laws",)
    )


def law_through(formula, y0, t):
    law = Expression.from_infix(formula)
    ends = {"start_times": (t[0],), "end_times": (t[-1],)}
    return Candidate(law, (y0,), **ends, r2=1.0, residual_rms=0.0, score=0.0)


def measured(law, t, y):
    """The law with its fit to the data."""
    squares = np.mean((y - law.predict(t)) ** 2)
    fit = {"r2": float(1 - squares / np.var(y)), "residual_rms": float(np.sqrt(squares))}
    return dataclasses.replace(law, **fit, observed=(float(y.min()), float(y.max())))


def candidate_of(formula, covariance=None, **fields):
    """A candidate of these fields, without data."""
    fit = {"y0s": (1.0,), "start_times": (0.0,), "r2": 0.99, "residual_rms": 0.1, "score": 1.0}
    return Candidate(Expression.from_infix(formula), covariance=covariance, **fit | fields)


CANDIDATES = (
    candidate_of(
        "0.53214*y - 0.00081234*y**2",
        np.diag([0.0034, 0.0000021, 0.0]) ** 2,
        residual_rms=0.1,
        probability=0.9,
        log_probability=-3.5,
        origin="network",
        converged=True,
    ),
    candidate_of("0.3*y", residual_rms=0.5, probability=0.1, r2=0.91),
    candidate_of("exp(y)", residual_rms=math.inf, r2=-math.inf, score=math.inf),
    candidate_of("0.31*y + 0.1*y**3", residual_rms=0.2),
)
