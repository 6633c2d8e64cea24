"""Hugging Face's `generate`, in turns with our encoder and search."""

from __future__ import annotations

import dataclasses
import functools
import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.decoding.networks import Network
from benchmarks.decoding.searching import count_steps, search
from benchmarks.decoding.turns import in_turns, seconds_of
from benchmarks.training import ROOT, Worker, spread, threads

TORCH_SIDE = ROOT / "benchmarks" / "torch_generate.py"
HUGGING_FACE = "Hugging Face"


@dataclasses.dataclass(frozen=True)
class Generated:
    """Seconds of our encoder and search, and of `generate`, with as many steps."""

    network: str
    beams: int
    steps: int
    version: str
    ours: list[float]
    theirs: list[float]
    others: float


def measure_generate(network: Network, beams: int, torch_python: str, budget: float) -> Generated:
    """One trajectory by ours and by Hugging Face's beam search.

    Raises:
      WorkerFailed, OSError: if there is no such interpreter, or it lacks a library.
    """
    model, inputs = network.model, network.inputs(1)
    length = network.max_length
    memory = network.encode(*inputs)
    steps = count_steps(network, memory, beams) if network.is_trained else length
    job = {
        "model": dataclasses.asdict(model.config),
        "batch": 1,
        "beams": beams,
        "steps": steps,
        "threads": threads(),
    }

    def ours():
        memory = network.encode(*inputs)
        return search(network.params, memory, model, network.table, beams, length)

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "job.json").write_text(json.dumps(job))
        command = [torch_python, str(TORCH_SIDE), str(folder)]
        with Worker(HUGGING_FACE, command, folder) as worker:
            facts = worker.facts
            if (facts["steps"], facts["candidates"]) != (steps, beams):
                raise ValueError(f"{HUGGING_FACE} does another job: {facts}")
            answers = []

            def theirs() -> float:
                answers.append(worker.step())
                return answers[-1]["seconds"]

            seconds_of(ours), theirs()  # Compiles.
            measured = in_turns(
                {"ours": functools.partial(seconds_of, ours), "theirs": theirs}, budget
            )
    others = float(np.median([answer["others"] for answer in answers]))
    return Generated(network.name, beams, steps, facts["version"], **measured, others=others)


def generate_line(row: Generated) -> str:
    """How many times as fast ours is."""
    ours, theirs = np.array(row.ours), np.array(row.theirs)
    return (
        f"{HUGGING_FACE} generate ({row.version}), configs/{row.network}.py, {row.beams} beams, "
        f"{row.steps} steps: {' '.join(spread(theirs, '.3f'))} s, ours "
        f"{' '.join(spread(ours, '.3f'))} s, {' '.join(spread(theirs / ours, '.1f'))} times as "
        f"fast; others {row.others:.0%}"
    )
