"""How far a long piece of work has come, on standard error."""

from __future__ import annotations

import sys
import time
from typing import Protocol, runtime_checkable

_SECONDS_ON_TERMINAL = 0.5
_SECONDS_IN_LOG = 30.0


@runtime_checkable
class CountedProgress(Protocol):
    """Called with a stage, the amount of it that is done and the total."""

    def __call__(self, stage: str, done: int, total: int) -> None: ...


def uncounted(stage: str, done: int, total: int) -> None:
    """Progress that nobody listens to."""


class StageProgress:
    """One line per stage, rewritten on a terminal: share, rate, time left."""

    def __init__(self):
        self._stage, self._start, self._last, self._first_done = "", 0.0, 0.0, 0
        self._terminal = sys.stderr.isatty()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Reports that `done` of `total` is done of a stage."""
        now = time.monotonic()
        if stage != self._stage:
            self.close()
            self._stage, self._start, self._last = stage, now, now
            # What an earlier run has done says nothing about the rate of this one.
            self._first_done = done
        pause = _SECONDS_ON_TERMINAL if self._terminal else _SECONDS_IN_LOG
        if now - self._last < pause and done < total:
            return
        self._last = now
        rate = (done - self._first_done) / max(now - self._start, 1e-9)
        line = f"{stage}: {done:,}/{total:,} ({done / total:.0%})"
        if rate > 0:
            line += f", {rate:,.1f}/s, {clock((total - done) / rate)} left"
        if self._terminal:
            print(f"\r{line:<78}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Ends the line."""
        if self._stage and self._terminal:
            print(file=sys.stderr)
        self._stage = ""


def clock(seconds: float) -> str:
    """A duration as h:mm:ss."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
