"""One job after the other in a process of its own; it can be watched, and stopped."""

from __future__ import annotations

import atexit
import collections
import contextlib
import multiprocessing
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, Literal, TypeVar

from nsode_jax.fitting.progress import Progress
from nsode_jax.system.files import one_line
from nsode_jax.system.workers import end_with_parent

Task = TypeVar("Task")
Result = TypeVar("Result")

State = Literal["waiting", "running", "done", "failed", "stopped"]

_SECONDS = 0.1  # Between looks at whether a running job was stopped.


class QueueFull(RuntimeError):
    """Too many jobs wait; the message is one line."""


class Job(Generic[Result]):
    """Work that was asked for.

    Attributes:
      state: where it is.
      stage, share: what it is at, and how much of that is done.
      result: once it is done.
      message: a line on why it failed.
    """

    def __init__(self) -> None:
        self.state: State = "waiting"
        self.stage, self.share = "", 0.0
        self.result: Result | None = None
        self.message = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "stopped")


class Queue(Generic[Task, Result]):
    """Works on one task at a time, in the order in which they came.

    The process is spawned with the first job and stays, so that what it has loaded and
    compiled serves the next one; a job that is stopped ends it.
    """

    def __init__(self, work: Callable[[Task, Progress], Result], most_waiting: int = 20):
        """
        Args:
          work: importable by name; given a task and whom to tell how far it is.
          most_waiting: jobs beside the one at work.
        """
        self._work, self._most_waiting = work, most_waiting
        self._waiting: collections.deque[tuple[Task, Job[Result]]] = collections.deque()
        self._running: Job[Result] | None = None
        self._changed = threading.Condition()
        self._worker: tuple[SpawnProcess, Connection] | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        # A daemon would end by itself, and could not have workers of its own.
        atexit.register(self.close)

    def submit(self, task: Task) -> Job[Result]:
        """Puts a task at the end of the queue.

        Raises:
          QueueFull: if too many wait.
        """
        job: Job[Result] = Job()
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                raise QueueFull(f"{len(self._waiting)} searches wait already; try again later.")
            self._waiting.append((task, job))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return job

    def before(self, job: Job[Result]) -> int:
        """How many jobs come before this one, with the one at work."""
        with self._changed:
            places = [waiting for _, waiting in self._waiting]
            return places.index(job) + (self._running is not None) if job in places else 0

    def stop(self, job: Job[Result]) -> None:
        """Takes a job out of the queue, or ends it where it is."""
        with self._changed:
            if not job.is_over:
                job.state = "stopped"
            self._waiting = collections.deque(
                (task, other) for task, other in self._waiting if other is not job
            )

    def close(self) -> None:
        """Stops all jobs."""
        with self._changed:
            self._closed = True
            for _, job in self._waiting:
                job.state = "stopped"
            self._waiting.clear()
            if self._running and not self._running.is_over:
                self._running.state = "stopped"
            self._changed.notify_all()
        atexit.unregister(self.close)
        if self._thread is not None:
            self._thread.join()
        self._end_worker()

    # --- in the thread -------------------------------------------------------

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                task, job = self._waiting.popleft()
                self._running, job.state = job, "running"
            self._run(task, job)

    def _run(self, task: Task, job: Job[Result]) -> None:
        try:
            connection = self._connection()
            connection.send(task)
            while job.state == "running":
                if connection.poll(_SECONDS):
                    self._take(connection.recv(), job)
        except (EOFError, OSError):
            why = "The search ended before its time; if memory was short, try fewer data."
            self._finish(job, "failed", why)
            self._end_worker()
        if job.state == "stopped":
            self._end_worker()

    def _take(self, message: tuple[str, Any], job: Job[Result]) -> None:
        """What the process tells."""
        kind, content = message
        if kind == "progress":
            job.stage, job.share = content
        elif kind == "done":
            job.result = content
            self._finish(job, "done")
        else:
            self._finish(job, "failed", content)

    def _finish(self, job: Job[Result], state: State, message: str = "") -> None:
        with self._changed:
            if job.state == "running":
                job.message, job.state = message, state

    def _connection(self) -> Connection:
        if self._worker is None or not self._worker[0].is_alive():
            self._end_worker()
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            process = context.Process(target=_serve_tasks, args=(there, self._work))
            process.start()
            there.close()  # Now the worker's end closes when the worker ends.
            self._worker = process, here
        return self._worker[1]

    def _end_worker(self) -> None:
        if self._worker is not None:
            process, connection = self._worker
            process.kill()
            process.join()
            connection.close()
        self._worker = None


# --- in the process ----------------------------------------------------------------


def _serve_tasks(connection: Connection, work: Callable[[Any, Progress], Any]) -> None:
    for name in (signal.SIGINT, signal.SIGTERM):  # To a whole group: the parent decides.
        signal.signal(name, signal.SIG_IGN)
    end_with_parent()

    def progress(stage: str, share: float = 0.0) -> None:
        connection.send(("progress", (stage, share)))

    with contextlib.suppress(EOFError, OSError):
        while True:
            task = connection.recv()
            try:
                answer = ("done", work(task, progress))
            except Exception as error:
                answer = ("failed", in_a_line(error))
            connection.send(answer)


def in_a_line(error: Exception) -> str:
    """What is told of an error; of one that nobody foresaw the rest goes to the terminal."""
    text = one_line(error)
    # What the package tells its users of are these, and classes of its own.
    if isinstance(error, ValueError) or type(error).__module__.startswith("nsode_jax."):
        return text
    traceback.print_exception(error, file=sys.stderr)
    told = f"{type(error).__name__}: {text}"
    return f"This should not have happened: {told}. To report it, add what the terminal says."
