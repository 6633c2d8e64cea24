"""Batches of like length, whose targets are cut where all of them have ended.

Targets have about half of the positions that the longest one needs, and every position
of a batch is computed. So a few batches at a time are sorted by the length of their
targets, divided anew, and cut to one of a few shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int

from nsode_jax.data.examples import Example
from nsode_jax.data.vocabulary import PAD
from nsode_jax.training.stream import Positioned

CHUNK = 8
"""Batches that are sorted together."""
_TURNS = (0, 4, 2, 6, 1, 5, 3, 7)
"""The order in which they are yielded: short and long ones in turns."""


def target_lengths(low: Int[np.ndarray, "batch length"]) -> Int[np.ndarray, " batch"]:
    """Positions of each target, end token included."""
    return np.sum(low != PAD, axis=1)


class LikeLength(Iterator[Example]):
    """The examples of an iterator, chunk by chunk in batches of like length."""

    def __init__(self, batches: Positioned, multiple: int):
        """
        Args:
          batches: all of one size.
          multiple: batches are cut to a multiple of so many positions, or to as many as
            they came with if these are fewer.
        """
        self._batches, self._multiple = batches, multiple
        self._start: dict[str, Any] = {}
        self._left: list[Example] = []

    def __next__(self) -> Example:
        if not self._left:
            self._start = self._batches.get_state()
            self._left = self._sorted([next(self._batches) for _ in range(CHUNK)])
        return self._left.pop(0)

    def get_state(self) -> dict[str, Any]:
        """The position: that of the chunk, and how many of its batches have been taken."""
        if not self._left:
            return {"chunk": self._batches.get_state(), "taken": 0}
        return {"chunk": self._start, "taken": CHUNK - len(self._left)}

    def set_state(self, state: dict[str, Any]) -> None:
        """Moves to a position; a chunk that has been begun is drawn again."""
        self._batches.set_state(state["chunk"])
        self._left = []
        for _ in range(state["taken"]):
            next(self)

    def _sorted(self, chunk: list[Example]) -> list[Example]:
        examples = {name: np.concatenate([b[name] for b in chunk]) for name in chunk[0]}
        lengths = target_lengths(examples["low"])
        # [CHUNK*batch] --> [CHUNK, batch]; stable, so that the result is the same everywhere.
        rows = np.argsort(lengths, kind="stable").reshape(CHUNK, -1)
        longest = lengths[rows].max(axis=1)
        return [self._cut(examples, rows[turn], int(longest[turn])) for turn in _TURNS]

    def _cut(self, examples: Example, rows: np.ndarray, longest: int) -> Example:
        end = -(-longest // self._multiple) * self._multiple
        batch = {name: array[rows] for name, array in examples.items()}
        return batch | {name: batch[name][:, :end] for name in ("low", "fraction")}
