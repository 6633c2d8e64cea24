"""Worker processes: an ordered map that draws on its input lazily."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_TASKS_AHEAD = 3


class WorkersLost(RuntimeError):
    """A worker process died, for example because the memory ran out."""


class Workers:
    """Some processes that work on tasks; as a context manager they end with its body.

    They are spawned, not forked, since the parent may hold threads of JAX, and
    they end by themselves when the parent is killed.
    """

    def __init__(self, processes: int | None = None):
        """
        Args:
          processes: how many; all cores by default, 0 works in this process.
        """
        self.processes = (os.cpu_count() or 1) if processes is None else processes
        if self.processes < 0:
            raise ValueError(f"the number of processes must not be negative, got {processes}")
        self._pool = None
        if self.processes:
            context = multiprocessing.get_context("spawn")
            # The workers hold the other end, and see this one close.
            there, self._lifeline = context.Pipe(duplex=False)
            self._pool = concurrent.futures.ProcessPoolExecutor(
                self.processes, context, _end_with, (there,)
            )

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Results in the order of the tasks, which may be endless.

        Args:
          function: importable by name.
          tasks: taken a few ahead of the results that have been asked for.

        Raises:
          WorkersLost: if a worker died.
        """
        if self._pool is None:
            yield from map(function, tasks)
            return
        pending: collections.deque[concurrent.futures.Future] = collections.deque()
        try:
            for task in tasks:
                pending.append(self._pool.submit(function, task))
                if len(pending) >= _TASKS_AHEAD * self.processes:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except concurrent.futures.process.BrokenProcessPool as error:
            raise WorkersLost("a worker process died; is there enough memory?") from error
        finally:
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Ends the workers at once, whatever they are doing."""
        if self._pool is not None:
            self._lifeline.close()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception) -> None:
        self.close()


def _end_with(lifeline: multiprocessing.connection.Connection) -> None:
    """Lets this worker end when its parent closes the line, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent decides.

    def watch() -> None:
        with contextlib.suppress(EOFError, OSError):
            lifeline.recv()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
