"""The network: bits of a trajectory in, tokens of an equation out.

Paper, section 2.2 and appendix B.3: an encoder-decoder transformer with full
attention, learned positions and gelu. The encoder reads the IEEE-754 bits of
(t, y) through a linear layer, one token for each patch of `patch_size` points;
the decoder reads soft-embedded tokens, where a constant between two grid points
is the interpolation of their embeddings.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, UInt32

from nsode_jax.data.bits import BITS, words_to_bits
from nsode_jax.data.encode import ExampleFormat
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.modeling.attention import attention, cached_attention

Params = dict
"""Parameters as a plain nested dictionary of arrays."""

KeysValues = tuple[Array, Array]
"""Keys and values of one layer's attention."""

Cache = tuple[KeysValues, ...]
"""Keys and values of the decoder's self-attention [length, batch*beams, width], by layer."""

Memory = tuple[tuple[KeysValues, ...], Bool[Array, "batch patches"]]
"""Cross-attention keys and values [batch, patches, heads, head], and which patches count."""


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """Sizes of the network. The defaults are the paper's (appendix B.3).

    Attributes:
      num_points: most points of a trajectory the encoder reads.
      patch_size: points read as one encoder token; divides num_points.
      max_length: most positions of a target, end token included.
      layers: of the encoder, and as many of the decoder.
      heads: attention heads; divides width.
      width: embedding dimension.
      hidden_width: of the feed-forward layers.
      norm: `pre` or `post`: layer normalization before or after each sublayer.
      derivative_channel: also read the bits of a finite-difference dy/dt.
      vocabulary_size: tokens of the decoder.
      num_states: most quantities that the encoder reads.
      dtype: of activations, `float32` or `bfloat16`; parameters are float32.
      remat: compute the activations of a block again for its gradient instead of
        keeping them: less memory, about a third more time, the same result.
    """

    num_points: int = 1024
    patch_size: int = 1
    max_length: int = 64
    layers: int = 6
    heads: int = 16
    width: int = 512
    hidden_width: int = 2048
    norm: str = "post"
    derivative_channel: bool = False
    vocabulary_size: int = Vocabulary().size
    num_states: int = 1
    dtype: str = "float32"
    remat: bool = False

    def __post_init__(self):
        if self.num_points % self.patch_size:
            raise ValueError(
                f"patch_size {self.patch_size} does not divide num_points {self.num_points}"
            )
        if self.width % self.heads:
            raise ValueError(f"heads {self.heads} does not divide width {self.width}")
        if self.norm not in ("pre", "post"):
            raise ValueError(f"norm must be 'pre' or 'post', got {self.norm!r}")
        if self.dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype must be 'float32' or 'bfloat16', got {self.dtype!r}")

    @property
    def channels(self) -> int:
        """Numbers read per point: t, every quantity and perhaps its dy/dt."""
        return self.example_format.channels

    @property
    def example_format(self) -> ExampleFormat:
        """Shapes of the examples that the model reads."""
        return ExampleFormat(
            self.num_points, self.max_length, self.derivative_channel, self.num_states
        )

    @property
    def num_patches(self) -> int:
        """Encoder tokens of a full trajectory."""
        return self.num_points // self.patch_size


class Linear(nnx.Linear):
    """A linear layer as one product of two matrices; on CPUs a step is 10% faster for it."""

    def __call__(self, x: Float[Array, "*lead inputs"]) -> Float[Array, "*lead outputs"]:
        rows = super().__call__(x.reshape(-1, x.shape[-1]))
        return rows.reshape(*x.shape[:-1], -1)


class Attention(nnx.Module):
    """Multi-head attention, with its projections apart so that keys can be cached."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs):
        def linear() -> Linear:
            return Linear(config.width, config.width, dtype=config.dtype, rngs=rngs)

        self.query, self.key, self.value, self.out = linear(), linear(), linear(), linear()
        self.heads = config.heads

    def split(self, x: Float[Array, "*lead width"]) -> Float[Array, "*lead heads head"]:
        """The heads' shares of a projection."""
        return x.reshape(*x.shape[:-1], self.heads, -1)

    def keys_values(
        self, x: Float[Array, "*lead width"]
    ) -> tuple[Float[Array, "*lead heads head"], Float[Array, "*lead heads head"]]:
        """Keys and values of inputs."""
        return self.split(self.key(x)), self.split(self.value(x))

    def attend(
        self,
        x: Float[Array, "batch queries width"],
        keys: Float[Array, "batch keys heads head"],
        values: Float[Array, "batch keys heads head"],
        mask: Bool[Array | np.ndarray, "#batch 1 #queries keys"],
    ) -> Float[Array, "batch queries width"]:
        """Attention of inputs to given keys, where the mask is true."""
        attended = attention(self.split(self.query(x)), keys, values, mask)
        return self.out(attended.reshape(x.shape))


class Block(nnx.Module):
    """Self-attention, cross-attention in the decoder, and a feed-forward layer."""

    def __init__(self, config: ModelConfig, rngs: nnx.Rngs, *, decoder: bool):
        def norm() -> nnx.LayerNorm:
            return nnx.LayerNorm(config.width, dtype=config.dtype, rngs=rngs)

        self.self_attention, self.self_norm = Attention(config, rngs), norm()
        if decoder:
            self.cross_attention, self.cross_norm = Attention(config, rngs), norm()
        self.up = Linear(config.width, config.hidden_width, dtype=config.dtype, rngs=rngs)
        self.down = Linear(config.hidden_width, config.width, dtype=config.dtype, rngs=rngs)
        self.feed_forward_norm = norm()
        self.pre_norm = config.norm == "pre"

    def _residual(self, x, norm, sublayer):
        return x + sublayer(norm(x)) if self.pre_norm else norm(x + sublayer(x))

    def _feed_forward(self, x):
        return self.down(nnx.gelu(self.up(x)))

    def __call__(
        self,
        x: Float[Array, "batch length width"],
        mask: Bool[Array, "#batch 1 #length length"],
        memory: KeysValues | None = None,
        memory_mask: Bool[Array, "batch 1 1 patches"] | None = None,
    ) -> Float[Array, "batch length width"]:
        """All positions at once."""
        attention = self.self_attention
        x = self._residual(
            x, self.self_norm, lambda h: attention.attend(h, *attention.keys_values(h), mask)
        )
        if memory is not None and memory_mask is not None:
            x = self._residual(
                x,
                self.cross_norm,
                lambda h: self.cross_attention.attend(h, *memory, memory_mask),
            )
        return self._residual(x, self.feed_forward_norm, self._feed_forward)

    def step(
        self,
        x: Float[Array, "batch beams width"],
        cache: KeysValues,
        source: Int[Array, "length rows"],
        position: Int[Array, ""],
        memory: KeysValues,
        memory_mask: Bool[Array, "batch 1 1 patches"],
    ) -> tuple[Float[Array, "batch beams width"], KeysValues]:
        """One new position of every beam; beams share the memory of their trajectory."""
        attention = self.self_attention

        def self_attend(h):
            nonlocal cache
            rows = h.reshape(-1, h.shape[-1])
            keys, values = cache
            write = functools.partial(jax.lax.dynamic_update_index_in_dim, axis=0)
            keys = write(keys, attention.key(rows), position)
            values = write(values, attention.value(rows), position)
            cache = keys, values
            query = attention.split(attention.query(rows))
            attended = cached_attention(query, keys, values, source, position)
            return attention.out(attended.reshape(h.shape))

        x = self._residual(x, self.self_norm, self_attend)
        x = self._residual(
            x, self.cross_norm, lambda h: self.cross_attention.attend(h, *memory, memory_mask)
        )
        return self._residual(x, self.feed_forward_norm, self._feed_forward), cache


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
        self.output = Linear(config.width, config.vocabulary_size, dtype=config.dtype, rngs=rngs)

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
        return self.output(self._final_norm(self.decoder_norm, x)).astype(jnp.float32)

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
        logits = self.output(self._final_norm(self.decoder_norm, x))
        return logits.astype(jnp.float32), tuple(new_cache)

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
