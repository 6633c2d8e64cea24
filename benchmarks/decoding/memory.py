"""What memory a process needs for a search."""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp

from benchmarks.decoding.networks import load_network
from benchmarks.decoding.searching import search
from benchmarks.decoding.turns import seconds_of
from benchmarks.training import Worker
from nsode_jax.modeling.config import ModelConfig


@dataclasses.dataclass(frozen=True)
class Remembered:
    """Resident memory in MB of a process that decodes one trajectory; NaN if unknown.

    Attributes:
      network: its name.
      beams, length: of the search, which takes `length` steps.
      keys_values: what keys and values take of it.
      before: with parameters and encoder, before the search.
      peak: most at any time.
      seconds: of the search, compilation included.
    """

    network: str
    beams: int
    length: int
    keys_values: float
    before: float
    peak: float
    seconds: float


def remember(name: str, beams: int, length: int) -> None:
    """In a process of its own: searches once asked to."""
    network = load_network(name, length)
    memory = jax.block_until_ready(network.encode(*network.inputs(1)))
    print("{}", flush=True)
    for _ in sys.stdin:
        seconds = seconds_of(
            lambda: search(network.params, memory, network.model, network.table, beams, length)
        )
        print(json.dumps({"seconds": seconds}), flush=True)


def measure_memory(name: str, config: ModelConfig, beams: int, length: int) -> Remembered:
    """Peak resident memory of a process."""
    arguments = ["--remember", name, str(beams), str(length)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.decoding", *arguments]
        with Worker("memory", command, Path(folder)) as worker:
            before = worker.peak_megabytes()
            seconds = worker.step()["seconds"]
            peak = worker.peak_megabytes()
    cache = cache_megabytes(config, beams, length)
    return Remembered(name, beams, length, cache, before, peak, seconds)


def cache_megabytes(config: ModelConfig, beams: int, length: int) -> float:
    """Keys and values of a batch of one, in MB."""
    size = jnp.dtype(config.dtype).itemsize
    return config.layers * 2 * config.width * size * beams * length / 2**20


def memory_line(row: Remembered, config: ModelConfig) -> str:
    """The peak, and what longer expressions would need."""
    full = cache_megabytes(config, row.beams, config.max_length)
    return (
        f"peak resident memory, configs/{row.network}.py, {row.beams} beams, {row.length} "
        f"positions: {row.peak:,.0f} MB, {row.before:,.0f} before the search; keys and values "
        f"are {row.keys_values:,.0f} MB, with all {config.max_length} positions {full:,.0f}; "
        f"{row.seconds:.0f} s"
    )
