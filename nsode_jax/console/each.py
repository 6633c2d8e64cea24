"""The command for many series, each with a law of its own."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from nsode_jax.console.arguments import InputError
from nsode_jax.console.scalar import options_of, read_series, what_was_read
from nsode_jax.console.terminal import Progress, remark

_SHOWN = 5


def run(options: argparse.Namespace) -> int:
    """As `scalar.run`; the exit code is 0 if a law was found for some series."""
    if options.out is None or Path(options.out).suffix:
        raise InputError("--each takes --out, a folder for the results")
    for name, given in (("--sigma", options.sigma), ("--constants", options.constants == "own")):
        if given:
            raise InputError(f"{name} does not go with --each; leave it out")
    read = read_series(options)
    if len(read.trajectories) < 2:
        raise InputError(
            "--each takes several series: name the column that tells them apart (--series), or "
            "take each column of values for one (--replicates)"
        )
    for note in read.notes:
        print(remark("note", note))
    print(what_was_read(read), flush=True)
    progress = Progress(sys.stderr)
    progress("loading")
    from nsode_jax.discovery.each import TABLE, EachError, discover_each

    series = {
        label: (one.t, one.y) for label, one in zip(read.labels, read.trajectories, strict=True)
    }
    try:
        table = discover_each(
            series, options.out, processes=options.processes, progress=progress,
            **options_of(options),
        )  # fmt: skip
    except (EachError, OSError) as error:
        raise InputError(str(error)) from error
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
