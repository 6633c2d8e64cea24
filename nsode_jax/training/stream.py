"""The batches of a run, and where they are in which data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from nsode_jax.data.examples import Example


@runtime_checkable
class Positioned(Protocol):
    """An endless iterator over batches with a position, which is plain JSON."""

    def __next__(self) -> Example: ...

    def get_state(self) -> dict[str, Any]: ...

    def set_state(self, state: dict[str, Any]) -> None: ...


class Stream(Iterator[Example]):
    """Batches whose position holds in the data that they are drawn from, and in no other."""

    def __init__(self, batches: Positioned, data: Mapping[str, str | int]):
        """
        Args:
          batches: endless.
          data: all that decides them, by names that a user knows.
        """
        self._batches, self._data = batches, dict(data)

    def __next__(self) -> Example:
        return next(self._batches)

    def get_state(self) -> dict[str, Any]:
        """The position, and in what data it is one."""
        return {"data": self._data, "position": self._batches.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Moves to a position.

        Raises:
          ValueError: if it is a position in other data, naming what has changed.
        """
        saved = state.get("data", {})
        changed = [
            f"{name} was {saved.get(name)!r} and is {self._data.get(name)!r}"
            for name in {**saved, **self._data}
            if saved.get(name) != self._data.get(name)
        ]
        if changed:
            raise ValueError(
                f"the saved position is one in other data: {', '.join(changed)}; set that as it "
                "was, or start a new workdir from its weights, training.init_from"
            )
        self._batches.set_state(state["position"])
