"""The command for many series, each with a law of its own."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsode_jax.console import scalar
from nsode_jax.console.arguments import InputError, of_systems, refuse, require_one_quantity
from nsode_jax.console.scalar import (
    announce,
    as_measured,
    options_of,
    read_several,
    require_in_y,
    require_laws,
)
from nsode_jax.console.terminal import Progress, remark
from nsode_jax.system.files import in_words, require_folder
from nsode_jax.tables.table import Measurements

if TYPE_CHECKING:
    from nsode_jax.reporting.discovery import Discovery

_SHOWN = 5

chosen = scalar.chosen


def run(options: argparse.Namespace) -> int:
    """As `scalar.run`; the exit code is 0 if a law was found for some series."""
    read = read_input(options)
    is_file = options.out and Path(options.out).suffix and not Path(options.out).is_dir()
    if options.out is None or is_file:
        raise InputError("--each takes --out, a folder for the results")
    try:
        require_folder(options.out, "--out")
    except OSError as error:
        raise InputError(str(error)) from None
    announce(read)
    progress = Progress(sys.stderr)
    progress("loading")
    from nsode_jax.discovery.each import TABLE, discover_each

    try:
        table = discover_each(
            _series(read), options.out, processes=options.processes, progress=progress,
            **options_of(options),
        )  # fmt: skip
    except (ValueError, OSError) as error:
        raise InputError(in_words(error)) from error
    finally:
        progress.end_line()
    found = table[table["error"] == ""]
    print(f"\nlaws for {len(found)} of {len(table)} series")
    kinds = Counter(name or "(no name)" for name in found["name"])
    for kind, number in kinds.most_common(options.candidates):
        print(f"{number:6d}  {kind}")
    failed = [pair for pair in zip(table.index, table["error"].tolist()) if pair[1]]
    for label, error in failed[:_SHOWN]:
        print(remark("note", f"{label}: {error}"))
    print(f"table: {Path(options.out) / TABLE}")
    return 0 if len(found) else 1


def read_input(options: argparse.Namespace) -> Measurements:
    """As `scalar.read_input`: several series."""
    refuse(
        {
            "--constants own": options.constants == "own",
            "--form": options.form is not None,
            **of_systems(options),
        },
        "does not go with --each",
    )
    require_one_quantity(options, "--each")
    require_laws(options)
    read = read_several(options, "--each")
    require_in_y("--try", options.laws, read)
    return read


def find(
    read: Measurements, options: argparse.Namespace, progress: Callable[..., None]
) -> dict[str, Discovery | str]:
    """As `scalar.find`, of each series, by its label; of some, in a line, what went wrong."""
    from nsode_jax.discovery.each import find_each

    return find_each(
        _series(read), processes=options.processes, progress=progress, **options_of(options)
    )


def _series(read: Measurements) -> dict[str, tuple[Any, ...]]:
    """As `discover_each` takes them."""
    return {
        label: (*as_measured(one), one.errors, limits if limits.t.size else None)
        for label, one, limits in zip(read.labels, read.trajectories, read.limits, strict=True)
    }
