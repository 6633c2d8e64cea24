"""Pictures of many series with one form of law: small panels, and constants side by side."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsode_jax.reporting.pictures import (
    BEST,
    DATA,
    FIXED,
    as_label,
    new_figure,
    over_decades,
    save,
    scale_values,
    without_middle,
    write_title,
)
from nsode_jax.results.analysis import finite, limits
from nsode_jax.results.own_constants import FormResult

_TIMES = 201
_POINTS = 72
"""In an inch."""

_OF_A_LETTER = 0.75
"""Width of a letter as a share of its size, with some room between panels."""

_MOST_PANELS = 96
_MOST_NAMES = 40
"""More labels than these below an axis cannot be read."""

_MOST_LETTERS = 40
"""More than these have no room beside each other."""


def plot_series(
    found: FormResult,
    path: str | Path | None = None,
    time_name: str = "t",
    value_name: str = "y",
) -> Figure:
    """Every series with its solution by the best form, on common axes.

    Args:
      found: what was found. Of more than 96 series as many are drawn, evenly chosen.
      path: where to save the picture; None saves nothing.
      time_name, value_name: what time and value are called.

    Returns:
      The figure, which belongs to no pyplot window.

    Raises:
      OSError: if `path` cannot be written.
    """
    total = len(found.trajectories)
    shown = np.unique(np.linspace(0, total - 1, min(total, _MOST_PANELS)).round().astype(int))
    columns = min(shown.size, math.ceil(math.sqrt(1.5 * shown.size)))
    rows = math.ceil(shown.size / columns)
    width = max(6.0, 1.25 * columns)
    figure = new_figure(width, max(3.2, 1.0 * rows + 1.0))
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for panel in panels[shown.size :]:
        panel.set_visible(False)
    for panel, series in zip(panels, shown):
        _draw(panel, found, int(series), width / columns, small=shown.size > 12)
    scale_values(panels[0], [found.trajectories[i] for i in shown])
    figure.supxlabel(as_label(time_name), fontsize=11)
    figure.supylabel(as_label(value_name), fontsize=11)
    some = "" if shown.size == total else f" ({shown.size} of {total} series)"
    write_title(figure, f"{found.best}{some}", f"{total} series and their solutions{some}")
    if path is not None:
        save(figure, path)
    return figure


def _draw(axes: Axes, found: FormResult, series: int, width: float, *, small: bool) -> None:
    """A series, its solution and its label, on a panel that is so many inches wide."""
    data, best = found.trajectories[series], found.best
    axes.plot(data.t, data.y, "o", ms=2 if small else 4, color=DATA, mew=0, alpha=0.7)
    t = np.linspace(data.t[0], data.t[-1], _TIMES)
    axes.plot(t, finite(best.solution(t, series)), color=BEST, lw=1.2 if small else 2.0)
    if len(found.labels) > 1:
        size = 7 if small else 9
        most = int(width * _POINTS / (_OF_A_LETTER * size))
        axes.set_title(without_middle(found.labels[series], most), fontsize=size, pad=2)
    axes.tick_params(labelsize=6 if small else 8, color="0.6")
    axes.spines[["top", "right"]].set_visible(False)
    if not over_decades(found.trajectories):
        axes.locator_params(nbins=3)
    if not np.isfinite(best.residual_rms[series]):
        axes.text(0.5, 0.5, "no solution", color=FIXED, fontsize=7, ha="center",
                  transform=axes.transAxes)  # fmt: skip


def plot_constants(found: FormResult, path: str | Path | None = None) -> Figure:
    """The constants of every series with their 95% intervals, a panel for each constant.

    Args:
      found: what was found.
      path: where to save the picture; None saves nothing.

    Returns:
      The figure, which belongs to no pyplot window.

    Raises:
      OSError: if `path` cannot be written.
    """
    best = found.best
    number, intervals = len(found.labels), best.confidence_intervals
    width = min(14.0, max(6.0, 4.0 + 0.16 * number))
    figure = new_figure(width, 1.2 + 1.9 * len(best.names))
    panels = figure.subplots(len(best.names), 1, sharex=True, squeeze=False)[:, 0]
    places = np.arange(number)
    for place, (axes, compared) in enumerate(zip(panels, best.compared(), strict=True)):
        values = best.constants[:, place]
        half = np.stack([values - intervals[:, place, 0], intervals[:, place, 1] - values])
        known = np.isfinite(half).all(axis=0)
        axes.errorbar(
            places[known], values[known], half[:, known], fmt="o", ms=3, lw=1.0, color=BEST
        )
        axes.plot(places[~known], values[~known], "x", ms=4, color=FIXED)
        middle = compared.mean if compared.is_common else compared.median
        if math.isfinite(middle):
            axes.axhline(middle, color="0.6", lw=1.0, zorder=0)
        if known.any():
            # One series that says nothing must not squeeze the others; one that differs is seen.
            low, high = intervals[known, place].T
            differs = (low > middle) | (high < middle)
            seen = np.quantile([low, high], [0.02, 0.98]), values[known][differs]
            axes.set_ylim(*limits(np.concatenate(seen), 0.15))
        axes.set_ylabel(as_label(compared.name), fontsize=11)
        axes.tick_params(labelsize=8, color="0.6")
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.92", linewidth=0.8)
    if number <= _MOST_NAMES:
        side_by_side = sum(map(len, found.labels)) <= _MOST_LETTERS
        labels = [as_label(label) for label in found.labels]
        panels[-1].set_xticks(places, labels, rotation=0 if side_by_side else 90)
    panels[-1].set_xlabel("series")
    write_title(figure, f"{best}: constants with 95% intervals", "Constants, 95% intervals")
    if path is not None:
        save(figure, path)
    return figure
