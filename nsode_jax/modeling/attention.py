"""Scaled dot-product attention, for training and for decoding with a cache.

Both have a form of their own for CPUs, where memory and not arithmetic is the limit:

- Scores of all heads at once are 64 MB an example and layer for the paper's 1024 points
  and 16 heads. One head's scores stay in the processor's cache, and keeping only the log
  of each row's sum, as FlashAttention does (Dao et al., 2022), spares writing them for
  the gradient.
- The keys and values of what 1,536 beams have written are gathered position by position
  and used at once, and positions that are not written yet cost nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

_CACHED_SCORES = 2**18
"""Scores of one head from which on heads are worked through one after another."""


def attention(
    query: Float[Array, "batch queries heads head"],
    keys: Float[Array, "batch keys heads head"],
    values: Float[Array, "batch keys heads head"],
    mask: Bool[Array | np.ndarray, "#batch 1 #queries keys"],
) -> Float[Array, "batch queries heads head"]:
    """softmax(query keys^T / sqrt(head)) values, over the keys where the mask is true."""
    if query.shape[1] * keys.shape[1] < _CACHED_SCORES:
        return jax.nn.dot_product_attention(query, keys, values, mask=mask)
    return jax.lax.platform_dependent(
        query, keys, values, mask, cpu=attention_by_head, default=_all_heads
    )


def _all_heads(query, keys, values, mask):
    return jax.nn.dot_product_attention(query, keys, values, mask=mask)


def attention_by_head(
    query: Float[Array, "batch queries heads head"],
    keys: Float[Array, "batch keys heads head"],
    values: Float[Array, "batch keys heads head"],
    mask: Bool[Array | np.ndarray, "#batch 1 #queries keys"],
) -> Float[Array, "batch queries heads head"]:
    """`attention`, computed for one example and head after another."""
    batch, _, heads, head = query.shape

    def by_head(x):
        # [batch, length, heads, head] --> [batch*heads, length, head]
        return jnp.swapaxes(x, 1, 2).reshape(batch * heads, *x.shape[1::2])

    bias = jnp.where(mask[:, 0], 0.0, jnp.finfo(jnp.float32).min)
    # [#batch, #queries, keys] --> [batch*heads, #queries, keys]
    bias = jnp.repeat(jnp.broadcast_to(bias, (batch, *bias.shape[1:])), heads, axis=0)
    attended = _attend(by_head(query * head**-0.5), by_head(keys), by_head(values), bias)
    return jnp.swapaxes(attended.reshape(batch, heads, *attended.shape[1:]), 1, 2)


@jax.custom_vjp
def _attend(
    query: Float[Array, "rows queries head"],
    keys: Float[Array, "rows keys head"],
    values: Float[Array, "rows keys head"],
    bias: Float[Array, " rows #queries keys"],
) -> Float[Array, "rows queries head"]:
    return _attend_forward(query, keys, values, bias)[0]


def _attend_forward(query, keys, values, bias):
    def row(of):
        query, keys, values, bias = of
        scores = _product(query, keys.T) + bias
        largest = jnp.max(scores, axis=-1, keepdims=True)
        weights = jnp.exp(scores - largest)
        total = jnp.sum(weights, axis=-1, keepdims=True)
        attended = _product(weights.astype(values.dtype), values) / total
        return attended, largest + jnp.log(total)

    attended, log_total = jax.lax.map(row, (query, keys, values, bias))
    return attended.astype(query.dtype), (query, keys, values, bias, attended, log_total)


def _attend_backward(kept, gradient):
    def row(of):
        query, keys, values, bias, attended, log_total, gradient = of
        weights = jnp.exp(_product(query, keys.T) + bias - log_total)
        share = jnp.vecdot(gradient, attended, preferred_element_type=jnp.float32)[:, None]
        of_scores = (weights * (_product(gradient, values.T) - share)).astype(query.dtype)
        return of_scores @ keys, of_scores.T @ query, weights.astype(query.dtype).T @ gradient

    gradients = jax.lax.map(row, (*kept, gradient))
    return (*gradients, jnp.zeros_like(kept[3]))  # The mask has no gradient.


_attend.defvjp(_attend_forward, _attend_backward)


def _product(a: Float[Array, "... n k"], b: Float[Array, "... k m"]) -> Float[Array, "... n m"]:
    """Summed in float32, whatever the factors are."""
    return jnp.matmul(a, b, preferred_element_type=jnp.float32)


def cached_attention(
    query: Float[Array, "rows heads head"],
    keys: Float[Array, "length rows width"],
    values: Float[Array, "length rows width"],
    source: Int[Array, "length rows"],
    position: Int[Array, ""],
) -> Float[Array, "rows heads head"]:
    """Attention of each row to what it has written at positions 0 ... `position`.

    Args:
      query: of the token that each row reads.
      keys, values: what all rows have written; later positions may hold anything.
      source: the row that holds each position of a row.
      position: of the token.
    """
    return jax.lax.platform_dependent(
        query, keys, values, source, position, cpu=_by_position, default=_all_positions
    )


def _all_positions(query, keys, values, source, position):
    length, (rows, heads, head) = len(keys), query.shape

    def written(cache):
        taken = cache.at[jnp.arange(length)[:, None], source].get(mode="promise_in_bounds")
        return taken.reshape(length, rows, heads, head)

    seen = (jnp.arange(length) <= position)[:, None, None]
    scores = jnp.einsum("rhd,lrhd->lrh", query * head**-0.5, written(keys))
    weights = jax.nn.softmax(jnp.where(seen, scores.astype(jnp.float32), -jnp.inf), axis=0)
    taken = jnp.where(seen[..., None], written(values), 0)  # Not 0 * NaN.
    return jnp.einsum("lrh,lrhd->rhd", weights.astype(query.dtype), taken)


def _by_position(query, keys, values, source, position):
    """The same with a running softmax (Milakov and Gimelshein, 2018)."""
    rows, heads, head = query.shape
    query = query * head**-0.5

    def add(at, running):
        largest, total, attended = running

        def written(cache):
            row = jax.lax.dynamic_index_in_dim(cache, at, keepdims=False)
            taken = row.at[source[at]].get(mode="promise_in_bounds")
            return taken.reshape(rows, heads, head).astype(jnp.float32)

        score = jnp.sum(query * written(keys), axis=-1)
        new = jnp.maximum(largest, score)
        old_share, weight = jnp.exp(largest - new), jnp.exp(score - new)
        attended = attended * old_share[..., None] + weight[..., None] * written(values)
        return new, total * old_share + weight, attended

    start = (
        jnp.full((rows, heads), -jnp.inf, jnp.float32),
        jnp.zeros((rows, heads), jnp.float32),
        jnp.zeros(query.shape, jnp.float32),
    )
    _, total, attended = jax.lax.fori_loop(0, position + 1, add, start)
    return (attended / total[..., None]).astype(query.dtype)
