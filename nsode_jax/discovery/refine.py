"""Constants that fit the data: integral matching for all laws, trajectory matching for the best.

A clean-up follows: terms and constants that do not pay for their length are
dropped, exponents near whole numbers become whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from nsode_jax.discovery.integral import (
    INTERPOLATION_FLOOR,
    IntegralForm,
    canonical_drafts,
    draft_law,
    fit_all_integrals,
    integral_score,
)
from nsode_jax.discovery.matching import NO_FIT, ROUGH, match_trajectory, polished_fit
from nsode_jax.discovery.rank import (
    Fit,
    best_possible_score,
    residual_floor,
    score,
    scores,
)
from nsode_jax.discovery.variants import rounded_laws, shortened_laws, with_coefficients
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, Prefix

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of the work done, in [0, 1]."""

SLACK = 30.0
"""Rough fits are estimates: laws may score this much worse and still be tried."""


NEARLY_EXACT = 1 - 1e-6
"""R2 of a rough fit above which the law may be exact."""


def refine(
    trajectory: Trajectory,
    proposals: Sequence[Expression],
    *,
    seed: int = 0,
    matched: int = 24,
    polished: int = 8,
    integrated: int = 100,
    seconds: float = 40.0,
    progress: Progress | None = None,
) -> list[Fit]:
    """Fits the constants of proposed laws.

    Args:
      trajectory: the data, any units; a few hundred points at most.
      proposals: canonical laws in the data's units, most likely first. Several
        with one skeleton serve as starting points for it. Each is also tried
        with a coefficient before every term.
      seed: seed of the restarts.
      matched: most laws that get stage 2, with a rough tolerance.
      polished: how many of them are then fitted until nothing changes.
      integrated: how many laws are integrated and returned at all.
      seconds: stage 2 and the clean-up stop starting new work after so much CPU
        time of this thread (so that a busy machine does not change the result).
        Far above what is usually needed; a guard, not a tuning knob.
      progress: told what is going on.

    Returns:
      Fits in no particular order, several per skeleton perhaps; see `rank`. Laws
      that are undefined along the data are left out.
    """
    deadline = time.thread_time() + seconds
    report = progress or (lambda message, share: None)
    rng = np.random.default_rng(seed)
    form = IntegralForm.from_trajectory(trajectory)

    report("fitting constants", 0.0)
    sources = list(range(len(proposals)))
    known = {proposal.skeleton.unsigned_key for proposal in proposals}
    laws = list(proposals)
    for i, proposal in enumerate(proposals):
        general = with_coefficients(proposal)
        if general.skeleton.unsigned_key not in known:
            known.add(general.skeleton.unsigned_key)
            laws.append(general)
            sources.append(i)
    drafts = fit_all_integrals(
        form, laws, sources, rng, lambda share: report("fitting constants", share)
    )
    chosen = canonical_drafts(drafts, integrated)
    margin = _margin(trajectory)
    fits: list[Fit] = []
    best = math.inf

    def may_win(expression: Expression) -> bool:
        return time.thread_time() < deadline and best_possible_score(expression, trajectory) < best

    for i, draft in enumerate(chosen):
        report("matching trajectories", i / max(len(chosen), 1))
        hopeful = i < matched and draft.score < chosen[0].score + margin
        effort = ROUGH if hopeful and may_win(draft.expression) else NO_FIT
        fit = match_trajectory(trajectory, draft.expression, form.y0, draft.source, effort=effort)
        if effort == ROUGH and fit.r2 > NEARLY_EXACT and time.thread_time() < deadline:
            # Clean data: once the true law is exact, hardly another may win.
            fit = polished_fit(trajectory, fit)
        fits.append(fit)
        best = min(best, *scores([fit], trajectory))
    values = scores(fits, trajectory)
    for i in sorted(range(len(fits)), key=values.__getitem__)[:polished]:
        if not fits[i].diverged and may_win(fits[i].expression):
            fits[i] = polished_fit(trajectory, fits[i])
    report("simplifying", 0.0)
    fits += _clean_up(trajectory, form, fits, deadline)
    report("simplifying", 1.0)
    return fits


def _margin(trajectory: Trajectory) -> float:
    """A law whose score is so much above the best cannot be made to win.

    Stage 1 and rough fits misjudge residuals, but hardly by a factor of two.
    """
    return SLACK + len(trajectory) * math.log(4.0)


def _clean_up(
    trajectory: Trajectory,
    form: IntegralForm,
    fits: Sequence[Fit],
    deadline: float,
    *,
    rounds: int = 3,
    parents: int = 6,
    children: int = 8,
) -> list[Fit]:
    """Simpler relatives of the best laws that are worth their loss of fit.

    Each round takes the best laws, shortens each by one step or rounds one
    constant, refits, and keeps what scores no worse than its parent.
    """
    found: list[Fit] = []
    floor = max(residual_floor(trajectory.y), INTERPOLATION_FLOOR)
    tried = {fit.expression.skeleton.unsigned_key for fit in fits}
    pool = list(fits)
    expanded: set[Prefix] = set()
    for _ in range(rounds):
        values = scores(pool, trajectory)
        order = sorted(range(len(pool)), key=values.__getitem__)[:parents]
        new: list[Fit] = []
        for i in order:
            parent = pool[i]
            out_of_reach = values[i] > values[order[0]] + _margin(trajectory)
            if parent.diverged or out_of_reach or parent.expression.prefix in expanded:
                continue
            expanded.add(parent.expression.prefix)
            for rounded in rounded_laws(parent.expression):
                if time.thread_time() > deadline:
                    return found
                if best_possible_score(rounded, trajectory) > values[order[0]]:
                    continue
                fit = _match_child(trajectory, rounded, parent, values[i])
                if scores([fit], trajectory)[0] <= values[i]:
                    new.append(fit)
            drafts = []
            for shorter in shortened_laws(parent.expression):
                key = shorter.skeleton.unsigned_key
                if key not in tried:
                    tried.add(key)
                    constants = np.array(shorter.constants)
                    drafts.append(draft_law(form, shorter.skeleton, constants, parent.source))
            # Stage 1 against stage 1: interpolation limits what it can resolve.
            limit = integral_score(form, parent.expression, floor) + SLACK
            drafts = [
                d
                for d in sorted(drafts, key=lambda d: d.score)[:children]
                if score(d.expression, d.error, len(trajectory), floor) <= limit
            ]
            for draft in canonical_drafts(drafts, children):
                if time.thread_time() > deadline:
                    return found
                if best_possible_score(draft.expression, trajectory) > values[order[0]]:
                    continue
                fit = _match_child(trajectory, draft.expression, parent, values[i])
                if scores([fit], trajectory)[0] <= values[i]:
                    new.append(fit)
        if not new:
            break
        found += new
        pool += new
    return found


def _match_child(
    trajectory: Trajectory, expression: Expression, parent: Fit, parent_score: float
) -> Fit:
    """Stage 2 of a simpler law, in full only where it can reach its parent's score."""
    fit = match_trajectory(trajectory, expression, parent.y0, parent.source, effort=ROUGH)
    # On clean data a rough fit is far from the floor, though the law may be exact.
    reach = math.inf if fit.r2 > 1 - 1e-9 else SLACK
    if not fit.diverged and scores([fit], trajectory)[0] <= parent_score + reach:
        fit = polished_fit(trajectory, fit)
    return fit
