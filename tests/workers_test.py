"""Worker processes: order, laziness, and their end."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nsode_jax.system.workers import Workers, WorkersLost

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("processes", [0, 2])
def test_results_come_in_the_order_of_endless_tasks(processes):
    with Workers(processes) as workers:
        squares = workers.map(_square, itertools.count())
        assert list(itertools.islice(squares, 50)) == [i * i for i in range(50)]


def test_errors_reach_the_caller():
    with Workers(1) as workers, pytest.raises(ZeroDivisionError):
        list(workers.map(_inverse, [1, 0]))


def test_a_lost_worker_is_an_error_and_no_endless_wait():
    with Workers(2) as workers, pytest.raises(WorkersLost, match="a worker process died"):
        list(workers.map(_die, range(10)))


@pytest.mark.parametrize("in_order", [True, False])
def test_what_a_lost_worker_was_at_has_a_result_and_the_others_go_on(in_order):
    with Workers(2) as workers:
        results = workers.map(_die_of_3, range(12), in_order=in_order, lost=lambda task: -task)
        found = list(results)
        assert (found if in_order else sorted(found)) == (
            [0, 1, 2, -3, *range(4, 12)] if in_order else [-3, 0, 1, 2, *range(4, 12)]
        )
        assert list(workers.map(_square, range(3))) == [0, 1, 4]


def test_results_come_as_they_are_done():
    with Workers(2) as workers:
        assert list(workers.map(_sleep, [1.0, 0.0, 0.0], in_order=False))[-1] == 1.0


def test_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        Workers(-1)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import time\n"
        "from nsode_jax.system.workers import Workers\n"
        "from tests.workers_test import own_pid\n"
        "if __name__ == '__main__':\n"
        "    workers = Workers(1)\n"
        "    print(next(workers.map(own_pid, [0])), flush=True)\n"
        "    time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)  # It is there.
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for _ in range(200):
        if not _is_running(worker):
            return
        time.sleep(0.1)
    raise AssertionError("the worker outlived its parent by 20 s")


def own_pid(_):
    return os.getpid()


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _square(x):
    return x * x


def _inverse(x):
    return 1 / x


def _die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def _die_of_3(x):
    return _die(x) if x == 3 else x


def _sleep(seconds):
    time.sleep(seconds)
    return seconds


def _large(_):
    return bytes(20_000_000)


def test_closing_with_results_in_flight_does_not_hang(tmp_path):
    script = tmp_path / "busy.py"
    script.write_text(
        "import itertools\n"
        "from nsode_jax.system.workers import Workers\n"
        "from tests.workers_test import _large\n"
        "if __name__ == '__main__':\n"
        "    workers = Workers(2)\n"
        "    next(workers.map(_large, itertools.count()))\n"
        "    workers.close()\n"
        "    print('closed')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    for _ in range(3):
        run = subprocess.run(command, env=environment, capture_output=True, timeout=60)
        assert run.stdout == b"closed\n"


def _killed_while_sending(_):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return bytes(400_000_000)


def test_a_worker_killed_in_the_middle_of_a_result_is_seen():
    with Workers(1) as workers, pytest.raises(WorkersLost):
        list(workers.map(_killed_while_sending, range(3)))


def _slow_square(x):
    time.sleep(0.2)
    return x * x


def test_a_map_that_was_left_does_not_disturb_the_next():
    with Workers(2) as workers:
        # All are still busy with what nobody waits for.
        assert next(workers.map(_slow_square, itertools.count())) == 0
        assert list(workers.map(_slow_square, [3, 4, 5])) == [9, 16, 25]
        assert list(workers.map(_square, [])) == []
        assert next(workers.map(_square, itertools.count())) == 0
        assert list(workers.map(_inverse, [1, 2, 4])) == [1.0, 0.5, 0.25]
        with pytest.raises(ZeroDivisionError) as error:
            list(workers.map(_inverse, [0]))
        assert "in _inverse" in error.value.__notes__[0]
        assert list(workers.map(_square, range(5))) == [0, 1, 4, 9, 16]
