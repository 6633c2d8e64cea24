"""Worker processes: a map that draws on its input lazily."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_TASKS_AHEAD = 3

DIED = (
    "a worker process died; either the memory ran out, or a script that starts workers does so "
    'without `if __name__ == "__main__":`'
)

_Outcome = tuple[bool, Any]
"""Whether a task succeeded, and its result or its error."""


class WorkersLost(RuntimeError):
    """A worker process died, for example because the memory ran out."""


class Workers:
    """Some processes that work on tasks; as a context manager they end with its body.

    They are spawned, not forked, since the parent may hold threads of JAX. Each has
    a pipe of its own, so that the end of one is seen even in the middle of a result,
    and they end by themselves when the parent is killed. Not for use by several
    threads.
    """

    def __init__(self, processes: int | None = None):
        """
        Args:
          processes: how many; all cores that this process may use by default, 0
            works in this process.
        """
        self.processes = usable_cores() if processes is None else processes
        if self.processes < 0:
            raise ValueError(f"the number of processes must not be negative, got {processes}")
        self._workers: dict[Connection, SpawnProcess] = {}
        self._working_on: dict[Connection, object] = {}

    def map(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        in_order: bool = True,
        lost: Callable[[Task], Result] | None = None,
    ) -> Iterator[Result]:
        """Results of tasks, which may be endless.

        Args:
          function: importable by name.
          tasks: taken a few ahead of the results that have been asked for.
          in_order: whether the results are in the order of the tasks, or come as they are done.
          lost: tells the result of a task whose worker died; another worker takes its place.

        Raises:
          WorkersLost: if a worker died and `lost` is left out; all others are ended then.
        """
        if not self.processes:
            yield from map(function, tasks)
            return
        self._start()
        remaining = iter(tasks)
        waiting: dict[object, Task] = {}  # By ticket.
        results: dict[object, _Outcome] = {}
        all_sent = False
        while True:
            for connection in self._idle():
                if all_sent or len(waiting) >= _TASKS_AHEAD * self.processes:
                    break
                try:
                    task = next(remaining)
                except StopIteration:
                    all_sent = True
                    break
                ticket = object()
                waiting[ticket] = task
                self._working_on[connection] = ticket
                with contextlib.suppress(OSError):  # That it died is seen below.
                    connection.send((function, task))
            if all_sent and not waiting:
                return
            ready = next(iter(waiting if in_order else results), None)
            if ready in results:
                del waiting[ready]
                succeeded, result = results.pop(ready)
                if not succeeded:
                    raise result
                yield result
                continue
            for connection in self._answered():
                # What an earlier map left unfinished is received and dropped.
                ticket, outcome = self._receive(connection)
                if outcome is None:
                    if lost is None:
                        self.close()
                        raise WorkersLost(DIED)
                    outcome = True, lost(waiting[ticket]) if ticket in waiting else None
                if ticket in waiting:
                    results[ticket] = outcome
            self._start()

    def close(self) -> None:
        """Ends the workers at once, whatever they are doing."""
        for process in self._workers.values():
            process.kill()
        for connection, process in self._workers.items():
            process.join()
            connection.close()
        self._workers, self._working_on = {}, {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        while len(self._workers) < self.processes:
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there,), daemon=True)
            process.start()
            there.close()  # Now the worker's end closes when the worker ends.
            self._workers[here] = process

    def _idle(self) -> list[Connection]:
        return [connection for connection in self._workers if connection not in self._working_on]

    def _answered(self) -> list[Connection]:
        """Waits until there are some."""
        ready = wait(list(self._working_on))
        return [connection for connection in self._working_on if connection in ready]

    def _receive(self, connection: Connection) -> tuple[object, _Outcome | None]:
        """A ticket and its outcome; None if the worker died, which is forgotten then."""
        ticket = self._working_on.pop(connection)
        try:
            return ticket, connection.recv()
        except (EOFError, OSError):
            connection.close()
            process = self._workers.pop(connection)
            process.kill()
            process.join()
            return ticket, None


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Not on macOS.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work(connection: Connection) -> None:
    """Works on the tasks that come through a pipe, in the main thread of a worker."""
    for name in (signal.SIGINT, signal.SIGTERM):  # To a whole group: the parent decides.
        signal.signal(name, signal.SIG_IGN)
    end_with_parent()
    with contextlib.suppress(EOFError, OSError):
        while True:
            function, task = connection.recv()
            try:
                outcome = (True, function(task))
            except Exception as error:
                error.add_note(f"In a worker process:\n{traceback.format_exc()}")
                outcome = (False, error)
            connection.send(outcome)


def end_with_parent() -> None:
    """Ends this process, a worker, when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "not a worker"

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
