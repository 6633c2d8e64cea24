"""What the grammar and merged constants do for the candidates of a search."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from benchmarks.decoding.networks import Network
from benchmarks.decoding.searching import search
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.expressions.expression import ExpressionError


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
