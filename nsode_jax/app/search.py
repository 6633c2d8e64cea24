"""The search itself, in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nsode_jax.fitting.progress import Progress
from nsode_jax.tables.quantities import Quantities
from nsode_jax.tables.table import Measurements

if TYPE_CHECKING:
    from nsode_jax.reporting.discovery import Discovery
    from nsode_jax.reporting.system_discovery import SystemDiscovery


class Task(NamedTuple):
    """Data, how hard to search, and what the file is called."""

    read: Measurements | Quantities
    effort: str
    source: str


def search(task: Task, progress: Progress) -> Discovery | SystemDiscovery:
    """Finds the laws.

    Raises:
      DiscoveryError: if there is none.
      ValueError: if the data cannot be used.
    """
    from nsode_jax.console import scalar, system  # They import what takes seconds.

    progress("loading")
    if isinstance(task.read, Quantities):
        return system.find(task.read, len(task.read.names), progress, effort=task.effort)
    return scalar.find(task.read, progress, effort=task.effort)
