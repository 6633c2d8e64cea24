"""Records as TFDS features and back; the one place that knows the field names."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.generate import GenerationConfig, Record, settings
from nsode_jax.expressions.coupled import SCALAR, SystemConfig, SystemSkeleton
from nsode_jax.system.extras import extra

with extra("train", "a stored data set"):
    import tensorflow_datasets as tfds


def float64(shape: tuple[int | None, ...]) -> tfds.features.Tensor:
    """A feature that keeps float64; without encoding="bytes" TFDS stores it as float32."""
    return tfds.features.Tensor(shape=shape, dtype=np.float64, encoding="bytes")


def features(system: SystemConfig = SCALAR) -> tfds.features.FeaturesDict:
    """Names, shapes and types of a stored record; y is [time] or [time, num_states]."""
    states = () if system.num_states == 1 else (system.num_states,)
    return tfds.features.FeaturesDict(
        {
            "skeleton": tfds.features.Text(),
            "constants": float64((None,)),
            "max_time": float64(()),
            "y": float64((None, *states)),
        }
    )


def record_to_features(record: Record, system: SystemConfig = SCALAR) -> dict[str, Any]:
    """A record as a dictionary of `features`; quantities that its system has not are NaN."""
    y = np.asarray(record.y, np.float64)
    if system.num_states > 1:
        y, observed = np.full((len(y), system.num_states), np.nan), y.reshape(len(y), -1)
        y[:, : observed.shape[1]] = observed
    return {
        "skeleton": record.skeleton.key,
        "constants": np.asarray(record.constants, np.float64),
        "max_time": np.float64(record.max_time),
        "y": y,
    }


def features_to_record(features: dict[str, Any], system: SystemConfig = SCALAR) -> Record:
    """The inverse of `record_to_features`, for what TFDS reads back.

    Raises:
      ValueError: if it was stored as of another number of quantities.
    """
    skeleton, y = _skeleton(features["skeleton"], system), np.asarray(features["y"], np.float64)
    if y.shape[1:] != ((system.num_states,) if system.num_states > 1 else ()):
        raise ValueError(
            f"the data set holds y of shape {y.shape}, which is not that of "
            f"generation.system.num_states {system.num_states}: generate it anew"
        )
    if y.ndim == 2:
        states = len(skeleton.parts)
        y = y[:, 0] if states == 1 else y[:, :states]
    return Record(
        skeleton=skeleton,
        constants=np.asarray(features["constants"], np.float64),
        max_time=float(features["max_time"]),
        y=y,
    )


def serializer(system: SystemConfig = SCALAR) -> Callable[[Record], bytes]:
    """A function from a record to the bytes that TFDS stores for it.

    `features().serialize_example` would do but for the order of the fields: protobuf
    hashes them with a salt that every process draws anew, so that the same records
    would make different files.
    """
    form = features(system)
    specifications: dict[str, Any] = dict(form.get_serialized_info())
    serialize = tfds.core.ExampleSerializer(specifications)

    def to_bytes(record: Record) -> bytes:
        encoded = form.encode_example(record_to_features(record, system))
        return serialize.get_tf_example(encoded).SerializeToString(deterministic=True)

    return to_bytes


@functools.lru_cache(maxsize=1 << 17)
def _skeleton(key: bytes | str, system: SystemConfig) -> SystemSkeleton:
    """Parsed once: records of one skeleton are many."""
    return system.skeleton(key.decode() if isinstance(key, bytes) else key)


def open_split(name: str, split: str, data_dir: str):
    """A built split as a random-access source of feature dictionaries.

    Args:
      name: `nsode/small`, say.
      split: `train` or `validation`.
      data_dir: the folder given to the builder.

    Raises:
      FileNotFoundError: if the data set has not been built there.
      ValueError: if the split is empty.
    """
    builder = tfds.builder_from_directory(_folder(name, data_dir))
    if not builder.info.splits[split].num_examples:
        raise ValueError(f"the split {split} of {name} in {data_dir} is empty")
    as_data_source: Any = builder.as_data_source  # Its decorators hide what it takes.
    return as_data_source(split)


def contents_of(name: str, data_dir: str) -> str:
    """A checksum that data sets of other records do not share: of how they were generated and
    of the sizes of their shards.

    Raises:
      FileNotFoundError: if the data set has not been built there.
    """
    folder = _folder(name, data_dir)
    described = [folder / "dataset_info.json", folder / "config.json"]  # TFDS has the first only.
    texts = [path.read_bytes() for path in described if path.exists()]
    return hashlib.sha256(b"".join(texts)).hexdigest()


def generated_with(name: str, data_dir: str, otherwise: GenerationConfig) -> dict[str, Any]:
    """The settings of a data set as plain JSON; `otherwise` where it does not say, as TFDS's own.

    Raises:
      FileNotFoundError: if the data set has not been built there.
    """
    path = _folder(name, data_dir) / "config.json"
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return settings(otherwise)


def longest_target(name: str, data_dir: str, generated: dict[str, Any]) -> int:
    """Most positions, the end included, that a target of a data set of such settings needs."""
    if not generated.get("rescaled_share"):  # Those in other units may be longer.
        with contextlib.suppress(OSError, ValueError):
            bank = SkeletonBank.load(_folder(name, data_dir) / "skeletons.gz")
            return max(key.count(" ") + 1 for key in bank.keys) + 1
    return generated["max_complexity"] + 1


def _folder(name: str, data_dir: str) -> Path:
    """That of the newest version of a data set."""
    built = [
        path
        for path in Path(data_dir, name).glob("*/dataset_info.json")
        if tfds.core.Version.is_valid(path.parent.name)  # Not what is unfinished.
    ]
    if not built:
        raise FileNotFoundError(
            f"no data set {name} in {data_dir}; build it with "
            f"python -m nsode_jax.generate --config {name.split('/')[-1]} "
            f"--data_dir {data_dir}"
        )
    return max(built, key=lambda path: tfds.core.Version(path.parent.name)).parent
