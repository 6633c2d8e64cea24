"""The picture of a discovery: the data with the law's solution, and the law itself."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser
from matplotlib.ticker import MaxNLocator
from scipy.optimize import brentq

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression

if TYPE_CHECKING:
    from nsode_jax.discovery.result import Candidate, Discovery

# Okabe and Ito's colours, which people with any colour vision can tell apart.
_DATA, _BEST, _OTHERS, _FIXED = "#4d4d4d", "#0072B2", ("#E69F00", "#CC79A7"), "#D55E00"
_MOST_POINTS = 500  # More markers than this are a blot.
_MOST_SLOPES = 100
_GRID = 801
_TITLE_SIZES = (15, 13, 11, 9)


def plot(
    discovery: Discovery,
    path: str | Path | None = None,
    time_name: str = "t",
    value_name: str = "y",
) -> Figure:
    """Draws the data with the best solution, and the best f(y) with its fixed points.

    Up to two of the next candidates that differ visibly are drawn faintly. Points in
    the right panel are slopes of the data, see `slopes`; they scatter with the noise.

    Args:
      discovery: what `discover` found.
      path: where to save the picture, by its ending as PNG, PDF or SVG; None saves nothing.
      time_name, value_name: what time and value are called on the axes.

    Returns:
      The figure, which belongs to no pyplot window.

    Raises:
      OSError: if `path` cannot be written.
    """
    data, best = discovery.trajectory, discovery.best
    time_name, value_name = _as_label(time_name), _as_label(value_name)
    figure = Figure(figsize=(11.5, 4.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    solution, law = figure.subplots(1, 2, gridspec_kw={"wspace": 0.06})

    y = _grid(data.y)
    f = _finite(best.expression.evaluate(y))
    others = list(_different(discovery, y, f))

    _draw_solutions(solution, data, best, others)
    solution.set(xlabel=time_name, ylabel=value_name)
    solution.set_title("data and solution", fontsize=11, loc="left", color=_DATA)

    _draw_law(law, data, best, others, y, f)
    rate = f"d {value_name} / d {time_name}"
    law.set(xlabel=value_name, ylabel=rate if len(rate) <= 45 else "rate of change")
    where = "" if value_name == "y" else f", where y is {value_name}"
    law.set_title("law f(y)" + where, fontsize=11, loc="left", color=_DATA)

    for axes in (solution, law):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.92", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=10, color="0.6")
        axes.xaxis.label.set_size(12)
        axes.yaxis.label.set_size(12)
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.yaxis.set_major_locator(MaxNLocator(6))
        handles, labels = axes.get_legend_handles_labels()
        order = sorted(range(len(labels)), key=lambda i: labels[i].startswith("candidate"))
        axes.legend(
            [handles[i] for i in order], [labels[i] for i in order], frameon=False, fontsize=10
        )
    _write_title(figure, best)

    if path is not None:
        with warnings.catch_warnings():
            # A name in letters that the font lacks shows as boxes; that is no reason to shout.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.savefig(path)
    return figure


def _draw_solutions(
    axes: Axes, data: Trajectory, best: Candidate, others: list[tuple[int, Candidate]]
) -> None:
    t = np.unique(np.linspace(data.t[0], data.t[-1], _GRID))
    for (rank, other), colour in zip(others, _OTHERS):
        label = f"candidate {rank}, R² = {_r2_text(other.r2)}"
        axes.plot(t, _finite(other.predict(t)), color=colour, lw=1.4, alpha=0.7, label=label)
    label = f"best law, R² = {_r2_text(best.r2)}"
    axes.plot(t, _finite(best.predict(t)), color=_BEST, lw=2.4, label=label)
    shown = _thinned(len(data))
    axes.plot(
        data.t[shown],
        data.y[shown],
        "o",
        ms=5 if len(shown) < 100 else 3,
        color=_DATA,
        mec="white",
        mew=0.5,
        label="data" if len(shown) == len(data) else f"data ({len(shown)} of {len(data)} points)",
        zorder=3,
    )
    # A candidate that runs away must not squeeze the data.
    axes.set_ylim(*_limits(data.y, 0.08))


def _draw_law(
    axes: Axes,
    data: Trajectory,
    best: Candidate,
    others: list[tuple[int, Candidate]],
    y: Float[np.ndarray, "grid"],
    f: Float[np.ndarray, "grid"],
) -> None:
    axes.axhline(0.0, color="0.6", lw=1.0)
    at, slope = slopes(data)
    axes.plot(at, slope, "o", ms=4, color=_DATA, alpha=0.55, mew=0, label="slopes of the data")
    for (_, other), colour in zip(others, _OTHERS):
        g = _finite(other.expression.evaluate(y))
        axes.plot(y, g, color=colour, lw=1.4, alpha=0.7)
    axes.plot(y, f, color=_BEST, lw=2.4)
    roots = fixed_points(best.expression, y)
    for stable, fill in ((True, _FIXED), (False, "white")):
        chosen = [root for root, is_stable in roots if is_stable == stable]
        if chosen:
            label = ("stable" if stable else "unstable") + " fixed point"
            axes.plot(
                chosen,
                np.zeros(len(chosen)),
                "o",
                ms=9,
                mfc=fill,
                mec=_FIXED,
                mew=1.8,
                label=label,
                zorder=4,
                clip_on=False,
            )
    # Noise and poles must not squeeze the curve: the scale is that of the bulk.
    inside = f[(y >= data.y.min()) & (y <= data.y.max()) & np.isfinite(f)]
    seen = [np.percentile(slope, [2, 98]), [0.0]]
    if inside.size:
        seen.append(np.percentile(inside, [1, 99]))
    axes.set_ylim(*_limits(np.concatenate(seen), 0.12))
    axes.set_xlim(y[0], y[-1])


def slopes(data: Trajectory) -> tuple[Float[np.ndarray, "slope"], Float[np.ndarray, "slope"]]:
    """Slopes of the data by central differences.

    A long series is first averaged in blocks of neighbours, so that the scatter of
    the slopes does not grow with the number of points.

    Returns:
      (y, dy/dt), in the units of the data.
    """
    blocks = min(len(data), _MOST_SLOPES)
    starts = (np.arange(blocks) * len(data)) // blocks
    sizes = np.diff(starts, append=len(data))
    t, y = (np.add.reduceat(values, starts) / sizes for values in (data.t, data.y))
    return y[1:-1], (y[2:] - y[:-2]) / (t[2:] - t[:-2])


def fixed_points(expression: Expression, y: Float[np.ndarray, "grid"]) -> list[tuple[float, bool]]:
    """Where f crosses zero on the range of the grid, and whether it is stable there.

    Args:
      expression: f.
      y: increasing values; crossings are found between neighbours.

    Returns:
      (y, stable) for each fixed point, y increasing. Stable: f falls through zero.
    """

    def at(value: float) -> float:
        return float(expression.evaluate(value))

    f = expression.evaluate(y)
    scale = np.nanmax(np.abs(_finite(f)), initial=0.0)
    roots = []
    for i in range(len(y) - 1):
        low, high = f[i], f[i + 1]
        if not (np.isfinite(low) and np.isfinite(high)):
            continue
        if low < 0 < high or high < 0 < low:
            root = brentq(at, y[i], y[i + 1], xtol=1e-9 * (y[i + 1] - y[i]))
            if abs(at(root)) <= 1e-6 * scale:  # At a pole f changes sign without being zero.
                roots.append((root, bool(low > 0)))
        elif low == 0 != high:
            before = f[i - 1] if i else -high
            if before < 0 < high or high < 0 < before:
                roots.append((float(y[i]), bool(high < 0)))
        elif high == 0 != low and i == len(y) - 2:
            roots.append((float(y[-1]), bool(low > 0)))
    return roots


def _grid(values: Float[np.ndarray, "time"]) -> Float[np.ndarray, "grid"]:
    """The observed range and a little more; values that are never negative stay so."""
    low, high = _limits(values, 0.05)
    if values.min() >= 0:
        low = max(low, 0.0)
    if values.max() <= 0:
        high = min(high, 0.0)
    return np.linspace(low, high, _GRID)


def _limits(values: Float[np.ndarray, "..."], margin: float) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    extra = margin * (high - low) or 1.0
    return low - extra, high + extra


def _different(
    discovery: Discovery, y: Float[np.ndarray, "grid"], f: Float[np.ndarray, "grid"]
) -> Iterator[tuple[int, Candidate]]:
    """(rank, candidate) of up to two more whose f differs from those drawn before."""
    drawn = [f]
    for rank, candidate in enumerate(discovery.candidates, start=1):
        if len(drawn) > len(_OTHERS):
            return
        if candidate is discovery.best or not np.isfinite(candidate.r2):
            continue
        g = _finite(candidate.expression.evaluate(y))
        if not any(_alike(g, other) for other in drawn):
            drawn.append(g)
            yield rank, candidate


def _alike(g: Float[np.ndarray, "grid"], f: Float[np.ndarray, "grid"]) -> bool:
    """Whether two curves are less than a line's width apart."""
    both = np.isfinite(f) & np.isfinite(g)
    if not both.any():
        return True
    return bool(np.percentile(np.abs(f - g)[both], 95) < 0.02 * np.abs(f[both]).max())


def _finite(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Values with NaN, which leaves a gap, where there is no finite number."""
    values = np.asarray(values, np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _thinned(points: int) -> Float[np.ndarray, "shown"]:
    """Indices of at most `_MOST_POINTS` points, evenly spread."""
    return np.unique(np.linspace(0, points - 1, min(points, _MOST_POINTS)).astype(int))


def _r2_text(r2: float) -> str:
    """R2 in so many digits that 0.9996 does not read as 1."""
    return f"{r2:.4f}" if np.isfinite(r2) else "none (diverges)"


def _as_label(name: str) -> str:
    """A name from a file as plain text: a dollar sign would begin a formula."""
    name = name if len(name) <= 40 else name[:39] + "…"
    return name.replace("$", r"\$")


def _write_title(figure: Figure, best: Candidate) -> None:
    """The formula and its R2 above both panels, as large as it fits."""
    shown = best.expression.rounded(3)
    # Mathtext has no factor by mere juxtaposition: a thin space keeps `2 y` apart.
    latex = re.sub(r"(?<=[\d}]) (?=[a-z]|\\(?!cdot))", r"\\,", shown.latex(3))
    formula = rf"$dy/dt \;=\; {latex}$"
    try:
        MathTextParser("path").parse(formula)
    except ValueError:  # LaTeX that matplotlib does not know.
        formula = f"dy/dt = {shown.infix}"
    quality = f"      R² = {_r2_text(best.r2)}"
    title = figure.suptitle(formula + quality)
    available = 0.97 * figure.bbox.width
    for size in _TITLE_SIZES:
        title.set_fontsize(size)
        if title.get_window_extent(figure.canvas.get_renderer()).width <= available:
            return
    title.set_text(f"dy/dt = f(y), a formula of complexity {best.complexity}" + quality)
    title.set_fontsize(_TITLE_SIZES[1])
