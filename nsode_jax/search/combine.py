"""From candidates for each equation to systems: the best combinations, fitted as a whole.

Combinations are tried in the order of the sum of their equations' scores; the most
promising are simulated and fitted, and then changed in one equation at a time as long as that
helps. A term that two equations have with opposite signs is tried with one constant.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.prefix import joined, times
from nsode_jax.expressions.summands import summands
from nsode_jax.fitting.progress import Progress
from nsode_jax.fitting.shooting import (
    SystemFit,
    covariance,
    fit_system,
    refitted,
)
from nsode_jax.fitting.stages import fit_in_stages
from nsode_jax.fitting.system_problem import laws_with_constants
from nsode_jax.fitting.trajectory_fitting import FULL, NO_FIT, ROUGH
from nsode_jax.observed.observations import Observations
from nsode_jax.residuals.term_gains import gains
from nsode_jax.search.equations import PRECISIONS, products, score_at
from nsode_jax.search.population import Draft
from nsode_jax.search.sources import UNRESTRICTED, Restriction
from nsode_jax.search.terms import sum_of
from nsode_jax.search.variants import canonical_or_none
from nsode_jax.selection.named_systems import named_combinations
from nsode_jax.selection.system_score import shared_terms, system_score

_OF_A_PRECISION = 5
"""For each precision that the regressions may have a fifth as many combinations are tried."""

_PROMISING = 3
"""Times as many systems as are fitted fully, the best, are fitted on before these are chosen."""

_CHANGED = 2
"""So many systems, the best, are changed in every round."""

_MOST_OWN = 16
"""Combinations of constants that a system of the user's own is fitted from."""

_NEAR_ONE, _WITHIN = 0.25, 2.5
"""Constants that may be 1: no farther from it than so much, and so many standard errors."""

_LONGER, _TELLING = 3, 6.0
"""Terms more that are tried, and by how much residuals must fall for it, in squares of noise."""

_ADDED = 0.01
"""Of the rate of an equation: a term that is added, to begin with."""

_HOPELESS = 0.3
"""Relative residual of a solution from which no single shooting recovers by itself."""

_RESERVED = 4
"""One in so many fits in stages is for systems that have a name, and one for what is changed."""


@dataclasses.dataclass(frozen=True)
class CombineConfig:
    """How many systems are fitted.

    Attributes:
      drafts: candidates of each equation.
      combinations: systems that are simulated and fitted roughly.
      named: so many more, at most, that have a name.
      fitted: of these the best, fitted fully.
      rounds: of changing the best in one equation.
      staged: most fits in stages, which take long, of those that need them.
    """

    drafts: int = 20
    combinations: int = 100
    named: int = 20
    fitted: int = 8
    rounds: int = 3
    staged: int = 8


class SystemSearch:
    """Fitted systems, the best fit of each combination."""

    def __init__(
        self,
        data: Observations,
        config: CombineConfig,
        restriction: Restriction = UNRESTRICTED,
    ):
        self.data, self.config, self.restriction = data, config, restriction
        self.drafts: list[list[Draft]] = [[] for _ in data.system.observed]
        self.fits: dict[tuple[str, ...], SystemFit] = {}
        self.scores: dict[tuple[str, ...], float] = {}
        self.full: set[tuple[str, ...]] = set()
        self.staged = 0

    def add(self, drafts: Sequence[Sequence[Draft]]) -> None:
        """Takes in candidates for each equation; of those with one structure the better stays."""
        for k, options in enumerate(drafts):
            best: dict[str, Draft] = {}
            for draft in sorted([*self.drafts[k], *options], key=lambda draft: draft.score):
                best.setdefault(structure(draft.expression), draft)
            self.drafts[k] = list(best.values())

    def foremost(self, fit: SystemFit) -> bool:
        """Whether the best candidate for each equation is that of a system."""
        first = (draft.expression for options in self.drafts for draft in options[:1])
        return fit.key == tuple(structure(law) for law in first)

    def try_own(self, drafts: Sequence[Sequence[Draft]]) -> bool:
        """Fits a system that is asked for, from its drafts; whether it has a solution."""
        # Given constants first, then those that fit their equations best.
        worth = [lambda draft: 0.0 if math.isnan(draft.error) else draft.error] * len(drafts)
        keys = {
            self.fit_roughly(chosen, again=True)
            for chosen in itertools.islice(combinations(drafts, worth), _MOST_OWN)
        }
        for key in keys:
            self.polish(key)
            self.share(key)
        return any(not self.fits[key].diverged for key in keys)

    def run(self, progress: Progress) -> list[tuple[SystemFit, float]]:
        """Fits systems; those that have solutions, the best first, with their scores."""
        chosen: list[tuple[Draft, ...]] = []
        for precision in (0.0, *PRECISIONS):
            values = [
                functools.partial(
                    score_at, own=own, observations=self.data.count, precision=precision
                )
                for own in self.data.system.sought
            ]
            number = self.config.combinations // (1 if not precision else _OF_A_PRECISION)
            chosen += itertools.islice(combinations(self.drafts, values), number)
        named = self.named()
        for number, drafts in enumerate([*chosen, *named]):
            progress("combining equations", number / (len(chosen) + len(named)))
            self.fit_roughly(drafts, staged=False)
        reserved = self.config.staged // _RESERVED
        self.stage(named, reserved, progress)
        self.stage(chosen, self.config.staged - reserved - self.staged, progress)
        promising = [*self.best(_PROMISING * self.config.fitted), *map(_key, named)]
        for number, key in enumerate(dict.fromkeys(promising)):
            progress("fitting on", number / len(promising))
            self.fit_on(key)
        for number, key in enumerate(self.best(self.config.fitted)):
            progress("fitting systems", number / self.config.fitted)
            self.polish(key)
        for turn in range(self.config.rounds):
            better = []
            for number, key in enumerate(self.best(_CHANGED)):
                progress("changing equations", (turn + number / _CHANGED) / self.config.rounds)
                better.append(self.change(key))
            if not any(better):
                break
        for number, key in enumerate(self.best(self.config.fitted)):
            progress("settling constants", number / self.config.fitted)
            self.polish(key)
            for each in {key, self.round(key)}:
                self.share(each)
        ranked = [(self.fits[key], self.scores[key]) for key in self.best(len(self.fits))]
        return [(fit, score) for fit, score in ranked if not fit.diverged]

    def named(self) -> list[tuple[Draft, ...]]:
        """The best combinations that science knows by name; their terms are no surprise."""
        system = self.data.system
        laws = [[draft.expression for draft in options] for options in self.drafts]
        known = [[velocity] for velocity in system.equations(())]
        found = [
            tuple(options[i] for options, i in zip(self.drafts, places[len(known) :], strict=True))
            for places in named_combinations([*known, *laws], system.states)
        ]
        return heapq.nsmallest(
            self.config.named, found, key=lambda drafts: sum(draft.score for draft in drafts)
        )

    def best(self, number: int) -> list[tuple[str, ...]]:
        """Keys of so many systems, best first."""
        return heapq.nsmallest(number, self.scores, key=lambda key: self.scores[key])

    def stage(self, chosen: Sequence[Sequence[Draft]], most: int, progress: Progress) -> None:
        """Fits combinations in stages, the first so many that no single solution follows."""
        fits = [(drafts, self.fits[_key(drafts)]) for drafts in chosen]
        hopeless = [drafts for drafts, fit in fits if self._is_hopeless(fit)]
        for number, drafts in enumerate(hopeless[: max(most, 0)]):
            progress("fitting in pieces", number / most)
            self.fit_roughly(drafts, again=True)

    def fit_roughly(
        self,
        drafts: Sequence[Draft],
        again: bool = False,
        near: SystemFit | None = None,
        staged: bool = True,
    ) -> tuple[str, ...]:
        """A few iterations from the drafts; where these fail, in stages, unless told not to.

        Once, and `again` or where the drafts are better than what they led to before. Solutions
        begin where the smoothed data do, or where that of a system nearby does, if that is better.
        """
        key = _key(drafts)
        laws = [draft.expression for draft in drafts]
        origins = [draft.origin for draft in drafts]
        options = [None] if near is None or near.segments > 1 else [None, near.states]
        known, states = key in self.fits and not again, None
        if known or len(options) > 1:
            starts = [
                fit_system(self.data, laws, origins, stopping=NO_FIT, states=each)
                for each in options
            ]
            start = min(starts, key=self._relative)
            if known and not self._relative(start) < self._relative(self.fits[key]):
                return key
            states = start.states
        fit = fit_system(self.data, laws, origins, stopping=ROUGH, states=states)
        if staged and self._is_hopeless(fit) and self.staged < self.config.staged:
            self.staged += 1
            in_stages = fit_in_stages(self.data, laws, origins, stopping=ROUGH)
            fit = min(fit, in_stages, key=lambda fit: system_score(self.data, fit))
        self._keep(key, fit)
        return key

    def fit_on(self, key: tuple[str, ...]) -> None:
        """A few iterations more, with each quantity counting by what the first ones left."""
        fit = self.fits[key]
        if not (fit.diverged or key in self.full):
            self._keep(key, refitted(self.data, fit, ROUGH))

    def polish(self, key: tuple[str, ...]) -> None:
        """Fits a system to full tolerance, once."""
        if key in self.full or self.fits[key].diverged:
            return
        self.full.add(key)
        self._keep(key, refitted(self.data, self.fits[key], FULL))

    def share(self, key: tuple[str, ...]) -> None:
        """Makes one constant of those that two equations share with opposite signs."""
        for shared in shared_terms(self.fits[key].laws, self.data.system.sought):
            fit = self.fits[key]
            if shared.tie not in fit.ties:
                tied = refitted(self.data, fit, FULL, (*fit.ties, shared.tie))
                self._keep(key, tied)

    def round(self, key: tuple[str, ...]) -> tuple[str, ...]:
        """Takes constants that may well be 1 to be that where it pays; the system's key then."""
        fit = self.fits[key]
        known = None if fit.diverged else covariance(self.data, fit)
        if known is None:
            return key
        values = np.concatenate([law.constants for law in fit.laws])
        away, errors = np.abs(np.abs(values) - 1.0), np.sqrt(np.diag(known))
        near = np.flatnonzero((away < _NEAR_ONE) & (away < _WITHIN * errors))
        best = key
        for place in sorted(near, key=lambda i: away[i] / errors[i]):
            rounded = values.copy()
            rounded[place] = np.sign(values[place])
            changed = laws_with_constants([law.skeleton for law in fit.laws], rounded)
            laws = tuple(law for one in changed if (law := canonical_or_none(one)) is not None)
            if len(laws) < len(changed):
                continue
            there = tuple(structure(law) for law in laws)
            self._keep(there, refitted(self.data, dataclasses.replace(fit, laws=laws), FULL, ()))
            if self.scores[there] < self.scores[best]:
                best, values = there, rounded
        return best

    def change(self, key: tuple[str, ...]) -> bool:
        """Tries a system with one equation shorter, longer or replaced; whether one is better."""
        before, fit = self.scores[self.best(1)[0]], self.fits[key]
        for k, law in enumerate(fit.laws):
            current = Draft(law, 0.0, 0.0, fit.origins[k])
            # What it led to from elsewhere may be a worse minimum than the one that is near here.
            options = [(draft, True) for draft in shorter(current)]
            others = [*self.drafts[k][: self.config.drafts], *self.longer(key, k)]
            options += [(draft, False) for draft in others]
            for option, again in options:
                drafts = [
                    Draft(other, 0.0, 0.0, origin)
                    for other, origin in zip(fit.laws, fit.origins, strict=True)
                ]
                drafts[k] = option
                changed = self.fit_roughly(drafts, again, fit)
                if self.scores[changed] < before + 10.0:
                    self.polish(changed)
        return self.scores[self.best(1)[0]] < before

    def longer(self, key: tuple[str, ...], equation: int) -> Iterator[Draft]:
        """The equation with one of the terms more that would explain most."""
        fit = self.fits[key]
        if fit.diverged:
            return
        law, origin = fit.laws[equation], fit.origins[equation]
        terms = products(self.data.system, self.data.along)
        found = gains(self.data, fit, equation, terms)
        for i in heapq.nlargest(_LONGER, np.flatnonzero(found > _TELLING), key=found.__getitem__):
            size = self.data.rms(sum_of([terms[i]], [1.0], law.variables))
            coefficient = _ADDED * self.data.rms(law) / size
            longer = joined("add", [law.prefix, times(coefficient, terms[i])])
            canonical = canonical_or_none(type(law)(longer, law.variables))
            if canonical is not None and self.restriction.admits(canonical):
                yield Draft(canonical, 0.0, math.nan, origin.descendant())

    def _is_hopeless(self, fit: SystemFit) -> bool:
        return not self._relative(fit) < _HOPELESS

    def _relative(self, fit: SystemFit) -> float:
        return float((fit.residuals / self.data.spread).max())

    def _keep(self, key: tuple[str, ...], fit: SystemFit) -> None:
        score = system_score(self.data, fit)
        if key not in self.fits or score < self.scores[key]:
            self.fits[key], self.scores[key] = fit, score


def _key(drafts: Sequence[Draft]) -> tuple[str, ...]:
    return tuple(structure(draft.expression) for draft in drafts)


def combinations(
    drafts: Sequence[Sequence[Draft]], scores: Sequence[Callable[[Draft], float]]
) -> Iterator[tuple[Draft, ...]]:
    """One draft of each equation, by the sum of their scores, lowest first."""
    if not all(drafts):
        return
    drafts = [sorted(options, key=score) for options, score in zip(drafts, scores, strict=True)]
    values = [list(map(score, options)) for options, score in zip(drafts, scores, strict=True)]

    def total(places: tuple[int, ...]) -> float:
        return sum(row[i] for row, i in zip(values, places, strict=True))

    start: tuple[int, ...] = (0,) * len(drafts)
    waiting: list[tuple[float, tuple[int, ...]]] = [(total(start), start)]
    seen: set[tuple[int, ...]] = {start}
    while waiting:
        _, places = heapq.heappop(waiting)
        yield tuple(options[i] for options, i in zip(drafts, places, strict=True))
        for k, place in enumerate(places):
            later = (*places[:k], place + 1, *places[k + 1 :])
            if place + 1 < len(drafts[k]) and later not in seen:
                seen.add(later)
                heapq.heappush(waiting, (total(later), later))


def shorter(draft: Draft) -> Iterator[Draft]:
    """The equation without one of its terms."""
    law = draft.expression
    parts = summands(law)
    for gone in range(len(parts)):
        if len(parts) < 2:
            return
        kept = joined("add", parts[:gone] + parts[gone + 1 :])
        canonical = canonical_or_none(type(law)(kept, law.variables))
        if canonical is not None:
            yield Draft(canonical, draft.error, math.nan, draft.origin.descendant())
