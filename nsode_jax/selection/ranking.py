"""The order of fitted laws, each law once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.fitting.regression import Regression
from nsode_jax.selection.score import independent_share, residual_floor, score, scores

_ALIKE_BESIDE_SOLUTIONS = 1e-4
"""Rates that differ by this share of the largest one are alike to a solution."""

_ALIKE = 3.0
"""Likewise in an exact form, times its floor."""

_DECIDING = 5
"""So many laws, the best, tell how independent the observations are."""


def rank(
    fits: Sequence[Fit],
    data: Dataset,
    form: Regression,
) -> list[tuple[Fit, float]]:
    """Best law first, each law once.

    Of fits with the same skeleton (signs aside) the best stays. Of laws whose f
    differs by next to nothing over the observed range the simplest stays, of those that
    differ by less than the data can show the best: they are one law written in two ways,
    or not to be told apart. In an exact form the one with fewer fitted numbers stays of
    these: to fit data of seven digits with round numbers is no accident. A law that
    somebody asked for stays in any case; if another fit of its skeleton is better, that one
    takes its origin. Laws that diverge come last.

    Args:
      fits: any number of fits.
      data: what they were fitted to.
      form: the same, as it was prepared for fitting.

    Returns:
      Pairs of a fit and its score, lowest score first.
    """
    alike = _ALIKE * residual_floor(data, form) if form.exact else _ALIKE_BESIDE_SOLUTIONS
    same = alike / 100
    values = scores(fits, data, form, counted_share(fits, data, form))
    order = sorted(range(len(fits)), key=lambda i: (values[i], fits[i].expression.complexity, i))
    grid = data.values(64)
    kept: list[int] = []
    curves: dict[int, np.ndarray] = {}
    keys: set[str] = set()
    # What each would score if it fitted exactly.
    simplest = [score(fit.expression, 0.0, form) for fit in fits]
    asked = {
        fit.expression.skeleton.unsigned_key: fit.origin for fit in fits if fit.origin.asked_for
    }
    for i in order:
        key = fits[i].expression.skeleton.unsigned_key
        if key in keys:
            continue
        keys.add(key)
        curve = fits[i].expression.evaluate(grid)
        twin = next((j for j in kept if _same_curve(curve, curves[j], alike)), None)
        if twin is None or key in asked:
            kept.append(i)
        elif fits[twin].expression.skeleton.unsigned_key not in asked and (
            (simplest[i] < simplest[twin] and _same_curve(curve, curves[twin], same))
            or (form.exact and _rounder(fits[i].expression, fits[twin].expression))
        ):
            kept[kept.index(twin)] = i
        else:
            continue
        curves[i] = curve
    kept.sort(key=lambda i: (values[i], fits[i].expression.complexity, i))
    return [(_with_origin(fits[i], asked), values[i]) for i in kept]


def counted_share(fits: Sequence[Fit], data: Dataset, form: Regression) -> float:
    """As what share of their number the observations count, by the best of the fits."""
    values = scores(fits, data, form)
    best = sorted(range(len(fits)), key=values.__getitem__)[:_DECIDING]
    return independent_share([fits[i] for i in best], data)


def _with_origin(fit: Fit, asked: Mapping[str, Origin]) -> Fit:
    origin = asked.get(fit.expression.skeleton.unsigned_key, fit.origin)
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
