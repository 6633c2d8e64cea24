"""The Markdown of reports on evaluations: texts that hold anything, tables, pictures, links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nsode_jax.reporting.documents import plain


def escape(text: object) -> str:
    """Anything as one line that Markdown shows as it is."""
    return plain(" ".join(str(text).split()))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> str:
    """A table of cells that are Markdown already.

    Args:
      header: of the columns.
      rows: their cells.
      words: how many of the columns hold words; the others are numbers, set to the right.
    """
    lines = [header, [":---"] * words + ["---:"] * (len(header) - words), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Picture(NamedTuple):
    """A file with a picture, its name, and what is read out instead."""

    file: str
    name: str
    alt: str


def section(heading: str, *parts: str) -> str:
    """A heading and the parts below it that are not empty."""
    return "\n\n".join((f"## {heading}", *filter(None, parts)))


def bullets(items: Iterable[str]) -> str:
    """A list, of items that are Markdown already."""
    return "\n".join(f"- {item}" for item in items)


def images(pictures: Iterable[Picture]) -> str:
    """Pictures, each below its name."""
    return "\n\n".join(
        f"**{name}**\n\n![{escape(f'{name}: {alt}')}]({file})" for file, name, alt in pictures
    )


def link(file: str) -> str:
    """A link to a file, by its name."""
    return f"[{escape(file)}]({file})"
