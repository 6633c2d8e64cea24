"""The queue of searches: order, progress, errors, an end before time."""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

from nsode_jax.app.jobs import Queue, QueueFull
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.system.workers import end_with_parent

PATIENCE = 60.0  # Seconds; only a failed test waits so long.


def work(task, progress):
    """Does what the task names, in the process."""
    name, value = task
    progress(name, 0.5)
    if name == "square":
        return value**2, os.getpid()
    if name == "refuse":
        raise TrajectoryError("Two\n  lines.")
    if name == "fail":
        raise KeyError("nobody foresaw this")
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "spread":  # As a law for each of many series is found: on all cores.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context, initializer=end_with_parent) as pool:
            progress(str(pool.submit(os.getpid).result()))
            pool.submit(time.sleep, PATIENCE).result()
    while name == "wait":
        time.sleep(0.01)


@pytest.fixture
def queue():
    queue = Queue(work, most_waiting=2)
    yield queue
    queue.close()


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def over(job):
    until(lambda: job.is_over)
    return job


def test_jobs_are_done_in_order_by_one_process(queue):
    jobs = [queue.submit(("square", n)) for n in (3, 4)]
    assert queue.before(jobs[1]) <= 1
    (first, process), (second, other) = (over(job).result for job in jobs)
    assert (first, second) == (9, 16) and process == other != os.getpid()
    assert [job.state for job in jobs] == ["done", "done"]
    assert (jobs[0].stage, jobs[0].share) == ("square", 0.5)


def test_an_error_is_a_line_and_the_next_job_goes_on(queue):
    assert over(queue.submit(("refuse", 0))).message == "Two lines."
    failed = over(queue.submit(("fail", 0)))
    assert failed.state == "failed"
    assert "This should not have happened: KeyError: 'nobody foresaw this'." in failed.message
    assert over(queue.submit(("square", 2))).result[0] == 4


def test_a_process_that_dies_is_replaced(queue):
    died = over(queue.submit(("die", 0)))
    assert died.state == "failed" and "before its time" in died.message
    assert over(queue.submit(("square", 2))).result[0] == 4


def test_jobs_can_be_stopped_where_they_are(queue):
    running, waiting = queue.submit(("wait", 0)), queue.submit(("square", 2))
    until(lambda: running.stage == "wait")
    assert queue.before(waiting) == 1 and queue.before(running) == 0
    other = queue.submit(("square", 5))
    queue.stop(waiting)
    queue.stop(running)
    assert over(other).result[0] == 25
    assert running.state == waiting.state == "stopped"


def test_workers_of_a_job_end_with_it(queue):
    job = queue.submit(("spread", 0))
    until(lambda: job.stage.isdigit())
    os.kill(int(job.stage), 0)  # It is there.
    queue.stop(job)

    def has_ended():
        try:
            os.kill(int(job.stage), 0)
        except ProcessLookupError:
            return True
        return False

    until(has_ended)


def test_too_many_jobs_are_refused(queue):
    running = queue.submit(("wait", 0))
    until(lambda: running.stage == "wait")
    for _ in range(2):
        queue.submit(("square", 1))
    with pytest.raises(QueueFull, match="2 searches wait already"):
        queue.submit(("square", 1))


def test_the_end_stops_all():
    queue = Queue(work)
    running, waiting = queue.submit(("wait", 0)), queue.submit(("square", 2))
    until(lambda: running.stage == "wait")
    queue.close()
    assert running.state == waiting.state == "stopped"
