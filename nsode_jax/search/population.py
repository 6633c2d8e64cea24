"""Laws fitted by the integral form, and a population of the best of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import VARIABLE
from nsode_jax.fitting.fit import NAMED, Origin
from nsode_jax.fitting.guesses import InitialGuess, initial_guesses
from nsode_jax.fitting.least_squares import fit_laws
from nsode_jax.fitting.programs import fits
from nsode_jax.observed.regression import Regression
from nsode_jax.search.sources import UNRESTRICTED, Proposal, Restriction
from nsode_jax.search.variants import canonical_or_none
from nsode_jax.selection.complexity import weighted_complexity
from nsode_jax.selection.score import draft_score, score

_SIZE = 150

_SAME = 0.01
"""Scores this near are of one optimum: who came there first keeps it, and is its origin."""


@dataclasses.dataclass(frozen=True)
class Draft:
    """A law fitted by the integral form; `error` is relative to the data's spread.

    Attributes:
      expression: the law, not necessarily canonical.
      error: root mean square residual, relative to the spread of the data.
      score: of that residual, `draft_score` at first, `score` in a population.
      origin: where it came from.
    """

    expression: Expression
    error: float
    score: float
    origin: Origin


def identity(law: Expression, form: Regression) -> str:
    """What tells laws apart in a search; of those that have it in common one is enough.

    In noise y**2 must not hide y**3. Of exact data one of them is true by far, and a search
    that keeps all its neighbours too sees less of others.
    """
    return law.skeleton.unsigned_key if form.exact else structure(law)


def fitted_laws(
    form: Regression, guesses: Iterable[InitialGuess]
) -> Iterator[tuple[Expression, float]]:
    """The laws that can be fitted, with their constants and their relative residuals."""
    possible = [guess for guess in guesses if fits(guess.expression, guess.free)]
    constants, errors = fit_laws(form, possible)
    for guess, values, error in zip(possible, constants, errors, strict=True):
        if math.isfinite(error) and np.isfinite(values).all():
            yield guess.expression.skeleton.with_constants(values), float(error)


def draft_laws(form: Regression, proposals: Sequence[Proposal]) -> list[Draft]:
    """Every law fitted from its own constants; one that is undefined is left out.

    A law with an exponent that is not whole is drafted with the next whole one too: in noise
    both count, of exact data the better one.
    """
    guesses: list[InitialGuess] = []
    owners: list[int] = []
    for i, proposal in enumerate(proposals):
        options = initial_guesses(proposal.expression)
        options = [guess for guess in options if fits(guess.expression, guess.free)]
        guesses += options
        owners += [i] * len(options)
    constants, errors = fit_laws(form, guesses)
    drafts: dict[tuple[int, str], Draft] = {}
    for guess, owner, values, error in zip(guesses, owners, constants, errors, strict=True):
        if not math.isfinite(error):
            continue
        try:
            fitted = guess.expression.skeleton.with_constants(values)
        except ValueError:  # A constant left the range of numbers.
            continue
        value = draft_score(fitted, float(error), form)
        key = owner, identity(fitted, form)
        if key not in drafts or value < drafts[key].score:
            drafts[key] = Draft(fitted, float(error), value, proposals[owner].origin)
    return list(drafts.values())


class Population:
    """The best draft of each `identity`, for one set of data."""

    def __init__(self, form: Regression, restriction: Restriction = UNRESTRICTED) -> None:
        self._restriction = restriction
        self._form = form
        self._drafts: dict[str, Draft] = {}

    def add(self, drafts: Sequence[Draft]) -> None:
        """Takes them in; of one identity the best stays."""
        limit = self._limit()
        # Only what may stay is worth its canonical form; of named laws, which are more
        # probable than their complexity tells, all may.
        best = sorted(drafts, key=lambda draft: draft.score)
        hopeful = [draft for draft in best[: 2 * _SIZE] if draft.score <= limit]
        hopeful += [draft for draft in best[len(hopeful) :] if draft.origin.source == NAMED]
        for draft in hopeful:
            canonical = canonical_or_none(draft.expression)
            if canonical is None or not self._restriction.admits(canonical):
                continue
            if VARIABLE not in canonical.prefix and draft.error > 0.5:
                continue
            value = score(canonical, draft.error, self._form)
            key = identity(canonical, self._form)
            if key not in self._drafts or value < self._drafts[key].score - _SAME:
                self._drafts[key] = dataclasses.replace(draft, expression=canonical, score=value)

    def _limit(self) -> float:
        """Drafts with a worse score would soon be forgotten."""
        values = sorted(draft.score for draft in self._drafts.values())
        return values[_SIZE] if len(values) > _SIZE else math.inf

    def best(self, count: int) -> list[Draft]:
        """So many drafts, best first."""
        return sorted(self._drafts.values(), key=lambda draft: draft.score)[:count]

    def trim(self) -> None:
        """Forgets all but the best and those on the front of error and complexity."""
        kept = {id(draft) for draft in [*self.best(_SIZE), *self.front()]}
        self._drafts = {key: d for key, d in self._drafts.items() if id(d) in kept}

    def front(self) -> list[Draft]:
        """Drafts that no simpler one fits as well as, simplest first."""
        front: list[Draft] = []
        for draft in sorted(
            self._drafts.values(), key=lambda d: (weighted_complexity(d.expression), d.error)
        ):
            if not front or draft.error < front[-1].error:
                front.append(draft)
        return front
