"""All simple laws as a source of candidates: every skeleton up to a size is fitted.

Fitting one costs less than a millisecond, so that no simple law need be missed by
chance. All are fitted roughly, at few points; the best go on to the fit that other
candidates get.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.expressions.canonical import TimeLimitExceeded
from nsode_jax.expressions.expression import Expression, ExpressionError, Skeleton
from nsode_jax.expressions.skeleton_catalogue import shipped_catalogue
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.guesses import Batch, InitialGuess, batches_of
from nsode_jax.fitting.least_squares import fit_batches
from nsode_jax.fitting.programs import SMALL
from nsode_jax.fitting.progress import Progress
from nsode_jax.fitting.starts import spread_guesses
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.scaling import AffineView
from nsode_jax.search.sources import UNRESTRICTED, Proposal, Proposals, Restriction
from nsode_jax.selection.belief import in_force, written_log_prior
from nsode_jax.selection.prior import Prior
from nsode_jax.selection.score import NUMBER_COST, draft_misfit

_COARSE_NODES = 24
_COARSE_ITERATIONS = 8
_COARSE_FLOOR = 1e-6
"""Residuals of so few steps and points tell no more."""

_SMALLEST, _LARGEST = 0.05, 20.0
_REACH = 3.0
_RESTORING = 4
"""A change of units takes SymPy so long that fewer laws by this factor are kept."""


@dataclasses.dataclass(frozen=True)
class EnumerationSource:
    """Every law up to a size, and the commonest beyond, from several initial guesses each.

    Attributes:
      symbols: up to so many operators, variables and constants no law is missing.
      beyond: so many skeletons of more symbols are fitted too, the commonest.
      restriction: which laws are considered.
      kept: most laws that are proposed.
    """

    symbols: int = 6
    beyond: int = 12_000
    restriction: Restriction = UNRESTRICTED
    kept: int = 400
    name: str = "enumeration"

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> Proposals:
        """The skeletons that fit best for their complexity, roughly fitted."""
        complete, common = _skeletons(self.symbols, self.beyond, self.restriction)
        view = _view(data)
        coarse = _coarse(data, form).rescaled(view.a, view.b, view.c)
        kept = self.kept if view.a == 1.0 else self.kept // _RESTORING
        best = _screen(coarse, _packed(complete + common, in_force()), kept, progress)
        proposals = []
        for law in best:
            try:
                restored = law if view.a == 1.0 else view.restore(law)
            except (ExpressionError, TimeLimitExceeded):
                continue
            proposals.append(Proposal(restored, Origin(self.name)))
        symbols = min(self.symbols, self.restriction.max_symbols or self.symbols)
        tried = f"all {len(complete):,} laws of up to {symbols} symbols"
        if common:
            tried += f" and the {len(common):,} commonest beyond"
        return Proposals(tuple(proposals), tried)


@functools.lru_cache(maxsize=4)
def _skeletons(
    symbols: int, beyond: int, restriction: Restriction
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys of all skeletons up to a size, and of the commonest beyond."""
    catalogue = shipped_catalogue()
    if restriction.operators is not None:
        catalogue = catalogue.with_operators(tuple(restriction.allowed))
    most = restriction.max_symbols
    complete = catalogue.skeletons_up_to(symbols if most is None else min(most, symbols))
    common: tuple[str, ...] = ()
    if most is None or most > symbols:
        common = catalogue.commonest_beyond(symbols, beyond)
    if most is not None:
        common = tuple(key for key in common if len(key.split()) <= most)
    if restriction.zero_at_zero:
        complete, common = _zero_at_zero(complete), _zero_at_zero(common)
    return complete, common


def _zero_at_zero(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Those whose f(0) is 0 whatever their constants are."""
    condition = Restriction(zero_at_zero=True)
    kept = []
    for key in keys:
        skeleton = Skeleton.from_key(key)
        law = skeleton.with_constants(0.7 + 0.37 * i for i in range(skeleton.num_constants))
        if condition.admits(law):
            kept.append(key)
    return tuple(kept)


def _view(data: Dataset) -> AffineView:
    """The data's own units, unless values are far from those the guesses are made for."""
    if _SMALLEST <= data.size <= _LARGEST:
        return AffineView(0.0, 1.0, 0.0, 1.0)
    return AffineView(0.0, 1.0, 0.0, data.size / _REACH)


def _coarse(data: Dataset, form: Regression) -> Regression:
    """The data at few points, in the form that is the more exact."""
    derivative = derivative_form(data, _COARSE_NODES) if form.exact else None
    return form.coarsened(_COARSE_NODES) if derivative is None else derivative


@dataclasses.dataclass(frozen=True, eq=False)
class _Packed:
    """Guesses of many skeletons, ready for any data.

    Attributes:
      guesses: where fits begin.
      owners: index of the skeleton of each guess, shape [guesses].
      costs: what its complexity costs each guess in score, shape [guesses].
      batches: the guesses as programs.
    """

    guesses: tuple[InitialGuess, ...]
    owners: Int[np.ndarray, " guesses"]
    costs: Float[np.ndarray, " guesses"]
    batches: tuple[Batch, ...]


@functools.lru_cache(maxsize=4)
def _packed(keys: tuple[str, ...], prior: Prior) -> _Packed:
    """Packs skeletons; once for a process and a prior, which must be in force."""
    guesses: list[InitialGuess] = []
    owners: list[int] = []
    for owner, key in enumerate(keys):
        new = list(spread_guesses(Skeleton.from_key(key)))
        guesses += new
        owners += [owner] * len(new)
    costs = [
        NUMBER_COST * guess.free.sum() - 2 * written_log_prior(guess.expression)
        for guess in guesses
    ]
    batches = tuple(batches_of(guesses, (SMALL,)))
    return _Packed(tuple(guesses), np.array(owners), np.array(costs), batches)


def _screen(
    regression: Regression, packed: _Packed, kept: int, progress: Progress
) -> list[Expression]:
    """The laws with the best scores, one of a skeleton, best first."""
    errors = np.full(len(packed.guesses), math.inf)
    fitted: list[Float[np.ndarray, " constants"] | None] = [None] * len(packed.guesses)
    for number, batch in enumerate(fit_batches(regression, packed.batches, _COARSE_ITERATIONS)):
        progress("fitting all simple laws", number / len(packed.batches))
        errors[batch.guesses] = batch.residuals
        for guess, constants in zip(batch.guesses, batch.laws(packed.guesses), strict=True):
            fitted[guess] = constants
    floor = max(_COARSE_FLOOR, regression.floor)
    scores = draft_misfit(errors, regression, floor) + packed.costs
    best: dict[int, Expression] = {}
    for i in np.argsort(scores, kind="stable"):
        if len(best) == kept or not math.isfinite(scores[i]):
            break
        owner, constants = int(packed.owners[i]), fitted[i]
        if owner in best or constants is None:
            continue
        try:
            best[owner] = packed.guesses[i].expression.skeleton.with_constants(constants)
        except ExpressionError:
            continue
    return list(best.values())
