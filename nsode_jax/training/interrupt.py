"""Signals that ask a run to save and stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Interrupt:
    """Within its context SIGTERM and the first SIGINT are a request, `asked`, no more.

    A second SIGINT raises KeyboardInterrupt. Python runs the handler between two
    steps, when the main thread comes back from XLA. It replaces the handler of JAX's
    preemption notifier, which `jax.distributed.initialize` installs; so enter the
    context after that.
    """

    def __init__(self):
        self.asked = ""
        """Name of the signal that has come; empty before."""
        self._before: dict[int, _Handler] = {}

    def __enter__(self) -> Interrupt:
        # Python allows handlers in its main thread only; elsewhere nothing changes.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *exception) -> None:
        for number, handler in self._before.items():
            # None is a handler that was not installed from Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _ask(self, number: int, frame) -> None:
        self.asked = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
