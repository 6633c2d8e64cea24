"""One form of law for many series, each with constants of its own.

read -> propose for a few series that stand for all -> fit every form to every series ->
solutions of the best -> customary parameters -> which constants all series share
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.pipeline import (
    DiscoveryError,
    data_form,
    sources_named,
    work_of,
)
from nsode_jax.discovery.series import read_series
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import TimeLimitExceeded
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import USER, Fit, Origin
from nsode_jax.fitting.own_constants import OwnConstants, fit_own_constants
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.fitting.regression import Regression
from nsode_jax.fitting.scaling import AffineView, working_units
from nsode_jax.reporting.form_discovery import FormDiscovery
from nsode_jax.results.own_constants import FormCandidate
from nsode_jax.search.effort import SOURCES
from nsode_jax.search.forms import (
    FittedForm,
    constants_of,
    distinct,
    fit_forms,
    forms_of,
    representatives,
)
from nsode_jax.search.sources import CandidateSource, Proposal, Restriction
from nsode_jax.selection.belief import log_prior
from nsode_jax.selection.catalogue import NamedLaw
from nsode_jax.selection.named_formula import NamedFormula
from nsode_jax.selection.naming import name_of, solve_parameters
from nsode_jax.selection.score import (
    edge_cost,
    evidence,
    independent_share,
    posterior_probabilities,
    residual_floor,
    unseen_probability,
)

_MOST_POINTS_EACH = 200
_FITTED_TO_ALL = 150
_SOLVED = 12
"""So many forms, the best, are fitted by their solutions."""

_DECIDING = 3
_SAME_FIT = 1e-4
_PLACES = 64


def discover_own_constants(
    t: Any,
    y: Any,
    *,
    labels: Sequence[str] | None = None,
    law: str | None = None,
    shared: Sequence[str] = (),
    effort: str = "default",
    sources: Sequence[str | CandidateSource] = SOURCES,
    weights: str = "small",
    operators: Sequence[str] | None = None,
    max_symbols: int | None = None,
    zero_at_zero: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> FormDiscovery:
    """Finds the form of law that all series follow, each with constants of its own.

    Args:
      t: times: a list of arrays [time], or one that the series share.
      y: values: a list of arrays [time], any units. At least two series.
      labels: what the series are called; numbers from 1 if left out.
      law: the form, if it is known, with names for its constants: "r*y*(1 - y/K)".
        Nothing is searched then.
      shared: names of constants that are the same in all series. Those of the law that is
        found are known only afterwards: its result says which may be shared.
      effort, sources, weights, operators, max_symbols, zero_at_zero, seed, progress: as of
        `discover`.

    Returns:
      Forms, best first, with the constants of every series.

    Raises:
      TrajectoryError: if a series cannot be used.
      ExpressionError: if the law cannot be read.
      DiscoveryError: if no form has solutions near the data.
      ValueError: if an option is not what it should be.
    """
    started = time.monotonic()
    trajectories, notes = read_series(t, y, most_in_all=_MOST_POINTS_EACH * len(y))
    if len(trajectories) < 2:
        raise ValueError("constants of their own take several series; there is one")
    names = tuple(map(str, range(1, len(trajectories) + 1))) if labels is None else tuple(labels)
    if len(names) != len(trajectories):
        raise ValueError(f"there are {len(names)} labels for {len(trajectories)} series")
    given = [Dataset.of([series]) for series in trajectories]
    tried: tuple[str, ...] = ()
    if law is not None:
        formula = NamedFormula.parse(law)
        if not formula.names:
            raise ValueError(f"name the constants of the law, such as r*y*(1 - y/K), not {law}")
        found = [_given_law(formula, given, seed)]
    else:
        work = work_of(effort, None, None)
        allowed = None if operators is None else frozenset(operators)
        restriction = Restriction(allowed, max_symbols, zero_at_zero)
        asked = sources_named(sources, weights, work, restriction)
        found, tried = _searched(given, asked, restriction, seed, progress)
    unknown = set(shared) - set(found[0].names)
    if unknown:
        raise ValueError(
            f"the law {found[0].formula.text} has the constants {', '.join(found[0].names)}; "
            f"there is no {', '.join(sorted(unknown))} to be shared"
        )
    if shared:
        found = [_shared(found[0], given, shared)]
    candidates = _candidates(found, given, trajectories)
    if not np.isfinite(candidates[0].residual_rms).any():
        raise DiscoveryError("No form has solutions near the data of any series.")
    return FormDiscovery(candidates, trajectories, names, notes, time.monotonic() - started, tried)


@dataclasses.dataclass(frozen=True, eq=False)
class _Found:
    """A form with the constants of every series.

    Attributes:
      formula: the law, its constants named.
      fit: their values.
      origin: where it came from.
      score: of all series, lower is better.
      named: the entry of the catalogue that the law is; None for no such.
      shared: names of constants that are the same in all series.
    """

    formula: NamedFormula
    fit: OwnConstants
    origin: Origin
    score: float = math.nan
    named: NamedLaw | None = None
    shared: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.formula.names

    def law(self, i: int) -> Expression | None:
        """That of a series; None where it has no solution."""
        values = self.fit.constants[i]
        return self.formula.with_values(values) if np.isfinite(values).all() else None


# --- the search ------------------------------------------------------------------


def _searched(
    given: Sequence[Dataset],
    asked: Sequence[CandidateSource],
    restriction: Restriction,
    seed: int,
    progress: Progress,
) -> tuple[list[_Found], tuple[str, ...]]:
    """Forms by their joint score, best first, in the units of the data; what was tried."""
    units = working_units(Dataset.of([data.trajectories[0] for data in given]))
    series = [Dataset(tuple(units.apply(s) for s in data)) for data in given]
    forms = [data_form(data) for data in series]
    chosen = representatives(series)
    proposals: list[Proposal] = []
    tried: list[str] = []
    for number, i in enumerate(chosen, start=1):
        for source in asked:
            progress(f"proposing laws for series {number} of {len(chosen)}: {source.name}", 0.0)
            proposed = source.propose(series[i], forms[i], seed=seed, progress=silent)
            proposals += proposed.laws
            if number == 1:
                tried.append(proposed.tried)
    few = fit_forms(
        forms_of(proposals, restriction), [forms[i] for i in chosen], 3 * _FITTED_TO_ALL
    )
    best = [one.started_here() for one in distinct(few)[:_FITTED_TO_ALL]]
    if not best:
        raise DiscoveryError("No usable law was proposed for these series.")
    drafts = fit_forms(best, forms, _SOLVED, progress)
    found = []
    for number, draft in enumerate(drafts):
        progress("fitting solutions", number / len(drafts))
        found.append(_solved(draft, series, forms))
    scored = _scored(found, series, forms)
    renamed = []
    for number, one in enumerate(scored):
        progress("naming constants", number / len(scored))
        renamed.append(_in_given_units(one, units, given))
    searched = f"searched in {len(chosen)} of {len(series)} series"
    return [one for one in renamed if one is not None], (*tried, searched)


def _solved(draft: FittedForm, series: Sequence[Dataset], forms: Sequence[Regression]) -> _Found:
    """The form fitted by its solutions."""
    usable = np.asarray(np.isfinite(draft.constants).all(axis=1))
    middle = np.median(draft.constants[usable], axis=0)
    starts = np.where(usable[:, None], draft.constants, middle)
    formula = NamedFormula.of(draft.form.law(middle), draft.form.guess.free)
    y0s = [form.y0s[0] for form in forms]
    fit = fit_own_constants(series, formula.with_values, starts, y0s)
    return _Found(formula, fit, draft.form.origin)


def _scored(
    found: Sequence[_Found], series: Sequence[Dataset], forms: Sequence[Regression]
) -> list[_Found]:
    """By the evidence of all series together, the prior of the form counting once."""
    fits = [[_as_fit(one, i, data) for i, data in enumerate(series)] for one in found]
    shares = []
    for i, data in enumerate(series):
        best = sorted((of_form[i] for of_form in fits), key=lambda fit: fit.residual_rms)
        shares.append(independent_share(best[:_DECIDING], data))
    scored = []
    for one, of_form in zip(found, fits, strict=True):
        total, priors = 0.0, []
        for fit, data, form, share in zip(of_form, series, forms, shares, strict=True):
            if fit.diverged:
                continue  # It tells as little of that series as a constant does.
            relative = min(fit.residual_rms / data.spread, 1.0)
            total += evidence(fit.expression, relative, form, residual_floor(data, form), share)
            priors.append(edge_cost(fit.expression, data) - 2 * log_prior(fit.expression))
        score = total + float(np.median(priors)) if priors else math.inf
        scored.append(dataclasses.replace(one, score=score))
    kept: list[_Found] = []
    for one in sorted(scored, key=lambda one: one.score):
        if not any(_same_fit(one, other) for other in kept):
            kept.append(one)
    return kept


def _same_fit(one: _Found, other: _Found) -> bool:
    """Whether two forms leave the same of every series: they are one law, written twice."""
    return np.allclose(one.fit.residual_rms, other.fit.residual_rms, rtol=_SAME_FIT, atol=0.0)


def _as_fit(found: _Found, i: int, data: Dataset) -> Fit:
    """That of one series."""
    law, rms = found.law(i), float(found.fit.residual_rms[i])
    expression = Expression((0.0,)) if law is None else law
    explained = 1 - (rms / data.spread) ** 2
    y0 = float(found.fit.y0s[i])
    return Fit(expression, (y0,), rms, explained, bool(found.fit.converged[i]), found.origin)


# --- customary parameters --------------------------------------------------------


def _in_given_units(found: _Found, units: AffineView, given: Sequence[Dataset]) -> _Found | None:
    """The form in the units of the data, with customary parameters where it has a name."""
    laws: list[Expression | None] = []
    for i in range(len(given)):
        law = found.law(i)
        try:
            laws.append(None if law is None else units.restore(law))
        except (ExpressionError, TimeLimitExceeded):
            laws.append(None)
    y0s = [
        float(y0) * units.a if math.isfinite(y0) else float(data.y[0])
        for y0, data in zip(found.fit.y0s, given, strict=True)
    ]
    written = [law for law in laws if law is not None]
    if not written:
        return None
    named = _name(laws, given)
    if named is not None:
        formula = named.formula
        values = [_parameters(named, law, data) for law, data in zip(laws, given, strict=True)]
    else:
        usual, _ = Counter(law.skeleton.key for law in written).most_common(1)[0]
        model = next(law for law in written if law.skeleton.key == usual)
        free = np.array([not is_plain(c) for c in model.constants], bool)
        formula = NamedFormula.of(model, free)
        values = [
            np.array(law.constants)[free] if law is not None and law.skeleton.key == usual else None
            for law in laws
        ]
    known = np.array([value for value in values if value is not None])
    starts = np.array([np.median(known, axis=0) if v is None else v for v in values])
    fit = fit_own_constants(given, formula.with_values, starts, y0s)
    return dataclasses.replace(found, formula=formula, fit=fit, named=named)


def _name(laws: Sequence[Expression | None], given: Sequence[Dataset]) -> NamedLaw | None:
    """The entry of the catalogue that the laws of most series are."""
    names: Counter[str] = Counter()
    entries: dict[str, NamedLaw] = {}
    chosen = representatives(given)
    for i in chosen:
        law, data = laws[i], given[i]
        name = None if law is None else name_of(law, data.low, data.high)
        if name is not None:
            names[name.law.name] += 1
            entries[name.law.name] = name.law
    if not names:
        return None
    first, number = names.most_common(1)[0]
    return entries[first] if 2 * number > len(chosen) else None


def _parameters(
    named: NamedLaw, law: Expression | None, data: Dataset
) -> Float[np.ndarray, " names"] | None:
    """Customary parameters of the law of one series."""
    if law is None or not data.low < data.high:
        return None
    values = solve_parameters(named, law.evaluate, data.values(_PLACES))
    return None if values is None else np.array(values)


# --- a law that is given ---------------------------------------------------------


def _given_law(formula: NamedFormula, given: Sequence[Dataset], seed: int) -> _Found:
    """The fit of a known law."""
    forms = [data_form(data) for data in given]
    starts = constants_of(formula, given, forms, seed)
    y0s = [form.y0s[0] for form in forms]
    fit = fit_own_constants(given, formula.with_values, starts, y0s)
    return _Found(formula, fit, Origin(USER))


# --- the result ------------------------------------------------------------------


def _shared(found: _Found, given: Sequence[Dataset], shared: Sequence[str]) -> _Found:
    """The same with constants that all series share."""
    chosen = np.array([name in shared for name in found.names], bool)
    values = found.fit.constants
    middle = np.nanmedian(values, axis=0)
    starts = np.where(np.isfinite(values), values, middle)
    y0s = [
        float(y0) if math.isfinite(y0) else float(data.y[0])
        for y0, data in zip(found.fit.y0s, given, strict=True)
    ]
    fit = fit_own_constants(given, found.formula.with_values, starts, y0s, chosen)
    return dataclasses.replace(found, fit=fit, shared=tuple(shared))


def _candidates(
    found: Sequence[_Found], given: Sequence[Dataset], trajectories: Sequence[Trajectory]
) -> tuple[FormCandidate, ...]:
    """The forms with their posterior probabilities."""
    spreads = np.array([data.spread for data in given])
    best = found[0].fit.residual_rms / spreads
    unseen = unseen_probability(float(np.median(best))) if np.isfinite(best).any() else 0.0
    scores = [one.score for one in found]
    shares = [1.0] if len(found) == 1 else posterior_probabilities(scores, unseen)
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
        )
        for one, share in zip(found, shares, strict=True)
    )


__all__ = ["discover_own_constants"]
