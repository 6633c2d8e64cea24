"""Generates training data: python -m nsode_jax.generate --config small --data_dir DATA.

It can be killed at any moment: the same command goes on where it was, and
repairs what has been damaged. With --bank FILE only the skeletons are drawn, from
which training makes its data as it goes. --config is required. Any field of it can be
overridden, e.g. --config.generation.num_skeletons=1000; nsode_jax/config.py names the
classes that explain the fields.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from absl import app, flags, logging
from ml_collections import config_flags

from nsode_jax.system.extras import MissingExtra
from nsode_jax.system.files import in_words, require_folder

_CONFIG = config_flags.DEFINE_config_file(
    "config",
    None,
    "Name of a shipped config, such as small, or a file.",
    allow_override=True,  # `train` has the same; one process may import both.
)
_DATA_DIR = flags.DEFINE_string("data_dir", "~/nsode_data", "Where the data set goes.")
_BANK = flags.DEFINE_string("bank", None, "Only draw the skeletons, into this file.")
_PROCESSES = flags.DEFINE_integer("processes", None, "Worker processes (default: all cores).")


def main(argv: list[str]) -> int:
    """Generates the data set or the bank of the config. Returns the exit code."""
    if unexpected := [argument for argument in argv[1:] if argument]:
        print(f"nsode_jax.generate: error: unexpected argument {unexpected[0]!r}", file=sys.stderr)
        return 2
    logging.set_verbosity(logging.WARNING)
    from nsode_jax.config import from_config_dict
    from nsode_jax.data.progress import StageProgress
    from nsode_jax.system.workers import Workers

    progress = StageProgress()
    try:
        config = from_config_dict(_CONFIG.value).generation
        with Workers(_PROCESSES.value) as workers:
            if _BANK.value:
                _draw_bank(Path(_BANK.value).expanduser(), config, workers, progress)
            else:
                _write_dataset(Path(_DATA_DIR.value).expanduser(), config, workers, progress)
    except (OSError, ValueError, RuntimeError) as error:
        progress.close()
        print(f"nsode_jax.generate: error: {in_words(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        progress.close()
        print("nsode_jax.generate: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _draw_bank(path: Path, config, workers, progress) -> None:
    from nsode_jax.data.bank import SkeletonBank, drawing_settings
    from nsode_jax.data.statistics import Statistics

    if path.is_dir():
        raise IsADirectoryError(f"--bank names a folder, {path}; name a file in it")
    if path.exists():
        there = SkeletonBank.load(path)
        if there.settings != drawing_settings(config) or len(there.keys) != config.num_skeletons:
            raise FileExistsError(f"{path} is a bank of other settings; delete it to draw anew")
        print(f"{path} is complete and intact")
        return
    require_folder(path.parent, "--bank")
    parts = path.with_name(path.name + ".drawing")
    bank = SkeletonBank.draw(config, workers, folder=parts, progress=progress)
    bank.save(path)
    shutil.rmtree(parts, ignore_errors=True)
    progress.close()
    statistics = Statistics.of(map(config.system.skeleton, bank.keys))
    statistics.counts.update(bank.counts)
    print(f"{path}: {len(bank.keys):,} skeletons, {path.stat().st_size / 1e6:.1f} MB\n")
    _print_report(statistics, Path(f"{path}.png"), "skeletons")


def _write_dataset(data_dir: Path, config, workers, progress) -> None:
    require_folder(data_dir, "--data_dir")
    # Imported late: worker processes import this module too, and need none of it.
    from nsode_jax.config import name_of
    from nsode_jax.data.shards import write_dataset
    from nsode_jax.data_builders.nsode.nsode_dataset_builder import (
        CONFIG_NAMES,
        Builder,
        NsodeConfig,
    )

    name = name_of(config_flags.get_config_filename(flags.FLAGS["config"]))
    named = name if name in CONFIG_NAMES else NsodeConfig(name=name, generation=config)
    builder = Builder(config=named, generation=config, data_dir=str(data_dir))
    complete = Path(builder.data_path).exists()
    statistics, written = write_dataset(builder, config, workers, progress)
    progress.close()
    if complete and not written:
        print(f"{builder.data_path} is complete and intact")
    elif complete:
        print(f"{builder.data_path}: {len(written)} damaged shards written again")
    print(f"{builder.data_path}: {statistics.counts['kept']:,} examples\n")
    _print_report(statistics, Path(builder.data_path) / "statistics.png")


def _print_report(statistics, picture: Path, what: str = "examples") -> None:
    statistics.plot(picture, what)
    print(f"{statistics.report(what)}\n\nAs a picture: {picture}")


def run() -> None:
    """Entry point: parses flags and calls `main`."""
    from nsode_jax.config import flags_parser

    try:
        app.run(main, flags_parser=flags_parser("nsode_jax.generate"))
    except MissingExtra as error:
        print(f"nsode_jax.generate: error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    run()
