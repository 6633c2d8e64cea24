"""The figures of the report: top-k curves and recovered skeletons by complexity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsode_jax.evaluation.measures import METRIC_NAMES, recovery_by_complexity, top_k
from nsode_jax.evaluation.methods import METHODS, MOST_BEAMS
from nsode_jax.evaluation.metrics import METRICS
from nsode_jax.evaluation.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any colour vision can tell apart; the
# dashes tell the lines apart in print, and where they cover each other.
_STYLES = {
    "iv": ("#0072B2", "-"),
    "iv-500": ("#0072B2", "-"),
    "constants": ("#E69F00", (0, (7, 1.5))),
    "constants-250": ("#E69F00", (0, (7, 1.5))),
    "skeletons": ("#009E73", (0, (5, 1.5, 1, 1.5))),
    "iv-163": ("#56B4E9", (0, (3, 1.5))),
    "iv-163-even": ("#999933", (0, (3, 1.5, 1, 1.5))),
    "textbook": ("#D55E00", "-"),
    "classic": ("#CC79A7", (0, (7, 1.5, 1, 1.5, 1, 1.5))),
    "odebench": ("#4d4d4d", (0, (1.5, 1.2))),
}
"""Of each test set, the same in all figures; a sample is drawn as its whole set."""

_PROBLEMS, _ANY, _FIRST = "#d9d9d9", "#56B4E9", "#0072B2"
_WIDTH = 9.0  # Inches; a page of GitHub shows them at about 100 pixels each.
_MOST_COLUMNS = 3


def draw_top_k(runs: Sequence[Run]) -> Figure:
    """Percentage of problems with a rank of at most k (the paper's figure 2).

    Args:
      runs: of one method, on different sets; those without results are left out.

    Returns:
      A panel per metric with a line per run, and the legend in the place of a sixth.
    """
    runs = [run for run in runs if run.results]
    figure = _new_figure(_WIDTH, 5.8)
    *panels, corner = figure.subplots(2, 3, sharex=True, sharey=True).flat
    for axes, metric in zip(panels, METRICS, strict=True):
        for run in runs:
            steps, (colour, dashes) = top_k(run, metric), _STYLES[run.data.set]
            at = ([step.k for step in steps], [step.percent for step in steps])
            style = {"color": colour, "ls": dashes, "lw": 1.9}
            axes.plot(*at, drawstyle="steps-post", label=_with_count(run), **style)
        axes.set_title(METRIC_NAMES[metric], fontsize=11)
        _finish(axes)
    panels[0].set_xscale("log")
    panels[0].set(xlim=(1, MOST_BEAMS), ylim=(-3, 103))  # 0 and 100 lie off the edge.
    panels[0].set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
    corner.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    style = {"frameon": False, "fontsize": 10, "handlelength": 3.2}
    corner.legend(handles, labels, loc="center", title="test set (problems)", **style)
    figure.supxlabel("k, number of candidates considered", fontsize=11)
    figure.supylabel("problems solved (%)", fontsize=11)
    return figure


def _with_count(run: Run) -> str:
    return f"{run.data.set} ({run.count if run.interrupted else run.of})"


def draw_recovery(runs: Sequence[Run]) -> Figure:
    """Recovered skeletons per complexity of the true law (the paper's figures 3, 6 to 9).

    Args:
      runs: of several methods on one set; those without results are left out.

    Returns:
      A panel per run: problems in grey, before them those recovered by any candidate,
      before these those recovered by the first.
    """
    runs = [run for run in runs if run.results]
    columns = min(_MOST_COLUMNS, len(runs))
    rows = math.ceil(len(runs) / columns)
    figure = _new_figure(max(5.0, _WIDTH * columns / _MOST_COLUMNS), 0.9 + 2.5 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for axes, run in zip(panels, runs):
        _draw_bars(axes, run)
    for axes in panels[len(runs) :]:
        axes.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    style = {"frameon": False, "fontsize": 10, "handlelength": 1.2, "columnspacing": 1.3}
    figure.legend(handles, labels, loc="outside upper center", ncols=3, **style)
    figure.supxlabel("complexity of the true law (tokens)", fontsize=11)
    figure.supylabel("number of problems", fontsize=11)
    return figure


def _draw_bars(axes: Axes, run: Run) -> None:
    from matplotlib.ticker import MaxNLocator

    rows = recovery_by_complexity(run)
    bars = [(row.complexity, row) for row in rows if row.complexity is not None]
    complexities = [complexity for complexity, _ in bars]
    for field, colour, label in (
        ("problems", _PROBLEMS, "problems"),
        ("any", _ANY, "recovered by any candidate"),
        ("first", _FIRST, "by the first"),
    ):
        heights = [getattr(row, field) for _, row in bars]
        axes.bar(complexities, heights, width=0.85, color=colour, label=label)
    found, first = (sum(getattr(row, field) for row in rows) for field in ("any", "first"))
    counts = f"{found} of {len(run.results)}, {first} by the first"
    left_out = f" ({run.of - len(run.results)} missing)" if run.interrupted else ""
    axes.set_title(f"{METHODS[run.method].title}\n", fontsize=11)
    axes.text(0.5, 1.03, counts + left_out, transform=axes.transAxes, fontsize=9, ha="center")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    _finish(axes)


def _new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, apart from pyplot."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    apart = ConstrainedLayoutEngine(wspace=0.05)  # Lest the last tick meet the next first.
    return Figure(figsize=(width, height), dpi=150, layout=apart)


def _finish(axes: Axes) -> None:
    """Ticks, spines and grid, alike in all panels."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    # Also where panels share an axis: the one below may be missing.
    axes.tick_params(labelsize=10, color="0.6", labelbottom=True)
