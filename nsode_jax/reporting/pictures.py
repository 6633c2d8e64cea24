"""What all pictures have in common: colours, axes, labels, formulas."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.ticker import MaxNLocator

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.observed.dataset import Dataset
from nsode_jax.results.analysis import limits

# Okabe and Ito's colours, which people with any colour vision can tell apart.
DATA, BEST, OTHERS, FIXED = "#4d4d4d", "#0072B2", ("#E69F00", "#CC79A7"), "#D55E00"
MARKERS = "osDPXp"  # Of several series, in turn; triangles are limits.
MOST_POINTS = 500  # More markers than this are a blot.
TIMES = 801  # At so many a solution is drawn.
STEPS = (1, 2, 2.5, 5, 10)  # Between ticks.
_SCREEN_DPI = 75
_FARTHEST = 10.0  # Below the smallest value, to which errors are shown over decades.
_MARGIN = 0.08  # Of the range of values, on either side.
_LEAST_OF_A_NAME = 12  # Letters, beside its unit.
_TITLE_SIZES = (15, 13, 11, 9)


class Drawing(Figure):
    """A figure that a notebook shows, which others are only once pyplot has been set up."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        buffer = io.BytesIO()
        save(self, buffer)
        width, height = (round(_SCREEN_DPI * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}


def new_figure(width: float, height: float) -> Drawing:
    """An empty figure of this size in inches, apart from pyplot."""
    figure = Drawing(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: str | Path | BinaryIO, kind: str | None = None) -> None:
    """Writes the figure, in the format that the ending names; as PNG, or `kind`, into a file."""
    with warnings.catch_warnings():
        # A name in letters that the font lacks shows as boxes; that is no reason to shout.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(path, format=kind)


def finish(axes: Axes, x_name: str, y_name: str) -> None:
    """Labels, ticks, grid and legend, alike in all panels."""
    axes.set_xlabel(x_name, fontsize=12)
    axes.set_ylabel(y_name, fontsize=12 if len(y_name) <= 40 else 10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=10, color="0.6")
    if axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=STEPS))
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: labels[i].startswith("candidate "))
    axes.legend([handles[i] for i in order], [labels[i] for i in order], frameon=False, fontsize=10)


def over_decades(data: Sequence[Trajectory]) -> bool:
    """Whether a logarithmic axis shows the values best."""
    values = Dataset(tuple(data))
    # The lowest value as it was measured: noise may count as moving a count of 0 above 0.
    return not values.noise_scale.linear and bool(values.y.min() > 0)


def scale_values(
    axes: Axes, data: Sequence[Trajectory], others: Float[np.ndarray, " others"] | None = None
) -> None:
    """Gives the axis the range of the values and their errors, on the scale that shows them.

    Args:
      axes: whose.
      data: the series.
      others: what else is to be seen, in units of y.
    """
    values = Dataset(tuple(data)).y
    errors = np.minimum(errors_of(data), np.ptp(values))  # One that is larger says nothing.
    ends = np.concatenate([values - errors, values + errors, *([] if others is None else [others])])
    if over_decades(data):
        # What errors may be below 0 has no end there.
        ends = np.concatenate([values, ends[ends > values.min() / _FARTHEST]])
        axes.set_yscale("log")
        axes.set_ylim(*np.exp(limits(np.log(ends), _MARGIN)))
    else:
        axes.set_ylim(*limits(ends, _MARGIN))


def errors_of(data: Sequence[Trajectory]) -> Float[np.ndarray, " all"]:
    """Known standard deviations of the values of all series; 0 where they are unknown."""
    return np.concatenate([np.zeros(len(s)) if s.errors is None else s.errors for s in data])


def thinned(points: int, most: int) -> Int[np.ndarray, " shown"]:
    """Indices of at most so many points, at least two, evenly spread."""
    return np.unique(np.linspace(0, points - 1, min(points, max(2, most))).astype(int))


def as_label(name: str, most: int = 40) -> str:
    """A name from a file as plain text of so many letters, or more as its unit stays whole.

    A dollar sign would begin a formula.
    """
    if len(name) > most:
        unit = re.search(r"\s*[\[(][^\[(]*[])]$", name)
        end = unit[0] if unit and len(unit[0]) <= most else ""
        first, least = name.removesuffix(end), max(_LEAST_OF_A_NAME, most - 1 - len(end))
        name = f"{first[:least]}…{end}" if len(first) > least else name
    return name.replace("$", r"\$")


def without_middle(label: str, most: int) -> str:
    """A label of at most so many letters: the ends of labels tell series apart."""
    half = (most - 1) // 2
    return as_label(label if len(label) <= most else f"{label[: most - 1 - half]}…{label[-half:]}")


def mathtext(latex: str, plain: str) -> str:
    """A formula in matplotlib's LaTeX, or else as plain text."""
    # Mathtext has no factor by mere juxtaposition: a thin space keeps `2 y` apart.
    latex = re.sub(r"(?<=[\dy})]) (?=[a-z]|\\(?![;,]|cdot))", r"\\,", latex)
    formula = f"${latex}$"
    try:
        MathTextParser("path").parse(formula)
    except ValueError:  # LaTeX that matplotlib does not know.
        return plain
    return formula


def renderer(figure: Figure) -> RendererBase:
    """Of its canvas, which draws pixels."""
    return figure.canvas.get_renderer()  # pyright: ignore[reportAttributeAccessIssue]


def write_title(figure: Figure, text: str, instead: str) -> None:
    """The text above all panels, as large as it fits; another one where it does not."""
    title = figure.suptitle(text)
    available = 0.97 * figure.bbox.width
    for size in _TITLE_SIZES:
        title.set_fontsize(size)
        if title.get_window_extent(renderer(figure)).width <= available:
            return
    title.set_text(instead)
    title.set_fontsize(_TITLE_SIZES[1])


def draw_limits(axes: Axes, limits: Sequence[Limits]) -> Float[np.ndarray, " limits"]:
    """Limits of values as triangles that point to where these are; returns those drawn."""
    t, limit, below = (
        np.concatenate([getattr(one, name) for one in limits]) if limits else np.empty(0)
        for name in ("t", "limit", "below")
    )
    for marker, side, label in (("v", True, "value is below"), ("^", False, "value is above")):
        chosen = np.isfinite(limit) & (below == side)
        if chosen.any():
            axes.plot(
                t[chosen], limit[chosen], marker, ms=7, mfc="none", mec=DATA, mew=1.2, label=label,
                zorder=3,
            )  # fmt: skip
    return limit[np.isfinite(limit)]


def draw_points(
    axes: Axes,
    data: Sequence[Trajectory],
    values: Float[np.ndarray, " all"],
    label: str,
    errors: Float[np.ndarray, " all"] | None = None,
) -> None:
    """One value per observation of each series, in markers of its own, with known errors.

    Args:
      axes: where to.
      data: the series.
      values: what is drawn of them.
      label: in the legend.
      errors: of these values, 0 for unknown; those of the data if left out.
    """
    errors = errors_of(data) if errors is None else errors
    starts = np.cumsum([0, *map(len, data)])
    for number, trajectory in enumerate(data):
        shown = thinned(len(trajectory), MOST_POINTS // len(data))
        times, drawn = trajectory.t[shown], values[starts[number] :][shown]
        error = errors[starts[number] :][shown]
        if error.any():
            axes.vlines(times, drawn - error, drawn + error, color=DATA, lw=1.0, alpha=0.5)
        axes.plot(
            times,
            drawn,
            MARKERS[number % len(MARKERS)],
            ms=5 if len(shown) < 100 else 3,
            color=DATA,
            mec="white",
            mew=0.5,
            label=f"_{number}" if number else label,
            zorder=3,
        )
