"""The order of fitted laws, each law once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import Fit
from nsode_jax.fitting.regression import Regression
from nsode_jax.selection.score import residual_floor, score, scores

_ALIKE_BESIDE_SOLUTIONS = 1e-4
"""Rates that differ by this share of the largest one are alike to a solution."""

_ALIKE = 3.0
"""Likewise in an exact form, times its floor."""


def rank(
    fits: Sequence[Fit],
    data: Dataset,
    form: Regression,
) -> list[tuple[Fit, float]]:
    """Best law first, each law once.

    Of fits with the same skeleton (signs aside) the best stays. Of laws whose f
    differs by next to nothing over the observed range the simplest stays, of those that
    differ by less than the data can show the best: they are one law written in two ways,
    or not to be told apart. Laws that diverge come last.

    Args:
      fits: any number of fits.
      data: what they were fitted to.
      form: the same, as it was prepared for fitting.

    Returns:
      Pairs of a fit and its score, lowest score first.
    """
    alike = _ALIKE * residual_floor(data, form) if form.exact else _ALIKE_BESIDE_SOLUTIONS
    same = alike / 100
    values = scores(fits, data, form)
    order = sorted(range(len(fits)), key=lambda i: (values[i], fits[i].expression.complexity, i))
    grid = data.values(64)
    kept: list[int] = []
    curves: dict[int, np.ndarray] = {}
    keys: set[str] = set()
    # What each would score if it fitted exactly.
    simplest = [score(fit.expression, 0.0, data.count) for fit in fits]
    for i in order:
        key = fits[i].expression.skeleton.unsigned_key
        if key in keys:
            continue
        keys.add(key)
        curve = fits[i].expression.evaluate(grid)
        twin = next((j for j in kept if _same_curve(curve, curves[j], alike)), None)
        if twin is None:
            kept.append(i)
        elif _same_curve(curve, curves[twin], same) and simplest[i] < simplest[twin]:
            kept[kept.index(twin)] = i
        else:
            continue
        curves[i] = curve
    kept.sort(key=lambda i: (values[i], fits[i].expression.complexity, i))
    return [(fits[i], values[i]) for i in kept]


def _same_curve(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether two right-hand sides agree wherever both are defined; NaNs must match."""
    defined = np.isfinite(one)
    if not defined.any() or not np.array_equal(defined, np.isfinite(other)):
        return False
    size = np.abs(other[defined]).max()
    return bool(np.abs(one[defined] - other[defined]).max() <= tolerance * size)
