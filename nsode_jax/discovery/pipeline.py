"""From measured series to ranked laws dy/dt = f(y): the whole pipeline.

read -> search (`law_search`) -> uncertainty and notes
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.lag import lag_note
from nsode_jax.discovery.law_search import DiscoveryError, LawSearch, Ranked
from nsode_jax.discovery.measurement_errors import judged_by_their_errors
from nsode_jax.discovery.series import read_series
from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import VARIABLES
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.fitting.trajectory_fitting import covariance, linearized, residuals_of
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.frame import Frame
from nsode_jax.observed.turning import NO_LAW, most_probably_none
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.residuals.goodness import freedom_of, goodness_of_fit, lack_of_fit
from nsode_jax.residuals.holdout import held_out_error
from nsode_jax.residuals.pattern import pattern_of
from nsode_jax.results.diagnostics import diagnose
from nsode_jax.results.result import Candidate
from nsode_jax.search.effort import EFFORTS, SOURCES, Effort
from nsode_jax.search.enumeration import EnumerationSource
from nsode_jax.search.library import LibrarySource
from nsode_jax.search.named_laws import NamedLawSource
from nsode_jax.search.network import NetworkSource
from nsode_jax.search.own_laws import OwnLaw
from nsode_jax.search.sources import CandidateSource, Restriction
from nsode_jax.selection.belief import NamedLaws, believing, own_laws
from nsode_jax.selection.catalogue import NamedLaw
from nsode_jax.selection.named_formula import names_note
from nsode_jax.selection.probabilities import posterior_probabilities, unseen_probability
from nsode_jax.selection.score import DECIDING, SYSTEMATIC, independent_share
from nsode_jax.system.settings import listed

_WITH_UNCERTAINTY = 30
"""So many candidates, the best, get a covariance of their constants."""

_HELD_OUT = 10
"""So many are fitted again to a part of the data, to predict the rest."""

_REFUTED = 0.01
"""Goodness of fit below which the data contradict a law."""


def discover(
    t: Float[np.ndarray, " time"] | Sequence,
    y: Float[np.ndarray, " time"] | Sequence,
    *,
    effort: str = "default",
    sources: str | Sequence[str | CandidateSource] = SOURCES,
    candidates: str | Sequence[str | Expression] = (),
    weights: str = "small",
    beams: int | None = None,
    samples: int | None = None,
    operators: str | Sequence[str] | None = None,
    max_symbols: int | None = None,
    zero_at_zero: bool = False,
    known: str | None = None,
    robust: bool = False,
    limits: Sequence[Limits] = (),
    sigma: Any = None,
    named_laws: NamedLaws = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Discovery:
    """Finds laws dy/dt = f(y) behind one series, or behind several that follow one law.

    Args:
      t: times, shape [time], any units; for several series a list of such, or the
        times that they share.
      y: values, shape [time], any units, or a list of such. NaNs, repeated and
        unsorted times are dealt with and noted; long series are thinned for fitting.
      effort: "fast", "default" or "thorough", a name in `EFFORTS`.
      sources: where candidate laws come from: names in `SOURCES`, or objects that
        follow the protocol `CandidateSource`. One needs no list here and below.
      candidates: laws of your own in the units of the data, such as "0.5*y*(1 - y/600)", where
        the fit begins with the constants given, or "r*y*(1 - y/K)"; each is in the result,
        however it fits.
      weights: name or path of the network's weights.
      beams: proposals of the network's beam search per view of the data; by the effort
        if left out. With neither beams nor samples the network is not even loaded.
      samples: laws drawn from the network per view, beside those; likewise.
      operators: that laws may use beside + - * /, such as ("pow", "exp"); all if left out.
      max_symbols: most operators, variables and constants of a law.
      zero_at_zero: whether f(0) must be 0: nothing comes of nothing.
      known: a part of f that is known, such as "-0.1*y", to which the rest is added; or f with
        a gap for the rest, in which it is linear: "0.5*y*(1 - □)". Sources, laws of your own
        and restrictions are of the rest then, and the network, which knows whole laws, is not
        asked.
      robust: whether values far from the law count less (Huber's weights), for data with
        outliers. They are pointed out in any case.
      limits: values of which only a limit is known, such as "<0.1", for each series. Nothing
        is fitted to them, but a law that contradicts them is less probable.
      sigma: known standard deviations of the measurements, in units of y: a number, an array
        [time], for several series a list of such. Laws are then judged by chi-squared
        (`Candidate.goodness_of_fit`), and constants have the errors that follow from sigma.
      named_laws: laws of your own that have names, beside those of the package: the path of a
        table as `selection/named_laws.toml` is one, or a `Catalogue`; they are tried, are as
        probable as those that stand in every textbook, and give candidates their names. With
        "none" there are no named laws, and all are as probable as their operators.
      seed: seed of everything random.
      progress: called with a stage and the share done of it, in [0, 1].

    Returns:
      Ranked candidates in the data's units.

    Raises:
      TrajectoryError: if the series cannot be used.
      ExpressionError: if a law of your own cannot be read, or has no canonical form.
      CatalogueError: if the table of named laws cannot be read.
      FrameError: if what is known cannot be read, or is undefined where there are data.
      DiscoveryError: if no law was found that has a solution near the data.
      ValueError: if an option is not what it should be.
    """
    started = time.monotonic()
    work = work_of(effort, beams, samples)
    own = [OwnLaw.parse(law) if isinstance(law, str) else OwnLaw(law) for law in listed(candidates)]
    said = [names_note(law, VARIABLES) for law in listed(candidates) if isinstance(law, str)]
    allowed = None if operators is None else frozenset(listed(operators))
    restriction = Restriction(allowed, max_symbols, zero_at_zero)
    if known is not None:
        sources = [source for source in listed(sources) if source != "network"]
    asked = sources_named(sources, weights, work, restriction, named_laws)
    if not (asked or own):
        raise ValueError("without beams, samples and other sources there is no law to try")
    trajectories, notes = read_series(t, y, sigma)
    values = np.concatenate([series.y for series in trajectories])
    frame = None if known is None else Frame.of(known, values)

    progress("reading the data", 0.0)
    if limits and len(limits) != len(trajectories):
        raise ValueError(f"there are {len(limits)} limits for {len(trajectories)} series")
    given, more = judged_by_their_errors(Dataset.of(trajectories, limits, frame))
    search = LawSearch(asked, work.refine, own, restriction, robust, seed, progress)
    starts = [float(series.t[0]) for series in trajectories]
    with believing(named_laws) as prior:
        searched = search.run(given, starts)
        lag = ()
        if searched.ranked and not most_probably_none(trajectories):
            first = searched.ranked[0][0]
            lag = lag_note(searched.data, searched.form, first, searched.units, starts)
    ranked = searched.in_given_units()
    if not ranked or ranked[0][0].diverged:
        raise DiscoveryError(
            f"None of the {searched.proposed} proposed laws has a solution near the data; "
            "try a greater effort or another seed."
        )
    given = given if searched.noise is None else given.with_noise(searched.noise)
    trajectories = tuple(
        dataclasses.replace(series, noise=one.noise, sigma=one.sigma)
        for series, one in zip(trajectories, given, strict=True)
    )
    found = _candidates(ranked, given, trajectories, prior.own_laws, searched.factors)
    told = "" if frame is None else frame.note(found[0].expression, given.size)
    notes = (*notes, *filter(None, said), *more, *searched.remarks, *([told] if told else []), *lag)
    notes += diagnose(found, trajectories, lag_known=bool(lag))
    seconds = time.monotonic() - started
    return Discovery(found, trajectories, notes, seconds, searched.tried, tuple(limits))


def work_of(effort: str, beams: int | None, samples: int | None) -> Effort:
    """The effort with what was set by hand.

    Raises:
      ValueError: if there is no such effort, or a number is negative.
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, got {effort!r}")
    work = EFFORTS[effort]
    for name, value in (("beams", beams), ("samples", samples)):
        if value is not None:
            if value < 0:
                raise ValueError(f"{name} must not be negative, got {value}")
            work = dataclasses.replace(work, **{name: value})
    return work


def sources_named(
    sources: str | Sequence[str | CandidateSource],
    weights: str,
    work: Effort,
    restriction: Restriction,
    named_laws: NamedLaws,
) -> list[CandidateSource]:
    """What the names stand for; named laws of the user's own are tried in any case.

    Raises:
      ValueError: if there is no such source.
      CatalogueError: if a file of laws cannot be read.
    """
    known: dict[str, CandidateSource] = {
        "network": NetworkSource(weights, work.beams, work.samples),
        "enumeration": EnumerationSource(work.symbols, work.beyond, restriction),
        "named laws": NamedLawSource(),
        "library": LibrarySource(),
    }
    asked: list[CandidateSource] = []
    for source in (sources := listed(sources)):
        if not isinstance(source, str):
            asked.append(source)
        elif source not in known:
            raise ValueError(f"sources must be among {', '.join(known)}, got {source!r}")
        elif source != "network" or work.beams or work.samples:
            asked.append(known[source])
    if "named laws" not in sources and (own := own_laws(named_laws)).laws:
        asked.append(NamedLawSource(own))
    return asked


def _of_replicates(fit: Fit, data: Dataset, trajectories: Sequence[Trajectory]) -> float:
    """Goodness of fit where series share their times; NaN where they do not."""
    linear = None if fit.diverged else linearized(data, fit)
    times = np.concatenate([series.t for series in trajectories])
    found = None if linear is None else lack_of_fit(linear, times, data.weights)
    return math.nan if found is None else found.probability


def _leave_patterns(fits: Sequence[Fit], data: Dataset) -> bool:
    """Whether even the best laws leave residuals that are alike from one to the next."""
    return all(
        not fit.diverged
        and fit.residual_rms > SYSTEMATIC * data.spread
        and pattern_of(residuals_of(data, fit)).is_systematic
        for fit in fits
    )


def _candidates(
    ranked: Ranked,
    data: Dataset,
    trajectories: Sequence[Trajectory],
    own_laws: tuple[NamedLaw, ...],
    factors: Float[np.ndarray, " observations"] | None,
) -> tuple[Candidate, ...]:
    """The fits with their posterior probability and uncertainty, in the units of the data.

    The goodness of fit is stated where they are judged by the errors of measurement alone, and
    not by factors of a robust fit too.
    """
    held_out = [held_out_error(data, fit) * data.spread for fit, _ in ranked[:_HELD_OUT]]
    held_out += [math.nan] * (len(ranked) - len(held_out))
    goodness = [goodness_of_fit(data, fit) for fit, _ in ranked]
    if data.sigma is None and len(data) > 1:
        goodness[:_HELD_OUT] = [
            _of_replicates(fit, data, trajectories) for fit, _ in ranked[:_HELD_OUT]
        ]
    best = [fit for fit, _ in ranked[:DECIDING]]
    refuted = max(filter(math.isfinite, goodness[: len(best)]), default=1.0) < _REFUTED
    contradicted = refuted or independent_share(best, data) < 1.0 or _leave_patterns(best, data)
    unseen = unseen_probability(best[0].residual_rms / data.spread, contradicted)
    if most_probably_none(trajectories):
        unseen = NO_LAW
    estimated = data.sigma is None or factors is not None
    shares = posterior_probabilities([score for _, score in ranked], unseen)
    return tuple(
        Candidate(
            expression=data.whole(fit.expression),
            y0s=fit.y0s,
            start_times=tuple(float(series.t[0]) for series in trajectories),
            end_times=tuple(float(series.t[-1]) for series in trajectories),
            r2=fit.r2,
            residual_rms=fit.residual_rms,
            score=score,
            log_probability=fit.origin.log_probability,
            origin=str(fit.origin),
            converged=fit.converged,
            probability=share,
            held_out_rms=held_out[place],
            goodness_of_fit=goodness[place] if factors is None else math.nan,
            covariance=_covariance(data, fit, factors) if place < _WITH_UNCERTAINTY else None,
            freedom=freedom_of(data, fit) if estimated else math.inf,
            observed=(data.low, data.high),
            own_laws=own_laws,
        )
        for place, ((fit, score), share) in enumerate(zip(ranked, shares, strict=True))
    )


def _covariance(
    data: Dataset, fit: Fit, factors: Float[np.ndarray, " observations"] | None
) -> Float[np.ndarray, "constants constants"] | None:
    """That of the constants of the whole law; what is known of it has no error."""
    found = covariance(data, fit, factors)
    if found is None or data.frame is None:
        return found
    unknown = data.frame.unknown_constants(fit.expression)
    whole = np.zeros((unknown.size, unknown.size))
    whole[np.ix_(unknown, unknown)] = found
    return whole


__all__ = ["DiscoveryError", "discover"]
