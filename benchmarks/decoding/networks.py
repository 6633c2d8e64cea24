"""Networks, and the trajectories that they read."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array

from benchmarks.decoding.products import product_flops
from benchmarks.training import ROOT
from nsode_jax.config import load
from nsode_jax.data.encode import encode_trajectories
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.decoding.grammar import TokenTable
from nsode_jax.decoding.propose import token_table
from nsode_jax.evaluation.testsets import TEST_SETS
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.pretrained import SHIPPED_WEIGHTS, load_pretrained
from nsode_jax.modeling.transformer import Memory, Model, Params

LARGEST_Y = 5.0


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
