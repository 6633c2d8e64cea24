"""The matrix products of a beam search alone: what no search can do without."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.transformer import Cache, Memory, Model, Params

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
