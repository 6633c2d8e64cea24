"""A search as the terminal shows it: its progress, its errors as a line, its notes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from nsode_jax.console.arguments import PROGRAM, InputError
from nsode_jax.console.terminal import Progress, remark
from nsode_jax.dynamics.vectors import count
from nsode_jax.system.files import one_line


class _Found(Protocol):
    @property
    def candidates(self) -> Sequence[Any]: ...


Found = TypeVar("Found", bound=_Found)


def searched(search: Callable[[Progress], Found]) -> Found | None:
    """What a search finds; None, after a line on stderr, if there is no law.

    Args:
      search: given the progress that it tells.

    Raises:
      InputError: if it cannot be done as it was asked for.
    """
    progress = Progress(sys.stderr)
    progress("loading")
    from nsode_jax.discovery.pipeline import DiscoveryError

    try:
        found = search(progress)
        progress(f"done, {count(len(found.candidates), 'candidate')}")
    except DiscoveryError as error:
        progress.end_line()
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return None
    except ValueError as error:
        raise InputError(one_line(error)) from error
    finally:
        progress.end_line()
    return found


def print_notes(notes: Iterable[str], already_said: Sequence[str]) -> None:
    """A line for each note that was not told when the file was read."""
    for note in notes:
        if note not in already_said:
            print(remark("note", note))
