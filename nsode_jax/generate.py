"""Builds a training data set: python -m nsode_jax.generate --config configs/small.py."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path


class _Progress:
    """One line per stage that is rewritten with its share, rate and time left."""

    def __init__(self):
        self._stage, self._start, self._last = "", 0.0, 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self._stage:
            if self._stage:
                print(file=sys.stderr)
            self._stage, self._start, self._last = stage, now, 0.0
        interactive = sys.stderr.isatty()
        if now - self._last < (0.5 if interactive else 30.0) and done < total:
            return
        self._last = now
        elapsed = max(now - self._start, 1e-9)
        left = elapsed / max(done, 1) * (total - done)
        line = f"{stage}: {done}/{total} ({done / total:.0%}), {_duration(left)} left"
        print(
            f"\r{line:<70}" if interactive else line,
            end="" if interactive else "\n",
            file=sys.stderr,
            flush=True,
        )


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"


def main(argv: Sequence[str] | None = None) -> int:
    """Generates the data set of a config file. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="nsode_jax.generate", description=__doc__)
    parser.add_argument("--config", required=True, help="a file such as configs/small.py")
    parser.add_argument(
        "--data_dir",
        default=os.path.expanduser("~/nsode_data"),
        help="where the data set goes (default: %(default)s)",
    )
    parser.add_argument(
        "--processes", type=int, default=None, help="worker processes (default: all cores)"
    )
    arguments = parser.parse_args(argv)
    try:
        name = _config_name(arguments.config)
        os.makedirs(arguments.data_dir, exist_ok=True)
        if not os.access(arguments.data_dir, os.W_OK):
            raise PermissionError(f"cannot write to {arguments.data_dir}")
        if arguments.processes is not None and arguments.processes < 0:
            raise ValueError("--processes must not be negative")
    except (OSError, ValueError) as error:
        print(f"nsode_jax.generate: error: {error}", file=sys.stderr)
        return 2

    # Imported late: worker processes import this module too, and need none of it.
    import tensorflow_datasets as tfds

    from data_builders.nsode.nsode_dataset_builder import Builder

    tfds.disable_progress_bar()
    start = time.monotonic()
    builder = Builder(
        config=name,
        data_dir=arguments.data_dir,
        processes=arguments.processes,
        progress=_Progress(),
    )
    if Path(builder.data_path).exists():
        print(f"{builder.data_path} is there already; delete it to build it anew")
        return 0
    builder.download_and_prepare()
    print(file=sys.stderr)
    print(_report(builder, time.monotonic() - start))
    return 0


def _config_name(path: str) -> str:
    from data_builders.nsode.nsode_dataset_builder import CONFIG_NAMES

    name = Path(path).stem
    if not Path(path).is_file():
        raise FileNotFoundError(f"no config file {path}")
    if name not in CONFIG_NAMES:
        raise ValueError(
            f"{path} is not a config of the builder nsode; known: {', '.join(CONFIG_NAMES)}"
        )
    return name


def _report(builder, seconds: float) -> str:
    lines = [f"{builder.data_path}, {_duration(seconds)}"]
    for split, info in builder.info.splits.items():
        lines.append(f"  {split:<28}{info.num_examples:>12,} examples")
    for reason, count in builder.generator.counts.most_common():
        lines.append(f"  {reason:<28}{count:>12,}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
