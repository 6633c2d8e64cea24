"""The newest checkpoint of a run as weights: python -m nsode_jax.training.keep RUN FOLDER

The run may go on meanwhile. What it would validate (its average, if it has one) is written
in float32, so that another run can start from there, by `training.init_from`, without
losing what the last samples have taught. RUN/weights are those of the best validation,
which may be long ago, in half the size.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import logging

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.expressions.coupled import SystemConfig
from nsode_jax.modeling.checkpoints import TrainingCheckpoints
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.pretrained import export
from nsode_jax.modeling.transformer import Model
from nsode_jax.system.extras import MissingExtra
from nsode_jax.system.files import in_words
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.run import RunRecord, card, restored
from nsode_jax.training.run_config import read_config


def keep(workdir: str | Path, folder: str | Path) -> int:
    """Exports the newest checkpoint of a run; its validation on the card may be older.

    Args:
      workdir: of the run.
      folder: for the weights; made when missing.

    Returns:
      The step of the checkpoint.

    Raises:
      ModelChanged: if the workdir does not say of which model its checkpoints are.
      OSError: if the weights cannot be written.
      ValueError: if there is no checkpoint.
    """
    workdir = Path(workdir)
    checkpoints = TrainingCheckpoints(workdir / "checkpoints", read_only=True)
    with contextlib.closing(checkpoints):
        if checkpoints.latest_step() is None:
            raise ValueError(f"there is no checkpoint in {workdir}")
        config = read_config(workdir)
        model, training = ModelConfig(**config["model"]), TrainingConfig(**config["training"])
        vocabulary = Vocabulary.of(SystemConfig(**config["generation"]["system"]))
        step, state, saved = restored(checkpoints, Model(model), training)
    about = card(training, RunRecord.of(saved), step)
    export(folder, state.inference_params, model, vocabulary, about, half_precision=False)
    return step


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns 0, or 2 after one line that says what is in the way."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}.keep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="workdir of the run")
    parser.add_argument("folder", type=Path, help="for the weights")
    options = parser.parse_args(argv)
    logging.set_verbosity(logging.ERROR)  # Orbax warns that it only reads.
    try:
        step = keep(options.run, options.folder)
    except (MissingExtra, OSError, ValueError) as error:
        print(f"{parser.prog}: error: {in_words(error)}", file=sys.stderr)
        return 2
    print(f"{options.folder}: the weights of step {step:,} of {options.run}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
