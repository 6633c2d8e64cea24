"""Candidates for each equation of a system by itself, from its regression."""

from __future__ import annotations

import collections
import dataclasses
import functools
import heapq
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.system import TIME, System
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.prefix import Prefix
from nsode_jax.expressions.summands import summands
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.guesses import initial_guesses
from nsode_jax.observed.regression import Regression
from nsode_jax.search.families import decays, families, telling
from nsode_jax.search.periodogram import frequencies
from nsode_jax.search.population import Draft, fitted_laws
from nsode_jax.search.sources import UNRESTRICTED, Restriction
from nsode_jax.search.sparse import SparseConfig, SubsetSearch
from nsode_jax.search.terms import (
    MAX_DEGREE,
    functions,
    monomials,
    sum_of,
    waves,
)
from nsode_jax.search.variants import canonical_or_none
from nsode_jax.selection.system_score import equation_cost, equation_score

_OF_EACH_SIZE = 25
"""Subsets of each number of terms whose constants are refined: one that is right may
need its thresholds fitted before it shows."""

_OF_A_SHAPE = 2
"""Of these, so many of terms that differ in the constants that a fit tells only: most fits of
such end in one law."""

_UNDECIDED = 20.0
"""By so much worse an equation may score by its regression, and be the right one by its solution:
regressions are coarser."""

_UNNOTICED = 1e-6
"""Share by which a residual may grow without what has vanished."""

_LENDING = 4
"""So many candidates of an equation, the best, lend their terms to the others."""

PRECISIONS = (3e-3, 1e-2, 3e-2, 1e-1)
"""Of the spread: the regression of coarse or noisy data is wrong by an amount that is not
known, and long equations fit its errors. The solutions decide."""

_SWITCHED = 0.8
"""Share of the time that an input has its least or its largest value from which on it is a
switch."""


@dataclasses.dataclass(frozen=True)
class Library:
    """Terms that are searched together.

    Attributes:
      terms: all of them.
      begun: sets of them that explain much, to begin with.
    """

    terms: Sequence[Prefix]
    begun: Sequence[Sequence[Prefix]] = ()


def draft_equations(
    form: Regression,
    system: System,
    span: float,
    count: int,
    config: SparseConfig,
    restriction: Restriction = UNRESTRICTED,
) -> list[Draft]:
    """The best candidates for one equation.

    Args:
      form: its regression.
      system: what its variables are.
      span: of the times, from which frequencies are tried.
      count: most candidates.
      config: of the searches.
      restriction: which laws are to be considered.

    Returns:
      Fitted sums of terms, best first.
    """
    found = libraries(form, system, span, restriction)
    return _search(form, system, found, count, config, restriction)


def share_terms(
    forms: Sequence[Regression],
    system: System,
    drafts: Sequence[Sequence[Draft]],
    count: int,
    config: SparseConfig,
    restriction: Restriction = UNRESTRICTED,
) -> list[list[Draft]]:
    """The same after every equation has tried the terms of the others.

    What leaves one compartment enters another, with the threshold that one of them tells.
    """

    def best(own: Sequence[Draft]) -> list[Draft]:
        return heapq.nsmallest(_LENDING, own, key=lambda draft: draft.score)

    found = []
    for k, form in enumerate(forms):
        others = [d.expression for i, own in enumerate(drafts) if i != k for d in best(own)]
        lent = dict.fromkeys(part for law in others for part in summands(law) if len(part) > 1)
        simple = products(system, form.nodes, 2)
        terms = [*(term for term in simple if _admits(restriction, term, system)), *lent]
        more = _search(form, system, [Library(terms)], count, config, restriction, refined=False)
        merged = {structure(d.expression): d for d in [*more, *drafts[k]]}
        found.append(selected(list(merged.values()), form, count))
    return found


def _search(
    form: Regression,
    system: System,
    found: Sequence[Library],
    count: int,
    config: SparseConfig,
    restriction: Restriction,
    refined: bool = True,
) -> list[Draft]:
    """The best sums of terms of any of the libraries."""
    drafts: dict[str, Draft] = {}
    for library in found:
        search = SubsetSearch(form, library.terms, system.variables)
        search.run(config, library.begun)
        best = min((draft.score for draft in drafts.values()), default=math.inf)
        fitted = _drafts(search, form, system, best if refined else -math.inf)
        for draft in selected(fitted, form, 2 * count):
            canonical = canonical_or_none(draft.expression)
            if canonical is None or not restriction.admits(canonical):
                continue
            key = structure(canonical)
            if key not in drafts or draft.score < drafts[key].score:
                value = equation_score(canonical, draft.error, form)
                drafts[key] = dataclasses.replace(draft, expression=canonical, score=value)
    return selected(list(drafts.values()), form, count)


def _admits(restriction: Restriction, term: Prefix, system: System) -> bool:
    return restriction.admits(sum_of([term], [1.0], system.variables))


def selected(drafts: Sequence[Draft], form: Regression, count: int) -> list[Draft]:
    """The best drafts at every precision that the regression may have, each once."""
    chosen: dict[str, Draft] = {}
    for precision in (0.0, *PRECISIONS):
        value = functools.partial(
            score_at, own=form.own, observations=form.count, precision=precision
        )
        for draft in heapq.nsmallest(count, drafts, key=value):
            chosen.setdefault(structure(draft.expression), draft)
    return list(chosen.values())


def score_at(draft: Draft, own: str, observations: int, precision: float) -> float:
    """The score of a draft if the regression is wrong by so much of the spread; 0: as it is."""
    if not precision:
        return draft.score
    square = draft.error**2 + precision**2
    return observations * math.log(square) + equation_cost(draft.expression, own, observations)


def libraries(
    form: Regression, system: System, span: float, restriction: Restriction = UNRESTRICTED
) -> list[Library]:
    """Terms that are searched one after the other, simple ones by themselves first."""

    def admitted(terms: Sequence[Prefix]) -> list[Prefix]:
        return [term for term in terms if _admits(restriction, term, system)]

    switches = switches_of(form.nodes, system)
    lasting = tuple(v for v in (*system.states, *system.inputs) if v not in switches)
    nodes = np.atleast_2d(form.nodes)
    values = np.array([nodes[system.variables.index(name)] for name in lasting])
    simple, low = (admitted(products(system, nodes, degree)) for degree in (MAX_DEGREE, 2))
    of_time, found = [], families(lasting, values)
    if system.explicit_time:
        of_time = admitted(waves(frequencies(form, span), lasting, TIME))
        found = [*found, *decays(span, lasting, TIME)]
    found = [one for one in found if admitted([one.example])]
    linear = [term for term in low if len(term) < 2]
    beside = [[], [(), (form.own,)], linear, low]
    begun = telling(found, form, beside, system.variables)
    bent = list(dict.fromkeys(member for member, *_ in begun))
    curved = admitted(functions(lasting, values))
    simple = simple + of_time
    return [
        Library(simple),
        Library(low + curved),
        Library(low + bent, begun),
        Library(simple + curved + bent),
    ]


def switches_of(values: Float[np.ndarray, "variables times"], system: System) -> frozenset[str]:
    """Inputs that are on or off: their powers and functions say nothing new."""
    found = set()
    for name in system.inputs:
        row = values[system.variables.index(name)]
        if np.mean((row == row.min()) | (row == row.max())) > _SWITCHED:
            found.add(name)
    return frozenset(found)


def products(
    system: System, values: Float[np.ndarray, "variables times"], degree: int = MAX_DEGREE
) -> list[Prefix]:
    """Products of the variables to a degree, those with powers of switches left out."""
    switches = switches_of(values, system)
    return [term for term in monomials(system.variables, degree) if _is_plain(term, switches)]


def _is_plain(term: Prefix, switches: frozenset[str]) -> bool:
    """Whether no switch is in a power."""
    return not any(a == "pow" and b in switches for a, b in itertools.pairwise(term))


def _drafts(search: SubsetSearch, form: Regression, system: System, best: float) -> list[Draft]:
    """The best subsets of each size as laws; thresholds are fitted where that may help."""
    best = min(best, *(search.scores[subset] for subset in search.best(1)))
    by_size: collections.Counter[int] = collections.Counter()
    by_shape: collections.Counter[frozenset[Prefix]] = collections.Counter()
    origin = Origin("terms")
    linear, other = [], []
    for subset in search.best(len(search.scores)):
        terms = [search.terms[i] for i in sorted(subset)]
        shape = frozenset(map(_shape, terms))
        if not subset or by_shape[shape] == _OF_A_SHAPE or by_size[len(subset)] == _OF_EACH_SIZE:
            continue
        by_size[len(subset)] += 1
        by_shape[shape] += 1
        coefficients, error = search.error(subset)
        try:
            law = sum_of(terms, coefficients, system.variables)
        except ExpressionError:
            continue
        value = equation_score(law, error, form)
        linear.append(Draft(law, error, value, origin))
        if any(map(_has_thresholds, terms)) and search.least(subset) < best + _UNDECIDED:
            other += initial_guesses(law)
    for fitted, error in fitted_laws(form, other):
        for law in (fitted, *_without_vanished(fitted, error, form)):
            linear.append(Draft(law, error, equation_score(law, error, form), origin))
    return linear


def _without_vanished(law: Expression, error: float, form: Regression) -> Iterator[Expression]:
    """The law without what its fit has made nothing of, as exp(k*x) where k is next to 0."""
    constants = np.array(law.constants)
    for place in range(constants.size):
        values = np.where(np.arange(constants.size) == place, 0.0, constants)
        shorter = law.skeleton.with_constants(values)
        if form.residual(shorter) <= max(error, form.floor) * (1 + _UNNOTICED):
            canonical = canonical_or_none(shorter)
            if canonical is not None:
                yield canonical


def _shape(term: Prefix) -> Prefix:
    """A term with one letter for all that only a fit can tell."""
    return tuple("c" if _is_threshold(token) else token for token in term)


def _has_thresholds(term: Prefix) -> bool:
    return any(map(_is_threshold, term))


def _is_threshold(token: str | float) -> bool:
    """Whether this is a constant that only a fit can tell."""
    return not isinstance(token, str) and token not in (0.0, 1.0, 2.0, 3.0)
