"""From the bytes of a text file to its text."""

from __future__ import annotations

import re

from nsode_jax.dynamics.trajectory import TrajectoryError

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def decode(raw: bytes, shown: str) -> tuple[str, list[str]]:
    """The file's text, and notes about its encoding.

    Raises:
      TrajectoryError: if the file holds control characters, which no text does.
    """
    notes = []
    try:
        # UTF-16 is what spreadsheets call "Unicode text".
        utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = raw.decode("utf-16" if utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
        notes = ["The file is not UTF-8; it was read as Latin-1."]
    if _CONTROL.search(text):
        raise TrajectoryError(
            f"{shown} is not a text file (it holds binary data); save it as CSV first."
        )
    return text, notes
