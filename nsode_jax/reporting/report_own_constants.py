"""The report on series with constants of their own: Markdown, HTML, pictures and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from nsode_jax.expressions.display import value_with_error
from nsode_jax.reporting.documents import (
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
    Table,
)
from nsode_jax.reporting.plot_series import plot_constants, plot_series
from nsode_jax.reporting.report_parts import (
    JSON,
    constant_row,
    how_it_was_made,
    png_of,
    reading_back,
    write_files,
)
from nsode_jax.results import own_constants_persistence
from nsode_jax.results.comparison import p_text
from nsode_jax.results.formatting import probability_text, r2_text, value_within
from nsode_jax.results.own_constants import FormResult
from nsode_jax.results.rounding import SHARE

_MOST_ROWS = 400
_MOST_FORMS = 20
_DIFFERENCES = (
    "p is the probability of values as different as these if all series shared one; small values "
    "say that the series differ."
)
_INTERVALS = (
    "Intervals hold the true values with 95% probability if the form is right; residuals that "
    "are alike from one observation to the next widen them."
)


def write_report(
    found: FormResult,
    folder: str | Path,
    time_name: str = "t",
    value_name: str = "y",
    source: str | None = None,
    options: Mapping[str, object] | None = None,
) -> tuple[Path, ...]:
    """Writes `report.html`, `report.md`, tables, `discovery.json` and the pictures to a folder.

    The tables are `constants.csv` and `forms.csv`.

    Args:
      found: what `discover_own_constants` found.
      folder: where to; made if it is not there. Files of an earlier report are replaced.
      time_name, value_name: what time and value are called.
      source: name of the file with the data.
      options: what was asked for, to be listed.

    Returns:
      The files written, `report.html` first. Without `discovery.json` if a formula
      is too long to be saved.

    Raises:
      OSError: if they cannot be written.
    """
    files = {
        "constants.csv": found.constants().to_csv,
        "forms.csv": partial(found.table().to_csv, index=False),
        JSON: partial(own_constants_persistence.save, found),
    }

    def draw() -> list[Picture]:
        return _pictures(found, time_name, value_name)

    def content(pictures: Sequence[Picture], files: tuple[str, ...]) -> list[Block]:
        names = time_name, value_name
        return _content(found, pictures, *names, source, options or {}, JSON in files)

    number = len(found.labels)
    several = f", constants of {number} series" if number > 1 else ""
    title = f"One law of {value_name} over {time_name}{several}"
    return write_files(folder, title, files, draw, content)


def _pictures(found: FormResult, time_name: str, value_name: str) -> list[Picture]:
    number = len(found.labels)
    pictures = [
        Picture(
            "series.png",
            png_of(plot_series(found, None, time_name, value_name)),
            f"{number} series of {value_name} over {time_name}, and solutions of the best form.",
            "Every series and its solution by the best form."
            if number > 1
            else "The data and the solution.",
        )
    ]
    if number > 1:
        pictures.append(
            Picture(
                "constants.png",
                png_of(plot_constants(found)),
                "The constants of every series with their 95% intervals.",
                "The constants of every series with 95% intervals. The line is one value for all, "
                "where that is possible, or else the median.",
            )
        )
    return pictures


def _content(
    found: FormResult,
    pictures: Sequence[Picture],
    time_name: str,
    value_name: str,
    source: str | None,
    options: Mapping[str, object],
    saved: bool,
) -> list[Block]:
    best = found.best
    wary = what_to_be_wary_of(found)
    return [
        Code(f"dy/dt = {best.formula.text}"),
        Paragraph(
            f"y is {value_name}, t is {time_name}."
            + (f" This is {best.name}." if best.name else "")
            + (
                f" Its probability among the forms tried is {probability_text(best.probability)}."
                if found.tried
                else " This form was given; nothing was searched."
            )
            + (
                ""
                if math.isnan(best.goodness_of_fit)
                else f" Goodness of fit: {probability_text(best.goodness_of_fit)}."
            )
        ),
        *([Heading("To be wary of"), Bullets(wary)] if wary else []),
        pictures[0],
        Heading("Constants"),
        *constant_blocks(found),
        *pictures[1:],
        *series_blocks(found),
        *([Heading("Forms"), forms_table(found, _MOST_FORMS)] if found.tried else []),
        Heading("How it was made"),
        how_it_was_made(
            [series.t for series in found.trajectories],
            source,
            options,
            "; ".join(found.tried),
            found.seconds,
        ),
        *reading_back(saved, "FormDiscovery"),
    ]


def what_to_be_wary_of(found: FormResult) -> tuple[str, ...]:
    """Notes, and the series that the best form does not explain."""
    wary = list(found.notes)
    if found.unexplained:
        wary.append(f"No solution was found for: {', '.join(found.unexplained)}.")
    if found.conspicuous:
        wary.append(f"Explained worse than the others: {', '.join(found.conspicuous)}.")
    return (*wary, *(f"{remark}." for remark in found.remarks))


def constant_blocks(found: FormResult) -> list[Block]:
    """The constants: of one series with their intervals, of several compared."""
    best, rows = found.best, []
    if len(found.labels) == 1:
        known = zip(best.names, best.constants[0], best.standard_errors[0], strict=True)
        rows = [
            (name, *constant_row(value, error, *ends))
            for (name, value, error), ends in zip(known, best.confidence_intervals[0], strict=True)
        ]
        header = ("constant", "value", "standard error", "95% interval")
        return [Table(header, tuple(rows)), Paragraph(_INTERVALS)]
    meanings = dict(zip(best.names, best.meanings))
    for one in best.compared():
        if one.name in best.shared:
            p = "shared"
        else:
            p = "unknown" if math.isnan(one.p_value) else p_text(one.p_value)
        rows.append(
            (
                one.name,
                meanings.get(one.name, ""),
                one.median_text,
                one.range_text,
                value_with_error(one.mean, one.standard_error) if one.is_common else "-",
                p,
            )
        )
    header = ("constant", "meaning", "median", "range", "one value for all", "p")
    if not meanings:
        header, rows = (header[0], *header[2:]), [(row[0], *row[2:]) for row in rows]
    return [
        Table(header, tuple(rows)),
        Paragraph(f"{_DIFFERENCES} {_INTERVALS}"),
    ]


def series_blocks(found: FormResult) -> list[Block]:
    """The constants of every series by the best form, where there are several."""
    return [Heading("Each series"), _each_table(found)] if len(found.labels) > 1 else []


def _each_table(found: FormResult) -> Table:
    best = found.best
    errors = best.standard_errors
    rows = tuple(
        (
            label,
            *(value_with_error(*pair) for pair in zip(best.constants[i], errors[i], strict=True)),
            value_within(float(best.y0s[i]), SHARE * float(best.residual_rms[i])),
            f"{best.residual_rms[i]:.3g}",
            r2_text(float(best.r2[i])),
        )
        for i, label in enumerate(found.labels[:_MOST_ROWS])
    )
    return Table(("series", *best.names, "first value", "residual (RMS)", "R²"), rows)


def forms_table(found: FormResult, most: int) -> Table:
    """The first forms."""
    rows = tuple(
        (
            str(rank),
            probability_text(one.probability),
            r2_text(float(np.median(one.r2))),
            one.name or "-",
            one.formula.text,
        )
        for rank, one in enumerate(found.candidates[:most], start=1)
    )
    return Table(("rank", "probability", "median R²", "name", "dy/dt ="), rows, code=True)
