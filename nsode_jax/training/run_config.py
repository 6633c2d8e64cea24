"""The config of a run as a file in its workdir, and what may change when it goes on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.expressions.coupled import SCALAR
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.pretrained import load_pretrained
from nsode_jax.modeling.transformer import Params
from nsode_jax.system.files import write_atomically
from nsode_jax.training.config import Config, TrainingConfig

_FILE = "config.json"
_SAME_MODEL = ("remat",)
"""Fields of a model that change how it is computed, not what."""
_SAME_TRAINING = ("optimizer", "length_multiple")
"""Fields of a training that decide what its checkpoints hold."""


class ModelChanged(ValueError):
    """The model is not the one whose weights are to be used."""


class TrainingChanged(ValueError):
    """What the checkpoints hold is not what the training needs."""


def write_config(workdir: Path, config: Config) -> None:
    """Writes the config to `config.json`, by sections."""
    text = json.dumps(dataclasses.asdict(config), indent=2)
    write_atomically(workdir / _FILE, f"{text}\n".encode())


def read_config(workdir: Path) -> dict[str, Any]:
    """The config that the run in the workdir was started with, by sections, as plain JSON.

    Fields that are newer than the run have their defaults.

    Raises:
      ModelChanged: if there is none, or one that is none of ours.
    """
    try:
        before = json.loads((workdir / _FILE).read_text())
        before["model"] = dataclasses.asdict(ModelConfig(**before["model"]))
        before["training"] = dataclasses.asdict(TrainingConfig(**before["training"]))
        before["generation"].setdefault("system", dataclasses.asdict(SCALAR))
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelChanged(
            f"{workdir} has checkpoints but no readable {_FILE}, so nobody knows of which model; "
            "choose a new workdir"
        ) from error
    return before


def changes(workdir: Path, config: Config) -> list[str]:
    """What differs from the config that the run in the workdir was started with.

    Returns:
      Texts like `training.steps 100 -> 200`.

    Raises:
      ModelChanged: if the model differs, naming the field, or nobody knows.
      TrainingChanged: if the checkpoints do not fit the training, naming the field.
    """
    texts = []
    # Through JSON, so that tuples compare equal to lists.
    now = json.loads(json.dumps(dataclasses.asdict(config)))
    for name, old, new in _differences(read_config(workdir), now, ""):
        section, _, field = name.partition(".")
        message = f"{name} is {new!r}, but the run in {workdir} has {old!r}; "
        if section == "model" and field not in _SAME_MODEL:
            raise ModelChanged(message + "a changed model needs a new workdir")
        if section == "training" and field in _SAME_TRAINING:
            raise TrainingChanged(message + "a new workdir can start from its weights, init_from")
        texts.append(f"{name} {old!r} -> {new!r}")
    return texts


def _differences(old: Any, new: Any, name: str) -> list[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in [*old, *(k for k in new if k not in old)]:
            path = f"{name}.{key}" if name else key
            found += _differences(old.get(key), new.get(key), path)
        return found
    return [] if old == new else [(name, old, new)]


def pretrained_params(
    name_or_path: str, config: ModelConfig, vocabulary: Vocabulary
) -> tuple[Params, dict[str, Any]]:
    """Exported weights for a run to start from, and their model card.

    Raises:
      WeightsError: if they are missing or damaged.
      ModelChanged: if their model is another one, naming the field.
    """
    model, params, theirs, card = load_pretrained(name_or_path)
    if theirs != vocabulary:
        raise ModelChanged(
            f"init_from: the weights {name_or_path!r} have another vocabulary; take others, or a "
            "config with theirs"
        )
    for field in dataclasses.fields(ModelConfig):
        theirs, ours = getattr(model.config, field.name), getattr(config, field.name)
        # Weights are stored apart from the type they are computed with.
        if theirs != ours and field.name not in (*_SAME_MODEL, "dtype"):
            raise ModelChanged(
                f"init_from: the weights {name_or_path!r} have {field.name} {theirs!r}, "
                f"the model of this run {ours!r}; set --config.model.{field.name} to theirs"
            )
    return params, card
