"""Whether stated probabilities mean what they say: python -m nsode_jax.evaluation.calibration

Laws are drawn from the prior (`simulated_laws`) and discovered at effort "fast" without the
network. Of each problem the fitted candidates are kept, with all that a score is made of, so
that other scores can be tried on them in seconds.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from nsode_jax.discovery.pipeline import EFFORTS
from nsode_jax.discovery.series import read_series
from nsode_jax.evaluation.simulated_laws import Simulated
from nsode_jax.evaluation.structure import skeleton_recovered
from nsode_jax.expressions.canonical import TimeLimitExceeded
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.derivative import derivative_form
from nsode_jax.fitting.integral import integral_form
from nsode_jax.fitting.progress import silent
from nsode_jax.fitting.scaling import working_units
from nsode_jax.search.enumeration import EnumerationSource
from nsode_jax.search.library import LibrarySource
from nsode_jax.search.named_laws import NamedLawSource
from nsode_jax.search.refine import refine
from nsode_jax.selection.form import form_of
from nsode_jax.selection.prior import Prior
from nsode_jax.selection.ranking import rank
from nsode_jax.selection.score import (
    evidence,
    information,
    relative_residual,
    residual_floor,
)

MIN_STATED = 0.02
"""Candidates that are less probable are not counted: nearly all are wrong, and said so."""

_KEPT = 15
_SAME = 1e-3
_BINS = 10

Pool = dict[str, Any]


def pool(problem: Simulated) -> Pool:
    """The candidates of a problem, what their scores are made of, and which are right."""
    trajectories, _ = read_series(problem.t, problem.y)
    given = Dataset.of(trajectories)
    units = working_units(given)
    data = Dataset(tuple(units.apply(trajectory) for trajectory in given))
    form = derivative_form(data) or integral_form(data)
    effort = EFFORTS["fast"]
    sources = (
        NamedLawSource(problem.catalogue()),
        EnumerationSource(effort.symbols, effort.beyond),
        LibrarySource(),
    )
    proposals = [
        law
        for source in sources
        for law in source.propose(data, form, seed=problem.seed, progress=silent).laws
    ]
    fits = refine(data, form, proposals, seed=problem.seed, config=effort.refine)
    truth = units.inverse().restore(problem.law, absorb=False)
    floor = residual_floor(data, form)
    known = Prior.load()
    prior = known.without_fields(problem.field) if problem.field else known
    candidates = []
    for fit, value in rank(fits, data, form):
        law, rms = fit.expression, relative_residual(fit, data, form)
        if not math.isfinite(value):
            continue
        log_prior = prior.log_prior(law)
        candidates.append(
            {
                "law": law.infix,
                "score": value + 2 * (known.log_prior(law) - log_prior),
                "evidence": evidence(law, rms, form, floor),
                "log_prior": log_prior,
                "rms": rms,
                "solution_rms": fit.residual_rms / data.spread,
                "information": information(law, form),
                "numbers": sum(not is_plain(c) for c in law.constants),
            }
        )
    candidates = sorted(candidates, key=lambda c: c["score"])[:_KEPT]
    for candidate in candidates:
        law = Expression.from_infix(candidate["law"])
        candidate["right"] = is_right(truth, law, data.low, data.high)
    return {
        "seed": problem.seed,
        "kind": problem.kind,
        "field": problem.field,
        "noise": problem.noise,
        "count": data.count,
        "floor": floor,
        "truth": truth.infix,
        "candidates": candidates,
    }


def is_right(truth: Expression, law: Expression, low: float, high: float) -> bool:
    """Whether a law has the true form, or says the same over the observed range."""
    with contextlib.suppress(ExpressionError):
        if form_of(law) == form_of(truth):
            return True
    grid = np.linspace(low, high, 64)
    rates, true_rates = law.evaluate(grid), truth.evaluate(grid)
    defined = np.isfinite(true_rates)
    difference = np.abs(rates - true_rates)[defined]
    if defined.any() and difference.max() <= _SAME * np.abs(true_rates[defined]).max():
        return True
    try:
        return skeleton_recovered(truth, law)
    except (ExpressionError, TimeLimitExceeded):
        return False
