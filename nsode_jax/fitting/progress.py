"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Called with what is being done, and the share of it that is done, in [0, 1]."""

    def __call__(self, stage: str, share: float = 0.0) -> None: ...


def silent(stage: str, share: float = 0.0) -> None:
    """Progress that nobody listens to."""
