"""The picture of the trade-off: residual over complexity of all candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Bbox

from nsode_jax.reporting.pictures import BEST, DATA, FIXED, STEPS, as_label, finish, renderer
from nsode_jax.results.result import Candidate, Result

_MOST_LABELS, _LONGEST_LABEL = 6, 42
_CIRCLE = 12  # Points, around the best law.


def draw_pareto(axes: Axes, result: Result, value_name: str) -> None:
    """Residual over complexity of all candidates, the front, and the best law on it."""
    best, front, unit = result.best, result.pareto_front, result.noise_scale.factor
    shown = [c for c in result.candidates if _drawable(c.residual_rms)]
    axes.set_yscale("log")
    axes.plot(
        [c.complexity for c in shown],
        [c.residual_rms / unit for c in shown],
        "o",
        ms=5,
        color=DATA,
        alpha=0.35,
        mew=0,
        label="candidates",
    )
    corners = [c for c in front if _drawable(c.residual_rms)]
    steps = ([c.complexity for c in corners], [c.residual_rms / unit for c in corners])
    label = "no shorter law is as good"
    axes.plot(*steps, "o-", color=BEST, lw=1.6, ms=6, drawstyle="steps-post", label=label)
    if _drawable(best.residual_rms):
        at = ([best.complexity], [best.residual_rms / unit])
        axes.plot(*at, "o", ms=_CIRCLE, mfc="none", mec=FIXED, mew=2.2, label="best law")
    relative = not result.noise_scale.linear
    label = "residual (RMS), as a share of each value" if relative else _error_label(value_name)
    finish(axes, "complexity (operators, variables and constants)", label)
    _scale_front(axes, corners, best, unit)
    _label_sparsely(axes, _by_importance(corners, best), unit)


def _error_label(value_name: str) -> str:
    label = f"residual (RMS), in units of {as_label(value_name)}"
    return label if len(label) <= 50 else "residual (RMS)"


def _drawable(residual: float) -> bool:
    """Whether a logarithmic axis can show it."""
    return bool(np.isfinite(residual) and residual > 0)


def _scale_front(axes: Axes, corners: Sequence[Candidate], best: Candidate, unit: float) -> None:
    """Limits and ticks for the front: what is far worse, or far longer, is left outside."""
    seen = [c for c in (*corners, best) if _drawable(c.residual_rms)]
    if not seen:
        return
    heights = [c.residual_rms / unit for c in seen]
    low, high = min(heights), max(heights)
    high = max(high, 1.5 * low)
    margin = max(1.15, (high / low) ** 0.12)
    axes.set_ylim(low / margin, high * margin**2)  # Room above for the labels.
    sizes = [c.complexity for c in seen]
    axes.set_xlim(max(0, min(sizes) - 2), max(sizes) + max(6, 0.4 * max(sizes)) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=(1, 2, 5, 10)))
    if high / low < 20:  # Powers of ten would be one tick, or none.
        axes.yaxis.set_major_locator(MaxNLocator(7, steps=STEPS))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())


def _by_importance(corners: Sequence[Candidate], best: Candidate) -> list[Candidate]:
    """The best law, then those of the front by how much better they are than the one before."""
    drops = [np.inf] + [
        np.log(before.residual_rms / after.residual_rms)
        for before, after in zip(corners, corners[1:])
    ]
    order = sorted(range(len(corners)), key=lambda i: -drops[i])
    first = [best] if _drawable(best.residual_rms) else []
    return first + [corners[i] for i in order if corners[i] is not best]


def _label_sparsely(axes: Axes, candidates: Sequence[Candidate], unit: float) -> None:
    """Formulas beside their points, as many as neither meet nor leave the panel.

    Nor do they hide the circle around the first of the points.
    """
    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()  # The layout is settled only now.
    drawn_by, panel = renderer(figure), axes.get_window_extent()
    legend = axes.get_legend()
    taken = [legend.get_window_extent(drawn_by)] if legend else []
    for x, y in axes.transData.transform(
        [(c.complexity, c.residual_rms / unit) for c in candidates[:1]]
    ):
        half = _CIRCLE / 2 * figure.dpi / 72
        taken.append(Bbox.from_extents(x - half, y - half, x + half, y + half))
    most = len(taken) + _MOST_LABELS
    for candidate in candidates:
        formula = candidate.rounded().infix
        if len(taken) >= most or len(formula) > _LONGEST_LABEL:
            continue
        for offset, up in (((7, 7), "bottom"), ((7, -7), "top")):
            text = axes.annotate(
                formula,
                (candidate.complexity, candidate.residual_rms / unit),
                offset,
                textcoords="offset points",
                fontsize=9,
                va=up,
                bbox={"fc": "white", "alpha": 0.8, "ec": "none", "pad": 0.5},
            )
            box = text.get_window_extent(drawn_by)
            fits = panel.x0 <= box.x0 and box.x1 <= panel.x1
            fits = fits and panel.y0 <= box.y0 and box.y1 <= panel.y1
            if fits and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
