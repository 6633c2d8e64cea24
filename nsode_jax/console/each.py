"""The command for many series, each with a law of its own."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

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
    import pandas as pd

    from nsode_jax.discovery.each_folder import Given
    from nsode_jax.reporting.discovery import Discovery

_SHOWN = 5

_OPTIONS = {"candidates": "try"}
"""What options of `discover` are called here, where it is another name."""

_NUMBERS, _END = re.compile(r"\d[\d.]*(?:e[-+]?\d+)?(?<!\.)"), re.compile(r"[:;] |\. |\.$")
"""What differs from one note to the next of its kind, and where its first part ends."""

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
    from nsode_jax.discovery.each import discover_each
    from nsode_jax.discovery.each_folder import TABLE, OtherOptions

    try:
        table = discover_each(
            _series(read), options.out, processes=options.processes, progress=progress,
            **options_of(options),
        )  # fmt: skip
    except OtherOptions as error:
        names = [_OPTIONS.get(name, name.replace("_", "-")) for name in error.names]
        raise InputError(str(OtherOptions(error.folder, [f"--{name}" for name in names]))) from None
    except (ValueError, OSError) as error:
        raise InputError(in_words(error)) from error
    finally:
        progress.end_line()
    print("\n".join(["", *_summary(table, options.candidates)]))
    print(f"table: {Path(options.out) / TABLE}")
    return 0 if "" in table["error"].tolist() else 1


def _summary(table: pd.DataFrame, rows: int) -> list[str]:
    """The laws that were found, of how many series each; then what is to be said of the others.

    Args:
      table: as `discover_each` gives it.
      rows: most kinds of laws.
    """
    from nsode_jax.reporting.tables import BETWEEN_NOTES

    series = {str(one["series"]): one for one in table.reset_index().to_dict("records")}
    failed = {label: one["error"] for label, one in series.items() if one["error"]}
    done = {label: one for label, one in series.items() if label not in failed}
    believed = [one for one in done.values() if one["believable"]]
    doubtful = [label for label, one in done.items() if not one["believable"]]
    kinds = Counter(one["name"] or "(no name)" for one in believed)
    lines = [
        f"laws for {len(believed)} of {len(table)} series",
        *_counted(kinds.most_common(rows)),
    ]
    if doubtful:
        shown = ", ".join(doubtful[:_SHOWN]) + (", ..." if len(doubtful) > _SHOWN else "")
        lines.append(
            remark("not to be believed", f"the best laws of {len(doubtful)} series: {shown}")
        )
    told = [note for one in done.values() for note in one["notes"].split(BETWEEN_NOTES) if note]
    if notes := Counter(map(_kind, told)).most_common(_SHOWN):
        lines += ["series with notes (column notes of the table):", *_counted(notes)]
    lines += [remark("note", f"{label}: {failed[label]}") for label in list(failed)[:_SHOWN]]
    if (more := len(failed) - _SHOWN) > 0:
        lines.append(remark("note", f"{more} more failed (column error of the table)"))
    return lines


def _counted(pairs: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{number:6d}  {what}" for what, number in pairs]


def _kind(note: str) -> str:
    """The beginning of a note, with # for its numbers."""
    return _NUMBERS.sub("#", _END.split(note, maxsplit=1)[0])


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
    read = read_several(options, "--each", each=True)
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


def _series(read: Measurements) -> dict[str, Given]:
    """As `discover_each` takes them, in the order of the file."""
    series: list[tuple[str, Given]] = [
        (label, (*as_measured(one), one.errors, limits if limits.t.size else None))
        for label, one, limits in zip(read.labels, read.trajectories, read.limits, strict=True)
    ]
    for place, label, reason in read.refused:
        series.insert(place, (label, reason))
    return dict(series)
