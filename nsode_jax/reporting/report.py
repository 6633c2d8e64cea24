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
from nsode_jax.reporting.analysis import Remark, find_fixed_points, residual_remark
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
from nsode_jax.reporting.persistence import DiscoveryFileError
from nsode_jax.reporting.plot import (
    draw_fit,
    draw_law,
    draw_pareto,
    draw_residuals,
    mathtext,
    new_figure,
    save,
)
from nsode_jax.reporting.result import Candidate, Discovery, decimal_exponent

HTML, MARKDOWN, JSON = "report.html", "report.md", "discovery.json"

_MOST_ROWS = 20
_MOST_STARTS = 20
_SIZE = (7.6, 4.6)  # Inches.


def write_report(
    discovery: Discovery,
    folder: str | Path,
    time_name: str = "t",
    value_name: str = "y",
    source: str | None = None,
    options: Mapping[str, object] | None = None,
) -> tuple[Path, ...]:
    """Writes `report.html`, `report.md`, `discovery.json` and the pictures to a folder.

    Args:
      discovery: what `discover` found.
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
    remark = residual_remark(discovery)
    pictures = _pictures(discovery, names, remark)
    for picture in pictures:
        (folder / picture.file).write_bytes(picture.png)
    written = [picture.file for picture in pictures]
    try:
        discovery.save(folder / JSON)
        written.append(JSON)
    except DiscoveryFileError:  # An endless formula; the report can still show the rest.
        (folder / JSON).unlink(missing_ok=True)
    blocks = _content(discovery, names, pictures, remark, source, options or {}, JSON in written)
    title = _title(names)
    (folder / MARKDOWN).write_text(to_markdown(title, blocks), encoding="utf-8")
    (folder / HTML).write_text(to_html(title, blocks), encoding="utf-8")
    return tuple(folder / name for name in (HTML, MARKDOWN, *written))


# --- numbers as text ---------------------------------------------------------


def constants_as_shown(best: Candidate) -> list[tuple[float, float, float, float]]:
    """(value, standard error, low, high) per constant, in the order of the rounded formula."""
    shown = [abs(constant) for constant in best.rounded().constants]

    def place(i: int) -> int:
        rounded = abs(best.rounded_constants[i])
        return shown.index(rounded) if rounded in shown else len(shown)

    constants, errors = best.expression.constants, best.standard_errors
    order = sorted(range(len(constants)), key=place)
    return [(constants[i], errors[i], *best.confidence_intervals[i]) for i in order]


def value_with_error(value: float, error: float) -> str:
    """0.5421 ± 0.0034: the error in two digits, the value to the same place.

    Args:
      value: any number.
      error: its standard error; 0 if it is exact, NaN if that is unknown.
    """
    if math.isnan(error):
        return f"{value:.4g} ± unknown"
    if error == 0.0:
        return f"{value:.6g}"
    if not 1e-6 * abs(value) < error < math.inf:
        return f"{value:.6g} ± {error:.1g}"
    last = decimal_exponent(error) - 1  # Place of the second digit of the error.
    first = max(decimal_exponent(value) if value else last, last + 1)
    if -4 <= first <= 6:
        places = max(0, -last)
        return f"{value:.{places}f} ± {error:.{places}f}"
    places, unit = first - last, 10.0**first
    return f"({value / unit:.{places}f} ± {error / unit:.{places}f})e{first:+03d}"


def r2_text(r2: float) -> str:
    """R2 in so many digits that 0.99996 does not read as 1."""
    if r2 == float("-inf"):
        return "diverges"
    return f"{r2:.5f}" if abs(r2) < 10 else f"{r2:.1e}"


def weight_text(weight: float) -> str:
    """A posterior probability in percent, such as 97.8%."""
    if math.isnan(weight):
        return "-"
    return f"{weight:.1%}" if weight >= 0.0005 else "<0.1%"


# --- the content -------------------------------------------------------------


class _Names(NamedTuple):
    time: str
    value: str


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _title(names: _Names) -> str:
    return f"The law of {names.value} over {names.time}"


def _content(
    discovery: Discovery,
    names: _Names,
    pictures: Sequence[Picture],
    remark: Remark,
    source: str | None,
    options: Mapping[str, object],
    saved: bool,
) -> list[Block]:
    notes = (*discovery.notes, *([remark.text] if remark.warns else []))
    shown, total = min(_MOST_ROWS, len(discovery.candidates)), len(discovery.candidates)
    fit, law, left, front = pictures
    return [
        *_law(discovery, names),
        *([Heading("To be wary of"), Bullets(notes)] if notes else []),
        fit,
        Heading("Constants"),
        *_constants(discovery.best),
        Heading("Fixed points"),
        *_fixed_points(discovery, names),
        law,
        Heading("What the law does not explain"),
        Paragraph(remark.text),
        left,
        Heading("Candidates"),
        Paragraph(
            "The weight is the probability of a law if one of the candidates is the right one; "
            "the complexity counts operators, variables and constants. "
            + (f"The best {shown} of {total}:" if shown < total else f"All {total}:")
        ),
        _candidates(discovery),
        front,
        Heading("How it was made"),
        _made(discovery, source, options),
        *_reading(saved),
    ]


def _law(discovery: Discovery, names: _Names) -> list[Block]:
    best = discovery.best
    text = f"dy/dt = {best.rounded().infix}"
    starts = [
        f"y = {y0:.4g} at t = {start:g}"
        for y0, start in zip(best.y0s[:_MOST_STARTS], best.start_times[:_MOST_STARTS])
    ]
    more = len(best.y0s) - len(starts)
    listed = "; ".join(starts) + (f"; and {more} more" if more else "")
    return [
        Formula(rf"\frac{{dy}}{{dt}} = {best.rounded().latex(6)}", _formula_svg(best), text),
        Paragraph(
            f"y is {names.value}, t is {names.time}. The fitted solution starts at {listed}."
        ),
        Paragraph(
            f"R² = {r2_text(best.r2)}; residual (root mean square) {best.residual_rms:.3g}; "
            f"weight {weight_text(best.weight)}."
        ),
        Paragraph("With all digits, to be copied:"),
        Code(best.infix),
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


def _fixed_points(discovery: Discovery, names: _Names) -> list[Block]:
    found = find_fixed_points(discovery)
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


def _candidates(discovery: Discovery) -> Table:
    header = ("rank", "weight", "R²", "residual", "complexity", "dy/dt =")
    rows = tuple(
        (
            str(rank),
            weight_text(candidate.weight),
            r2_text(candidate.r2),
            f"{candidate.residual_rms:.3g}",
            str(candidate.complexity),
            candidate.rounded().infix,
        )
        for rank, candidate in enumerate(discovery.candidates[:_MOST_ROWS], start=1)
    )
    return Table(header, rows, code=True)


def _made(discovery: Discovery, source: str | None, options: Mapping[str, object]) -> Bullets:
    series = discovery.trajectories
    points = " + ".join(str(len(trajectory)) for trajectory in series[:_MOST_STARTS])
    points += " + …" if len(series) > _MOST_STARTS else ""
    first = min(float(trajectory.t[0]) for trajectory in series)
    last = max(float(trajectory.t[-1]) for trajectory in series)
    chosen = ", ".join(f"{name} = {value}" for name, value in options.items())
    now = datetime.datetime.now(datetime.UTC)
    return Bullets(
        (
            *([f"Data: {_one_line(source)}"] if source else []),
            f"Points fitted: {points}, from {first:g} to {last:g}",
            *([f"Options: {_one_line(chosen)}"] if chosen else []),
            f"Program: nsode_jax {nsode_jax.__version__}",
            f"Search: {discovery.seconds:.1f} s; this report: {now:%Y-%m-%d %H:%M} UTC",
        )
    )


def _reading(saved: bool) -> list[Block]:
    if not saved:
        return [Paragraph("A formula is too long for a file; this page is all there is.")]
    code = f'from nsode_jax.discovery import Discovery\n\ndiscovery = Discovery.load("{JSON}")'
    return [Paragraph("All candidates, and the data as fitted, can be read back:"), Code(code)]


# --- the pictures ------------------------------------------------------------


def _pictures(discovery: Discovery, names: _Names, remark: Remark) -> tuple[Picture, ...]:
    best, points = discovery.best, sum(map(len, discovery.trajectories))
    r2, (time, value) = r2_text(best.r2), names
    roots = find_fixed_points(discovery)
    rests = "; ".join(f"{p.y:.4g} ({'stable' if p.stable else 'unstable'})" for p in roots)
    above = textwrap.fill(remark.text, 84) if remark.warns else ""
    return (
        Picture(
            "fit.png",
            _png(lambda axes: draw_fit(axes, discovery, time, value)),
            f"{points} observations of {value} over {time}, and the solution of the best law "
            f"through them, R² = {r2}.",
            "Data and the solution of the best law.",
        ),
        Picture(
            "law.png",
            _png(lambda axes: draw_law(axes, discovery, time, value)),
            f"The rate of change f(y) over y = {value}, with the slopes of the data. "
            f"Fixed points: {rests or 'none'}.",
            "The law f(y) with the 95% band that follows from the errors of its constants. The "
            "points are slopes of the data, which scatter more than the data do.",
        ),
        Picture(
            "residuals.png",
            _png(lambda axes: draw_residuals(axes, discovery, time, value, above)),
            f"Residuals of {value} over {time}: root mean square {best.residual_rms:.3g}. "
            + remark.text,
            "Data minus solution. About one point in twenty lies beyond the dashed lines.",
        ),
        Picture(
            "pareto.png",
            _png(lambda axes: draw_pareto(axes, discovery, value)),
            f"Residual over complexity of {len(discovery.candidates)} candidates. The best law has "
            f"complexity {best.complexity} and residual {best.residual_rms:.3g}.",
            "What longer laws gain: residual over complexity.",
        ),
    )


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
