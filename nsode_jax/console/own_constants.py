"""The command for many series whose law has constants of each series' own, and for a known form."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nsode_jax.console.arguments import PROGRAM, InputError, of_systems, refuse
from nsode_jax.console.output import output_of, write
from nsode_jax.console.scalar import announce, as_given, errors_of, read_series, read_several
from nsode_jax.console.terminal import Progress, remark
from nsode_jax.search.effort import SOURCES
from nsode_jax.tables.table import Measurements

_FEWEST = 3
"""Points of a series whose form is known: of how many constants is seen when it is read."""


def run(options: argparse.Namespace) -> int:
    """As `scalar.run`."""
    _refuse(options)
    read = _read(options)
    output = output_of(options.file, options.out)
    progress = Progress(sys.stderr)
    progress("loading")
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.own_constants import discover_own_constants
    from nsode_jax.discovery.pipeline import DiscoveryError
    from nsode_jax.modeling.pretrained import WeightsError
    from nsode_jax.reporting.report_own_constants import write_report

    keep_compiled_programs()
    try:
        found = discover_own_constants(
            *as_given(read.trajectories),
            labels=read.labels,
            law=options.form,
            shared=options.shared,
            bounds=options.bounds,
            sigma=errors_of(read.trajectories),
            effort=options.effort,
            sources=options.sources,
            weights=options.weights,
            operators=options.operators,
            max_symbols=options.max_symbols,
            zero_at_zero=options.zero_at_zero,
            named_laws=options.named_laws,
            seed=options.seed,
            progress=progress,
        )
    except DiscoveryError as error:
        progress.end_line()
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    except (WeightsError, ValueError) as error:
        raise InputError(" ".join(str(error).split())) from error
    finally:
        progress.end_line()
    print(f"\n{found.text(options.candidates)}")
    for note in found.notes:
        if note not in read.notes:
            print(remark("note", note))
    time_name, value_name = read.names
    write(
        output,
        lambda path: found.plot(path, time_name, value_name),
        lambda path: write_report(
            found, path, time_name, value_name, Path(options.file).name, read.notes
        ),
    )
    return 0


def _refuse(options: argparse.Namespace) -> None:
    refuse(
        {
            "--try": bool(options.laws),
            "--robust": options.robust,
            "--known": options.known is not None,
            "--beams": options.beams is not None,
            "--samples": options.samples is not None,
            **of_systems(options),
        },
        "is for one law with common constants",
    )
    if options.form is not None:
        refuse(
            {
                "--effort": options.effort != "default",
                "--sources": options.sources != SOURCES,
                "--weights": options.weights != "small",
                "--operators": options.operators is not None,
                "--max-symbols": options.max_symbols is not None,
                "--zero-at-zero": options.zero_at_zero,
                "--named-laws": options.named_laws is not None,
            },
            "is of a search, and with --form nothing is searched",
        )


def _read(options: argparse.Namespace) -> Measurements:
    """The series of the file, several but for a form that is known."""
    if options.constants == "own":
        read = read_several(options, "--constants own")
    else:
        read = read_series(options, _FEWEST)
        if len(read.trajectories) > 1:
            raise InputError(
                f"--form for {len(read.trajectories)} series takes --constants own, with --shared "
                "for constants that are the same in all"
            )
        announce(read)
    read.require_no_limits()
    return read
