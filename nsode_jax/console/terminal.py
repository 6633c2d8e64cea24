"""Progress and remarks on a terminal, and where there is none."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import TextIO

_NARROWEST = 80  # Columns for which tables and notes are set on a terminal.


class Progress:
    """A line per stage; on a terminal the share that is done is updated at its end."""

    def __init__(self, stream: TextIO):
        self._stream, self._terminal = stream, stream.isatty()
        self._start = time.monotonic()
        self._stage, self._line, self._percent = None, "", 0
        self._open = False

    def __call__(self, stage: str, share: float = 0.0) -> None:
        percent = round(100 * min(max(share, 0.0), 1.0))
        if stage != self._stage:
            self.end_line()
            self._stage, self._percent = stage, 0
            self._line = f"[{time.monotonic() - self._start:5.1f} s] {stage}"
            self._open = self._terminal
            print(self._line, file=self._stream, end="" if self._open else "\n", flush=True)
        if self._open and percent != self._percent:
            self._percent = percent
            print(f"\r{self._line} {percent:3d}%", file=self._stream, end="", flush=True)

    def end_line(self) -> None:
        """What comes next begins a line of its own; that of a stage that is over has no share."""
        if self._open:
            without = f"\r{self._line}     " if self._percent else ""
            print(without, file=self._stream, flush=True)
        self._open = False


@contextlib.contextmanager
def output_may_end() -> Iterator[None]:
    """Around what prints: where nobody reads on, as in `| head`, the program ends in silence."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # For what is left.
        sys.exit(128 + 13)  # As of a program that SIGPIPE ends.


def remark(kind: str, text: str) -> str:
    """Broken between words on a terminal; one line elsewhere, where it may be searched."""
    width, line = columns(), f"{kind}: {text}"
    if width is None:
        return line
    return textwrap.fill(
        line,
        min(width, 100),
        subsequent_indent=" " * len(f"{kind}: "),
        break_long_words=False,
        break_on_hyphens=False,
    )


def columns() -> int | None:
    """The width of the terminal; None if the output goes elsewhere."""
    if not sys.stdout.isatty():
        return None
    return max(_NARROWEST, shutil.get_terminal_size().columns)
