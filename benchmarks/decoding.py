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
import functools
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from benchmarks.training import ROOT, Worker, WorkerFailed, busy_seconds, spread, threads
from nsode_jax.config import load
from nsode_jax.data.encode import encode_trajectories
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.decoding.beam_search import beam_search
from nsode_jax.decoding.grammar import TokenTable
from nsode_jax.decoding.propose import token_table
from nsode_jax.decoding.steps import BeamResult
from nsode_jax.evaluation.testsets import TEST_SETS
from nsode_jax.expressions.expression import ExpressionError
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.pretrained import SHIPPED_WEIGHTS, load_pretrained
from nsode_jax.modeling.transformer import Cache, Memory, Model, Params

TORCH_SIDE = ROOT / "benchmarks" / "torch_generate.py"
HUGGING_FACE = "Hugging Face"
GENERATE_BEAMS = 128
MEMORY_BEAMS = 1536
MIN_TURNS, MAX_TURNS = 3, 200
LARGEST_Y = 5.0


# --- networks and what they read --------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Network:
    """A model with parameters.

    Attributes:
      name: of its config.
      model, params, vocabulary: what `load_pretrained` gives.
      max_length: most tokens it is to write.
      is_trained: whether the parameters are shipped ones.
    """

    name: str
    model: Model
    params: Params
    vocabulary: Vocabulary
    max_length: int
    is_trained: bool

    @property
    def table(self) -> TokenTable:
        """Its tokens."""
        return token_table(self.vocabulary)

    @functools.cached_property
    def encode(self) -> Callable[[Array, Array], Memory]:
        """The encoder, compiled once for each batch size."""
        return functools.partial(jax.jit(self.model.encode), self.params)

    def gflop(self, rows: int, steps: int) -> float:
        """All that `products` computes."""
        return product_flops(self.model.config, rows, steps, attention=True) / 1e9

    def inputs(self, batch: int) -> tuple[Array, Array]:
        """Words and mask of the first trajectories."""
        words, mask = encode_trajectories(trajectories(batch), self.model.config.example_format)
        return jax.device_put(words), jax.device_put(mask)


def load_network(name: str, random_steps: int) -> Network:
    """The shipped weights of a config, or random ones and a length for these."""
    if (SHIPPED_WEIGHTS / name).is_dir():
        model, params, vocabulary, _ = load_pretrained(name)
        length = model.config.max_length
        return Network(name, model, jax.device_put(params), vocabulary, length, is_trained=True)
    return random_network(name, load(ROOT / "configs" / f"{name}.py").model, random_steps)


def random_network(name: str, config: ModelConfig, steps: int) -> Network:
    """Random parameters with which every beam search takes so many steps, or all there are.

    Operators are likelier than leaves, so there always is an open beam to go on with; and
    a candidate with <eos> is too bad to be worth stopping for.
    """
    model, vocabulary = Model(config), Vocabulary()
    params, bias = model.init(0), np.full(vocabulary.size, -20.0, np.float32)
    bias[np.array(vocabulary.arities) > 0] = 0.0
    bias[vocabulary.eos] = -1e4
    params["output"]["bias"] = bias
    length = min(steps, config.max_length)
    return Network(name, model, jax.device_put(params), vocabulary, length, is_trained=False)


@functools.cache
def trajectories(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first of the test set `iv` that stay where models were trained, around 0."""
    found = []
    for problem in TEST_SETS["iv"]():
        y = problem.solve()
        if np.abs(y).max() <= LARGEST_Y:
            found.append((problem.t, y))
        if len(found) == count:
            return found
    raise ValueError(f"there are only {len(found)} trajectories, not {count}")


# --- search -----------------------------------------------------------------------------


@functools.partial(
    jax.jit,
    static_argnums=(2, 3, 4, 5),
    static_argnames=("grammar", "merge_constants", "on_step"),
)
def search(
    params: Params,
    memory: Memory,
    model: Model,
    table: TokenTable,
    beams: int,
    max_length: int,
    *,
    grammar: bool = True,
    merge_constants: bool = True,
    on_step: Callable[[Array], None] | None = None,
) -> BeamResult:
    """Beam search as `Proposer` does it, after the encoder; `on_step` hears each position."""
    batch = len(memory[1])

    def step(cache, ancestors, low, fraction, position):
        if on_step is not None:
            jax.debug.callback(on_step, position)
        return model.step(params, memory, cache, ancestors, low, fraction, position)

    return beam_search(
        step,
        model.init_cache(batch, beams, max_length),
        table=table,
        batch=batch,
        beams=beams,
        max_length=max_length,
        grammar=grammar,
        merge_constants=merge_constants,
    )


def count_steps(network: Network, memory: Memory, beams: int) -> int:
    """How often a search calls the decoder; compiled anew, as listening costs time."""
    positions, model = [], network.model

    def listen(position):
        positions.append(position)

    search(network.params, memory, model, network.table, beams, network.max_length, on_step=listen)
    jax.effects_barrier()
    return len(positions)


# --- matrix products alone ----------------------------------------------------------------


apart = jax.lax.optimization_barrier
"""Keeps products apart, as in the model, where something stands between any two of them.

XLA would make one library call of several, which is up to half as fast again or as slow.
"""


def attend_to_written(
    query: Float[Array, "rows width"],
    keys: Float[Array, "length rows width"],
    values: Float[Array, "length rows width"],
    position: Int[Array, ""],
    heads: int,
) -> Float[Array, "rows width"]:
    """(query keys^T) values of each row over positions 0 ... `position`.

    Position by position, which is the fastest of five ways on a CPU: it reads no position
    that is not there yet.
    """
    split = (len(query), heads, -1)
    query = query.reshape(split)

    def add(at, attended):
        key = jax.lax.dynamic_index_in_dim(keys, at, keepdims=False).reshape(split)
        value = jax.lax.dynamic_index_in_dim(values, at, keepdims=False).reshape(split)
        return attended + jnp.sum(query * key, axis=-1, keepdims=True) * value

    attended = jax.lax.fori_loop(0, position + 1, add, jnp.zeros_like(query))
    return attended.reshape(len(query), -1)


def attend_to_memory(
    query: Float[Array, "batch beams width"],
    keys: Float[Array, "batch patches heads head"],
    values: Float[Array, "batch patches heads head"],
) -> Float[Array, "batch beams width"]:
    """(query keys^T) values of each head."""
    # [batch, beams, width] --> [batch, beams, heads, head]
    split = query.reshape(*query.shape[:2], *keys.shape[2:])
    scores = apart(jnp.einsum("bqhd,bkhd->bhqk", split, keys))
    return apart(jnp.einsum("bhqk,bkhd->bqhd", scores, values)).reshape(query.shape)


@functools.partial(jax.jit, static_argnums=(5, 6))
def products(
    params: Params,
    memory: Memory,
    cache: Cache,
    start: Float[Array, "batch beams width"],
    steps: int,
    heads: int,
    attention: bool,
) -> Float[Array, "batch beams width"]:
    """The decoder's matrix products at positions 0 ... steps - 1, in the layers' order.

    Args:
      params: of the model.
      memory: from its encoder.
      cache: keys and values to attend to; nothing is written there.
      start: what the first layer reads.
      steps: how many; not static.
      heads: of the model.
      attention: also those of attention; without, its queries take the place of its results.
    """

    def times(x, layer):
        return apart(x @ layer["kernel"].astype(x.dtype))

    def step(position, x):
        for i, layer_cache in enumerate(cache):
            layer = params["decoder"][i]
            of = layer["self_attention"]
            rows = x.reshape(-1, x.shape[-1])
            query, key, value = (times(rows, of[name]) for name in ("query", "key", "value"))
            if attention:
                query = attend_to_written(query, *layer_cache, position, heads)
            # The new key and value would go into the cache; here they only must be computed.
            x = times(query + key + value, of["out"]).reshape(x.shape)
            of = layer["cross_attention"]
            query = times(x, of["query"])
            if attention:
                query = attend_to_memory(query, *memory[0][i])
            x = times(times(times(query, of["out"]), layer["up"]), layer["down"])
        logits = times(x, params["output"])
        # Each step needs the one before it, or XLA would compute them once for all.
        return start + jnp.tanh(jnp.mean(logits, axis=-1, keepdims=True))

    return jax.lax.fori_loop(0, steps, step, start)


def product_inputs(model: Model, batch: int, beams: int, steps: int) -> tuple[tuple, Array]:
    """Cache and start for `products`, of numbers that keep its results finite."""
    c = model.config
    start = jax.random.normal(jax.random.key(0), (batch, beams, c.width), c.dtype)
    shape = (steps, batch * beams, c.width)
    # Arrays of their own, as the memory they are read from matters.
    keys_values = (jnp.full(shape, 0.01, c.dtype) for _ in range(2 * c.layers))
    return tuple(zip(keys_values, keys_values)), start


def product_flops(config: ModelConfig, rows: int, steps: int, attention: bool) -> float:
    """Operations of `products`; a multiplication and an addition count as two."""
    width = config.width
    layer = steps * (12 * width**2 + 4 * width * config.hidden_width)
    if attention:
        layer += 4 * width * (steps * config.num_patches + steps * (steps + 1) // 2)
    return rows * (config.layers * layer + steps * 2.0 * width * config.vocabulary_size)


# --- in turns -----------------------------------------------------------------------------


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


@dataclasses.dataclass(frozen=True)
class Searched:
    """Of one shape; seconds, warm but for `cold`.

    Attributes:
      network: its name.
      batch, beams: the shape.
      steps: of the search.
      gflop: of `products`, attention included.
      cold: the first call.
      search: the others.
      projections: matrix products without those of attention, of as many steps.
      products: all matrix products.
      others: share of the machine's cores that other processes used meanwhile.
    """

    network: str
    batch: int
    beams: int
    steps: int
    gflop: float
    cold: float
    search: list[float]
    projections: list[float]
    products: list[float]
    others: float


def measure_search(network: Network, batch: int, beams: int, budget: float) -> Searched:
    """Times a shape."""
    model, params = network.model, network.params
    memory = jax.block_until_ready(network.encode(*network.inputs(batch)))
    length = network.max_length
    steps = count_steps(network, memory, beams) if network.is_trained else length

    def ours():
        return search(params, memory, model, network.table, beams, length)

    cold = seconds_of(ours)
    cache, start = product_inputs(model, batch, beams, steps)

    def alone(attention: bool):
        return products(params, memory, cache, start, steps, model.config.heads, attention)

    functions = {
        "search": functools.partial(seconds_of, ours),
        "projections": functools.partial(seconds_of, lambda: alone(False)),
        "products": functools.partial(seconds_of, lambda: alone(True)),
    }
    functions["projections"](), functions["products"]()  # Compiles.
    began, busy, own = time.perf_counter(), busy_seconds(), time.process_time()
    measured = in_turns(functions, budget)
    others = (busy_seconds() - busy) - (time.process_time() - own)
    share = others / (time.perf_counter() - began) / (os.cpu_count() or 1)
    gflop = network.gflop(batch * beams, steps)
    return Searched(
        network.name, batch, beams, steps, gflop, cold, **measured, others=max(share, 0.0)
    )


def search_header(network: Network) -> str:
    """The lines above the table."""
    c = network.model.config
    what = "shipped weights" if network.is_trained else "random parameters"
    return (
        f"\nconfigs/{network.name}.py, {what}: {c.layers} layers of width {c.width}, "
        f"{c.num_patches} patches, {network.max_length} positions; {threads()} threads\n"
        f"{'batch':>5}{'beams':>6}{'cold s':>8}{'warm s':>9}  {'quartiles':18}{'steps':>5}"
        f"{'ms/step':>9}{'products s':>12}{'GFLOP/s':>9}  {'of products':18}{'of projections':18}"
        f"{'others':>6}"
    )


def search_line(row: Searched) -> str:
    """A row of the table; medians with their quartiles. The rate is that of the products."""
    seconds, products_alone = np.array(row.search), np.array(row.products)
    warm, quartiles = spread(seconds, ".4f")
    of_products = " ".join(spread(seconds / products_alone, ".2f"))
    of_projections = " ".join(spread(seconds / np.array(row.projections), ".2f"))
    return (
        f"{row.batch:5}{row.beams:6}{row.cold:8.1f}{warm:>9}  {quartiles:18}{row.steps:5}"
        f"{1e3 * np.median(seconds) / row.steps:9.2f}{np.median(products_alone):12.4f}"
        f"{row.gflop / np.median(products_alone):9.1f}  {of_products:18}{of_projections:18}"
        f"{row.others:6.0%}"
    )


# --- Hugging Face ---------------------------------------------------------------------------


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


# --- candidates ------------------------------------------------------------------------------


def incomplete(
    low: Int[np.ndarray, "candidates length"],
    fraction: Float[np.ndarray, "candidates length"],
    vocabulary: Vocabulary,
) -> int:
    """How many rows are not one complete expression."""
    count = 0
    for row in zip(low, fraction):
        try:
            vocabulary.decode(*row)
        except ExpressionError:
            count += 1
    return count


def repeated(low: Int[np.ndarray, "candidates length"]) -> int:
    """How many rows are the same as an earlier one."""
    return len(low) - len(np.unique(low, axis=0)) if len(low) else 0


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Shares of the candidates of one search each.

    Attributes:
      network: its name.
      beams: of each search.
      trajectories: how many.
      incomplete: no complete expressions, without the grammar.
      repeated: the tokens of a better one with slightly other constants, without merging.
      repeated_merged: the same with merging.
    """

    network: str
    beams: int
    trajectories: int
    incomplete: float
    repeated: float
    repeated_merged: float


def measure_candidates(network: Network, beams: int, count: int) -> Candidates:
    """Searches from a number of trajectories, with and without what makes them good."""
    words, mask = network.inputs(count)
    found, bad = np.zeros(3, int), np.zeros(3, int)
    for at in range(count):
        memory = network.encode(words[at : at + 1], mask[at : at + 1])
        for i, (grammar, merge) in enumerate(((False, True), (True, False), (True, True))):
            result = search(
                network.params, memory, network.model, network.table, beams, network.max_length,
                grammar=grammar, merge_constants=merge,
            )  # fmt: skip
            low, fraction, log_p = (
                np.asarray(x)[0] for x in (result.low, result.fraction, result.log_probability)
            )
            low, fraction = low[np.isfinite(log_p)], fraction[np.isfinite(log_p)]
            found[i] += len(low)
            bad[i] += repeated(low) if grammar else incomplete(low, fraction, network.vocabulary)
    return Candidates(network.name, beams, count, *(bad / np.maximum(found, 1)).tolist())


def candidates_line(row: Candidates) -> str:
    """The shares."""
    return (
        f"candidates of {row.trajectories} trajectories, configs/{row.network}.py, {row.beams} "
        f"beams: without the grammar {row.incomplete:.2%} are not complete; without merged "
        f"constants {row.repeated:.1%} repeat the tokens of a better one, with them "
        f"{row.repeated_merged:.1%}"
    )


# --- memory ----------------------------------------------------------------------------------


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


# --- all of it ---------------------------------------------------------------------------------


def search_report(
    network: Network,
    batches: Sequence[int],
    beams: Sequence[int],
    max_gflop: float,
    budget: float,
) -> Iterator[tuple[Searched | None, str]]:
    """The table line by line, with what the line is about."""
    yield None, search_header(network)
    for batch, k in itertools.product(batches, beams):
        gflop = network.gflop(batch * k, network.max_length)
        if gflop > max_gflop:
            yield None, f"{batch:5}{k:6}  left out: {gflop:,.0f} GFLOP, more than --max_gflop"
            continue
        row = measure_search(network, batch, k, budget)
        yield row, search_line(row)


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
