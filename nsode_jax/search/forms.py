"""Forms of laws for series that each have constants of their own.

A form is a skeleton with exponents that are whole numbers, perhaps, and all other constants
free. What sources propose for a few series, which stand for all, is fitted to every series;
a form is judged by all of them together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.guesses import InitialGuess, batches_of, initial_guesses
from nsode_jax.fitting.least_squares import fit_batches
from nsode_jax.fitting.programs import fits
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.search.sources import UNRESTRICTED, Proposal, Restriction
from nsode_jax.selection.belief import written_log_prior
from nsode_jax.selection.form import form_of
from nsode_jax.selection.named_formula import NamedFormula
from nsode_jax.selection.score import NUMBER_COST, RELATIVE_FLOOR, laplace

REPRESENTATIVES = 4
"""So many series are searched for forms."""

_MOST_STARTS = 8

_STARTS = 48
_SPREAD = 1.0
"""Standard deviation of the logarithm of where constants of a known form begin."""

_MOST_TRIALS = 200
_FAILED = 1e6


@dataclasses.dataclass(frozen=True, eq=False)
class Form:
    """A law whose free constants each series has its own values of.

    Attributes:
      guess: the law, what is free, and constants to start from.
      origin: where it came from.
    """

    guess: InitialGuess
    origin: Origin

    def law(self, free: Float[np.ndarray, " free"]) -> Expression:
        """The law with values for what is free."""
        constants = np.array(self.guess.expression.constants)
        constants[self.guess.free] = free
        return self.guess.expression.skeleton.with_constants(constants)


@dataclasses.dataclass(frozen=True, eq=False)
class FittedForm:
    """A form fitted to several series.

    Attributes:
      form: the form.
      constants: the free ones of each series, shape [series, free].
      residuals: of each series, relative to its spread; inf where f is undefined.
      score: of all series together, lower is better.
    """

    form: Form
    constants: Float[np.ndarray, "series free"]
    residuals: Float[np.ndarray, " series"]
    score: float

    def started_here(self) -> Form:
        """The form, to be fitted from what was found for these series."""
        usable = np.isfinite(self.residuals) & np.isfinite(self.constants).all(axis=1)
        starts = self.constants[usable][:_MOST_STARTS]
        if not len(starts):
            return self.form
        guess = self.form.guess
        constants = np.tile(np.array(guess.expression.constants), (len(starts), 1))
        constants[:, guess.free] = starts
        return dataclasses.replace(self.form, guess=dataclasses.replace(guess, starts=constants))


def representatives(series: Sequence[Dataset], number: int = REPRESENTATIVES) -> list[int]:
    """Series that differ most from each other, the one with the widest range first."""
    features = np.array(
        [
            [d.y[0], d.y[-1], d.low, d.high, np.ptp(d.y) / np.ptp(d.trajectories[0].t)]
            for d in series
        ]
    )
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + np.finfo(float).tiny)
    chosen = [int(np.argmax([data.high - data.low for data in series]))]
    while len(chosen) < min(number, len(series)):
        away = np.linalg.norm(features[:, None] - features[None, chosen], axis=-1).min(axis=1)
        away[chosen] = -1.0
        chosen.append(int(np.argmax(away)))
    return chosen


def forms_of(proposals: Sequence[Proposal], restriction: Restriction = UNRESTRICTED) -> list[Form]:
    """Each form among the proposals once, with all their constants to start from."""
    found: dict[tuple, Form] = {}
    starts: dict[tuple, list[Float[np.ndarray, " constants"]]] = {}
    for proposal in proposals:
        if not restriction.admits(proposal.expression):
            continue
        for guess in initial_guesses(proposal.expression):
            constants = np.array(guess.expression.constants)
            if not guess.free.any() or not fits(guess.expression, guess.free):
                continue
            skeleton = guess.expression.skeleton
            key = skeleton.unsigned_key, tuple(guess.free), tuple(constants[~guess.free])
            if key not in found:
                found[key] = Form(guess, proposal.origin)
            elif found[key].guess.expression.skeleton.key != skeleton.key:
                continue
            if len(starts.setdefault(key, [])) < _MOST_STARTS:
                starts[key].append(constants)
    return [
        dataclasses.replace(
            form, guess=dataclasses.replace(form.guess, starts=np.array(starts[key]))
        )
        for key, form in found.items()
    ]


def fit_forms(
    forms: Sequence[Form],
    regressions: Sequence[Regression],
    kept: int,
    progress: Progress = silent,
) -> list[FittedForm]:
    """Every form fitted to every series.

    Args:
      forms: what to fit.
      regressions: the series, prepared for fitting.
      kept: so many forms are returned, the best.
      progress: told how many series are done.

    Returns:
      The forms with the best scores over all series, best first.
    """
    guesses = [form.guess for form in forms]
    batches = tuple(batches_of(guesses))
    residuals = np.full((len(forms), len(regressions)), math.inf)
    constants = [np.full((len(regressions), int(g.free.sum())), math.nan) for g in guesses]
    for number, regression in enumerate(regressions):
        progress("fitting every form to every series", number / len(regressions))
        for fitted in fit_batches(regression, batches):
            residuals[fitted.guesses, number] = fitted.residuals
            for place, guess in enumerate(fitted.guesses):
                free = int(guesses[guess].free.sum())
                constants[guess][number] = fitted.constants[place, :free]
    scores = np.array([draft_score(f, r, regressions) for f, r in zip(forms, residuals)])
    order = [int(i) for i in np.argsort(scores, kind="stable")[:kept] if np.isfinite(scores[i])]
    return [FittedForm(forms[i], constants[i], residuals[i], float(scores[i])) for i in order]


def draft_score(
    form: Form, residuals: Float[np.ndarray, " series"], regressions: Sequence[Regression]
) -> float:
    """Twice the description length of all series, each with constants of its own; cheap.

    A law that a series cannot have tells as little of it as a constant does.
    """
    number = int(form.guess.free.sum())
    total = -2 * written_log_prior(form.guess.expression)
    for residual, regression in zip(residuals, regressions, strict=True):
        count, floor = regression.count, max(regression.floor, RELATIVE_FLOOR)
        initials, sigma = len(regression.y0s), regression.sigma
        total += laplace(min(float(residual), 1.0), (), count, initials, floor, sigma)
        total += number * (math.log(count) + NUMBER_COST)
    return total


def distinct(fitted: Sequence[FittedForm]) -> list[FittedForm]:
    """Each law once: forms that are equal once they are written in canonical form."""
    seen: set[tuple] = set()
    kept = []
    for one in fitted:
        middle = int(np.argmin(np.where(np.isfinite(one.residuals), one.residuals, math.inf)))
        try:
            its_form = form_of(canonicalize(one.form.law(one.constants[middle])))
        except ExpressionError:
            continue
        if its_form not in seen:
            seen.add(its_form)
            kept.append(one)
    return kept


# --- a form that is known ----------------------------------------------------------


def constants_of(
    formula: NamedFormula,
    series: Sequence[Dataset],
    forms: Sequence[Regression],
    seed: int = 0,
    bounds: Bounds | None = None,
) -> Float[np.ndarray, "series names"]:
    """Constants of a known form for every series, from many starts at the scales of the data.

    Args:
      formula: the form; a name that stands twice is one constant.
      series: the data.
      forms: the same, prepared for fitting.
      seed: of the starts.
      bounds: of the constants, if they have any.
    """
    rng = np.random.default_rng(seed)
    best: list[Float[np.ndarray, " names"]] = []
    for i in representatives(series):
        size, span = series[i].size, float(np.ptp(series[i].trajectories[0].t))
        scales = np.array([1.0, size, 1 / span, size / span, 1 / (size * span)])
        shape = _STARTS, len(formula.names)
        starts = scales[rng.integers(scales.size, size=shape)]
        starts = starts * np.exp(rng.normal(0.0, _SPREAD, shape))
        best.append(_regressed(formula, forms[i], starts, bounds))
    return np.array([_regressed(formula, form, np.array(best), bounds) for form in forms])


def _regressed(
    formula: NamedFormula,
    form: Regression,
    starts: Float[np.ndarray, "starts names"],
    bounds: Bounds | None,
) -> Float[np.ndarray, " names"]:
    """The constants that explain the prepared data best, of the optima near the starts."""

    def residual(relative: np.ndarray, scale: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            left = form.target - form.operator @ formula.evaluate(relative * scale, form.nodes)
        return np.where(np.isfinite(left), np.clip(left, -_FAILED, _FAILED), _FAILED)

    starts = starts if bounds is None else bounds.reflected(starts)
    best, least = starts[0], math.inf
    for start in starts:
        scale = np.abs(start)
        within = (-np.inf, np.inf) if bounds is None else bounds.relative(scale)
        fit = least_squares(
            residual,
            start / scale,
            args=(scale,),
            bounds=within,
            max_nfev=_MOST_TRIALS,
        )
        if fit.cost < least and np.all(fit.x != 0):
            best, least = fit.x * scale, float(fit.cost)
    return best
