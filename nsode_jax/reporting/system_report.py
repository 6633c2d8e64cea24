"""The report of a discovery of a system in a folder, as `report` writes those of one quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.display import value_with_error
from nsode_jax.reporting.certainty import certainty_text
from nsode_jax.reporting.documents import (
    Block,
    Bullets,
    Code,
    Formula,
    Heading,
    Paragraph,
    Picture,
    Table,
)
from nsode_jax.reporting.report_parts import (
    INTERVALS,
    JSON,
    MOST_ROWS,
    MOST_STARTS,
    SIZE,
    constant_row,
    formula_svg,
    how_it_was_made,
    one_line,
    png,
    reading_back,
    write_files,
)
from nsode_jax.reporting.system_plot import (
    draw_planes,
    draw_residuals,
    draw_solutions,
    has_planes,
    has_portrait,
    system_mathtext,
)
from nsode_jax.reporting.system_text import candidate_table, start_text
from nsode_jax.results import system_persistence
from nsode_jax.results.formatting import probability_text, r2_text
from nsode_jax.results.source import NamedConstants, with_names
from nsode_jax.results.system_analysis import (
    SystemFixedPoints,
    eigenvalue_text,
    find_fixed_points,
    is_autonomous,
    residual_remarks,
)
from nsode_jax.results.system_result import SystemCandidate, SystemResult
from nsode_jax.results.uncertainty import constants_as_shown

_PANEL = 2.1
"""Height in inches of each further panel of a picture."""


def write_report(
    found: SystemResult,
    folder: str | Path,
    time_name: str = "t",
    source: str | None = None,
    options: Mapping[str, object] | None = None,
) -> tuple[Path, ...]:
    """Writes `report.html`, `report.md`, `discovery.json` and the pictures to a folder.

    Args:
      found: what `discover` found.
      folder: where to; made if it is not there. Files of an earlier report are replaced.
      time_name: what the time is called.
      source: name of the file with the data.
      options: what `discover` was asked for, to be listed.

    Returns:
      The files written, `report.html` first. Without `discovery.json` if a formula
      is too long to be saved.

    Raises:
      OSError: if they cannot be written.
    """
    time = one_line(time_name)
    points = find_fixed_points(found)

    def draw() -> Sequence[Picture]:
        return _pictures(found, points, time)

    def content(pictures: Sequence[Picture], files: tuple[str, ...]) -> list[Block]:
        return _content(found, points, pictures, time, source, options or {}, JSON in files)

    several = "laws" if len(found.system.observed) > 1 else "law"
    title = f"The {several} of {', '.join(found.system.observed)} over {time}"
    files = {JSON: partial(system_persistence.save, found)}
    return write_files(folder, title, files, draw, content)


# --- the content -------------------------------------------------------------


def _content(
    found: SystemResult,
    points: SystemFixedPoints,
    pictures: Sequence[Picture],
    time: str,
    source: str | None,
    options: Mapping[str, object],
    saved: bool,
) -> list[Block]:
    fit, left, *planes = pictures
    remarks = residual_remarks(found)
    warnings = [f"{name}: {remark.text}" for name, remark in remarks if remark.warns]
    notes = (*found.notes, *warnings)
    shown, total = min(MOST_ROWS, len(found.candidates)), len(found.candidates)
    return [
        *_laws(found, time),
        *([Heading("To be wary of"), Bullets(notes)] if notes else []),
        fit,
        Heading("Constants"),
        Code(with_left_sides(found.best, with_names(found.best.laws))),
        *constant_blocks(found.best),
        *behaviour_blocks(found, points, planes),
        Heading("What the laws do not explain"),
        Bullets(tuple(f"{name}: {remark.text}" for name, remark in remarks)),
        left,
        Heading("Candidates"),
        Paragraph(
            "The probability of a system is that of its structure; the complexity counts "
            "operators, variables and constants. "
            + (f"The best {shown} of {total}:" if shown < total else f"All {total}:")
        ),
        candidate_table(found, MOST_ROWS),
        *([Paragraph(f"How sure: {sure}")] if (sure := certainty_text(found)) else []),
        Heading("The laws as a program"),
        Code(found.best.to_source().strip()),
        Heading("How it was made"),
        how_it_was_made([run.t for run in found.runs], source, options, "", found.seconds),
        *reading_back(saved, "SystemDiscovery"),
    ]


def _laws(found: SystemResult, time: str) -> list[Block]:
    best, system = found.best, found.system
    starts = [start_text(best, number) for number in range(min(len(best.starts), MOST_STARTS))]
    more = len(best.starts) - len(starts)
    listed = "; ".join(starts) + (f"; and {more} more" if more else "")
    words = [f"The fitted solution starts at {listed}."]
    if best.segments > 1:
        words.append(f"Each run was fitted in {best.segments} pieces with starts of their own.")
    quantities = zip(system.observed, best.r2s, best.residuals, strict=True)
    rows = tuple((name, r2_text(r2), f"{rms:.3g}") for name, r2, rms in quantities)
    return [
        formula_block(best),
        *letters_blocks(system, time),
        Paragraph(" ".join(words)),
        Paragraph(
            f"R² = {r2_text(best.r2)} over all quantities; probability "
            f"{probability_text(best.probability)}."
        ),
        Table(("quantity", "R²", "residual (root mean square)"), rows),
        Paragraph("With all digits, to be copied:"),
        Code("\n".join(f"{a} = {b.infix}" for a, b in zip(best.left_sides, best.laws))),
    ]


def formula_block(best: SystemCandidate) -> Formula:
    """All equations."""
    text = str(best).replace("\n", "; ")
    return Formula(best.latex(), formula_svg(system_mathtext(best)), text)


def with_left_sides(best: SystemCandidate, named: NamedConstants) -> str:
    """The equations with names for their constants, a line for each."""
    pairs = zip(best.left_sides, named.texts, strict=True)
    return "\n".join(f"{left} = {text}" for left, text in pairs)


def letters_blocks(system: System, time: str) -> list[Block]:
    """What stands in the equations beside the names of the quantities."""
    what = [f"t is {time}"] if time != "t" else []
    pairs = zip(system.velocities, system.observed, strict=bool(system.velocities))
    what += [f"{velocity} is d{name}/dt" for velocity, name in pairs]
    if system.inputs:
        own = "their" if len(system.inputs) > 1 else "its"
        what.append(f"{', '.join(system.inputs)}: measured, without a law of {own} own")
    return [Paragraph(f"{'; '.join(what)}.")] if what else []


def constant_blocks(best: SystemCandidate) -> list[Block]:
    """The constants of each law with standard errors and intervals."""
    by_law = constants_as_shown(best.laws, best.standard_errors, best.freedom)
    rows = tuple(
        (left, name, *constant_row(*constant))
        for left, constants in zip(best.left_sides, by_law, strict=True)
        for name, *constant in constants
    )
    if not rows:
        return [Paragraph("The laws have no constants.")]
    header = ("law of", "constant", "value", "standard error", "95% interval")
    return [Paragraph(INTERVALS), Table(header, rows)]


def behaviour_blocks(
    found: SystemResult, points: SystemFixedPoints, planes: Sequence[Picture] = ()
) -> list[Block]:
    """Fixed points, and the planes of the states."""
    if not is_autonomous(found.best):
        if not planes:
            return []
        return [Heading("The states"), *planes]
    if not points.points and not points.curve:
        text = [Paragraph("None in the range of the data, nor within half of it on either side.")]
        return [Heading("Fixed points"), *text, *planes]
    rows = tuple(
        (
            *map(value_with_error, point.states, point.standard_errors),
            point.kind,
            eigenvalue_text(point),
            "yes" if point.observed else "no",
        )
        for point in points.points
    )
    header = (*found.system.states, "kind", "eigenvalues (1/time)", "in the range of the data")
    return [
        Heading("Fixed points"),
        *([Table(header, rows)] if rows else []),
        *([Paragraph("There is a curve of fixed points too.")] if points.curve else []),
        *planes,
    ]


# --- the pictures ------------------------------------------------------------


def _pictures(found: SystemResult, points: SystemFixedPoints, time: str) -> list[Picture]:
    names = ", ".join(found.system.observed)
    observations = sum(run.y.size for run in found.runs)
    width, height = SIZE
    size = (
        width,
        height if len(found.system.observed) == 1 else 0.8 + _PANEL * len(found.system.observed),
    )
    residuals = ", ".join(f"{rms:.3g}" for rms in found.best.residuals)
    pictures = [
        Picture(
            "fit.png",
            png(lambda figure: draw_solutions(figure, found, time), size),
            f"{observations} observations of {names} over {time}, and the solution of the best "
            f"laws through them, R² = {r2_text(found.best.r2)}.",
            "Data and the solution of the best laws.",
        ),
        Picture(
            "residuals.png",
            png(lambda figure: draw_residuals(figure, found, time), size),
            f"Residuals of {names} over {time}: root mean square {residuals}.",
            "Data minus solution. About one point in twenty lies beyond the dashed lines.",
        ),
    ]
    if not has_planes(found):
        return pictures
    kinds = "; ".join(_place(point.states, point.kind) for point in points.points)
    portrait = has_portrait(found)
    size = (width, 5.6 if portrait else 6.4)
    caption = (
        "Where solutions go in the plane of the states: the vector field, the lines on which "
        "one of the states rests, the fitted solution and the data."
        if portrait
        else "The fitted solution and the data in the planes of two states each."
    )
    picture = Picture(
        "portrait.png" if portrait else "pairs.png",
        png(lambda figure: draw_planes(figure, found), size),
        f"{caption} Fixed points: {kinds or 'none'}.",
        caption,
    )
    return [*pictures, picture]


def _place(states: Sequence[float], kind: str) -> str:
    return f"({', '.join(f'{value:.4g}' for value in states)}), {kind}"
