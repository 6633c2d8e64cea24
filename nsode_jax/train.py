"""Trains a model: python -m nsode_jax.train --config configs/small.py --workdir RUN.

Any field can be overridden, e.g. --config.training.steps=1000. The run resumes
from the newest checkpoint in the workdir, and leaves the weights of its best
validation for `nsode_jax.discover --weights` in RUN/weights. SIGTERM or Ctrl-C save
a checkpoint and end it.

On several machines start the same command on each, with --distributed and a workdir
that all of them see; under SLURM, Open MPI, GKE or on a TPU pod they find each other.
"""

from __future__ import annotations

import sys

from absl import app, flags, logging
from ml_collections import config_flags

_CONFIG = config_flags.DEFINE_config_file("config", None, "A file such as configs/small.py.")
_WORKDIR = flags.DEFINE_string("workdir", None, "For checkpoints, metrics and weights.")
_DISTRIBUTED = flags.DEFINE_bool("distributed", False, "Join the other processes of this job.")


def main(argv: list[str]) -> int:
    """Trains the config in the workdir. Returns the exit code."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    logging.set_verbosity(logging.WARNING)  # Orbax and TFDS tell every step they take.
    import jax

    from nsode_jax.config import from_config_dict
    from nsode_jax.data.workers import WorkersLost
    from nsode_jax.modeling.transformer import Model
    from nsode_jax.training.loop import train
    from nsode_jax.training.parallel import CannotJoin, join_processes

    try:
        if _DISTRIBUTED.value:
            join_processes()
        config = from_config_dict(_CONFIG.value)
        count = Model(config.model).num_parameters()
        if jax.process_index() == 0:
            print(
                f"{count['total'] / 1e6:.1f}M parameters "
                f"(encoder {count['encoder'] / 1e6:.1f}M, decoder {count['decoder'] / 1e6:.1f}M); "
                f"{jax.device_count()} devices in {jax.process_count()} processes",
                flush=True,
            )
        train(config.generation, config.corruption, config.model, config.training, _WORKDIR.value)
    except (CannotJoin, OSError, ValueError) as error:
        print(f"nsode_jax.train: error: {error}", file=sys.stderr)
        return 2
    except (FloatingPointError, WorkersLost) as error:
        print(f"nsode_jax.train: stopped: {error}", file=sys.stderr)
        return 1
    return 0


def run() -> None:
    """Entry point: parses flags and calls `main`."""
    from nsode_jax.config import flags_parser

    flags.mark_flags_as_required(["config", "workdir"])
    app.run(main, flags_parser=flags_parser("nsode_jax.train"))


if __name__ == "__main__":
    run()
