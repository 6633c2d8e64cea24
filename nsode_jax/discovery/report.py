"""The report of a discovery in a folder: Markdown, one HTML page, pictures and JSON.

The content is a list of blocks, which two small writers turn into Markdown and HTML.
The page needs nothing beside it, and no network. Names and notes come from the user's
file and may hold anything: both writers escape them.
"""

from __future__ import annotations

import base64
import datetime
import html
import io
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

import nsode_jax
from nsode_jax.discovery.persistence import DiscoveryFileError
from nsode_jax.discovery.plot import (
    draw_fit,
    draw_law,
    draw_pareto,
    draw_residuals,
    fixed_points,
    grid,
    mathtext,
    new_figure,
    residuals,
    save,
)
from nsode_jax.discovery.result import Candidate, Discovery

HTML, MARKDOWN, JSON = "report.html", "report.md", "discovery.json"

_MOST_ROWS = 20
_MOST_STARTS = 20
_SIZE = (7.6, 4.6)  # Inches.
_SIGNIFICANT = 2.58  # Standard deviations: one in a hundred by chance.
_NEGLIGIBLE = 1e-5  # Residuals below this share of the data's spread are the solver's.


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
    (folder / MARKDOWN).write_text(_to_markdown(title, blocks), encoding="utf-8")
    (folder / HTML).write_text(_to_html(title, blocks), encoding="utf-8")
    return tuple(folder / name for name in (HTML, MARKDOWN, *written))


# --- what there is to say ----------------------------------------------------


class FixedPoint(NamedTuple):
    """A value at which the best law rests.

    Attributes:
      y: the value.
      standard_error: of it, from that of f there; NaN if unknown.
      stable: whether solutions approach it.
      observed: whether it lies in the range of the data.
    """

    y: float
    standard_error: float
    stable: bool
    observed: bool


def find_fixed_points(discovery: Discovery) -> list[FixedPoint]:
    """Fixed points of the best law in the range of the data and half of it on either side."""
    best = discovery.best
    values = np.concatenate([trajectory.y for trajectory in discovery.trajectories])
    found = []
    for y, stable in fixed_points(best.expression, grid(values, 0.5)):
        y = 0.0 if abs(y) < 1e-9 * np.ptp(values) else y
        observed = bool(values.min() <= y <= values.max())
        found.append(FixedPoint(y, _root_error(best, y, np.ptp(values)), stable, observed))
    return found


def _root_error(best: Candidate, y: float, span: float) -> float:
    """Standard error of a root of f: that of f over the slope of f."""
    step = 1e-5 * span
    below, above = best.expression.evaluate(np.array([y - step, y + step]))
    slope = abs(above - below) / (2 * step)
    error = float(best.rate_standard_error(np.array([y]))[0])
    return error / slope if np.isfinite(slope) and slope > 0 else math.nan


class Remark(NamedTuple):
    """A sentence on the residuals, and whether it speaks against the law."""

    text: str
    warns: bool


def residual_remark(discovery: Discovery) -> Remark:
    """Whether the residuals of the best law look like independent noise."""
    left = [series[np.isfinite(series)] for series in residuals(discovery)]
    spread = np.std(np.concatenate([trajectory.y for trajectory in discovery.trajectories]))
    if not sum(map(len, left)):
        return Remark("The best law has no solution over the observed times.", True)
    if np.sqrt(np.mean(np.concatenate(left) ** 2)) <= _NEGLIGIBLE * spread:
        return Remark("The residuals are so small that numerical errors may be all of them.", False)
    changes, expected, deviation = _sign_changes(left)
    correlation = _autocorrelation(left)
    pairs = sum(max(len(series) - 1, 0) for series in left)
    counted = (
        f"they change sign {changes} time{'' if changes == 1 else 's'} where chance would give "
        f"about {expected:.0f} (autocorrelation {correlation:.2f})"
    )
    if deviation < -_SIGNIFICANT or correlation * math.sqrt(pairs) > _SIGNIFICANT:
        reason = "The law misses something systematic, or the noise is correlated."
    elif deviation > _SIGNIFICANT:
        reason = "Neighbouring points err in opposite directions."
    else:
        return Remark("The residuals show no pattern that independent noise would not.", False)
    return Remark(f"The residuals are not random: {counted}. {reason}", True)


def _sign_changes(left: Sequence[Float[np.ndarray, "time"]]) -> tuple[int, float, float]:
    """Sign changes of all series, how many to expect of noise, and by how many sigma they differ.

    The runs test of Wald and Wolfowitz (1940).
    """
    changes, expected, variance = 0, 0.0, 0.0
    for series in left:
        positive = series[series != 0] > 0
        n, ups = positive.size, int(positive.sum())
        if n < 2:
            continue
        product = 2.0 * ups * (n - ups)
        changes += int((positive[1:] != positive[:-1]).sum())
        expected += product / n
        variance += product * (product - n) / (n**2 * (n - 1))
    return changes, expected, (changes - expected) / math.sqrt(variance) if variance > 0 else 0.0


def _autocorrelation(left: Sequence[Float[np.ndarray, "time"]]) -> float:
    """Of neighbouring residuals, over all series."""
    total = sum(float(np.sum(series**2)) for series in left)
    return sum(float(np.sum(series[1:] * series[:-1])) for series in left) / (total or 1.0)


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
    last = _exponent(error) - 1  # Place of the second digit of the error.
    first = max(_exponent(value) if value else last, last + 1)
    if -4 <= first <= 6:
        places = max(0, -last)
        return f"{value:.{places}f} ± {error:.{places}f}"
    places, unit = first - last, 10.0**first
    return f"({value / unit:.{places}f} ± {error / unit:.{places}f})e{first:+03d}"


def _exponent(value: float) -> int:
    """Power of ten of the first of two digits."""
    return int(f"{value:.1e}".split("e")[1])


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


# --- the blocks --------------------------------------------------------------


class _Names(NamedTuple):
    time: str
    value: str


class _Heading(NamedTuple):
    text: str


class _Paragraph(NamedTuple):
    text: str


class _Bullets(NamedTuple):
    items: tuple[str, ...]


class _Code(NamedTuple):
    text: str


class _Formula(NamedTuple):
    latex: str
    svg: bytes
    text: str


class _Table(NamedTuple):
    """Rows of text; the last column is code if `code`, all others numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    code: bool = False


class _Picture(NamedTuple):
    file: str
    png: bytes
    alt: str
    caption: str


_Block = _Heading | _Paragraph | _Bullets | _Code | _Formula | _Table | _Picture


def _title(names: _Names) -> str:
    return f"The law of {names.value} over {names.time}"


def _content(
    discovery: Discovery,
    names: _Names,
    pictures: Sequence[_Picture],
    remark: Remark,
    source: str | None,
    options: Mapping[str, object],
    saved: bool,
) -> list[_Block]:
    notes = (*discovery.notes, *([remark.text] if remark.warns else []))
    shown, total = min(_MOST_ROWS, len(discovery.candidates)), len(discovery.candidates)
    fit, law, left, front = pictures
    return [
        *_law(discovery, names),
        *([_Heading("To be wary of"), _Bullets(notes)] if notes else []),
        fit,
        _Heading("Constants"),
        *_constants(discovery.best),
        _Heading("Fixed points"),
        *_fixed_points(discovery, names),
        law,
        _Heading("What the law does not explain"),
        _Paragraph(remark.text),
        left,
        _Heading("Candidates"),
        _Paragraph(
            "The weight is the probability of a law if one of the candidates is the right one; "
            "the complexity counts operators, variables and constants. "
            + (f"The best {shown} of {total}:" if shown < total else f"All {total}:")
        ),
        _candidates(discovery),
        front,
        _Heading("How it was made"),
        _made(discovery, source, options),
        *_reading(saved),
    ]


def _law(discovery: Discovery, names: _Names) -> list[_Block]:
    best = discovery.best
    text = f"dy/dt = {best.rounded().infix}"
    starts = [
        f"y = {y0:.4g} at t = {start:g}"
        for y0, start in zip(best.y0s[:_MOST_STARTS], best.start_times[:_MOST_STARTS])
    ]
    more = len(best.y0s) - len(starts)
    listed = "; ".join(starts) + (f"; and {more} more" if more else "")
    return [
        _Formula(rf"\frac{{dy}}{{dt}} = {best.rounded().latex(6)}", _formula_svg(best), text),
        _Paragraph(
            f"y is {names.value}, t is {names.time}. The fitted solution starts at {listed}."
        ),
        _Paragraph(
            f"R² = {r2_text(best.r2)}; residual (root mean square) {best.residual_rms:.3g}; "
            f"weight {weight_text(best.weight)}."
        ),
        _Paragraph("With all digits, to be copied:"),
        _Code(best.infix),
    ]


def _constants(best: Candidate) -> list[_Block]:
    rows = []
    for value, error, low, high in constants_as_shown(best):
        if error == 0.0:
            rows.append((f"{value:.6g}", "", "not fitted"))
        elif math.isnan(error):
            rows.append((f"{value:.4g}", "unknown", "not determined by the data"))
        else:
            digits = min(12, max(2, 2 + _exponent(value or 1.0) - _exponent(error)))
            shown = value_with_error(value, error)
            rows.append((shown, f"{error:.2g}", f"{low:.{digits}g} to {high:.{digits}g}"))
    if not rows:
        return [_Paragraph("The law has no constants.")]
    return [
        _Paragraph(
            "In the order of the formula. The intervals hold the true values with 95% probability "
            "if the law has the right form and the noise is independent."
        ),
        _Table(("value", "standard error", "95% interval"), tuple(rows)),
    ]


def _fixed_points(discovery: Discovery, names: _Names) -> list[_Block]:
    found = find_fixed_points(discovery)
    if not found:
        return [_Paragraph("None in the range of the data or near it.")]
    rows = tuple(
        (
            value_with_error(point.y, point.standard_error),
            "stable" if point.stable else "unstable",
            "yes" if point.observed else "no",
        )
        for point in found
    )
    return [_Table((names.value, "stability", "in the range of the data"), rows)]


def _candidates(discovery: Discovery) -> _Table:
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
    return _Table(header, rows, code=True)


def _made(discovery: Discovery, source: str | None, options: Mapping[str, object]) -> _Bullets:
    series = discovery.trajectories
    points = " + ".join(str(len(trajectory)) for trajectory in series[:_MOST_STARTS])
    points += " + …" if len(series) > _MOST_STARTS else ""
    first = min(float(trajectory.t[0]) for trajectory in series)
    last = max(float(trajectory.t[-1]) for trajectory in series)
    chosen = ", ".join(f"{name} = {value}" for name, value in options.items())
    now = datetime.datetime.now(datetime.UTC)
    return _Bullets(
        (
            *([f"Data: {_one_line(source)}"] if source else []),
            f"Points fitted: {points}, from {first:g} to {last:g}",
            *([f"Options: {_one_line(chosen)}"] if chosen else []),
            f"Program: nsode_jax {nsode_jax.__version__}",
            f"Search: {discovery.seconds:.1f} s; this report: {now:%Y-%m-%d %H:%M} UTC",
        )
    )


def _reading(saved: bool) -> list[_Block]:
    if not saved:
        return [_Paragraph("A formula is too long for a file; this page is all there is.")]
    code = f'from nsode_jax.discovery import Discovery\n\ndiscovery = Discovery.load("{JSON}")'
    return [_Paragraph("All candidates, and the data as fitted, can be read back:"), _Code(code)]


# --- the pictures ------------------------------------------------------------


def _pictures(discovery: Discovery, names: _Names, remark: Remark) -> tuple[_Picture, ...]:
    best, points = discovery.best, sum(map(len, discovery.trajectories))
    r2, (time, value) = r2_text(best.r2), names
    roots = find_fixed_points(discovery)
    rests = "; ".join(f"{p.y:.4g} ({'stable' if p.stable else 'unstable'})" for p in roots)
    above = textwrap.fill(remark.text, 84) if remark.warns else ""
    return (
        _Picture(
            "fit.png",
            _png(lambda axes: draw_fit(axes, discovery, time, value)),
            f"{points} observations of {value} over {time}, and the solution of the best law "
            f"through them, R² = {r2}.",
            "Data and the solution of the best law.",
        ),
        _Picture(
            "law.png",
            _png(lambda axes: draw_law(axes, discovery, time, value)),
            f"The rate of change f(y) over y = {value}, with the slopes of the data. "
            f"Fixed points: {rests or 'none'}.",
            "The law f(y) with the 95% band that follows from the errors of its constants. The "
            "points are slopes of the data, which scatter more than the data do.",
        ),
        _Picture(
            "residuals.png",
            _png(lambda axes: draw_residuals(axes, discovery, time, value, above)),
            f"Residuals of {value} over {time}: root mean square {best.residual_rms:.3g}. "
            + remark.text,
            "Data minus solution. About one point in twenty lies beyond the dashed lines.",
        ),
        _Picture(
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


# --- Markdown ----------------------------------------------------------------


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]|<>~$#&])", r"\\\1", text)


def _to_markdown(title: str, blocks: Sequence[_Block]) -> str:
    parts = [f"# {_plain(title)}", *map(_block_to_markdown, blocks)]
    return "\n\n".join(parts) + "\n"


def _block_to_markdown(block: _Block) -> str:
    match block:
        case _Heading(text):
            return f"## {_plain(text)}"
        case _Paragraph(text):
            return _plain(text)
        case _Bullets(items):
            return "\n".join(f"- {_plain(item)}" for item in items)
        case _Code(text):
            return f"```\n{text}\n```"
        case _Formula(latex=latex):
            return f"$$\n{latex}\n$$"
        case _Table():
            return _table_to_markdown(block)
        case _Picture():
            return f"![{_plain(block.alt)}]({block.file})\n\n*{_plain(block.caption)}*"


def _table_to_markdown(table: _Table) -> str:
    lines = [[_plain(name) for name in table.header]]
    lines.append(["---:"] * (len(table.header) - table.code) + [":---"] * table.code)
    for row in table.rows:
        cells = [_plain(cell) for cell in row]
        lines.append([*cells[:-1], f"`{row[-1]}`"] if table.code else cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- HTML --------------------------------------------------------------------

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff;
  max-width: 52rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
img { max-width: 100%; height: auto; } .formula { margin: 1.5rem 0; }
figure { margin: 1.5rem 0; } figcaption { color: #555; font-size: 0.9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: 0.25rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd;
  white-space: nowrap; } th { border-bottom: 2px solid #888; }
.code { text-align: left; } pre { background: #f5f5f5; padding: 0.7rem; overflow-x: auto;
  white-space: pre-wrap; }
""".strip()


def _to_html(title: str, blocks: Sequence[_Block]) -> str:
    body = "\n".join(map(_block_to_html, blocks))
    name = html.escape(title)
    # Nothing may be loaded or run, whatever a column is called.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{name}</title>
<style>
{_STYLE}
</style>
</head>
<body>
<main>
<h1>{name}</h1>
{body}
</main>
</body>
</html>
"""


def _block_to_html(block: _Block) -> str:
    match block:
        case _Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case _Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case _Bullets(items):
            return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"
        case _Code(text):
            return f"<pre><code>{html.escape(text)}</code></pre>"
        case _Formula():
            return f'<p class="formula">{_image(block.svg, "svg+xml", block.text)}</p>'
        case _Table():
            return _table_to_html(block)
        case _Picture():
            image = _image(block.png, "png", block.alt)
            return f"<figure>{image}<figcaption>{html.escape(block.caption)}</figcaption></figure>"


def _image(data: bytes, kind: str, alt: str) -> str:
    encoded = base64.b64encode(data).decode()
    return f'<img src="data:image/{kind};base64,{encoded}" alt="{html.escape(alt)}">'


def _table_to_html(table: _Table) -> str:
    last = ' class="code"' if table.code else ""
    *names, final = (html.escape(name) for name in table.header)
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    head += f'<th scope="col"{last}>{final}</th>'
    rows = []
    for row in table.rows:
        *cells, end = (html.escape(cell) for cell in row)
        end = f"<code>{end}</code>" if table.code else end
        rows.append("".join(f"<td>{cell}</td>" for cell in cells) + f"<td{last}>{end}</td>")
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>"
    )
