"""The network: bits of a trajectory in, tokens of an equation out.

Paper, section 2.2 and appendix B.3: an encoder-decoder transformer with full
attention, learned positions and gelu. The encoder reads the IEEE-754 bits of
(t, y) through a linear layer, one token for each patch of `patch_size` points;
the decoder reads soft-embedded tokens, where a constant between two grid points
is the interpolation of their embeddings.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, UInt32

from nsode_jax.data.bits import BITS, words_to_bits
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.layers import Block, KeysValues, Linear

Params = dict
"""Parameters as a plain nested dictionary of arrays."""

Cache = tuple[KeysValues, ...]
"""Keys and values of the decoder's self-attention [length, batch*beams, width], by layer."""

Memory = tuple[tuple[KeysValues, ...], Bool[Array, "batch patches"]]
"""Cross-attention keys and values [batch, patches, heads, head], and which patches count."""


class Transformer(nnx.Module):
    """The encoder-decoder."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        self.config = config
        inputs = config.patch_size * config.channels * BITS

        def embed(count: int) -> nnx.Embed:
            # Rows of about the same size as a normalized activation's share.
            initial = nnx.initializers.normal(0.02)
            return nnx.Embed(
                count, config.width, dtype=config.dtype, embedding_init=initial, rngs=rngs
            )

        def norm() -> nnx.LayerNorm:
            return nnx.LayerNorm(config.width, dtype=config.dtype, rngs=rngs)

        self.patch_projection = Linear(inputs, config.width, dtype=config.dtype, rngs=rngs)
        self.encoder_positions = embed(config.num_patches)
        self.encoder = nnx.List([Block(config, rngs, decoder=False) for _ in range(config.layers)])
        self.encoder_norm = norm()
        self.token_embedding = embed(config.vocabulary_size)
        self.decoder_positions = embed(config.max_length)
        self.decoder = nnx.List([Block(config, rngs, decoder=True) for _ in range(config.layers)])
        self.decoder_norm = norm()
        # Bits that a small type would cut off are fractions of constants.
        self.output = Linear(config.width, config.vocabulary_size, dtype=jnp.float32, rngs=rngs)

    def encode(
        self, words: UInt32[Array, "batch points channels 2"], mask: Bool[Array, "batch points"]
    ) -> Memory:
        """Reads trajectories: the cross-attention keys and values of every layer.

        Args:
          words: IEEE-754 words of (t, y_1, ..., y_K[, dy_1/dt, ..., dy_K/dt]); what is
            missing is NaN: points that the mask leaves out, single values, and the
            quantities that a system does not have.
          mask: which points are observed, the observed ones first.
        """
        config = self.config
        batch = words.shape[0]
        bits = words_to_bits(words)
        # [batch, points, channels, 64] --> [batch, patches, patch*channels*64]
        patches = bits.reshape(batch, config.num_patches, -1)
        patch_mask = mask.reshape(batch, config.num_patches, -1).any(-1)
        x = self.patch_projection(patches) + self.encoder_positions.embedding[None]
        x = self._embedding_norm(self.encoder_norm, x)
        for block in self.encoder:
            x = self._run(block)(x, patch_mask[:, None, None, :])
        x = self._final_norm(self.encoder_norm, x)
        return tuple(b.cross_attention.keys_values(x) for b in self.decoder), patch_mask

    def decode(
        self,
        memory: Memory,
        low: Int[Array, "batch length"],
        fraction: Float[Array, "batch length"],
    ) -> Float[Array, "batch length vocabulary"]:
        """Logits of the next token after every position (teacher forcing).

        Args:
          memory: from `encode`.
          low, fraction: decoder inputs as two-hot pairs, beginning with bos.
        """
        keys_values, patch_mask = memory
        length = low.shape[1]
        x = self._soft_embed(low, fraction) + self.decoder_positions.embedding[None, :length]
        x = self._embedding_norm(self.decoder_norm, x)
        causal = jnp.tril(jnp.ones((length, length), bool))[None, None]
        for block, kv in zip(self.decoder, keys_values, strict=True):
            x = self._run(block)(x, causal, kv, patch_mask[:, None, None, :])
        return self.output(self._final_norm(self.decoder_norm, x))

    def step(
        self,
        memory: Memory,
        cache: Cache,
        ancestors: Int[Array, "batch beams length"],
        low: Int[Array, "batch beams"],
        fraction: Float[Array, "batch beams"],
        position: Int[Array, ""],
    ) -> tuple[Float[Array, "batch beams vocabulary"], Cache]:
        """Logits after one more token of every beam, with cached keys and values.

        Args:
          memory: from `encode`.
          cache: filled up to `position`.
          ancestors: the beam that holds each position of a beam.
          low, fraction: the tokens to read.
          position: where they stand.
        """
        keys_values, patch_mask = memory
        batch, beams, length = ancestors.shape
        # [batch, beams, length] --> [length, batch*beams]: rows of the cache.
        source = ancestors + beams * jnp.arange(batch)[:, None, None]
        source = source.reshape(batch * beams, length).T
        at = self.decoder_positions.embedding[position]
        x = self._soft_embed(low, fraction) + at[None, None]
        x = self._embedding_norm(self.decoder_norm, x)
        new_cache = []
        for block, layer_cache, kv in zip(self.decoder, cache, keys_values, strict=True):
            x, layer_cache = block.step(
                x, layer_cache, source, position, kv, patch_mask[:, None, None, :]
            )
            new_cache.append(layer_cache)
        return self.output(self._final_norm(self.decoder_norm, x)), tuple(new_cache)

    def _soft_embed(
        self, low: Int[Array, "*lead"], fraction: Float[Array, "*lead"]
    ) -> Float[Array, "*lead width"]:
        """(1 - fraction) E[low] + fraction E[low + 1] (paper, appendix B.3)."""
        high = jnp.minimum(low + 1, self.config.vocabulary_size - 1)
        upper = fraction[..., None].astype(self.config.dtype)
        return (1 - upper) * self.token_embedding(low) + upper * self.token_embedding(high)

    def _run(self, block: Block) -> Callable:
        return jax.checkpoint(block) if self.config.remat else block

    # A pre-norm stack is normalized once at its end, a post-norm stack (which
    # ends normalized) once at its beginning, as in BERT.
    def _embedding_norm(self, norm: nnx.LayerNorm, x: Array) -> Array:
        return norm(x) if self.config.norm == "post" else x

    def _final_norm(self, norm: nnx.LayerNorm, x: Array) -> Array:
        return norm(x) if self.config.norm == "pre" else x


class Model:
    """The transformer as pure functions of a parameter dictionary."""

    def __init__(self, config: ModelConfig):
        self.config = config
        abstract = nnx.eval_shape(lambda: Transformer(config, nnx.Rngs(0)))
        self._graph, self._abstract_state = nnx.split(abstract)

    # Models of one config are one static argument to `jax.jit`: they share compilations.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.config == other.config

    def __hash__(self) -> int:
        return hash(self.config)

    def init(self, seed: int) -> Params:
        """New random parameters."""
        state = nnx.state(Transformer(self.config, nnx.Rngs(seed)))
        return nnx.to_pure_dict(state)

    def shapes(self) -> Params:
        """Shapes and dtypes of the parameters, without allocating them."""
        return nnx.to_pure_dict(self._abstract_state)

    def num_parameters(self) -> dict[str, int]:
        """Number of parameters of the encoder, the decoder and in total."""
        sizes = {
            name: sum(leaf.size for leaf in jax.tree.leaves(part))
            for name, part in self.shapes().items()
        }
        encoder = sum(n for name, n in sizes.items() if name.startswith(("encoder", "patch")))
        total = sum(sizes.values())
        return {"encoder": encoder, "decoder": total - encoder, "total": total}

    def _bind(self, params: Params) -> Transformer:
        state = jax.tree.map(lambda leaf: leaf, self._abstract_state)
        nnx.replace_by_pure_dict(state, params)
        return nnx.merge(self._graph, state)

    def encode(self, params: Params, words: Array, mask: Array) -> Memory:
        """See `Transformer.encode`."""
        return self._bind(params).encode(words, mask)

    def decode(self, params: Params, memory: Memory, low: Array, fraction: Array) -> Array:
        """See `Transformer.decode`."""
        return self._bind(params).decode(memory, low, fraction)

    def step(
        self, params: Params, memory: Memory, cache: Cache, ancestors, low, fraction, position
    ) -> tuple[Array, Cache]:
        """See `Transformer.step`."""
        return self._bind(params).step(memory, cache, ancestors, low, fraction, position)

    def init_cache(self, batch: int, beams: int, max_length: int | None = None) -> Cache:
        """An empty cache for so many trajectories, beams and positions (all by default).

        What it holds is left undefined: on a CPU, positions that are never written take
        no memory.
        """
        c = self.config
        shape = (max_length or c.max_length, batch * beams, c.width)
        return tuple(
            (jax.lax.empty(shape, c.dtype), jax.lax.empty(shape, c.dtype)) for _ in range(c.layers)
        )
