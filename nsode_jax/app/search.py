"""The search itself, in a process of its own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from nsode_jax.fitting.progress import Progress
from nsode_jax.tables.quantities import Quantities
from nsode_jax.tables.table import Measurements

if TYPE_CHECKING:
    from nsode_jax.reporting.discovery import Discovery
    from nsode_jax.reporting.form_discovery import FormDiscovery
    from nsode_jax.reporting.system_discovery import SystemDiscovery

    Found = Discovery | SystemDiscovery | FormDiscovery | dict[str, Discovery | str]


class Task(NamedTuple):
    """Data, and what is asked of them.

    Attributes:
      read: the data.
      options: of the command; its file is the name of the data.
      command: the same as a line for a terminal.
    """

    read: Measurements | Quantities
    options: argparse.Namespace
    command: str


def search(task: Task, progress: Progress) -> Found:
    """Finds the laws.

    Raises:
      DiscoveryError: if there is none.
      ValueError: if the data cannot be used.
    """
    from nsode_jax.console.commands import command_of  # It imports what takes seconds.

    progress("loading")
    return command_of(task.options).find(task.read, task.options, progress)
