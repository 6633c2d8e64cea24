"""The TFDS builder of the training data: random ODEs and their clean solutions.

    python -m nsode_jax.generate --config configs/small.py --data_dir ~/nsode_data

writes it as ArrayRecord, and `tfds.data_source("nsode/small", data_dir=...)`
reads it, both without TensorFlow.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow_datasets as tfds
from tensorflow_datasets.core import shuffle

from nsode_jax.config import from_config_dict
from nsode_jax.data.generate import GenerationConfig, Generator
from nsode_jax.data.records import record_to_features

# Beyond 1 GB TFDS spills the examples of a split to disk, with TensorFlow's file API.
# Without TensorFlow they must stay in memory.
if importlib.util.find_spec("tensorflow") is None:
    shuffle.MAX_MEM_BUFFER_SIZE = sys.maxsize

CONFIG_NAMES = ("paper", "small", "smoke")


class NsodeConfig(tfds.core.BuilderConfig):
    """A named generation config."""

    def __init__(self, *, generation: GenerationConfig, **kwargs):
        super().__init__(version=tfds.core.Version("0.1.0"), **kwargs)
        self.generation = generation


def _config(name: str) -> NsodeConfig:
    module = importlib.import_module(f"configs.{name}")
    return NsodeConfig(
        name=name,
        description=(module.__doc__ or name).splitlines()[0],
        generation=from_config_dict(module.get_config()).generation,
    )


class Builder(tfds.core.GeneratorBasedBuilder):
    """Random scalar autonomous ODEs with solutions on a regular grid."""

    VERSION = tfds.core.Version("0.1.0")
    BUILDER_CONFIGS = [_config(name) for name in CONFIG_NAMES]

    def __init__(
        self,
        *,
        processes: int | None = None,
        progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
        **kwargs,
    ):
        """
        Args:
          processes: worker processes; all cores by default.
          progress: called with the stage, the amount done and the total.
          **kwargs: of `tfds.core.GeneratorBasedBuilder`.
        """
        kwargs.setdefault("file_format", "array_record")
        super().__init__(**kwargs)
        self.generator = Generator(self.builder_config.generation, processes, progress)

    def _info(self) -> tfds.core.DatasetInfo:
        # Without encoding="bytes" TFDS stores float64 as float32.
        def float64(shape):
            return tfds.features.Tensor(shape=shape, dtype=np.float64, encoding="bytes")

        return self.dataset_info_from_configs(
            description="Trajectories of random ODEs dy/dt = f(y) for training NSODE.",
            features=tfds.features.FeaturesDict(
                {
                    "skeleton": tfds.features.Text(),
                    "constants": float64((None,)),
                    "max_time": float64(()),
                    "y": float64((None,)),
                }
            ),
            disable_shuffling=False,
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager):
        return {split: self._generate_examples(split) for split in ("train", "validation")}

    def _generate_examples(self, split: str) -> Iterator[tuple[str, dict]]:
        for key, record in self.generator.records(split):
            yield key, record_to_features(record)
