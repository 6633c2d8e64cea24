"""From several measured quantities to coupled laws: smooth, search each, combine, fit together."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsode_jax.discovery.pipeline import DiscoveryError
from nsode_jax.discovery.time_origin import (
    at_given_times,
    counted_from,
    in_given_times,
    origin_of,
)
from nsode_jax.discovery.weighting import weighted_system, with_expected_noise
from nsode_jax.dynamics.system import TIME
from nsode_jax.fitting.components import component_forms
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.fitting.shooting import SystemFit, uncertainty
from nsode_jax.observed.observations import Observations
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.runs import read_runs
from nsode_jax.reporting.system_discovery import SystemDiscovery
from nsode_jax.results.diagnostics import POOR_R2, poor_fit
from nsode_jax.results.system_result import SystemCandidate
from nsode_jax.search.combine import CombineConfig, SystemSearch
from nsode_jax.search.curves import with_serving_curves
from nsode_jax.search.equations import draft_equations, share_terms
from nsode_jax.search.named_systems import named_equations
from nsode_jax.search.own_systems import OwnSystem
from nsode_jax.search.periodogram import driven_oscillators
from nsode_jax.search.population import Draft
from nsode_jax.search.sources import Restriction
from nsode_jax.search.sparse import SparseConfig
from nsode_jax.selection.named_formula import names_note
from nsode_jax.selection.probabilities import posterior_probabilities
from nsode_jax.selection.score import DECIDING
from nsode_jax.selection.system_score import unseen_probability
from nsode_jax.system.settings import listed

_RETURNED = 30
_WITH_UNCERTAINTY = 10
_PASSES = 4
"""Most searches of noisy data."""

_NOISY = 3e-3
"""Of the spread: noise from which on smooth curves through the data may mislead."""

_CARRIED = 5
"""So many systems, the best, are fitted again when it is known how precise values are."""


@dataclasses.dataclass(frozen=True)
class SystemEffort:
    """How much work the discovery of a system takes."""

    sparse: SparseConfig
    combine: CombineConfig


SYSTEM_EFFORTS = {
    "fast": SystemEffort(
        SparseConfig(width=12, exchanged=5),
        CombineConfig(drafts=8, combinations=20, named=5, fitted=4, rounds=3, staged=3),
    ),
    "default": SystemEffort(SparseConfig(), CombineConfig()),
    "thorough": SystemEffort(
        SparseConfig(width=60, most_terms=9, exchanged=30),
        CombineConfig(drafts=40, combinations=150, fitted=20, rounds=8, staged=40),
    ),
}


def discover_system(
    t: Any,
    y: Any,
    *,
    inputs: Any = None,
    explicit_time: bool = False,
    order: int = 1,
    names: str | Sequence[str] | None = None,
    input_names: str | Sequence[str] | None = None,
    candidates: str | Sequence[str] = (),
    operators: str | Sequence[str] | None = None,
    max_symbols: int | None = None,
    effort: str = "default",
    progress: Progress = silent,
) -> SystemDiscovery:
    """Finds dy_k/dt = f_k(y, u, t) behind one run of several quantities, or behind several runs.

    Args:
      t: times, shape [time]; for several runs a list of such, or the times they share.
      y: values, an array [time, quantities] or a DataFrame with a column for each; a list
        of such for several runs. Rows with missing values are dropped.
      inputs: measured inputs likewise; they count in rows that lack a quantity too. What
        changes in steps is held from its row until the next; else it is a smooth curve.
      explicit_time: whether laws may depend on the time.
      order: 2 where positions are measured and velocities are not: d²y/dt² = f(y, v).
      names, input_names: of the columns, where they are no DataFrame's.
      candidates: systems of your own, an equation for each quantity with ; between them,
        such as "a*x - b*x*y; c*x*y - d*y". Whatever is neither a variable nor a function is
        a constant, which is fitted; numbers are where constants begin.
      operators: that laws may use beside + - * /, such as ("pow", "exp"); all if left out.
      max_symbols: most operators, variables and constants of each law.
      effort: "fast", "default" or "thorough".
      progress: called with a stage and the share done of it.

    Returns:
      Ranked systems in the data's units.

    Raises:
      TrajectoryError: if the data cannot be used.
      DiscoveryError: if no system was found that has a solution near the data.
      ValueError: if an option is not what it should be.
    """
    started = time.monotonic()
    if effort not in SYSTEM_EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(SYSTEM_EFFORTS)}, got {effort!r}")
    work = SYSTEM_EFFORTS[effort]
    restriction = Restriction(
        None if operators is None else frozenset(listed(operators)), max_symbols
    )
    progress("reading the data", 0.0)
    data, notes = read_runs(
        t,
        y,
        inputs,
        names=None if names is None else listed(names),
        input_names=None if input_names is None else listed(input_names),
        explicit_time=explicit_time,
        order=order,
    )
    own = [OwnSystem.parse(text, data.system) for text in listed(candidates)]
    said = [names_note(text, data.system.variables) for text in listed(candidates)]
    notes += filter(None, said)
    # Laws of one's own know the time as it is.
    timed = any(TIME in law.prefix for each in own for law in each.laws)
    origin = 0.0 if timed else origin_of(data)
    searched, ranked, remarks = _searched(
        counted_from(data, origin), own, work, restriction, progress
    )
    if not ranked:
        raise DiscoveryError(
            "No system of laws was found that has a solution near the data; try a greater effort, "
            "and add quantities that act on these."
        )
    progress("judging systems", 0.0)
    # What was asked for is shown, however it ranks.
    more = [one for one in ranked[_RETURNED:] if one[0].asked_for]
    found = as_candidates(searched, [*ranked[:_RETURNED], *more])
    notes += [*remarks, *_remarks(found[0])]
    if origin:
        found = tuple(in_given_times(candidate, origin) for candidate in found)
    runs = at_given_times(searched, data).runs
    return SystemDiscovery(found, runs, tuple(notes), time.monotonic() - started)


def _searched(
    data: Observations,
    own: Sequence[OwnSystem],
    work: SystemEffort,
    restriction: Restriction,
    progress: Progress,
) -> tuple[Observations, list[tuple[SystemFit, float]], list[str]]:
    """Systems that have solutions, best first; the data with the noise they show; notes.

    Equations are searched along smooth curves through the data and, where there is noise, along
    the solution of the best system again, until no other comes first.
    """
    expected = with_expected_noise(data)
    if _is_noisy(expected):
        expected = with_serving_curves(expected)
    search = SystemSearch(expected, work.combine, restriction)
    tried, notes, weighted = list(own), [], False
    ranked, best, unsolved = [], None, set()
    for left in reversed(range(_PASSES)):
        forms = component_forms(search.data, best)
        search.add(_drafts(search.data, forms, work, restriction, progress))
        search.add([named_equations(form, data.system, restriction) for form in forms])
        if best is None and data.system.explicit_time and data.system.order == 2:
            search.try_own([driven_oscillators(form, data.system, data.span) for form in forms])
        if best is not None and search.foremost(best):
            break
        if tried:
            progress("fitting whole systems", 0.0)
        unsolved = {each.text for each in tried if not search.try_own(each.drafts(forms))}
        ranked = search.run(progress)
        if not ranked or not left:
            break
        before, best = best, ranked[0][0]
        seen = None if weighted else weighted_system(search.data, best, data)
        if seen is not None:
            notes, weighted = [*notes, *seen[1]], bool(seen[1])
        if seen is not None and seen[0] is not search.data:
            search, best = SystemSearch(seen[0], work.combine, restriction), None
            tried += [OwnSystem.of(fit.laws, fit.origins) for fit, _ in ranked[:_CARRIED]]
        elif not _is_noisy(search.data) or (before is not None and best.key == before.key):
            break
    for each in own:
        if each.text in unsolved:
            notes.append(f"Your laws {each.text!r} have no solution near the data.")
    return search.data, ranked, notes


def _is_noisy(data: Observations) -> bool:
    """Whether smooth curves through the data may mislead."""
    return bool((data.noise > _NOISY * data.spread).any())


def _drafts(
    data: Observations,
    forms: Sequence[Regression],
    work: SystemEffort,
    restriction: Restriction,
    progress: Progress,
) -> Sequence[Sequence[Draft]]:
    """Candidates for each equation."""
    system, count, drafts = data.system, work.combine.drafts, []
    for place, (name, form) in enumerate(zip(system.observed, forms, strict=True)):
        progress(f"searching the equation of {name}", place / len(forms))
        drafts.append(draft_equations(form, system, data.span, count, work.sparse, restriction))
    if len(drafts) == 1:
        return drafts
    return share_terms(forms, system, drafts, count, work.sparse, restriction)


def as_candidates(
    data: Observations, ranked: Sequence[tuple[SystemFit, float]]
) -> tuple[SystemCandidate, ...]:
    """Fits with their scores, best first, as a user sees them."""
    unseen = unseen_probability(data, [fit for fit, _ in ranked[:DECIDING]])
    shares = posterior_probabilities([score for _, score in ranked], unseen)
    candidates = []
    for place, ((fit, score), share) in enumerate(zip(ranked, shares, strict=True)):
        left, spread = fit.residuals**2, data.spread**2
        known = uncertainty(data, fit) if place < _WITH_UNCERTAINTY else None
        candidates.append(
            SystemCandidate(
                system=data.system,
                laws=fit.laws,
                states=fit.states,
                start_times=tuple(float(run.t[0]) for run in data.runs),
                end_times=tuple(float(run.t[-1]) for run in data.runs),
                r2=1 - float(np.mean(left / spread)),
                r2s=tuple(float(1 - r) for r in left / spread),
                residuals=tuple(float(r) for r in fit.residuals),
                score=score,
                probability=share,
                covariance=None if known is None else known.covariance,
                freedom=math.inf if known is None else known.freedom,
                segments=fit.segments,
                shared=tuple((tie.place, tie.partner) for tie in fit.ties),
                converged=fit.converged,
                asked_for=fit.asked_for,
            )
        )
    return tuple(candidates)


def _remarks(best: SystemCandidate) -> list[str]:
    notes = [] if best.name is None else [f"The equations have the form of {best.name}."]
    poor = {n: r2 for n, r2 in zip(best.system.observed, best.r2s) if not r2 >= POOR_R2}
    if len(poor) == len(best.r2s):
        notes.append(poor_fit(best.r2, "system", "system of such laws"))
    else:
        notes += [
            f"Only {max(r2, 0.0):.0%} of the variance of {name} is explained: the rest is noise, "
            "or the equations miss something."
            for name, r2 in poor.items()
        ]
    if best.segments > 1:
        notes.append(
            "No solution follows the data all the way; they were fitted in "
            f"{best.segments} pieces, and R2 is that of the pieces."
        )
    if best.shared:
        notes.append(
            "A term that two equations have with opposite signs was given one constant: what "
            "leaves one quantity enters another."
        )
    return notes
