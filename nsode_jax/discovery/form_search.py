"""The search for the form of law that many series follow, each with constants of its own."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.discovery.law_search import DiscoveryError, data_form
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.fitting.own_constants import OwnConstants, fit_own_constants
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.scaling import AffineView, working_units
from nsode_jax.search.forms import (
    FittedForm,
    distinct,
    fit_forms,
    forms_of,
    representatives,
)
from nsode_jax.search.sources import CandidateSource, Proposal, Restriction
from nsode_jax.selection.belief import in_force, log_prior
from nsode_jax.selection.catalogue import Catalogue, NamedLaw
from nsode_jax.selection.named_formula import NamedFormula
from nsode_jax.selection.naming import name_of, solve_parameters
from nsode_jax.selection.score import (
    edge_cost,
    evidence,
    independent_share,
    laplace,
    residual_floor,
)

_FITTED_TO_ALL = 150
_SOLVED = 12
"""So many forms, the best, are fitted by their solutions."""

_DECIDING = 3
_SAME_FIT = 1e-4
_PLACES = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """A form with the constants of every series.

    Attributes:
      formula: the law, its constants named.
      fit: their values.
      origin: where it came from.
      score: of all series, lower is better.
      named: the entry of the catalogue that the law is; None for no such.
      shared: names of constants that are the same in all series.
      bounds: of the constants; None for none.
    """

    formula: NamedFormula
    fit: OwnConstants
    origin: Origin
    score: float = math.nan
    named: NamedLaw | None = None
    shared: tuple[str, ...] = ()
    bounds: Bounds | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.formula.names

    def law(self, i: int) -> Expression | None:
        """That of a series; None where it has no solution."""
        values = self.fit.constants[i]
        return self.formula.with_values(values) if np.isfinite(values).all() else None


# --- the search ------------------------------------------------------------------


def searched(
    given: Sequence[Dataset],
    asked: Sequence[CandidateSource],
    restriction: Restriction,
    seed: int,
    progress: Progress,
) -> tuple[list[Found], tuple[str, ...]]:
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
        raise DiscoveryError(
            "No usable law was proposed for these series; allow more: sources, operators, symbols."
        )
    drafts = fit_forms(best, forms, _SOLVED, progress)
    found = []
    for number, draft in enumerate(drafts):
        progress("fitting solutions", number / len(drafts))
        found.append(_solved(draft, series, forms))
    scored = _scored(found, series, forms)
    renamed: dict[str, Found] = {}
    for number, one in enumerate(scored):
        progress("naming constants", number / len(scored))
        named = _in_given_units(one, units, given)
        if named is not None:  # Two forms may be one law, written in its customary parameters.
            renamed.setdefault(named.formula.text, named)
    if not renamed:
        raise DiscoveryError(
            "No form has solutions near the data of any series; try a greater effort."
        )
    searched = f"searched in {len(chosen)} of {len(series)} series"
    return list(renamed.values()), (*tried, searched)


def _solved(draft: FittedForm, series: Sequence[Dataset], forms: Sequence[Regression]) -> Found:
    """The form fitted by its solutions."""
    usable = np.asarray(np.isfinite(draft.constants).all(axis=1))
    middle = np.median(draft.constants[usable], axis=0)
    starts = np.where(usable[:, None], draft.constants, middle)
    formula = NamedFormula.of(draft.form.law(middle), draft.form.guess.free)
    y0s = [form.y0s[0] for form in forms]
    fit = fit_own_constants(series, formula.with_values, starts, y0s)
    return Found(formula, fit, draft.form.origin)


def _scored(
    found: Sequence[Found], series: Sequence[Dataset], forms: Sequence[Regression]
) -> list[Found]:
    """By the evidence of all series together, the prior of the form counting once."""
    fits = [[as_fit(one, i, data) for i, data in enumerate(series)] for one in found]
    shares = []
    for i, data in enumerate(series):
        best = sorted((of_form[i] for of_form in fits), key=lambda fit: fit.residual_rms)
        shares.append(independent_share(best[:_DECIDING], data))
    scored = []
    for one, of_form in zip(found, fits, strict=True):
        total, priors = 0.0, []
        for fit, data, form, share in zip(of_form, series, forms, shares, strict=True):
            floor = residual_floor(data, form)
            if fit.diverged:  # It tells as little of that series as a constant does.
                count, initials = share * form.count, len(form.y0s)
                total += laplace(1.0, (), count, initials, floor, form.sigma)
                continue
            relative = min(fit.residual_rms / data.spread, 1.0)
            total += evidence(fit.expression, relative, form, floor, share)
            priors.append(edge_cost(fit.expression, data) - 2 * log_prior(fit.expression))
        score = total + float(np.median(priors)) if priors else math.inf
        scored.append(dataclasses.replace(one, score=score))
    kept: list[Found] = []
    for one in sorted(scored, key=lambda one: one.score):
        if not any(_same_fit(one, other) for other in kept):
            kept.append(one)
    return kept


def _same_fit(one: Found, other: Found) -> bool:
    """Whether two forms leave the same of every series: they are one law, written twice."""
    return np.allclose(one.fit.residual_rms, other.fit.residual_rms, rtol=_SAME_FIT, atol=0.0)


def as_fit(found: Found, i: int, data: Dataset) -> Fit:
    """That of one series."""
    law, rms = found.law(i), float(found.fit.residual_rms[i])
    expression = Expression((0.0,)) if law is None else law
    explained = 1 - (rms / data.spread) ** 2
    y0 = float(found.fit.y0s[i])
    return Fit(expression, (y0,), rms, explained, bool(found.fit.converged[i]), found.origin)


# --- customary parameters --------------------------------------------------------


def _in_given_units(found: Found, units: AffineView, given: Sequence[Dataset]) -> Found | None:
    """The form in the units of the data, with customary parameters where it has a name."""
    laws: list[Expression | None] = []
    for i in range(len(given)):
        law = found.law(i)
        try:
            laws.append(None if law is None else units.restore(law))
        except ExpressionError:
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
    chosen, known = representatives(given), Catalogue.load(in_force().own_laws)
    for i in chosen:
        law, data = laws[i], given[i]
        name = None if law is None else name_of(law, data.low, data.high, catalogue=known)
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


__all__ = ["Found", "as_fit", "searched"]
