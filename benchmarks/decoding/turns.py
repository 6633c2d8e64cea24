"""Functions timed in turns, so that other load slows all alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax

MIN_TURNS, MAX_TURNS = 3, 200


def seconds_of(function: Callable[[], Any]) -> float:
    """How long a function takes until all that it computes is there."""
    start = time.perf_counter()
    jax.block_until_ready(function())
    return time.perf_counter() - start


def in_turns(functions: dict[str, Callable[[], float]], budget: float) -> dict[str, list[float]]:
    """What the functions measure, in turns; as many as the budget of seconds allows."""
    measured, start = {name: [] for name in functions}, time.perf_counter()
    for turn in range(MAX_TURNS):
        for name, function in functions.items():
            measured[name].append(function())
        if turn + 1 >= MIN_TURNS and time.perf_counter() - start > budget:
            break
    return measured
