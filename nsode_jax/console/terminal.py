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

from nsode_jax.data.progress import clock

_NARROWEST = 80  # Columns for which tables and notes are set on a terminal.
_PAUSE, _LONGEST_PAUSE = 10.0, 180.0
"""Seconds between lines of one stage in a log: at each tenth, and where that takes long."""


class Progress:
    """A line per stage; on a terminal the share that is done is updated at its end.

    Elsewhere, as in the log of a cluster, a stage that takes long has a line now and then.
    """

    def __init__(self, stream: TextIO):
        self._stream, self._terminal = stream, stream.isatty()
        self._start = time.monotonic()
        self._stage, self._line, self._percent = None, "", 0
        self._open = False
        self._began = self._told = (self._start, 0.0)  # When, and how much was done then.

    def __call__(self, stage: str, share: float = 0.0) -> None:
        share = min(max(share, 0.0), 1.0)
        percent, now = round(100 * share), time.monotonic()
        if stage != self._stage:
            self.end_line()
            self._stage, self._percent = stage, 0
            self._began = self._told = (now, share)
            self._line = self._after(now, stage)
            self._open = self._terminal
            print(self._line, file=self._stream, end="" if self._open else "\n", flush=True)
        if self._open and percent != self._percent:
            self._percent = percent
            print(f"\r{self._line} {percent:3d}%", file=self._stream, end="", flush=True)
        if not self._terminal and self._is_time(now, share):
            self._told = (now, share)
            line = f"{stage}: {percent}% done{self._left(now, share)}"
            print(self._after(now, line), file=self._stream, flush=True)

    def _after(self, now: float, text: str) -> str:
        return f"[{now - self._start:5.1f} s] {text}"

    def _is_time(self, now: float, share: float) -> bool:
        """Whether a log may want to know."""
        last, before = self._told
        tenth = int(10 * share + 1e-9) > int(10 * before + 1e-9)
        return now - last >= (_PAUSE if tenth else _LONGEST_PAUSE)

    def _left(self, now: float, share: float) -> str:
        """The time left of the stage, if it goes on as until now."""
        began, before = self._began
        if not before < share < 1:
            return ""
        return f", about {clock((now - began) * (1 - share) / (share - before))} left"

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
