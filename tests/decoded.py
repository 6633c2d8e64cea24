"""The rules of decoding in words of their own, on plain numbers and tuples of tokens."""

import jax.numpy as jnp
import numpy as np

from nsode_jax.decoding.rows import decode_rows


def soft(log_p, token, table):
    """The paper's rule for constants, on plain numbers."""
    first, last = table.grid_start, table.grid_start + table.grid_size - 1
    if not first <= token <= last:
        return token, 0.0
    other = max((j for j in (token - 1, token + 1) if first <= j <= last), key=lambda j: log_p[j])
    low, high = sorted((token, other))
    p_low, p_high = np.exp(log_p[low]), np.exp(log_p[high])
    return low, p_high / (p_low + p_high)


def open_slots_after(tokens, table):
    return 1 + sum(table.arities[token] - 1 for token in tokens)


def allowed(tokens, max_length, table, grammar):
    """Tokens that may follow; the mask of the grammar in words of its own."""
    if not grammar:
        return [t for t in range(table.size) if t not in (table.pad, table.bos)]
    if open_slots_after(tokens, table) == 0:
        return [table.eos]
    special = (table.pad, table.bos, table.eos)
    return [
        t
        for t in range(table.size)
        if t not in special
        and len(tokens) + 1 + open_slots_after((*tokens, t), table) + 1 <= max_length
    ]


def greedy(step_fn, init_cache, decoding):
    """The most probable allowed token at each step; a result with one beam."""

    def best(log_p, position):
        return jnp.argmax(log_p, axis=-1).astype(jnp.int32)

    return decode_rows(step_fn, init_cache, best, decoding, rows=1)
