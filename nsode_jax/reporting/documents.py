"""A document as a list of blocks, and its writers to Markdown and to one HTML page.

The page needs nothing beside it, and no network. Texts may hold anything: both writers
escape them. Only code and LaTeX stand in Markdown as they are.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from typing import NamedTuple


class Heading(NamedTuple):
    text: str


class Paragraph(NamedTuple):
    text: str


class Bullets(NamedTuple):
    items: tuple[str, ...]


class Code(NamedTuple):
    text: str


class Formula(NamedTuple):
    """A formula: LaTeX for Markdown, a picture for HTML, and what is read out instead."""

    latex: str
    svg: bytes
    text: str


class Table(NamedTuple):
    """Rows of text; the last column is code if `code`, all others numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    code: bool = False


class Picture(NamedTuple):
    """A picture: Markdown names its file, which is to lie beside it; HTML embeds it."""

    file: str
    png: bytes
    alt: str
    caption: str


Block = Heading | Paragraph | Bullets | Code | Formula | Table | Picture


# --- Markdown ----------------------------------------------------------------


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]|<>~$#&])", r"\\\1", text)


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """The document in Markdown, with formulas between `$$` and tables with bars."""
    return f"# {plain(title)}\n\n{blocks_to_markdown(blocks)}\n"


def blocks_to_markdown(blocks: Sequence[Block]) -> str:
    """The blocks in Markdown, as a part of a document or of a notebook."""
    return "\n\n".join(map(_block_to_markdown, blocks))


def _block_to_markdown(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {plain(text)}"
        case Paragraph(text):
            return plain(text)
        case Bullets(items):
            return "\n".join(f"- {plain(item)}" for item in items)
        case Code(text):
            return f"```\n{text}\n```"
        case Formula(latex=latex):
            return f"$$\n{latex}\n$$"
        case Table():
            return _table_to_markdown(block)
        case Picture():
            return f"![{plain(block.alt)}]({block.file})\n\n*{plain(block.caption)}*"


def _table_to_markdown(table: Table) -> str:
    lines = [[plain(name) for name in table.header]]
    lines.append(["---:"] * (len(table.header) - table.code) + [":---"] * table.code)
    for row in table.rows:
        cells = [plain(cell) for cell in row]
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
pre { background: #f5f5f5; padding: 0.7rem; overflow-x: auto;
  white-space: pre-wrap; }
""".strip()


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """The document as one page, pictures and style included, that loads and runs nothing."""
    body = blocks_to_html(blocks)
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


def blocks_to_html(blocks: Sequence[Block]) -> str:
    """The blocks in HTML, as a part of a page or of a notebook."""
    return "\n".join(map(_block_to_html, blocks))


def _block_to_html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{html.escape(text)}</h2>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Bullets(items):
            return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"
        case Code(text):
            return f"<pre><code>{html.escape(text)}</code></pre>"
        case Formula():
            return f'<p class="formula">{image(block.svg, "svg+xml", block.text)}</p>'
        case Table():
            return _table_to_html(block)
        case Picture():
            shown = image(block.png, "png", block.alt)
            return f"<figure>{shown}<figcaption>{html.escape(block.caption)}</figcaption></figure>"


def image(data: bytes, kind: str, alt: str) -> str:
    """A picture as a tag that holds it; `kind` is that of its media type, such as `svg+xml`."""
    encoded = base64.b64encode(data).decode()
    return f'<img src="data:image/{kind};base64,{encoded}" alt="{html.escape(alt)}">'


def _table_to_html(table: Table) -> str:
    last = ' style="text-align: left"' if table.code else ""
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
