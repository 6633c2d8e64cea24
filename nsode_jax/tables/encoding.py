"""From the bytes of a text file to its text."""

from __future__ import annotations

import json
import re

from nsode_jax.dynamics.vectors import TrajectoryError

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_SAMPLE = 4096
_MARKUP = re.compile(r"<(!doctype|html|head|body|table|\?xml|!--)|\{\\rtf", re.IGNORECASE)


def decode(raw: bytes, shown: str) -> tuple[str, list[str]]:
    """The file's text, and notes about its encoding.

    Raises:
      TrajectoryError: if the file holds control characters, which no text does, or is a
        document of another kind.
    """
    notes = []
    try:
        text = raw.decode(_utf16(raw) or "utf-8-sig")
    except UnicodeDecodeError:
        name, text = _of_single_bytes(raw)
        notes = [f"The file is not UTF-8; it was read as {name}."]
    _require_table(text, shown)
    if _CONTROL.search(text):
        raise TrajectoryError(
            f"{shown} is not a text file (it holds binary data); save it as CSV first."
        )
    return text, notes


def _of_single_bytes(raw: bytes) -> tuple[str, str]:
    """The name of the encoding and the text: what Windows writes, or where that has no such
    letters the older one that gives each byte its own."""
    try:
        return "Windows-1252", raw.decode("cp1252")
    except UnicodeDecodeError:
        return "Latin-1", raw.decode("latin-1")


def _utf16(raw: bytes) -> str | None:
    """Which UTF-16 it is, if any: what spreadsheets call "Unicode text", also without its mark."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    for zeros, codec in ((raw[1:_SAMPLE:2], "utf-16-le"), (raw[:_SAMPLE:2], "utf-16-be")):
        if len(raw) % 2 == 0 and zeros.count(0) > 0.9 * len(zeros):
            return codec
    return None


def _require_table(text: str, shown: str) -> None:
    """Refuses web pages, JSON and rich text, which hold tables but are none."""
    start = text.lstrip("\ufeff \t\r\n")
    kind = "a web page, XML or rich text" if _MARKUP.match(start) else ""
    kind = "a PDF" if start.startswith("%PDF-") else kind
    if start.startswith("{") or re.match(r"\[\s*[\[{\d-]", start):
        lines = start.splitlines() if start.startswith("{") else []
        try:
            json.loads(lines[0] if lines and lines[0].rstrip().endswith("}") else start)
            kind = "JSON"
        except (ValueError, RecursionError):
            pass
    if kind:
        raise TrajectoryError(
            f"{shown} is {kind}, not a table as text; save it as CSV, with a column of times and a "
            "column of values."
        )
