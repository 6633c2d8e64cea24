"""What reports of the law of one quantity and of systems have in common."""

from __future__ import annotations

import datetime
import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

import nsode_jax
from nsode_jax.expressions.display import decimal_exponent, value_with_error
from nsode_jax.reporting.documents import (
    Block,
    Bullets,
    Code,
    Paragraph,
    Picture,
    to_html,
    to_markdown,
)
from nsode_jax.reporting.pictures import new_figure, save
from nsode_jax.results.formatting import time_text
from nsode_jax.results.json_fields import DiscoveryFileError

HTML, MARKDOWN, JSON = "report.html", "report.md", "discovery.json"

MOST_ROWS = 20
MOST_STARTS = 20
SIZE = (7.6, 4.6)  # Inches, of a picture.

INTERVALS = (
    "In the order of the formula. The intervals hold the true values with 95% probability "
    "if the law has the right form; residuals that are alike from one observation to the next "
    "widen them."
)


def write_files(
    folder: str | Path,
    title: str,
    files: Mapping[str, Callable[[Path], object]],
    draw: Callable[[], Sequence[Picture]],
    content: Callable[[Sequence[Picture], tuple[str, ...]], list[Block]],
) -> tuple[Path, ...]:
    """Writes files, then pictures, then the page in HTML and in Markdown.

    What was found is safe before anything is drawn.

    Args:
      folder: where to; made if it is not there. Files of an earlier report are replaced.
      title: of the page.
      files: by name, what writes them; those whose formulas are too long are left out.
      draw: the pictures that the page holds.
      content: of the page, given the pictures and told which files are there.

    Returns:
      The files written, the page in HTML first.

    Raises:
      OSError: if they cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, write in files.items():
        try:
            write(folder / name)
            written.append(name)
        except DiscoveryFileError:  # An endless formula; the rest can still be shown.
            (folder / name).unlink(missing_ok=True)
    pictures = draw()
    for picture in pictures:
        (folder / picture.file).write_bytes(picture.png)
    blocks = content(pictures, tuple(written))
    (folder / MARKDOWN).write_text(to_markdown(title, blocks), encoding="utf-8")
    (folder / HTML).write_text(to_html(title, blocks), encoding="utf-8")
    names = (HTML, MARKDOWN, *(picture.file for picture in pictures), *written)
    return tuple(folder / name for name in names)


def one_line(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


def constant_row(value: float, error: float, low: float, high: float) -> tuple[str, str, str]:
    """A constant, its standard error and its 95% interval, in words where they are unknown."""
    if error == 0.0:
        return f"{value:.6g}", "", "not fitted"
    if math.isnan(error):
        return f"{value:.4g}", "unknown", "not determined by the data"
    digits = min(12, max(2, 2 + decimal_exponent(value or 1.0) - decimal_exponent(error)))
    shown = value_with_error(value, error)
    return shown, f"{error:.2g}", f"{low:.{digits}g} to {high:.{digits}g}"


def how_it_was_made(
    times: Sequence[Float[np.ndarray, " _"]],
    source: str | None,
    options: Mapping[str, object],
    tried: str,
    seconds: float,
) -> Bullets:
    """The data, the options, the program and its time.

    Args:
      times: of each series.
      source: name of the file with the data.
      options: what `discover` was asked for.
      tried: what the laws were chosen from.
      seconds: of the search.
    """
    points = " + ".join(str(t.size) for t in times[:MOST_STARTS])
    points += " + …" if len(times) > MOST_STARTS else ""
    first, last = min(float(t[0]) for t in times), max(float(t[-1]) for t in times)
    chosen = ", ".join(f"{name} = {value}" for name, value in options.items())
    now = datetime.datetime.now(datetime.UTC)
    return Bullets(
        (
            *([f"Data: {one_line(source)}"] if source else []),
            f"Points fitted: {points}, from {time_text(first)} to {time_text(last)}",
            *([f"Options: {one_line(chosen)}"] if chosen else []),
            *([f"Laws tried: {one_line(tried)}"] if tried else []),
            f"Program: nsode_jax {nsode_jax.__version__}",
            f"Search: {seconds:.1f} s; this report: {now:%Y-%m-%d %H:%M} UTC",
        )
    )


def reading_back(saved: bool, name: str) -> list[Block]:
    """How the JSON file is read, by the class of this name."""
    if not saved:
        return [Paragraph("A formula is too long for a file; this page is all there is.")]
    code = f'from nsode_jax.discovery import {name}\n\ndiscovery = {name}.load("{JSON}")'
    return [Paragraph("All candidates, and the data as fitted, can be read back:"), Code(code)]


def png(draw: Callable[[Figure], None], size: tuple[float, float] = SIZE) -> bytes:
    """What is drawn on a figure of this size in inches."""
    figure = new_figure(*size)
    draw(figure)
    return png_of(figure)


def png_of(figure: Figure) -> bytes:
    """A figure as a file."""
    buffer = io.BytesIO()
    save(figure, buffer)
    return buffer.getvalue()


def svg(draw: Callable[[Figure], None], size: tuple[float, float] = SIZE) -> bytes:
    """The same as an SVG picture, which is sharp at any size."""
    figure = new_figure(*size)
    draw(figure)
    buffer = io.BytesIO()
    save(figure, buffer, "svg")
    return buffer.getvalue()


def formula_svg(text: str) -> bytes:
    """A formula as a picture, as no script may be needed to see it; see `pictures.mathtext`."""
    figure = Figure()
    figure.text(0.0, 0.0, text, fontsize=17, linespacing=1.6)
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None}
    )
    return buffer.getvalue()
