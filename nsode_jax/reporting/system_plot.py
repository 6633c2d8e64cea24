"""Pictures of a system: data and solutions over time, residuals, the plane of two states."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nsode_jax.reporting.pictures import (
    BEST,
    DATA,
    FIXED,
    MARKERS,
    MOST_POINTS,
    OTHERS,
    STEPS,
    TIMES,
    as_label,
    finish,
    mathtext,
    new_figure,
    save,
    scale_values,
    thinned,
    write_title,
)
from nsode_jax.results.analysis import finite, grid, limits
from nsode_jax.results.formatting import r2_text
from nsode_jax.results.system_analysis import (
    SystemFixedPoint,
    find_fixed_points,
    is_autonomous,
    residuals,
)
from nsode_jax.results.system_result import SystemCandidate, SystemResult

_GRID = 121  # Points along each side of a plane where f is computed.
_VISIBLE = 0.01
_BEYOND = 0.12  # Of the range of the states, on either side of it.
_MOST_PAIRS = 6
_KINDS = {"node": "s", "focus": "o", "saddle": "X", "centre": "D", "undetermined": "P"}


def plot(found: SystemResult, path: str | Path | None = None, time_name: str = "t") -> Figure:
    """Draws data and solutions over time, and beside them the planes of the states.

    Args:
      found: what `discover` found.
      path: where to save the picture, by its ending as PNG, PDF or SVG; None saves nothing.
      time_name: what the time is called.

    Returns:
      The figure, which belongs to no pyplot window.

    Raises:
      OSError: if `path` cannot be written.
    """
    number = len(found.system.observed) + len(found.system.inputs)
    planes = has_planes(found)
    figure = new_figure(12.5 if planes else 8.0, max(4.8, 1.7 * number + 1.2))
    widths = (1.15, 1.0) if planes else (1.0,)
    # A part of its own even where there is but one: the legend would be over the title.
    parts = figure.subfigures(1, len(widths), squeeze=False, width_ratios=widths)[0]
    draw_solutions(parts[0], found, time_name)
    if planes:
        draw_planes(parts[1], found)
    quality = f"R² = {r2_text(found.best.r2)}"
    write_title(figure, f"{system_mathtext(found.best)}\n{quality}", quality)
    if path is not None:
        save(figure, path)
    return figure


def system_mathtext(best: SystemCandidate) -> str:
    """The equations, one on each line, rounded for display."""
    rows = zip(best.latex_rows(), str(best).splitlines(), strict=True)
    return "\n".join(mathtext(rf"{left} \;=\; {right}", plain) for (left, right), plain in rows)


# --- over time ---------------------------------------------------------------


def draw_solutions(
    figure: Figure | SubFigure,
    found: SystemResult,
    time_name: str,
    called: str = "",
    band: bool = True,
) -> None:
    """A panel for each quantity: its data in all runs, and the fitted solutions.

    The band is the solution give or take two residuals (root mean square), wider where values
    are noisier. Inputs are drawn below.
    """
    best, system = found.best, found.system
    panels = _panels(figure, len(system.observed) + len(system.inputs))
    pieces = [
        (run, piece)
        for number, run in enumerate(found.runs)
        for piece in best.solutions(run, number, TIMES)
    ]
    for k, (axes, name) in enumerate(zip(panels, system.observed)):
        values = np.concatenate([run.y[:, k] for run in found.runs])
        noise = 2.0 * best.residuals[k]
        wide = band and np.isfinite(noise) and noise > _VISIBLE * np.ptp(values)
        for place, (run, (t, states)) in enumerate(pieces):
            solution = finite(states[:, k])
            label = "_" if place else called or _solution_label(best)
            axes.plot(t, solution, color=BEST, lw=2.2, label=label)
            if wide:
                label = "_" if place else "± 2 residuals (RMS)"
                sizes = noise * np.interp(t, run.t, 1.0 / run.weights[:, k])
                ends = (solution - sizes, solution + sizes)
                axes.fill_between(t, *ends, color=BEST, alpha=0.13, lw=0, label=label)
        for number, run in enumerate(found.runs):
            _draw_points(axes, run.t, run.y[:, k], number, len(found.runs))
        scale_values(axes, [run.quantity(k) for run in found.runs])
        finish(axes, "", as_label(name))
    below = panels[len(system.observed) :]
    for k, (axes, name) in enumerate(zip(below, system.inputs, strict=True)):
        for run in found.runs:
            t = np.linspace(run.t[0], run.t[-1], TIMES)
            axes.plot(t, run.inputs(t)[k], color=OTHERS[0], lw=1.6)
        finish(axes, "", as_label(name))
    panels[-1].set_xlabel(as_label(time_name), fontsize=12)
    _legend_above(figure, panels)


def draw_residuals(figure: Figure | SubFigure, found: SystemResult, time_name: str) -> None:
    """Data minus solution of each quantity over time, and lines at two residuals (RMS).

    Where values count by their precision, so do residuals; over decades they are shares.
    """
    panels = _panels(figure, len(found.system.observed))
    for k, (axes, name) in enumerate(zip(panels, found.system.observed, strict=True)):
        left, kind = _comparable(found, k)
        known = np.concatenate(left)
        known = known[np.isfinite(known)]
        rms = float(np.sqrt(np.mean(known**2))) if known.size else 0.0
        axes.axhline(0.0, color="0.6", lw=1.0)
        for sign in (-1.0, 1.0):
            label = "± 2 residuals (RMS)" if sign > 0 else "_lower"
            axes.axhline(sign * 2.0 * rms, color=BEST, lw=1.4, ls="--", label=label)
        for number, (run, part) in enumerate(zip(found.runs, left, strict=True)):
            _draw_points(axes, run.t, part, number, len(found.runs))
        reach = max(np.abs(known).max(initial=0.0), 2.0 * rms)
        axes.set_ylim(*limits(np.array([-reach, reach]), 0.12))
        finish(axes, "", f"{as_label(name)}\n{kind}")
    panels[-1].set_xlabel(as_label(time_name), fontsize=12)
    _legend_above(figure, panels)


def _comparable(found: SystemResult, k: int) -> tuple[list[Float[np.ndarray, " time"]], str]:
    """Residuals of a quantity in all runs, alike noisy, and what they are."""
    parts = [part[:, k] for part in residuals(found)]
    if any(not run.scales[k].linear for run in found.runs):
        sizes = [run.scales[k].size(run.y[:, k]) for run in found.runs]
        return [part / size for part, size in zip(parts, sizes, strict=True)], "share of value"
    weights = [run.weights[:, k] for run in found.runs]
    kind = "weighted" if any(map(np.ptp, weights)) else "data − law"
    return [part * weight for part, weight in zip(parts, weights, strict=True)], kind


def _panels(figure: Figure | SubFigure, number: int) -> list[Axes]:
    """Above each other, with one axis of time."""
    return list(figure.subplots(number, 1, sharex=True, squeeze=False)[:, 0])


def _legend_above(figure: Figure | SubFigure, panels: Sequence[Axes], more: Sequence[Line2D] = ()):
    """One legend for all panels, above them, where no data are."""
    handles = {}
    for axes in panels:
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
        if legend := axes.get_legend():
            legend.remove()
    handles |= {str(line.get_label()): line for line in more}
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper left",
        ncols=3,
        frameon=False,
        fontsize=10,
    )


def _solution_label(best: SystemCandidate) -> str:
    if best.segments == 1:
        return "fitted solution"
    return f"fitted solutions, {best.segments} pieces each run"


def _draw_points(
    axes: Axes,
    x: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    number: int,
    runs: int,
    name: str = "data",
) -> None:
    """Observations of one run, in markers of its own."""
    shown = thinned(x.size, MOST_POINTS // runs)
    several = f", {runs} runs" if runs > 1 else ""
    axes.plot(
        x[shown],
        y[shown],
        MARKERS[number % len(MARKERS)],
        ms=5 if len(shown) < 100 else 3,
        color=DATA,
        mec="white",
        mew=0.5,
        label="_" if number else f"{name}{several}",
        zorder=3,
    )


# --- planes of two states ----------------------------------------------------


def draw_planes(figure: Figure | SubFigure, found: SystemResult, called: str = "") -> None:
    """The phase portrait of two states, or solutions in the planes of pairs of several."""
    pairs = _pairs(found)
    columns = 1 if len(pairs) == 1 else 2
    rows = -(-len(pairs) // columns)
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in panels[len(pairs) :]:
        axes.set_visible(False)
    points = find_fixed_points(found).points
    lines = []
    for axes, pair in zip(panels, pairs):
        if has_portrait(found):
            lines = _draw_field(axes, found)
        _draw_plane(axes, found, *pair, called or "fitted solution", several=len(pairs) > 1)
        _draw_fixed_points(axes, points, *pair)
    _legend_above(figure, panels[: len(pairs)], lines)


def has_planes(found: SystemResult) -> bool:
    """Whether there are two states or more."""
    return bool(_pairs(found))


def has_portrait(found: SystemResult) -> bool:
    """Whether there is a vector field in a plane: two states, and laws of them alone."""
    return len(found.system.states) == 2 and is_autonomous(found.best)


def _draw_field(axes: Axes, found: SystemResult) -> list[Line2D]:
    """The vector field and the nullclines in the plane of two states; what stands for them."""
    x, y = (grid(column, _BEYOND)[:: 800 // (_GRID - 1)] for column in _seen(found))
    across, up = np.meshgrid(x, y)
    others = [np.zeros_like(across)] * (len(found.system.variables) - 2)
    field = [finite(f.evaluate(across, up, *others)) for f in found.best.equations]
    known = [np.ma.masked_invalid(f) for f in field]
    axes.streamplot(x, y, *known, color="0.8", density=1.3, linewidth=0.8, arrowsize=0.8, zorder=1)
    lines = []
    for f, name, colour in zip(field, found.system.states, OTHERS, strict=True):
        if (f < 0.0).any() and (f > 0.0).any():
            axes.contour(x, y, f, levels=[0.0], colors=[colour], linewidths=1.6, zorder=2)
            label = f"d{as_label(name)}/dt = 0"
            lines.append(Line2D([], [], color=colour, lw=1.6, label=label))
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    return lines


def _draw_plane(
    axes: Axes, found: SystemResult, i: int, j: int, called: str, several: bool = False
) -> None:
    """Solutions and data in the plane of two states; velocities of data are smoothed."""
    best, names = found.best, found.system.states
    for number, run in enumerate(found.runs):
        for piece, (_, states) in enumerate(best.solutions(run, number, TIMES)):
            label = "_" if number or piece else called
            x, y = finite(states[:, i]), finite(states[:, j])
            axes.plot(x, y, color=BEST, lw=1.0 if several else 1.8, label=label, zorder=2)
        values = _data_states(found, number)
        observed = len(found.system.observed)
        name = "data" if max(i, j) < observed else "data, velocity smoothed"
        _draw_points(axes, values[i], values[j], number, len(found.runs), name)
    finish(axes, as_label(names[i]), as_label(names[j]))
    if several:
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=STEPS))
    axes.grid(visible=False)


def _data_states(found: SystemResult, number: int) -> Float[np.ndarray, "states time"]:
    """States of a run at the times of its data: measured, and velocities smoothed."""
    run = found.runs[number]
    if found.system.order == 1:
        return run.y.T
    return np.concatenate([run.y.T, run.states(run.t, 2)[run.y.shape[1] :]])


def _seen(found: SystemResult) -> list[Float[np.ndarray, " values"]]:
    """All values of each state that a plane shows, of data and of solutions."""
    parts = [_data_states(found, number) for number in range(len(found.runs))]
    values = np.concatenate(parts, axis=1)
    seen = []
    for state, column in enumerate(values):
        low, high = limits(column, 0.5)
        for number, run in enumerate(found.runs):
            for _, states in found.best.solutions(run, number, TIMES):
                # A solution that runs away must not squeeze the data.
                inside = states[:, state][(states[:, state] > low) & (states[:, state] < high)]
                column = np.concatenate([column, inside])
        seen.append(column)
    return seen


def _draw_fixed_points(axes: Axes, points: Sequence[SystemFixedPoint], i: int, j: int) -> None:
    """Those within the panel, by their kind."""
    shown, (left, right), (low, high) = set(), axes.get_xlim(), axes.get_ylim()
    for point in points:
        x, y = point.states[i], point.states[j]
        if not (left <= x <= right and low <= y <= high):
            continue
        label = point.kind if point.kind not in shown else "_"
        shown.add(point.kind)
        axes.plot(
            [x],
            [y],
            _KINDS[point.kind.split()[-1]],
            ms=10,
            mfc=FIXED if point.kind.startswith("stable") else "white",
            mec=FIXED,
            mew=1.8,
            ls="",
            label=label,
            zorder=5,
            clip_on=False,
        )


def _pairs(found: SystemResult) -> list[tuple[int, int]]:
    """Which states are drawn over which."""
    observed, order = len(found.system.observed), found.system.order
    velocities = [(k, observed + k) for k in range(observed)] if order == 2 else []
    return [*velocities, *itertools.combinations(range(observed), 2)][:_MOST_PAIRS]
