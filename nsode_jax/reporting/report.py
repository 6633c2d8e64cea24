"""The report of a discovery in a folder: Markdown, one HTML page, pictures and JSON.

Names and notes come from the user's file and may hold anything: the writers of
`documents` escape them.
"""

from __future__ import annotations

import datetime
import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

import nsode_jax
from nsode_jax.reporting import persistence
from nsode_jax.reporting.analysis import Remark, find_fixed_points, residual_remark
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
    to_html,
    to_markdown,
)
from nsode_jax.reporting.formatting import (
    decimal_exponent,
    probability_text,
    r2_text,
    time_text,
    value_with_error,
)
from nsode_jax.reporting.next_measurement import draw_next, next_measurement
from nsode_jax.reporting.plot import (
    draw_fit,
    draw_law,
    draw_pareto,
    draw_residuals,
    mathtext,
    new_figure,
    save,
)
from nsode_jax.reporting.result import Candidate, Result
from nsode_jax.reporting.text import (
    candidate_table,
    constants_as_shown,
    goodness_text,
    start_text,
    tried_text,
)
from nsode_jax.tables.units import unit_of

HTML, MARKDOWN, JSON = "report.html", "report.md", "discovery.json"

_MOST_ROWS = 20
_MOST_STARTS = 20
_SIZE = (7.6, 4.6)  # Inches.


def write_report(
    result: Result,
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
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = _Names(_one_line(time_name), _one_line(value_name))
    remark = residual_remark(result)
    pictures = _pictures(result, names, remark)
    for picture in pictures:
        (folder / picture.file).write_bytes(picture.png)
    written = [picture.file for picture in pictures]
    try:
        persistence.save(result, folder / JSON)
        written.append(JSON)
    except persistence.DiscoveryFileError:  # An endless formula; the rest can still be shown.
        (folder / JSON).unlink(missing_ok=True)
    blocks = _content(result, names, pictures, remark, source, options or {}, JSON in written)
    title = _title(names)
    (folder / MARKDOWN).write_text(to_markdown(title, blocks), encoding="utf-8")
    (folder / HTML).write_text(to_html(title, blocks), encoding="utf-8")
    return tuple(folder / name for name in (HTML, MARKDOWN, *written))


# --- the content -------------------------------------------------------------


class _Names(NamedTuple):
    time: str
    value: str


def _one_line(text: str) -> str:
    return " ".join(text.split())


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
    shown, total = min(_MOST_ROWS, len(result.candidates)), len(result.candidates)
    fit, law, left, front, *after = pictures
    return [
        *_law(result, names),
        *([Heading("To be wary of"), Bullets(notes)] if notes else []),
        fit,
        Heading("Constants"),
        *_constants(result.best),
        Heading("Fixed points"),
        *_fixed_points(result, names),
        law,
        Heading("What the law does not explain"),
        Paragraph(remark.text),
        left,
        Heading("Candidates"),
        Paragraph(
            "The probability of a law is that if one of the candidates is the right one; the "
            " complexity counts operators, variables and constants. "
            + (f"The best {shown} of {total}:" if shown < total else f"All {total}:")
        ),
        candidate_table(result, _MOST_ROWS, wide=True),
        *([Paragraph(f"How sure: {sure}")] if (sure := certainty_text(result)) else []),
        front,
        *([Heading("What to measure next"), *after] if after else []),
        Heading("How it was made"),
        _made(result, source, options),
        *_reading(saved),
    ]


def _law(result: Result, names: _Names) -> list[Block]:
    best = result.best
    text = f"dy/dt = {best.rounded().infix}"
    starts = [start_text(best, number) for number in range(min(len(best.y0s), _MOST_STARTS))]
    more = len(best.y0s) - len(starts)
    listed = "; ".join(starts) + (f"; and {more} more" if more else "")
    return [
        Formula(rf"\frac{{dy}}{{dt}} = {best.latex()}", _formula_svg(best), text),
        Paragraph(
            f"y is {names.value}, t is {names.time}. The fitted solution starts at {listed}."
        ),
        Paragraph(
            f"R² = {r2_text(best.r2)}; residual (root mean square) {best.residual_rms:.3g}"
            f"{goodness_text(best)}; "
            f"probability {probability_text(best.probability)}."
        ),
        *_name(best, names),
        Paragraph("With all digits, to be copied:"),
        Code(best.infix),
    ]


def _name(best: Candidate, names: _Names) -> list[Block]:
    """What the law is called, and its customary parameters."""
    name = best.named(unit_of(names.value), unit_of(names.time, is_time=True))
    if name is None:
        return []
    rows = tuple((str(parameter), parameter.meaning) for parameter in name.parameters)
    others = f" It also equals: {', '.join(name.others)}." if name.others else ""
    return [
        Paragraph(f"Over the data this is {name.law.name} ({name.law.reference}).{others}"),
        *([Table(("parameter", "meaning"), rows)] if rows else []),
    ]


def _constants(best: Candidate) -> list[Block]:
    rows = []
    for value, error, low, high in constants_as_shown(best):
        if error == 0.0:
            rows.append((f"{value:.6g}", "", "not fitted"))
        elif math.isnan(error):
            rows.append((f"{value:.4g}", "unknown", "not determined by the data"))
        else:
            digits = min(12, max(2, 2 + decimal_exponent(value or 1.0) - decimal_exponent(error)))
            shown = value_with_error(value, error)
            rows.append((shown, f"{error:.2g}", f"{low:.{digits}g} to {high:.{digits}g}"))
    if not rows:
        return [Paragraph("The law has no constants.")]
    return [
        Paragraph(
            "In the order of the formula. The intervals hold the true values with 95% probability "
            "if the law has the right form and the noise is independent."
        ),
        Table(("value", "standard error", "95% interval"), tuple(rows)),
    ]


def _fixed_points(result: Result, names: _Names) -> list[Block]:
    found = find_fixed_points(result)
    if not found:
        return [Paragraph("None in the range of the data or near it.")]
    rows = tuple(
        (
            value_with_error(point.y, point.standard_error),
            "stable" if point.stable else "unstable",
            "yes" if point.observed else "no",
        )
        for point in found
    )
    return [Table((names.value, "stability", "in the range of the data"), rows)]


def _made(result: Result, source: str | None, options: Mapping[str, object]) -> Bullets:
    series = result.trajectories
    points = " + ".join(str(len(trajectory)) for trajectory in series[:_MOST_STARTS])
    points += " + …" if len(series) > _MOST_STARTS else ""
    first = min(float(trajectory.t[0]) for trajectory in series)
    last = max(float(trajectory.t[-1]) for trajectory in series)
    chosen = ", ".join(f"{name} = {value}" for name, value in options.items())
    now = datetime.datetime.now(datetime.UTC)
    return Bullets(
        (
            *([f"Data: {_one_line(source)}"] if source else []),
            f"Points fitted: {points}, from {time_text(first)} to {time_text(last)}",
            *([f"Options: {_one_line(chosen)}"] if chosen else []),
            *([f"Laws tried: {_one_line(tried)}"] if (tried := tried_text(result)) else []),
            f"Program: nsode_jax {nsode_jax.__version__}",
            f"Search: {result.seconds:.1f} s; this report: {now:%Y-%m-%d %H:%M} UTC",
        )
    )


def _reading(saved: bool) -> list[Block]:
    if not saved:
        return [Paragraph("A formula is too long for a file; this page is all there is.")]
    code = f'from nsode_jax.discovery import Discovery\n\ndiscovery = Discovery.load("{JSON}")'
    return [Paragraph("All candidates, and the data as fitted, can be read back:"), Code(code)]


# --- the pictures ------------------------------------------------------------


def _pictures(result: Result, names: _Names, remark: Remark) -> tuple[Picture, ...]:
    best, points = result.best, sum(map(len, result.trajectories))
    r2, (time, value) = r2_text(best.r2), names
    roots = find_fixed_points(result)
    rests = "; ".join(f"{p.y:.4g} ({'stable' if p.stable else 'unstable'})" for p in roots)
    above = textwrap.fill(remark.text, 84) if remark.warns else ""
    return (
        Picture(
            "fit.png",
            _png(lambda axes: draw_fit(axes, result, time, value)),
            f"{points} observations of {value} over {time}, and the solution of the best law "
            f"through them, R² = {r2}.",
            "Data and the solution of the best law.",
        ),
        Picture(
            "law.png",
            _png(lambda axes: draw_law(axes, result, time, value)),
            f"The rate of change f(y) over y = {value}, with the slopes of the data. "
            f"Fixed points: {rests or 'none'}.",
            "The law f(y) with the 95% band that follows from the errors of its constants. The "
            "points are slopes of the data, which scatter more than the data do.",
        ),
        Picture(
            "residuals.png",
            _png(lambda axes: draw_residuals(axes, result, time, value, above)),
            f"Residuals of {value} over {time}: root mean square {best.residual_rms:.3g}. "
            + remark.text,
            "Data minus solution. About one point in twenty lies beyond the dashed lines.",
        ),
        Picture(
            "pareto.png",
            _png(lambda axes: draw_pareto(axes, result, value)),
            f"Residual over complexity of {len(result.candidates)} candidates. The best law has "
            f"complexity {best.complexity} and residual {best.residual_rms:.3g}.",
            "What longer laws gain: residual over complexity.",
        ),
        *_next(result, time),
    )


def _next(result: Result, time: str) -> list[Picture]:
    """Where the laws that matter part, if several do."""
    advice = next_measurement(result)
    if advice is None:
        return []
    last = float(result.trajectory.t[-1])
    return [
        Picture(
            "next.png",
            _png(lambda axes: draw_next(axes, advice, last, time)),
            f"Differences between the predictions over {time}, in units of the noise.",
            str(advice)[:1].upper() + str(advice)[1:],
        )
    ]


def _png(draw: Callable) -> bytes:
    figure = new_figure(*_SIZE)
    draw(figure.subplots())
    buffer = io.BytesIO()
    save(figure, buffer)
    return buffer.getvalue()


def _formula_svg(best: Candidate) -> bytes:
    """The law as a picture of its formula, as no script may be needed to see it."""
    figure = Figure()
    figure.text(0.0, 0.0, mathtext(best), fontsize=17)
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None}
    )
    return buffer.getvalue()
