"""One form of law for many series, each with constants of its own.

read -> propose for a few series that stand for all -> fit every form to every series ->
solutions of the best -> customary parameters -> which constants all series share
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nsode_jax.discovery.form_search import Found, as_fit, searched
from nsode_jax.discovery.law_search import DiscoveryError, data_form
from nsode_jax.discovery.measurement_errors import judged_by_their_errors
from nsode_jax.discovery.own_noise import noise_within_series
from nsode_jax.discovery.pipeline import sources_named, work_of
from nsode_jax.discovery.series import read_series
from nsode_jax.discovery.weighting import GROWING, OVER_DECADES
from nsode_jax.dynamics.trajectory import MIN_POINTS, MORE_THAN_CONSTANTS, Trajectory
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.fitting.fit import USER, Origin
from nsode_jax.fitting.own_constants import fit_own_constants
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.fitting.trajectory_fitting import autocorrelation_of
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.noise_scale import expected_noise
from nsode_jax.observed.turning import NO_LAW, most_probably_none
from nsode_jax.reporting.form_discovery import FormDiscovery
from nsode_jax.residuals.goodness import ChiSquared
from nsode_jax.results.own_constants import FormCandidate
from nsode_jax.search.effort import SOURCES
from nsode_jax.search.forms import (
    constants_of,
)
from nsode_jax.search.sources import CandidateSource, Restriction
from nsode_jax.selection.belief import NamedLaws, believing
from nsode_jax.selection.named_formula import NamedFormula
from nsode_jax.selection.probabilities import posterior_probabilities, unseen_probability
from nsode_jax.selection.score import DECIDING, share_of
from nsode_jax.system.settings import listed

_MOST_POINTS_EACH = 200


def discover_own_constants(
    t: Any,
    y: Any,
    *,
    labels: Sequence[str] | None = None,
    law: str | None = None,
    shared: str | Sequence[str] = (),
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
    sigma: Any = None,
    effort: str = "default",
    sources: str | Sequence[str | CandidateSource] = SOURCES,
    weights: str = "small",
    operators: str | Sequence[str] | None = None,
    max_symbols: int | None = None,
    zero_at_zero: bool = False,
    named_laws: NamedLaws = None,
    seed: int = 0,
    progress: Progress = silent,
) -> FormDiscovery:
    """Finds the form of law that all series follow, each with constants of its own.

    Args:
      t: times: a list of arrays [time], or one that the series share.
      y: values: a list of arrays [time], any units. At least two series, but for a law that is
        known.
      labels: what the series are called; numbers from 1 if left out.
      law: the form, if it is known, with names for its constants: "r*y*(1 - y/K)".
        Nothing is searched then, and options of the search are refused.
      shared: names of constants that are the same in all series. Those of the law that is
        found are known only afterwards: its result says which may be shared.
      bounds: of constants of a law that is known, (low, high) by their names, None for no such
        bound: {"K": (0, None)}. The result says which are pressed against theirs.
      sigma: known standard deviations of the measurements, as of `discover`.
      effort, sources, weights, operators, max_symbols, zero_at_zero, named_laws, seed, progress:
        as of `discover`.

    Returns:
      Forms, best first, with the constants of every series.

    Raises:
      TrajectoryError: if a series cannot be used.
      ExpressionError: if the law cannot be read.
      DiscoveryError: if no form has solutions near the data.
      ValueError: if an option is not what it should be.
    """
    started = time.monotonic()
    shared, sources = listed(shared), listed(sources)
    allowed = None if operators is None else frozenset(listed(operators))
    restriction = Restriction(allowed, max_symbols, zero_at_zero)
    if law is not None:
        _refuse_search(effort, sources, weights, restriction, named_laws)
    elif bounds:
        raise ValueError("bounds are for a law whose constants are named: give law= too")
    formula, fewest = None, MIN_POINTS
    if law is not None:
        formula = _named(law)
        fewest = min(fewest, len(formula.names) + MORE_THAN_CONSTANTS)
    trajectories, notes = read_series(t, y, sigma, _MOST_POINTS_EACH * len(y), fewest)
    if len(trajectories) < 2 and formula is None:
        raise ValueError(
            "constants of their own take several series, lists of times and of values; there is one"
        )
    given_labels = range(1, len(trajectories) + 1) if labels is None else listed(labels)
    names = tuple(map(str, given_labels))
    if len(names) != len(trajectories):
        raise ValueError(f"there are {len(names)} labels for {len(trajectories)} series")
    if twice := [name for name, times in collections.Counter(names).items() if times > 1]:
        raise ValueError(f"the labels of series must differ; {twice[0]} is there twice or more")
    together, more = judged_by_their_errors(Dataset.of(trajectories))
    noise = expected_noise(together.trajectories)
    if noise is not None:
        together, more = together.with_noise(noise), (*more, OVER_DECADES)
        trajectories = Dataset(trajectories).with_noise(noise).trajectories
    given = [Dataset((series,)) for series in together]
    tried: tuple[str, ...] = ()
    if formula is not None:
        found = [_given_law(formula, given, bounds or {}, seed)]
    else:
        work = work_of(effort, None, None)
        asked = sources_named(sources, weights, work, restriction, named_laws)
        with believing(named_laws):
            found, tried = searched(given, asked, restriction, seed, progress)
    if together.sigma is None and noise is None:
        if (sizes := noise_within_series(found[0], given)) is not None:
            given = [data.with_noise(size) for data, size in zip(given, sizes, strict=True)]
            trajectories = Dataset(trajectories).with_noise(np.concatenate(sizes)).trajectories
            found, more = [_refitted(one, given) for one in found], (*more, GROWING)
    shares = [1.0] if formula is not None else _shares(found, given)
    if shared:
        found, shares = [_shared(found[0], given, shared)], shares[:1]
    candidates = _candidates(found, shares, given, trajectories, names)
    if not np.isfinite(candidates[0].residual_rms).any():
        advice = "try a greater effort" if formula is None else "look at the form and its bounds"
        raise DiscoveryError(f"No form has solutions near the data of any series; {advice}.")
    notes = (*notes, *more)
    return FormDiscovery(candidates, trajectories, names, notes, time.monotonic() - started, tried)


# --- a law that is given ---------------------------------------------------------


def _refuse_search(
    effort: str,
    sources: Sequence[str | CandidateSource],
    weights: str,
    restriction: Restriction,
    named_laws: NamedLaws,
) -> None:
    """Refuses what a search is told where there is none."""
    chosen = {
        "effort": effort != "default",
        "sources": sources != SOURCES,
        "weights": weights != "small",
        "operators": restriction.operators is not None,
        "max_symbols": restriction.max_symbols is not None,
        "zero_at_zero": restriction.zero_at_zero,
        "named_laws": named_laws is not None,
    }
    for name, is_chosen in chosen.items():
        if is_chosen:
            raise ValueError(f"{name} is of a search, and nothing is searched with a known law")


def _named(law: str) -> NamedFormula:
    """The formula of a known law.

    Raises:
      ValueError: if it cannot be read, or its constants have no names.
    """
    formula = NamedFormula.of_user(law)
    if not formula.names:
        raise ValueError(f"name the constants of the law, such as r*y*(1 - y/K), not {law}")
    return formula


def _given_law(
    formula: NamedFormula,
    given: Sequence[Dataset],
    bounds: Mapping[str, tuple[float | None, float | None]],
    seed: int,
) -> Found:
    """The fit of a known law.

    If its bounds exclude what fits best, rates of change may agree with solutions only where f
    is 0 everywhere: the solutions are fitted from what is nearest to the best without bounds too.
    """
    within = Bounds.of(bounds, formula.names)
    forms = [data_form(data) for data in given]
    fitted = functools.partial(
        fit_own_constants, given, formula.with_values, y0s=[form.y0s[0] for form in forms]
    )
    free = fitted(constants_of(formula, given, forms, seed))
    if within is None or within.holds(free.constants):
        return Found(formula, free, Origin(USER), bounds=within)
    starts = constants_of(formula, given, forms, seed, within)
    nearest = np.clip(free.constants, within.low, within.high)
    nearest = np.where(np.isfinite(nearest), nearest, starts)
    fits = [fitted(start, bounds=within) for start in (starts, nearest)]
    best = np.argmin([fit.residual_rms for fit in fits], axis=0), np.arange(len(given))
    fit = fitted(np.array([fit.constants for fit in fits])[best], bounds=within)
    return Found(formula, fit, Origin(USER), bounds=within)


# --- the result ------------------------------------------------------------------


def _shared(found: Found, given: Sequence[Dataset], shared: Sequence[str]) -> Found:
    """The same with constants that all series share.

    Raises:
      ValueError: if there is no such constant.
    """
    if unknown := [name for name in shared if name not in found.names]:
        raise ValueError(
            f"the law {found.formula.text} has the constants {', '.join(found.names)}; "
            f"there is no {', '.join(unknown)} to be shared"
        )
    return dataclasses.replace(_refitted(found, given, shared), shared=tuple(shared))


def _refitted(found: Found, given: Sequence[Dataset], shared: Sequence[str] = ()) -> Found:
    """The same fitted again, with constants that all series share, from its constants on."""
    chosen = np.array([name in shared for name in found.names], bool)
    values = found.fit.constants
    middle = np.nanmedian(values, axis=0)
    starts = np.where(np.isfinite(values), values, middle)
    y0s = [
        float(y0) if math.isfinite(y0) else float(data.y[0])
        for y0, data in zip(found.fit.y0s, given, strict=True)
    ]
    fit = fit_own_constants(
        given, found.formula.with_values, starts, y0s, chosen, bounds=found.bounds
    )
    return dataclasses.replace(found, fit=fit)


def _shares(found: Sequence[Found], given: Sequence[Dataset]) -> list[float]:
    """Posterior probabilities of the forms of a search."""
    best = found[0].fit.residual_rms / np.array([data.spread for data in given])
    if not np.isfinite(best).any():
        return posterior_probabilities([one.score for one in found])
    unseen = unseen_probability(float(np.median(best)), _alike(found, given))
    if most_probably_none(trajectory for data in given for trajectory in data):
        unseen = NO_LAW
    return posterior_probabilities([one.score for one in found], unseen)


def _alike(found: Sequence[Found], given: Sequence[Dataset]) -> bool:
    """Whether even the best forms leave residuals that are alike within the series."""
    counts = np.array([data.count for data in given])
    least = 1.0
    for one in found[:DECIDING]:
        fits = [as_fit(one, i, data) for i, data in enumerate(given)]
        each = [
            math.nan if fit.diverged else autocorrelation_of(data, fit)
            for fit, data in zip(fits, given, strict=True)
        ]
        known = np.isfinite(each)
        if known.any():
            least = min(least, float(np.average(np.array(each)[known], weights=counts[known])))
    return share_of(least, int(counts.sum())) < 1.0


def _candidates(
    found: Sequence[Found],
    shares: Sequence[float],
    given: Sequence[Dataset],
    trajectories: Sequence[Trajectory],
    labels: tuple[str, ...],
) -> tuple[FormCandidate, ...]:
    """The forms with their posterior probabilities."""
    spreads = np.array([data.spread for data in given])
    return tuple(
        FormCandidate(
            formula=one.formula,
            name=one.named.name if one.named else "",
            meanings=tuple(p.meaning for p in one.named.parameters) if one.named else (),
            constants=one.fit.constants,
            covariances=one.fit.covariances,
            freedom=one.fit.freedom,
            y0s=one.fit.y0s,
            start_times=tuple(float(series.t[0]) for series in trajectories),
            residual_rms=one.fit.residual_rms,
            r2=1 - (one.fit.residual_rms / spreads) ** 2,
            score=one.score,
            probability=share,
            origin=str(one.origin),
            converged=one.fit.converged,
            shared=one.shared,
            bounds=one.bounds,
            goodness_of_fit=_goodness(one, given),
            labels=labels,
            shared_p_value=one.fit.shared_p_value,
        )
        for one, share in zip(found, shares, strict=True)
    )


def _goodness(found: Found, given: Sequence[Dataset]) -> float:
    """Probability by chi-squared of so bad a fit of all series; NaN where errors are unknown."""
    if given[0].sigma is None:
        return math.nan
    value, observations, series = 0.0, 0, 0
    for data, rms in zip(given, found.fit.residual_rms.tolist(), strict=True):
        if math.isfinite(rms) and data.sigma is not None:
            value += data.count * (rms / data.sigma) ** 2
            observations, series = observations + data.count, series + 1
    own = len(found.names) - len(found.shared) + 1
    freedom = observations - own * series - len(found.shared)
    return ChiSquared(value, freedom).probability if freedom > 0 else math.nan


__all__ = ["discover_own_constants"]
