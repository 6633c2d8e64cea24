"""The order of fitted laws, each law once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import Fit
from nsode_jax.selection.score import score, scores


def rank(
    fits: Sequence[Fit],
    data: Dataset,
    *,
    same: float = 1e-6,
    alike: float = 1e-4,
) -> list[tuple[Fit, float]]:
    """Best law first, each law once.

    Of fits with the same skeleton (signs aside) the best stays. Of laws whose f
    differs by less than `same` of its largest value over the observed range the
    simplest stays, of those that differ by less than `alike` the best: they are one law
    written in two ways, or not to be told apart. Laws that diverge come last.

    Args:
      fits: any number of fits.
      data: what they were fitted to.
      same, alike: such relative differences.

    Returns:
      Pairs of a fit and its score, lowest score first.
    """
    values = scores(fits, data)
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
