"""Tests for how processes that train together notice that one has died."""

import sys
import threading

import pytest

from nsode_jax.training.lifeline import Lifeline


class Store(dict):
    """What JAX's distributed client is to processes, for threads."""

    def __init__(self):
        self._there = threading.Event()

    def key_value_set(self, key, value):
        self[key] = value
        self._there.set()

    def blocking_key_value_get(self, key, milliseconds):
        assert self._there.wait(milliseconds / 1000)
        return self[key]


@pytest.fixture
def ended(monkeypatch):
    """Numbers and exit codes of the processes that would have ended, as they come."""
    found, ends_so_far = [], threading.Semaphore(0)

    def end(self, code, words=""):
        print(words, file=sys.stderr)
        found.append((self._process, code))
        ends_so_far.release()
        threading.Event().wait()  # For ever: what would come now does not.

    monkeypatch.setattr(Lifeline, "_exit", end)
    monkeypatch.setattr(Lifeline, "_GRACE_SECONDS", 0.05)
    monkeypatch.setattr(Lifeline, "_NOTICE_SECONDS", 1.0)

    def wait(number):
        assert all(ends_so_far.acquire(timeout=20) for _ in range(number))
        return sorted(found)

    return wait


@pytest.fixture
def pair():
    store, made = Store(), {}
    first = threading.Thread(
        target=lambda: made.update({0: Lifeline(0, 2, "localhost", store)}), daemon=True
    )
    first.start()
    made[1] = Lifeline(1, 2, "localhost", store)
    first.join()
    return made[0], made[1]


def fail(lifeline, error):
    threading.Thread(target=lifeline.fail, args=(1, error), daemon=True).start()


def test_a_death_is_named_and_the_error_that_it_causes_is_not_shown(pair, ended, capfd):
    zero, one = pair
    fail(zero, RuntimeError("connection closed by peer"))
    one._connections[0].shutdown(2)  # As when it is killed.
    assert ended(2) == [(0, 1), (1, 1)]
    printed = capfd.readouterr().err
    assert "process 1 of 2 is gone" in printed and "closed by peer" not in printed


def test_an_error_of_ones_own_is_shown_and_ends_the_others(pair, ended, capfd):
    zero, one = pair
    fail(one, ValueError("of my own"))
    assert ended(2) == [(0, 1), (1, 1)]
    printed = capfd.readouterr().err
    assert "ValueError: of my own" in printed and "process 1 of 2 is gone" in printed


def test_who_says_goodbye_is_not_missed(pair, ended, capfd):
    zero, one = pair
    one.goodbye()
    zero.goodbye()
    for lifeline in pair:
        lifeline._watching.join(10)
        assert not lifeline._watching.is_alive() and not lifeline._died.is_set()
    assert capfd.readouterr().err == ""
