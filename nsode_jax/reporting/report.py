"""The report of a discovery in a folder: Markdown, one HTML page, pictures and JSON.

Names and notes come from the user's file and may hold anything: the writers of
`documents` escape them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nsode_jax.expressions.display import value_with_error
from nsode_jax.reporting.certainty import certainty_text
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.documents import (
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
)
from nsode_jax.reporting.law_blocks import (
    constant_blocks,
    fixed_point_blocks,
    law_blocks,
    with_left_side,
)
from nsode_jax.reporting.next_measurement import draw_next
from nsode_jax.reporting.pareto import draw_pareto
from nsode_jax.reporting.plot import (
    draw_fit,
    draw_law,
    draw_residuals,
)
from nsode_jax.reporting.report_parts import (
    JSON,
    MOST_ROWS,
    how_it_was_made,
    one_line,
    png,
    reading_back,
    write_files,
)
from nsode_jax.reporting.text import (
    candidate_table,
    tried_text,
)
from nsode_jax.results import persistence
from nsode_jax.results.analysis import (
    Remark,
    find_fixed_points,
    residual_remark,
    residual_text,
)
from nsode_jax.results.formatting import (
    r2_text,
)
from nsode_jax.results.outlook import outlook
from nsode_jax.results.result import Result
from nsode_jax.results.source import with_names


def write_report(
    result: Discovery,
    folder: str | Path,
    time_name: str = "t",
    value_name: str = "y",
    source: str | None = None,
    options: Mapping[str, object] | None = None,
) -> tuple[Path, ...]:
    """Writes `report.html`, `report.md`, `discovery.json` and the pictures to a folder.

    Args:
      result: what `discover` found.
      folder: where to; made if it is not there. Files of an earlier report are replaced.
      time_name, value_name: what time and value are called.
      source: name of the file with the data.
      options: what `discover` was asked for, to be listed.

    Returns:
      The files written, `report.html` first. Without `discovery.json` if a formula
      is too long to be saved.

    Raises:
      OSError: if they cannot be written.
    """
    names = _Names(one_line(time_name), one_line(value_name))
    remark = residual_remark(result)

    def draw() -> Sequence[Picture]:
        return _pictures(result, names, remark)

    def content(pictures: Sequence[Picture], files: tuple[str, ...]) -> list[Block]:
        return _content(result, names, pictures, remark, source, options or {}, JSON in files)

    files = {JSON: partial(persistence.save, result)}
    return write_files(folder, _title(names), files, draw, content)


# --- the content -------------------------------------------------------------


class _Names(NamedTuple):
    time: str
    value: str


def _title(names: _Names) -> str:
    return f"The law of {names.value} over {names.time}"


def _content(
    result: Result,
    names: _Names,
    pictures: Sequence[Picture],
    remark: Remark,
    source: str | None,
    options: Mapping[str, object],
    saved: bool,
) -> list[Block]:
    notes = (*result.notes, *([remark.text] if remark.warns else []))
    shown, total = min(MOST_ROWS, len(result.candidates)), len(result.candidates)
    fit, law, left, front, *after = pictures
    return [
        *law_blocks(result, *names),
        *([Heading("To be wary of"), Bullets(notes)] if notes else []),
        fit,
        Heading("Constants"),
        Code(with_left_side(with_names((result.best.expression,)))),
        *constant_blocks(result.best),
        Heading("Fixed points"),
        *fixed_point_blocks(result, names.value),
        law,
        Heading("What the law does not explain"),
        Paragraph(remark.text),
        left,
        Heading("Candidates"),
        Paragraph(
            "The probability of a law is that it is right, by the data and by what was known of "
            "laws before; what all of them together leave of 100% is that none of them is. The "
            "complexity counts operators, variables and constants. "
            + (f"The best {shown} of {total}:" if shown < total else f"All {total}:")
        ),
        candidate_table(result, MOST_ROWS, wide=True),
        *([Paragraph(f"How sure: {sure}")] if (sure := certainty_text(result)) else []),
        *([Paragraph(f"Beyond the data: {then}")] if (then := outlook(result)) else []),
        front,
        *([Heading("What to measure next"), *after] if after else []),
        Heading("How it was made"),
        how_it_was_made(
            [series.t for series in result.trajectories],
            source,
            options,
            tried_text(result),
            result.seconds,
        ),
        *reading_back(saved, "Discovery"),
    ]


# --- the pictures ------------------------------------------------------------


def _pictures(result: Discovery, names: _Names, remark: Remark) -> tuple[Picture, ...]:
    best, points = result.best, sum(map(len, result.trajectories))
    r2, (time, value) = r2_text(best.r2), names
    roots = find_fixed_points(result)
    rests = "; ".join(
        f"{value_with_error(p.y, p.standard_error)} ({'stable' if p.stable else 'unstable'})"
        for p in roots
    )
    above = textwrap.fill(remark.text, 84) if remark.warns else ""
    return (
        Picture(
            "fit.png",
            png(lambda figure: draw_fit(figure.subplots(), result, time, value)),
            f"{points} observations of {value} over {time}, and the solution of the best law "
            f"through them, R² = {r2}.",
            "Data and the solution of the best law.",
        ),
        Picture(
            "law.png",
            png(lambda figure: draw_law(figure.subplots(), result, time, value)),
            f"The rate of change f(y) over y = {value}, with the slopes of the data. "
            f"Fixed points: {rests or 'none'}.",
            "The law f(y) with the 95% band that follows from the errors of its constants. The "
            "points are slopes of the data, which scatter more than the data do.",
        ),
        Picture(
            "residuals.png",
            png(lambda figure: draw_residuals(figure.subplots(), result, time, value, above)),
            f"Residuals of {value} over {time}: root mean square {residual_text(result)}. "
            + remark.text,
            "Data minus solution. About one point in twenty lies beyond the dashed lines.",
        ),
        Picture(
            "pareto.png",
            png(lambda figure: draw_pareto(figure.subplots(), result, value)),
            f"Residual over complexity of {len(result.candidates)} candidates. The best law has "
            f"complexity {best.complexity} and residual {residual_text(result)}.",
            "What longer laws gain: residual over complexity.",
        ),
        *_next(result, time),
    )


def _next(result: Discovery, time: str) -> list[Picture]:
    """Where the laws that matter part, if several do."""
    advice = result.next_measurement()
    if advice is None:
        return []
    last = float(result.trajectory.t[-1])
    of = " of the first series" if len(result.trajectories) > 1 else ""
    return [
        Picture(
            "next.png",
            png(lambda figure: draw_next(figure.subplots(), advice, last, time, of)),
            f"Differences between the predictions over {time}, in units of the noise.",
            str(advice)[:1].upper() + str(advice)[1:],
        )
    ]
