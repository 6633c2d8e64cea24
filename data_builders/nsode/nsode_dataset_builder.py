"""The TFDS builder of the training data: random ODEs and their clean solutions.

    python -m nsode_jax.generate --config configs/small.py --data_dir ~/nsode_data

writes it as ArrayRecord, and `tfds.data_source("nsode/small", data_dir=...)`
reads it, both without TensorFlow.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Iterator

from nsode_jax.config import from_config_dict
from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.generate import GenerationConfig, skeleton_records
from nsode_jax.data.progress import CountedProgress, uncounted
from nsode_jax.data.records import features, record_to_features
from nsode_jax.data.shards import SPLITS
from nsode_jax.system.extras import extra
from nsode_jax.system.workers import Workers

with extra("train", "building a data set"):
    import tensorflow_datasets as tfds
    from etils import epath
    from tensorflow_datasets.core import shuffle

# Beyond 1 GB TFDS spills the examples of a split to disk, with TensorFlow's file API.
# Without TensorFlow they must stay in memory. `nsode_jax.generate` writes its shards
# itself, and needs no such memory.
if importlib.util.find_spec("tensorflow") is None:
    shuffle.MAX_MEM_BUFFER_SIZE = sys.maxsize

CONFIG_NAMES = ("paper", "base", "small", "smoke", "systems")

_VERSION = tfds.core.Version("0.2.0")


class NsodeConfig(tfds.core.BuilderConfig):
    """A named generation config."""

    def __init__(self, *, generation: GenerationConfig, **kwargs):
        super().__init__(version=_VERSION, **kwargs)
        self.generation = generation


def _config(name: str) -> NsodeConfig:
    module = importlib.import_module(f"nsode_jax.configs.{name}")
    return NsodeConfig(
        name=name,
        description=(module.__doc__ or name).splitlines()[0],
        generation=from_config_dict(module.get_config()).generation,
    )


class Builder(tfds.core.GeneratorBasedBuilder):
    """Random ODEs, or systems of them, with solutions on a regular grid."""

    # Of the package's name TFDS makes a folder below nsode_jax, where it need not be.
    pkg_dir_path = tfds.core.Path(__file__).parent
    VERSION = _VERSION
    # TFDS would look for it below the top package, where it is in a wheel only.
    pkg_dir_path = epath.Path(__file__).parent
    BUILDER_CONFIGS = [_config(name) for name in CONFIG_NAMES]

    def __init__(
        self,
        *,
        generation: GenerationConfig | None = None,
        processes: int | None = None,
        progress: CountedProgress = uncounted,
        **kwargs,
    ):
        """
        Args:
          generation: what to generate, in place of what the config of that name says.
          processes: worker processes; all cores by default.
          progress: called with the stage, the amount done and the total.
          **kwargs: of `tfds.core.GeneratorBasedBuilder`.
        """
        kwargs.setdefault("file_format", "array_record")
        self._own, self._processes, self._progress = generation, processes, progress
        super().__init__(**kwargs)  # Asks for the features.

    @property
    def _generation(self) -> GenerationConfig:
        config = self.builder_config
        assert isinstance(config, NsodeConfig)
        return self._own or config.generation

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            description="Trajectories of random ODEs dy/dt = f(y) for training NSODE.",
            features=features(self._generation.system),
            disable_shuffling=False,
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager):
        config = self._generation
        with Workers(self._processes) as workers:
            bank = SkeletonBank.draw(config, workers, progress=self._progress)
        return {split: self._generate_examples(bank.work(config, split)) for split in SPLITS}

    def _download_and_prepare(self, dl_manager, download_config) -> None:
        # TFDS hands the settings of Beam no further than here.
        self._on_beam = bool(download_config.beam_runner or download_config.beam_options)
        super()._download_and_prepare(dl_manager, download_config)

    def _generate_examples(self, work: list[tuple[str, int]]):
        """Examples of (key of a skeleton, number of its sets of constants).

        Returns:
          An iterator or, where `download_and_prepare` was given the options of Beam, a
          Beam transform; both over (unique key, features).
        """
        if self._on_beam:
            # Imported late: Beam is an extra.
            from nsode_jax.data_builders.nsode.beam_examples import beam_examples

            return beam_examples(self._generation, work)
        return self._examples(work)

    def _examples(self, work: list[tuple[str, int]]) -> Iterator[tuple[str, dict]]:
        solve = functools.partial(skeleton_records, self._generation)
        with Workers(self._processes) as workers:
            for done, (records, _) in enumerate(workers.map(solve, work), 1):
                self._progress("solutions", done, len(work))
                for i, record in enumerate(records):
                    example = record_to_features(record, self._generation.system)
                    yield f"{done - 1}_{i}", example
