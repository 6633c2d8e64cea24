"""Constants that fit the data, and laws near the proposals that do so better.

Integral matching for all laws, an evolutionary search around the best, trajectory
matching for the best of these. A clean-up follows: terms and constants that do not
pay for their length are dropped, exponents near whole numbers become whole.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from nsode_jax.fitting.integral import IntegralForm
from nsode_jax.fitting.trajectory_fitting import NO_FIT, ROUGH, match_trajectories, polished_fit
from nsode_jax.selection.rank import Fit, residual_floor, score, scores
from nsode_jax.search.evolution import Draft, Pool, draft_laws, evolve, restart
from nsode_jax.search.variants import (
    factored_law,
    rounded_laws,
    shortened_laws,
    with_coefficients,
)
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, Prefix

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of the work done, in [0, 1]."""

SLACK = 30.0
"""Rough fits are estimates: laws may score this much worse and still be tried."""


@dataclasses.dataclass(frozen=True)
class RefineConfig:
    """How much work goes into refinement.

    Attributes:
      generations: of the evolutionary search; 0 for none.
      children: new laws per generation.
      matched: most laws whose solution is fitted to the data, roughly.
      polished: how many of them are then fitted until nothing changes.
      returned: how many laws are integrated and returned at all.
      seconds: no new work is started after so much CPU time of this thread (so that
        a busy machine does not change the result). Far above what is usually
        needed; a guard, not a tuning knob.
    """

    generations: int = 7
    children: int = 200
    matched: int = 60
    polished: int = 10
    returned: int = 100
    seconds: float = 60.0


def refine(
    trajectories: Sequence[Trajectory],
    proposals: Sequence[Expression],
    *,
    seed: int = 0,
    config: RefineConfig | None = None,
    form: IntegralForm | None = None,
    progress: Progress | None = None,
) -> list[Fit]:
    """Fits the constants of proposed laws and of laws near them.

    Args:
      trajectories: the data, any units; a few hundred points each at most. All
        follow one law.
      proposals: laws in the data's units. Several with one skeleton serve as
        starting points for it. The best are also tried with a coefficient before
        every term.
      seed: seed of the search.
      config: how much work to do.
      form: of the trajectories, if it is known already.
      progress: told what is going on.

    Returns:
      Fits in no particular order, several per skeleton perhaps; see `rank`. Laws
      that are undefined along the data are left out.
    """
    config = config or RefineConfig()
    deadline = time.thread_time() + config.seconds
    report = progress or (lambda message, share: None)
    rng = np.random.default_rng(seed)
    form = form or IntegralForm.from_trajectories(trajectories)

    report("fitting constants", 0.0)
    pool = Pool(form)
    pool.add(draft_laws(form, proposals, range(len(proposals))))
    best = pool.best(config.children)
    relatives = [with_coefficients(draft.expression) for draft in best]
    pool.add(draft_laws(form, relatives, [draft.source for draft in best]))
    restart(form, pool, rng, 60)
    evolve(
        form,
        pool,
        rng,
        generations=config.generations,
        children=config.children,
        deadline=deadline,
        report=lambda share: report("searching near the best", share),
    )
    restart(form, pool, rng, 60)

    drafts = pool.best(config.returned)
    fits = _match_all(trajectories, form, drafts, config, deadline, report)
    report("simplifying", 0.0)
    fits += _clean_up(trajectories, form, fits, deadline)
    report("simplifying", 1.0)
    return fits


def _match_all(
    trajectories: Sequence[Trajectory],
    form: IntegralForm,
    drafts: Sequence[Draft],
    config: RefineConfig,
    deadline: float,
    report: Progress,
) -> list[Fit]:
    """Trajectory matching: roughly for many, in full for the best of them."""
    fits = []
    margin = _margin(form)
    for i, draft in enumerate(drafts):
        report("matching trajectories", i / max(len(drafts), 1))
        hopeful = i < config.matched and draft.score < drafts[0].score + margin
        effort = ROUGH if hopeful and time.thread_time() < deadline else NO_FIT
        fits.append(
            match_trajectories(
                trajectories, draft.expression, form.y0s, draft.source, effort=effort
            )
        )
    values = scores(fits, trajectories)
    for i in sorted(range(len(fits)), key=values.__getitem__)[: config.polished]:
        if not fits[i].diverged and time.thread_time() < deadline:
            fits[i] = polished_fit(trajectories, fits[i])
    return fits


def _margin(form: IntegralForm) -> float:
    """A law whose score is so much above the best cannot be made to win.

    Stage 1 and rough fits misjudge residuals, but hardly by a factor of two.
    """
    return SLACK + form.count * math.log(4.0)


def _clean_up(
    trajectories: Sequence[Trajectory],
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
    floor = residual_floor(trajectories)
    tried = {fit.expression.skeleton.unsigned_key for fit in fits}
    pool = list(fits)
    expanded: set[Prefix] = set()
    for _ in range(rounds):
        values = scores(pool, trajectories)
        order = sorted(range(len(pool)), key=values.__getitem__)[:parents]
        new: list[Fit] = []
        for i in order:
            parent = pool[i]
            out_of_reach = values[i] > values[order[0]] + _margin(form)
            if parent.diverged or out_of_reach or parent.expression.prefix in expanded:
                continue
            expanded.add(parent.expression.prefix)
            relatives = list(rounded_laws(parent.expression))
            factored = factored_law(parent.expression)
            relatives += [] if factored is None else [factored]
            all_shorter = list(shortened_laws(parent.expression))
            shorter = [law for law in all_shorter if law.skeleton.unsigned_key not in tried]
            tried |= {law.skeleton.unsigned_key for law in shorter}
            drafts = draft_laws(form, shorter, [parent.source] * len(shorter))
            drafts.sort(key=lambda draft: draft.score)
            relatives += [draft.expression for draft in drafts[:children]]
            # What hardly mattered is dropped as it stands, also where the rest has been
            # tried: the integral form may have misjudged it.
            relatives += [
                law for law in all_shorter if _hardly_differs(law, parent.expression, form)
            ]
            for law in relatives:
                if time.thread_time() > deadline:
                    return found
                if score(law, 0.0, form.count, floor) > values[order[0]]:
                    continue  # Not even an exact fit would win.
                fit = _match_child(trajectories, law, parent, values[i])
                if scores([fit], trajectories)[0] <= values[i]:
                    new.append(fit)
        if not new:
            break
        found += new
        pool += new
    return found


def _hardly_differs(law: Expression, parent: Expression, form: IntegralForm) -> bool:
    """Whether two laws give nearly the same rates over the data."""
    rates = parent.evaluate(form.grid)
    with np.errstate(all="ignore"):
        return bool(np.abs(law.evaluate(form.grid) - rates).max() <= 0.01 * np.abs(rates).max())


def _match_child(
    trajectories: Sequence[Trajectory], expression: Expression, parent: Fit, parent_score: float
) -> Fit:
    """Stage 2 of a simpler law, in full only where it can reach its parent's score."""
    fit = match_trajectories(trajectories, expression, parent.y0s, parent.source, effort=ROUGH)
    # On clean data a rough fit is far from the floor, though the law may be exact.
    reach = math.inf if fit.r2 > 1 - 1e-9 else SLACK
    if not fit.diverged and scores([fit], trajectories)[0] <= parent_score + reach:
        fit = polished_fit(trajectories, fit)
    return fit
