"""The sizes of the network."""

from __future__ import annotations

import dataclasses

from nsode_jax.data.encode import ExampleFormat
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.system.settings import require_at_least_1


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
      dtype: of products and of what the layers hand on, `float32` or `bfloat16`. Parameters,
        logits and, before their normalization, the sums of a `pre` model are float32.
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
        require_at_least_1(
            self,
            "num_points",
            "patch_size",
            "max_length",
            "layers",
            "heads",
            "width",
            "hidden_width",
            "vocabulary_size",
            "num_states",
        )
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
