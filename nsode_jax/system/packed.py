"""Long lists as one small file: a header in JSON, a line for each entry, gzip, a checksum."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nsode_jax.system.files import write_atomically


def checksum(lines: Sequence[str]) -> str:
    """The SHA-256 of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def write_packed(
    path: str | Path, form: str, header: Mapping[str, Any], lines: Sequence[str]
) -> None:
    """Writes a file as a whole or not at all; the same content gives the same bytes.

    Args:
      path: of the file.
      form: name and number of its format.
      header: what else is known of the lines, as plain JSON.
      lines: at least one, without line breaks.

    Raises:
      OSError: if it cannot be written.
    """
    first = json.dumps({"format": form, **header, "sha256": checksum(lines)})
    text = "\n".join([first, *lines, ""])
    write_atomically(path, gzip.compress(text.encode(), compresslevel=9, mtime=0))


def unpack(data: bytes, form: str) -> tuple[dict[str, Any], list[str]]:
    """The header and the lines in the bytes of a file.

    Raises:
      ValueError: if they are damaged or of another format; to be read after the file's name.
    """
    try:
        first, _, body = gzip.decompress(data).decode().rstrip("\n").partition("\n")
        header = json.loads(first)
        found, stated = header["format"], header["sha256"]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"is damaged or no {form.rpartition(' ')[0]}") from error
    if found != form:
        raise ValueError(f"has the format {found!r}, not {form!r}")
    lines = body.split("\n")
    # Catalogues of before counted the last line break.
    if stated not in (checksum(lines), checksum([*lines, ""])):
        raise ValueError("is damaged (its checksum differs)")
    return header, lines
