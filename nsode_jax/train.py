"""Trains a model: python -m nsode_jax.train --config small [--workdir RUN].

--config is required. Any field of it can be overridden, e.g. --config.training.steps=1000;
nsode_jax/config.py names the classes that explain the fields. The configs paper and smoke
train on a stored data set, which nsode_jax.generate makes. Without --workdir the run lives
in runs/ and the name of the config: here in runs/small. It resumes from the newest
checkpoint there, and leaves the weights of its best validation for `nsode_jax.discover
--weights` in RUN/weights. SIGTERM or Ctrl-C save a checkpoint and end it.

On several machines start the same command on each, with --distributed and a workdir
that all of them see; under SLURM, Open MPI, GKE or on a TPU pod they find each other,
elsewhere --coordinator, --num_processes and --process_id tell. See launch/.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from absl import app, flags, logging
from ml_collections import config_flags

from nsode_jax.system.extras import MissingExtra
from nsode_jax.system.files import in_words, require_folder

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "Name of a shipped config, such as small, or a file."
)
_WORKDIR = flags.DEFINE_string(
    "workdir", None, "For checkpoints, metrics and weights (default: runs/ and the config's name)."
)
_DISTRIBUTED = flags.DEFINE_bool("distributed", False, "Join the other processes of this job.")
_COORDINATOR = flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, a free port.")
_NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "Processes of the job.", 2)
_PROCESS_ID = flags.DEFINE_integer("process_id", None, "Number of this process, from 0.", 0)

_INTERRUPTED_CODE = flags.DEFINE_integer(
    "interrupted_code", 0, "Exit code of a run that a signal has ended.", 0, 255
)


@flags.multi_flags_validator(
    ["distributed", "coordinator", "num_processes", "process_id"],
    "--coordinator, --num_processes and --process_id go together, and with --distributed",
)
def _describe_one_job(values: dict[str, object]) -> bool:
    given = [values[k] is not None for k in ("coordinator", "num_processes", "process_id")]
    return not any(given) or all([*given, values["distributed"]])


@flags.multi_flags_validator(
    ["num_processes", "process_id"], "--process_id must be below --num_processes"
)
def _is_one_of_them(values: dict[str, int | None]) -> bool:
    number, processes = values["process_id"], values["num_processes"]
    return number is None or processes is None or number < processes


@flags.validator("coordinator", "it must be HOST:PORT")
def _is_address(value: str | None) -> bool:
    if value is None:
        return True
    host, _, port = value.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 2**16


def default_workdir() -> str:
    """The folder of a run that was given none: named after its config."""
    from nsode_jax.config import name_of

    file = config_flags.get_config_filename(flags.FLAGS["config"])
    return str(Path("runs", name_of(file)))


def main(argv: list[str]) -> int:
    """Trains the config in the workdir. Returns the exit code."""
    # An empty one is a flag of a template that was not set, as in launch/gke_jobset.yaml.
    if unexpected := [argument for argument in argv[1:] if argument]:
        print(f"nsode_jax.train: error: unexpected argument {unexpected[0]!r}", file=sys.stderr)
        return 2
    logging.set_verbosity(logging.WARNING)  # Orbax and TFDS tell every step they take.
    import jax

    from nsode_jax.config import from_config_dict
    from nsode_jax.modeling.transformer import Model
    from nsode_jax.system.workers import WorkersLost
    from nsode_jax.training.loop import Stop, train
    from nsode_jax.training.parallel import CannotJoin, joined_processes

    workdir = _WORKDIR.value or default_workdir()
    with contextlib.ExitStack() as stack:
        try:
            if _DISTRIBUTED.value:
                job = (_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value)
                stack.enter_context(joined_processes(*job))
            config = from_config_dict(_CONFIG.value)
            require_folder(workdir, "--workdir")
            count = Model(config.model).num_parameters()
            if jax.process_index() == 0:
                print(
                    f"the run lives in {workdir}\n{count['total'] / 1e6:.1f}M parameters "
                    f"(encoder {count['encoder'] / 1e6:.1f}M, "
                    f"decoder {count['decoder'] / 1e6:.1f}M); "
                    f"{jax.device_count()} devices in {jax.process_count()} processes",
                    flush=True,
                )
            end = train(config, workdir)
        # Exceptions of this process alone must end the others too, so they leave the stack.
        except (CannotJoin, OSError, ValueError) as error:
            print(f"nsode_jax.train: error: {in_words(error)}", file=sys.stderr)
            sys.exit(2)
        except WorkersLost as error:
            print(f"nsode_jax.train: stopped: {error}", file=sys.stderr)
            sys.exit(1)
        except FloatingPointError as error:  # In all processes, after the same step.
            print(f"nsode_jax.train: stopped: {error}", file=sys.stderr)
            return 1
        return _INTERRUPTED_CODE.value if end.stop is Stop.SIGNAL else 0


def run() -> None:
    """Entry point: parses flags and calls `main`."""
    from nsode_jax.config import flags_parser

    try:
        app.run(main, flags_parser=flags_parser("nsode_jax.train"))
    except MissingExtra as error:
        print(f"nsode_jax.train: error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    run()
