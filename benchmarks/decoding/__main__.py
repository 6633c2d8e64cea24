"""How long a beam search takes on a CPU, and what of it, measured side by side.

    python -m benchmarks.decoding [--configs small,paper] [--beams 1,16,128,512,1536]
        [--batches 1,8] [--random_steps 16] [--max_gflop 200] [--seconds 4]
        [--generate small] [--trajectories 16] [--memory_lengths 16]
        [--torch_python PATH] [--json FILE]

Networks are the shipped weights of a config where there are some, on trajectories of the
test set `iv`. The others have random parameters that like operators and shun <eos>, so that
every search goes on to the last position, by default the 16th: paper.py's 64 take minutes.

Search: without the encoder, cold (the first call, which compiles) and warm, beside the
matrix products of as many decoder steps on as many rows: the projections, feed-forward and
output layers alone, and with the products of self- and cross-attention; no softmax, norms,
gelu, embedding, ancestors or search. They take turns, and ratios are of one turn, so other
load on the machine slows all alike; `others` is what other processes took of it. Target:
1.6 times the products. Shapes of more than --max_gflop in products are left out.

Hugging Face: `generate` of a BART of the same sizes with random parameters, in turns with
our encoder and search, both with all cores and as many steps. Target: 4 times as fast.
PyTorch and transformers may live in another environment, --torch_python is its interpreter.

Candidates: how many are no complete expression without the grammar, and how many repeat
the tokens of a better one when constants are not merged.

Memory: what a process needs in all for 1,536 beams of paper.py. Keys and values are most
of it, and are as long as what is written.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import jax

from benchmarks.decoding.candidates import candidates_line, measure_candidates
from benchmarks.decoding.hugging_face import HUGGING_FACE, generate_line, measure_generate
from benchmarks.decoding.memory import measure_memory, memory_line, remember
from benchmarks.decoding.networks import load_network
from benchmarks.decoding.searching import search_report
from benchmarks.training import ROOT, WorkerFailed
from nsode_jax.config import load

GENERATE_BEAMS = 128
MEMORY_BEAMS = 1536


def names(text: str) -> list[str]:
    """What stands between commas; nothing in an empty text."""
    return [name for name in text.split(",") if name]


def numbers(text: str) -> list[int]:
    """The same of integers."""
    return [int(number) for number in names(text)]


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--configs", default="small,paper", help="names of files in configs/")
    parser.add_argument("--beams", type=numbers, default=[1, 16, 128, 512, 1536])
    parser.add_argument("--batches", type=numbers, default=[1, 8])
    parser.add_argument("--random_steps", type=int, default=16, help="of random parameters")
    parser.add_argument("--max_gflop", type=float, default=200, help="most of a shape")
    parser.add_argument("--seconds", type=float, default=4, help="to spend on a shape, about")
    parser.add_argument("--generate", default="small", help="configs to compare Hugging Face on")
    parser.add_argument("--trajectories", type=int, default=16, help="to count candidates of")
    parser.add_argument("--memory_lengths", type=numbers, default=[16], help="of paper.py")
    parser.add_argument("--torch_python", default=sys.executable, help="an interpreter")
    parser.add_argument("--json", type=Path, help="file for all single measurements")
    parser.add_argument("--remember", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    if args.remember:
        name, beams, length = args.remember
        remember(name, int(beams), int(length))
        return
    everything = []

    def keep(row: Any, line: str) -> None:
        if row is not None:
            everything.append({"kind": type(row).__name__, **dataclasses.asdict(row)})
        print(line, flush=True)

    for name in names(args.configs):
        for row, line in search_report(
            load_network(name, args.random_steps),
            args.batches,
            args.beams,
            args.max_gflop,
            args.seconds,
        ):
            keep(row, line)
    print()
    for name in names(args.generate):
        try:
            row = measure_generate(
                load_network(name, args.random_steps),
                GENERATE_BEAMS,
                args.torch_python,
                4 * args.seconds,
            )
        except (WorkerFailed, OSError) as error:
            print(f"{HUGGING_FACE} is left out: {error}", flush=True)
        else:
            keep(row, generate_line(row))
    if args.trajectories:
        network = load_network("small", args.random_steps)
        row = measure_candidates(network, GENERATE_BEAMS, args.trajectories)
        keep(row, candidates_line(row))
    paper = load(ROOT / "configs" / "paper.py").model
    for length in args.memory_lengths:
        row = measure_memory("paper", paper, MEMORY_BEAMS, length)
        keep(row, memory_line(row, paper))
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
