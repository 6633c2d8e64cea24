"""Constants that fit the data, and laws near the proposals that do so better.

The integral form for all laws, an evolutionary search around the best, trajectory
fitting for the best of these. A clean-up follows: terms and constants that do not
pay for their length are dropped, exponents near whole numbers become whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from nsode_jax.expressions.constants import is_plain, structure
from nsode_jax.expressions.expression import Expression, ExpressionError, Prefix
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.guesses import InitialGuess
from nsode_jax.fitting.least_squares import fit_laws
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.fitting.trajectory_fitting import NO_FIT, ROUGH, fit_trajectories, polished_fit
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.search.effort import RefineConfig
from nsode_jax.search.evolution import evolve, restart
from nsode_jax.search.population import Population, draft_laws, identity
from nsode_jax.search.sources import UNRESTRICTED, Proposal, Restriction
from nsode_jax.search.variants import (
    factored_law,
    plain_law,
    rounded_laws,
    shortened_laws,
    with_coefficients,
    without_negligible,
)
from nsode_jax.selection.score import relative_residual, residual_floor, score, scores

_UNNOTICED = 0.01
"""A change of f by this share of the residual cannot be seen."""

_EQUAL = 0.5
"""Scores that differ by less say nothing."""

SLACK = 30.0
"""Rough fits are estimates: laws may score this much worse and still be tried."""


def refine(
    data: Dataset,
    form: Regression,
    proposals: Sequence[Proposal],
    *,
    seed: int = 0,
    config: RefineConfig | None = None,
    restriction: Restriction = UNRESTRICTED,
    progress: Progress = silent,
) -> list[Fit]:
    """Fits the constants of proposed laws and of laws near them.

    Args:
      data: the series, any units; a few hundred points each at most. All follow one
        law.
      form: the same, prepared for fitting.
      proposals: laws in the data's units. Several with one skeleton serve as
        initial guesses for it. The best are also tried with a coefficient before
        every term.
      seed: seed of the search.
      config: how much work to do.
      restriction: which laws are considered.
      progress: told what is going on.

    Returns:
      Fits in no particular order, several per skeleton perhaps; see `rank`. Laws
      that are undefined along the data are left out.
    """
    config = config or RefineConfig()
    rng = np.random.default_rng(seed)

    progress("fitting constants", 0.0)
    population = Population(form, restriction)
    population.add(draft_laws(form, proposals))
    relatives = [
        Proposal(with_coefficients(draft.expression), draft.origin.descendant())
        for draft in population.best(config.children)
    ]
    population.add(draft_laws(form, relatives))
    restart(form, population, rng, 60)
    evolve(
        form,
        population,
        rng,
        generations=config.generations,
        children=config.children,
        progress=progress,
    )
    restart(form, population, rng, 60)

    fits = _fit_all(data, form, population, config, progress)
    progress("simplifying", 0.0)
    fits += _simplify(data, form, fits)
    progress("simplifying", 1.0)
    fits = [
        _without_negligible(data, form, fit) for fit in _polished(data, form, fits, config.polished)
    ]
    return fits + (_plain(data, form, fits, config.polished) if form.exact else [])


def _plain(data: Dataset, form: Regression, fits: Sequence[Fit], number: int) -> list[Fit]:
    """The best laws with round numbers, where data of many digits do not tell the difference."""
    values = scores(fits, data, form)
    plain = []
    for i in sorted(range(len(fits)), key=values.__getitem__)[:number]:
        law = plain_law(fits[i].expression)
        if law != fits[i].expression and not fits[i].diverged:
            plain.append(_judged_as_it_stands(data, law, fits[i]))
    return plain


def _judged_as_it_stands(data: Dataset, law: Expression, fit: Fit) -> Fit:
    """A law in place of that of a fit, from which it hardly differs, with nothing moved."""
    judged = fit_trajectories(data, law, fit.y0s, fit.origin, NO_FIT)
    return dataclasses.replace(judged, converged=fit.converged)


def _without_negligible(data: Dataset, form: Regression, fit: Fit) -> Fit:
    """The fit without terms that change f by less than the data can show."""
    if fit.diverged:
        return fit
    shown = max(residual_floor(data, form), _UNNOTICED * relative_residual(fit, data, form))
    law = without_negligible(fit.expression, form.nodes, shown)
    if law == fit.expression:
        return fit
    # A term that is nothing at the nodes may be a wall just beyond them, which solutions meet.
    shorter = _judged_as_it_stands(data, law, fit)
    largest = max((1 + _UNNOTICED) * fit.residual_rms, shown * data.spread)
    return shorter if shorter.residual_rms <= largest else fit


def fit_asked_for(data: Dataset, form: Regression, starts: Sequence[Proposal]) -> Fit:
    """The best fit of one law, however bad: from each of its starts, and by the form."""
    laws = [start.expression for start in starts]
    drafts = (draft.expression for draft in draft_laws(form, starts))
    # Exponents that are rounded make another law of one that has them free.
    asked = {structure(law) for law in laws}
    laws += [law for law in drafts if structure(law) in asked]
    fits = [fit_trajectories(data, law, form.y0s, starts[0].origin) for law in laws]
    values = scores(fits, data, form)
    return fits[values.index(min(values))]


def _fit_all(
    data: Dataset,
    form: Regression,
    population: Population,
    config: RefineConfig,
    progress: Progress,
) -> list[Fit]:
    """Trajectory fitting: roughly for many, in full for the best of them.

    Laws that no simpler one fits as well as are always among the many: where the smooth
    curve follows what no law should, long laws have the better scores in its integral form.
    """
    fits = []
    margin = _margin(form)
    front = population.front()
    drafts = population.best(config.returned)
    drafts += [draft for draft in front if draft not in drafts]
    for i, draft in enumerate(drafts):
        progress("fitting trajectories", i / max(len(drafts), 1))
        hopeful = draft in front or (i < config.matched and draft.score < drafts[0].score + margin)
        stopping = ROUGH if hopeful and not form.exact else NO_FIT
        fits.append(fit_trajectories(data, draft.expression, form.y0s, draft.origin, stopping))
    return _polished(data, form, fits, config.polished)


def _polished(data: Dataset, form: Regression, fits: Sequence[Fit], number: int) -> list[Fit]:
    """The fits, so many of the best in full if they were not."""
    fits = list(fits)
    values = scores(fits, data, form)
    for i in sorted(range(len(fits)), key=values.__getitem__)[:number]:
        if not (fits[i].diverged or fits[i].converged):
            fits[i] = _better(fits[i], polished_fit(data, fits[i]), data, form)
    return fits


def _better(one: Fit, other: Fit, data: Dataset, form: Regression) -> Fit:
    """The fit with the better score; the second, which was polished, if they are equal."""
    first, second = scores([one, other], data, form)
    return one if first < second - _EQUAL else other


def _margin(form: Regression) -> float:
    """A law whose score is so much above the best cannot be made to win.

    Stage 1 and rough fits misjudge residuals, but hardly by a factor of two.
    """
    return SLACK + form.count * math.log(4.0)


def _simplify(
    data: Dataset,
    form: Regression,
    fits: Sequence[Fit],
    *,
    rounds: int = 3,
    parents: int = 6,
    shortened: int = 8,
) -> list[Fit]:
    """Simpler relatives of the best laws that are worth their loss of fit.

    Each round takes the best laws, shortens each by one step or rounds one
    constant, refits, and keeps what scores no worse than its parent.
    """
    found: list[Fit] = []
    floor = residual_floor(data, form)
    tried = {identity(fit.expression, form) for fit in fits}
    pool = list(fits)
    expanded: set[Prefix] = set()
    for _ in range(rounds):
        values = scores(pool, data, form)
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
            shorter = [law for law in all_shorter if identity(law, form) not in tried]
            tried |= {identity(law, form) for law in shorter}
            drafts = draft_laws(
                form, [Proposal(law, parent.origin.descendant()) for law in shorter]
            )
            drafts.sort(key=lambda draft: draft.score)
            relatives += [draft.expression for draft in drafts[:shortened]]
            # What hardly mattered is dropped as it stands, also where the rest has been
            # tried: the integral form may have misjudged it.
            relatives += [
                law for law in all_shorter if _hardly_differs(law, parent.expression, form)
            ]
            # Not even an exact fit of the others would win.
            relatives = [
                law for law in relatives if score(law, 0.0, form, floor) <= values[order[0]]
            ]
            if form.exact:
                children = _fit_exactly(data, form, relatives, parent)
            else:
                children = [_fit_child(data, form, law, parent, values[i]) for law in relatives]
            worth = zip(children, scores(children, data, form), strict=True)
            new += [fit for fit, value in worth if value <= values[i]]
        if not new:
            break
        found += new
        pool += new
    return found


def _hardly_differs(law: Expression, parent: Expression, form: Regression) -> bool:
    """Whether two laws give nearly the same rates over the data."""
    rates = parent.evaluate(form.nodes)
    with np.errstate(all="ignore"):
        return bool(np.abs(law.evaluate(form.nodes) - rates).max() <= 0.01 * np.abs(rates).max())


def _fit_exactly(
    data: Dataset, form: Regression, laws: Sequence[Expression], parent: Fit
) -> list[Fit]:
    """Simpler laws fitted to an exact form; plain numbers stay as they are."""
    guesses = [
        InitialGuess(law, np.array([not is_plain(c) for c in law.constants], bool)) for law in laws
    ]
    fits = []
    for law, values in zip(laws, fit_laws(form, guesses)[0], strict=True):
        with contextlib.suppress(ExpressionError):  # A constant left the range of numbers.
            law = law.skeleton.with_constants(values)
        fits.append(fit_trajectories(data, law, parent.y0s, parent.origin.descendant(), NO_FIT))
    return fits


def _fit_child(
    data: Dataset, form: Regression, expression: Expression, parent: Fit, parent_score: float
) -> Fit:
    """The trajectory fit of a simpler law, in full only where it can reach its parent's score."""
    fit = fit_trajectories(data, expression, parent.y0s, parent.origin.descendant(), ROUGH)
    # On clean data a rough fit is far from the floor, though the law may be exact.
    reach = math.inf if fit.r2 > 1 - 1e-9 else SLACK
    if not fit.diverged and scores([fit], data, form)[0] <= parent_score + reach:
        fit = _better(fit, polished_fit(data, fit), data, form)
    return fit
