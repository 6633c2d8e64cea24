"""Progress in a log, where nobody sees a line change."""

import io

import pytest

from nsode_jax.console import terminal
from nsode_jax.console.terminal import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_long_stage_has_a_line_at_each_tenth(clock):
    log = io.StringIO()
    progress = Progress(log)
    progress("laws", 0.2)  # Done before: it says nothing of the pace.
    for done in range(21, 101):
        clock[0] += 10.0
        progress("laws", done / 100)
    lines = log.getvalue().splitlines()
    assert lines[0] == "[  0.0 s] laws" and len(lines) == 9
    assert lines[1] == "[100.0 s] laws: 30% done, about 0:11:40 left"
    assert lines[-1] == "[800.0 s] laws: 100% done"


def test_a_slow_stage_has_a_line_every_few_minutes(clock):
    log = io.StringIO()
    progress = Progress(log)
    for done in range(20):
        progress("laws", done / 1000)
        clock[0] += 60.0
    lines = log.getvalue().splitlines()
    assert [line.split("]")[0] for line in lines[:3]] == ["[  0.0 s", "[180.0 s", "[360.0 s"]
    assert lines[1].endswith("laws: 0% done, about 16:37:00 left")


def test_a_short_stage_has_one_line(clock):
    log = io.StringIO()
    progress = Progress(log)
    for stage in ("reading", "fitting"):
        for done in range(11):
            progress(stage, done / 10)
            clock[0] += 0.5
    assert log.getvalue() == "[  0.0 s] reading\n[  5.5 s] fitting\n"


def test_on_a_terminal_the_line_itself_changes(clock):
    seen = Terminal()
    progress = Progress(seen)
    progress("laws")
    clock[0] = 500.0
    progress("laws", 0.5)
    progress.end_line()
    assert seen.getvalue() == "[  0.0 s] laws\r[  0.0 s] laws  50%\r[  0.0 s] laws     \n"
