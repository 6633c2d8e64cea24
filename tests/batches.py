"""Batches of training examples."""

import jax.numpy as jnp
import numpy as np


def same(a, b) -> bool:
    """Whether two batches have the same arrays by the same names."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def targets(batch, length=8, seed=0):
    """Two-hot pairs (low, fraction) at random, in a vocabulary whose constants begin at 15."""
    rng = np.random.default_rng(seed)
    low = rng.integers(3, 35, (batch, length)).astype(np.int32)
    fraction = np.where(low >= 15, rng.random((batch, length)), 0.0).astype(np.float32)
    return jnp.asarray(low), jnp.asarray(fraction)
