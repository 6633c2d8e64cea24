"""The order of fitted laws, each law once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from nsode_jax.expressions.constants import is_plain, structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.selection.score import (
    DECIDING,
    independent_share,
    relative_residuals,
    residual_floor,
    score,
    scores,
)

_ALIKE_BESIDE_SOLUTIONS = 1e-4
"""Rates that differ by this share of the largest one are alike to a solution."""

_ALIKE = 3.0
"""Likewise in an exact form, times its floor, or the smallest residual if that is larger."""


def rank(
    fits: Sequence[Fit],
    data: Dataset,
    form: Regression,
) -> list[tuple[Fit, float]]:
    """Best law first, each law once.

    Of fits with the same structure (skeleton without signs, but with exponents that are
    plain: y**2 is not y**3) the best stays. Of laws whose f
    differs by next to nothing over the observed range the simplest stays, of those that
    differ by less than the data can show the best: they are one law written in two ways,
    or not to be told apart. In an exact form the one with fewer fitted numbers stays of
    these: to fit data of seven digits with round numbers is no accident. A law that
    somebody asked for stays in any case; if another fit of its structure is better, that one
    takes its origin. Laws that diverge come last.

    Args:
      fits: any number of fits.
      data: what they were fitted to.
      form: the same, as it was prepared for fitting.

    Returns:
      Pairs of a fit and its score, lowest score first.
    """
    values = scores(fits, data, form, counted_share(fits, data, form))
    order = sorted(range(len(fits)), key=lambda i: (values[i], fits[i].expression.complexity, i))
    asked = {structure(fit.expression): fit.origin for fit in fits if fit.origin.asked_for}
    places = _each_once([fits[i] for i in order], asked, data, form)
    # Who takes the place of a law takes its score if that is better: the data cannot tell.
    ranked = [(fits[order[i]], min(values[order[i]], values[order[j]])) for i, j in places]
    ranked.sort(key=lambda pair: (pair[1], pair[0].expression.complexity))
    return [(_with_origin(fit, asked), value) for fit, value in ranked]


def _each_once(
    fits: Sequence[Fit], asked: Mapping[str, Origin], data: Dataset, form: Regression
) -> list[tuple[int, int]]:
    """Each law that stays, and the first of the fits that are the same law; best fits first."""
    alike = _ALIKE_BESIDE_SOLUTIONS
    left = relative_residuals(fits, data, form)
    if form.exact:
        alike = _ALIKE * max(residual_floor(data, form), min(left, default=0.0))
    grid = form.nodes if form.exact else data.values(64)
    curves = [data.telling(fit.expression.evaluate(grid), grid) for fit in fits]
    keys = [structure(fit.expression) for fit in fits]

    def takes_its_place(i: int, j: int) -> bool:
        """Whether the later of two laws that the data do not tell apart is the simpler one."""
        if form.exact and left[i] > max(alike, left[j]):
            return False  # Its solution misses what the form does not know.
        if form.exact and _rounder(fits[i].expression, fits[j].expression):
            return True
        # What each would score if it fitted exactly.
        return _same_curve(curves[i], curves[j], alike / 100) and (
            score(fits[i].expression, 0.0, form) < score(fits[j].expression, 0.0, form)
        )

    places: list[tuple[int, int]] = []
    for i, key in enumerate(keys):
        known = next((n for n, (j, _) in enumerate(places) if keys[j] == key), None)
        if known is None:
            twins = (
                n for n, (j, _) in enumerate(places) if _same_curve(curves[i], curves[j], alike)
            )
            known = next(twins, None)
            if known is None or key in asked:
                places.append((i, i))
                continue
            if keys[places[known][0]] in asked:
                continue
        elif not _same_curve(curves[i], curves[places[known][0]], alike):
            continue
        if takes_its_place(i, places[known][0]):
            places[known] = i, places[known][1]
    return places


def counted_share(fits: Sequence[Fit], data: Dataset, form: Regression) -> float:
    """As what share of their number the observations count, by the best of the fits."""
    values = scores(fits, data, form)
    best = sorted(range(len(fits)), key=values.__getitem__)[:DECIDING]
    return independent_share([fits[i] for i in best], data)


def _with_origin(fit: Fit, asked: Mapping[str, Origin]) -> Fit:
    origin = asked.get(structure(fit.expression), fit.origin)
    return dataclasses.replace(fit, origin=origin)


def _rounder(one: Expression, other: Expression) -> bool:
    """Whether a law has fewer fitted numbers than another, and is no longer."""
    numbers, others = (sum(not is_plain(c) for c in law.constants) for law in (one, other))
    return numbers < others and one.complexity <= other.complexity


def _same_curve(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether two right-hand sides agree wherever both are defined; NaNs must match."""
    defined = np.isfinite(one)
    if not defined.any() or not np.array_equal(defined, np.isfinite(other)):
        return False
    size = np.abs(other[defined]).max()
    return bool(np.abs(one[defined] - other[defined]).max() <= tolerance * size)
