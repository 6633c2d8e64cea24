"""Weights for inference: exported without pickle, verified when loaded.

A folder with `weights.npz` and `model.json`, which holds the model config, the
vocabulary (its symbols, so that the table of operators may grow, and the constant grid),
a schema version, the SHA-256 of the weights and the model card.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import traverse_util

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.transformer import Model, Params
from nsode_jax.system.files import in_words, write_atomically

SCHEMA_VERSION = 1
SHIPPED_WEIGHTS = Path(__file__).parent.parent / "weights"


class WeightsError(ValueError):
    """Weights that are missing, damaged or of another version."""


def export(
    folder: str | Path,
    params: Params,
    config: ModelConfig,
    vocabulary: Vocabulary,
    card: dict[str, Any],
    *,
    half_precision: bool = True,
) -> None:
    """Writes weights for inference.

    Args:
      folder: to write to; made when missing.
      params: parameters.
      config: of the model.
      vocabulary: of the decoder.
      card: what is known about the weights: data, samples seen, scores.
      half_precision: store float16, half the size.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    dtype = np.float16 if half_precision else np.float32
    flat: dict[str, Any] = {
        name: np.asarray(leaf, dtype) for name, leaf in _flatten(params).items()
    }
    weights = io.BytesIO()
    np.savez(weights, **flat)
    description = {
        "schema_version": SCHEMA_VERSION,
        "sha256": _sha256(weights.getvalue()),
        "model": dataclasses.asdict(config),
        "vocabulary": dataclasses.asdict(vocabulary),
        "card": card,
    }
    write_atomically(folder / "weights.npz", weights.getvalue())
    write_atomically(folder / "model.json", f"{json.dumps(description, indent=2)}\n".encode())


def load_pretrained(
    name_or_path: str | Path, dtype: str | None = None
) -> tuple[Model, Params, Vocabulary, dict[str, Any]]:
    """Shipped weights by name, or exported ones by their folder.

    Args:
      name_or_path: of the weights.
      dtype: of activations. By default that of the training, but float32 on CPUs,
        where bfloat16 saves no time and is less exact.

    Returns:
      The model, its parameters in float32, its vocabulary and the model card.

    Raises:
      WeightsError: if they are missing, damaged, or of another schema version.
    """
    folder = _folder_of(name_or_path)
    try:
        description = json.loads((folder / "model.json").read_text())
        version = description["schema_version"]
        if version != SCHEMA_VERSION:
            raise WeightsError(
                f"{folder} has schema version {version}, this code reads {SCHEMA_VERSION}; update "
                "nsode_jax, or export the weights anew"
            )
        if _sha256((folder / "weights.npz").read_bytes()) != description["sha256"]:
            raise WeightsError(f"{folder}/weights.npz is damaged; copy it anew (SHA-256)")
        config = ModelConfig(**description["model"])
        dtype = dtype or ("float32" if jax.default_backend() == "cpu" else config.dtype)
        model = _model(dataclasses.replace(config, dtype=dtype))
        if "symbols" not in description["vocabulary"]:
            raise WeightsError(
                f"{folder}/model.json does not name the symbols of its vocabulary, as an older "
                "version wrote it: export the weights anew"
            )
        # JSON holds a list.
        symbols = tuple(description["vocabulary"]["symbols"])
        vocabulary = Vocabulary(**description["vocabulary"] | {"symbols": symbols})
        with np.load(folder / "weights.npz", allow_pickle=False) as stored:
            flat = {name: stored[name].astype(np.float32) for name in stored.files}
    except WeightsError:
        raise
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(folder, error) from error
    expected = {name: leaf.shape for name, leaf in _flatten(model.shapes()).items()}
    if {name: array.shape for name, array in flat.items()} != expected:
        raise WeightsError(f"the weights in {folder} do not fit its model.json; export them anew")
    return model, _unflatten(flat, model.shapes()), vocabulary, description["card"]


def checksum(name_or_path: str | Path) -> str:
    """The SHA-256 of the numbers of weights: one name may stand for other ones tomorrow.

    Raises:
      WeightsError: if they are missing or damaged.
    """
    folder = _folder_of(name_or_path)
    try:
        return str(json.loads((folder / "model.json").read_text())["sha256"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(folder, error) from error


def _folder_of(name_or_path: str | Path) -> Path:
    """Where the weights lie.

    Raises:
      WeightsError: if there are none of that name.
    """
    folder = Path(name_or_path)
    # Not any folder: one with the name of shipped weights may be something else.
    if not (folder / "model.json").is_file():
        folder = SHIPPED_WEIGHTS / str(name_or_path)
    if not (folder / "model.json").is_file():
        shipped = sorted(p.parent.name for p in SHIPPED_WEIGHTS.glob("*/model.json"))
        raise WeightsError(
            f"no weights {str(name_or_path)!r}: neither a folder with model.json nor one of "
            f"the shipped ones ({', '.join(shipped) or 'none'})"
        )
    return folder


def _unreadable(folder: Path, error: Exception) -> WeightsError:
    return WeightsError(
        f"cannot read the weights in {folder}: {in_words(error)}; export or copy them anew"
    )


@functools.lru_cache(maxsize=4)
def _model(config: ModelConfig) -> Model:
    """The network without its parameters, which takes longer to build than to load those."""
    return Model(config)


def _flatten(params: Params) -> dict[str, Any]:
    return {
        "/".join(map(str, path)): leaf for path, leaf in traverse_util.flatten_dict(params).items()
    }


def _unflatten(flat: dict[str, np.ndarray], like: Params) -> Params:
    paths = traverse_util.flatten_dict(like)
    return traverse_util.unflatten_dict({path: flat["/".join(map(str, path))] for path in paths})


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
