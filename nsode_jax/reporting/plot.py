"""Pictures of a discovery: data and solution, the law, what the law leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.pictures import (
    BEST,
    DATA,
    FIXED,
    MOST_POINTS,
    OTHERS,
    TIMES,
    as_label,
    draw_limits,
    draw_points,
    errors_of,
    finish,
    mathtext,
    new_figure,
    over_decades,
    save,
    scale_values,
    thinned,
    write_title,
)
from nsode_jax.results.analysis import (
    find_fixed_points,
    finite,
    grid,
    limits,
    relative_slopes,
    residuals,
    slopes,
)
from nsode_jax.results.formatting import r2_text
from nsode_jax.results.result import Candidate, Result
from nsode_jax.results.uncertainty import quantile

_VISIBLE = 0.01  # Share of the panel's height from which a band is more than the line.
_LONGEST_BAR = 4.0  # Residuals (RMS), to which errors beside these are shown whole.


# --- the picture -------------------------------------------------------------


def plot(
    result: Result,
    path: str | Path | None = None,
    time_name: str = "t",
    value_name: str = "y",
) -> Figure:
    """Draws the data with the best solution, and the best f(y) with its fixed points.

    Up to two of the next candidates that differ visibly are drawn faintly. Points in
    the right panel are slopes of the data, see `analysis.slopes`; they scatter with the noise.

    Args:
      result: what `discover` found.
      path: where to save the picture, by its ending as PNG, PDF or SVG; None saves nothing.
      time_name, value_name: what time and value are called on the axes.

    Returns:
      The figure, which belongs to no pyplot window.

    Raises:
      OSError: if `path` cannot be written.
    """
    figure = new_figure(11.5, 4.8)
    solution, law = figure.subplots(1, 2, gridspec_kw={"wspace": 0.06})
    others = list(_different(result))
    draw_fit(solution, result, time_name, value_name, others)
    solution.set_title("data and solution", fontsize=11, color=DATA)
    draw_law(law, result, time_name, value_name, others)
    where = "" if value_name == "y" else f", where y is {as_label(value_name)}"
    law.set_title("law f(y)" + where, fontsize=11, color=DATA)
    _write_title(figure, result.best)
    if path is not None:
        save(figure, path)
    return figure


# --- its panels --------------------------------------------------------------

Ranked = tuple[int, Candidate]
"""A candidate with its rank, from 1."""


def draw_fit(
    axes: Axes,
    result: Result,
    time_name: str,
    value_name: str,
    others: Sequence[Ranked] = (),
    called: str = "best law",
    band: bool = True,
) -> None:
    """Every series with the solution of the best law, called so, and of some others.

    Values of which only a limit is known are triangles; the solutions reach to the last of them.

    The band is the solution give or take two residuals (root mean square), in which
    about 95% of the data should lie if the law was fitted; it is left out where it is as thin as
    the line.
    """
    data, best, scale = result.trajectories, result.best, result.noise_scale
    noise = 2.0 * best.residual_rms
    visible = _VISIBLE * np.ptp(scale.forward(_values(data)))
    wide = band and np.isfinite(noise) and noise > visible
    for number, trajectory in enumerate(data):
        # Labelled once, not once for each series.
        label = "_".__add__ if number else str
        known = [trajectory.t[-1:], *(told.t for told in result.limits[number : number + 1])]
        t = np.unique(np.linspace(trajectory.t[0], np.concatenate(known).max(), TIMES))
        for (rank, other), colour in zip(others, OTHERS):
            name = label(f"candidate {rank}, R² = {r2_text(other.r2)}")
            solution = finite(other.predict(t, trajectory=number))
            axes.plot(t, solution, color=colour, lw=1.4, alpha=0.7, label=name)
        solution = finite(best.predict(t, trajectory=number))
        name = label(f"{called}, R² = {r2_text(best.r2)}")
        axes.plot(t, solution, color=BEST, lw=2.4, label=name)
        if wide:
            around = noise / scale.slope(solution)
            ends = (solution - around, solution + around)
            name = label("± 2 residuals (RMS)")
            axes.fill_between(t, *ends, color=BEST, alpha=0.13, lw=0, label=name)
    draw_points(axes, data, _values(data), _data_label(data))
    # A candidate that runs away must not squeeze the data.
    scale_values(axes, data, draw_limits(axes, result.limits))
    finish(axes, as_label(time_name), as_label(value_name))


def draw_law(
    axes: Axes,
    result: Result,
    time_name: str,
    value_name: str,
    others: Sequence[Ranked] = (),
) -> None:
    """f of the best law with its 95% band, fixed points, and the slopes of the data."""
    data, best, relative = result.trajectories, result.best, over_decades(result.trajectories)
    low, high = _values(data).min(), _values(data).max()
    y = np.geomspace(low / 1.5, 1.5 * high, TIMES) if relative else grid(_values(data))
    unit = y if relative else np.ones_like(y)
    f = _curve(best.expression, y) / unit
    inside = (y >= low) & (y <= high) & np.isfinite(f)
    slopes_of = relative_slopes if relative else slopes
    at, slope = (np.concatenate(part) for part in zip(*map(slopes_of, data)))
    axes.set_xscale("log" if relative else "linear")

    axes.axhline(0.0, color="0.6", lw=1.0)
    axes.plot(at, slope, "o", ms=4, color=DATA, alpha=0.55, mew=0, label="slopes of the data")
    for (_, other), colour in zip(others, OTHERS):
        axes.plot(y, _curve(other.expression, y) / unit, color=colour, lw=1.4, alpha=0.7)
    axes.plot(y, f, color=BEST, lw=2.4)
    half = quantile(best.freedom) * best.rate_standard_error(y) / unit
    _draw_band(axes, finite(half), y, f, inside)
    points = find_fixed_points(result)
    _draw_fixed_points(axes, [(p.y, p.stable) for p in points if y[0] <= p.y <= y[-1]])

    # Noise and poles must not squeeze the curve: the scale is that of the bulk.
    seen = [np.percentile(slope, [2, 98]), [0.0]]
    if inside.any():
        seen.append(np.percentile(f[inside], [1, 99]))
    axes.set_ylim(*limits(np.concatenate(seen), 0.12))
    axes.set_xlim(y[0], y[-1])
    rate = f"d {as_label(value_name)} / d {as_label(time_name)}"
    rate = f"({rate}) / {as_label(value_name)}" if relative else rate
    short = "relative rate of change" if relative else "rate of change"
    finish(axes, as_label(value_name), rate if len(rate) <= 45 else short)


def _draw_band(
    axes: Axes,
    half: Float[np.ndarray, " grid"],
    y: Float[np.ndarray, " grid"],
    f: Float[np.ndarray, " grid"],
    inside: Bool[np.ndarray, " grid"],
) -> None:
    """The 95% band of f, unless it is wider than f is large: then it says nothing."""
    known = inside & np.isfinite(half)
    if not known.any() or np.median(half[known]) > np.abs(f[inside]).max():
        return
    visible = half[known].max() > _VISIBLE / 2 * np.ptp(f[inside])
    label = "95% band of f" if visible else "_thin"
    axes.fill_between(y, f - half, f + half, color=BEST, alpha=0.2, lw=0, label=label)


def _draw_fixed_points(axes: Axes, roots: Sequence[tuple[float, bool]]) -> None:
    for stable, fill in ((True, FIXED), (False, "white")):
        chosen = [root for root, is_stable in roots if is_stable == stable]
        if chosen:
            axes.plot(
                chosen,
                np.zeros(len(chosen)),
                "o",
                ms=9,
                mfc=fill,
                mec=FIXED,
                mew=1.8,
                label=("stable" if stable else "unstable") + " fixed point",
                zorder=4,
                clip_on=False,
            )


def draw_residuals(
    axes: Axes, result: Result, time_name: str, value_name: str, remark: str = ""
) -> None:
    """Data minus the best solution over time, and lines at two residuals (RMS).

    Args:
      axes: where to.
      result: what was found.
      time_name, value_name: as in the file.
      remark: put above.
    """
    data, relative = result.trajectories, not result.noise_scale.linear
    unit = result.noise_scale.size(_values(data))
    left, errors = np.concatenate(residuals(result)) / unit, errors_of(data) / unit
    known = left[np.isfinite(left)]
    # Not the fit's: of clean data little more is left than the solver's own error.
    rms = float(np.sqrt(np.mean(known**2))) if known.size else 0.0
    axes.axhline(0.0, color="0.6", lw=1.0)
    for sign in (-1.0, 1.0):
        label = "± 2 residuals (RMS)" if sign > 0 else "_lower"
        axes.axhline(sign * 2.0 * rms, color=BEST, lw=1.4, ls="--", label=label)
    draw_points(axes, data, left, _data_label(data), errors)
    ends = np.abs(left) + np.minimum(errors, _LONGEST_BAR * rms)
    reach = max(ends[np.isfinite(ends)].max(initial=0.0), 2.0 * rms)
    low, high = limits(np.array([-reach, reach]), 0.12)
    axes.set_ylim(low, high + 0.1 * (high - low))  # Room for the legend.
    difference = "(data − law) / data" if relative else "data − law"
    label = f"{as_label(value_name)}: {difference}"
    finish(axes, as_label(time_name), label if len(label) <= 45 else difference)
    axes.legend(loc="upper right", ncols=2, frameon=False, fontsize=10)
    axes.set_title(remark, fontsize=10, color=FIXED)


def _data_label(data: Sequence[Trajectory]) -> str:
    points = sum(map(len, data))
    shown = sum(len(thinned(len(trajectory), MOST_POINTS // len(data))) for trajectory in data)
    several = "" if len(data) == 1 else f", {len(data)} series"
    return f"data{several}" + ("" if shown == points else f" ({shown} of {points} points)")


# --- what is drawn -----------------------------------------------------------


def _values(data: Sequence[Trajectory]) -> Float[np.ndarray, " all"]:
    """The values of all series, one after the other."""
    return np.concatenate([trajectory.y for trajectory in data])


def _different(result: Result) -> Iterator[Ranked]:
    """Up to two more candidates whose f differs from those drawn before."""
    y = grid(_values(result.trajectories))
    drawn = [finite(result.best.expression.evaluate(y))]
    for rank, candidate in enumerate(result.candidates, start=1):
        if len(drawn) > len(OTHERS):
            return
        if candidate is result.best or not np.isfinite(candidate.r2):
            continue
        g = finite(candidate.expression.evaluate(y))
        if not any(_alike(g, other) for other in drawn):
            drawn.append(g)
            yield rank, candidate


def _alike(g: Float[np.ndarray, " grid"], f: Float[np.ndarray, " grid"]) -> bool:
    """Whether two curves are less than a line's width apart."""
    both = np.isfinite(f) & np.isfinite(g)
    if not both.any():
        return True
    return bool(np.percentile(np.abs(f - g)[both], 95) < 0.02 * np.abs(f[both]).max())


def _curve(expression: Expression, y: Float[np.ndarray, " grid"]) -> Float[np.ndarray, " grid"]:
    """f with a gap at each pole, which would else be drawn as a vertical line."""
    f = finite(expression.evaluate(y))
    size = np.abs(f)
    if np.isfinite(f).any():
        large = size > np.nanpercentile(size, 75)
        jump = large[1:] & large[:-1] & (np.sign(f[1:]) == -np.sign(f[:-1]))
        f[1:][jump] = np.nan
    return f


# --- words and formulas ------------------------------------------------------


def law_mathtext(candidate: Candidate) -> str:
    """dy/dt = f(y), rounded for display."""
    plain = f"dy/dt = {candidate.rounded().infix}"
    return mathtext(rf"dy/dt \;=\; {candidate.latex()}", plain)


def _write_title(figure: Figure, best: Candidate) -> None:
    """The formula and its R2 above both panels."""
    quality = f"      R² = {r2_text(best.r2)}"
    instead = f"dy/dt = f(y), a formula of complexity {best.complexity}{quality}"
    write_title(figure, law_mathtext(best) + quality, instead)
