"""Floats as the 64 bits of their IEEE-754 encoding (paper, section 2.2).

Hosts split a float64 into two 32-bit words; the bits are unpacked on the
device, which moves 32 times less data than sending bits as floats.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

BITS = 64


def float_to_words(values: Float[np.ndarray, "*shape"]) -> UInt32[np.ndarray, "*shape 2"]:
    """The two words of each float64, the one with sign and exponent first."""
    # An explicit byte order makes the words the same on every machine.
    big_endian = np.ascontiguousarray(values, dtype=">f8")
    return big_endian.view(">u4").reshape(*big_endian.shape, 2).astype(np.uint32)


def words_to_float(words: UInt32[np.ndarray, "*shape 2"]) -> Float[np.ndarray, "*shape"]:
    """The inverse of `float_to_words`."""
    big_endian = np.ascontiguousarray(words, dtype=">u4")
    return big_endian.view(">f8")[..., 0].astype(np.float64)


def words_to_bits(words: UInt32[Array | np.ndarray, "*shape 2"]) -> Float[Array, "*shape 64"]:
    """Bits as 0.0 or 1.0: sign, 11 bits of exponent, 52 of mantissa, high first."""
    shifts = jnp.arange(31, -1, -1, dtype=jnp.uint32).reshape((1,) * words.ndim + (32,))
    bits = (words[..., None] >> shifts) & jnp.uint32(1)
    # [*shape, 2, 32] --> [*shape, 64]
    return bits.reshape(*words.shape[:-1], BITS).astype(jnp.float32)
