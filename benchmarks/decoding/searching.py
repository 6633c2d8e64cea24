"""How long a beam search takes, beside its matrix products."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np
from jaxtyping import Array

from benchmarks.decoding.networks import Network
from benchmarks.decoding.products import product_inputs, products
from benchmarks.decoding.turns import in_turns, seconds_of
from benchmarks.training import busy_seconds, spread, threads
from nsode_jax.decoding.beam_search import beam_search
from nsode_jax.decoding.grammar import TokenTable
from nsode_jax.decoding.steps import BeamResult, Decoding
from nsode_jax.modeling.transformer import Memory, Model, Params


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

    decoding = Decoding(table, batch, max_length, grammar, merge_constants)
    return beam_search(step, model.init_cache(batch, beams, max_length), decoding, beams)


def count_steps(network: Network, memory: Memory, beams: int) -> int:
    """How often a search calls the decoder; compiled anew, as listening costs time."""
    positions, model = [], network.model

    def listen(position):
        positions.append(position)

    search(network.params, memory, model, network.table, beams, network.max_length, on_step=listen)
    jax.effects_barrier()
    return len(positions)


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
