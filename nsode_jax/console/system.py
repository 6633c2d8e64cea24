"""The command for several quantities, laws of time, inputs, and second order."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nsode_jax.console.arguments import PROGRAM, InputError
from nsode_jax.console.output import Output, output_of, write
from nsode_jax.console.terminal import Progress, remark
from nsode_jax.dynamics.trajectory import count
from nsode_jax.search.effort import SOURCES
from nsode_jax.tables.quantities import Quantities, read_quantities

if TYPE_CHECKING:
    from nsode_jax.reporting.system_discovery import SystemDiscovery


def run(options: argparse.Namespace) -> int:
    """As `scalar.run`."""
    for name, given in (
        ("--replicates", options.replicates),
        ("--robust", options.robust),
        ("--sigma", options.sigma is not None),
        ("--try", options.laws),
        ("--operators", options.operators is not None),
        ("--max-symbols", options.max_symbols is not None),
        ("--sources", options.sources != SOURCES),
        ("--weights", options.weights != "small"),
        ("--beams", options.beams is not None),
        ("--samples", options.samples is not None),
        ("--seed", options.seed != 0),
    ):
        if given:
            raise InputError(f"{name} is for one quantity with dy/dt = f(y) only; leave it out")
    if options.value is None:
        raise InputError("name the columns that have laws: --value prey,predator")
    quantities = [name.strip() for name in options.value.split(",")]
    inputs = [name.strip() for name in (options.input or "").split(",") if name.strip()]
    read = read_quantities(
        options.file,
        [*quantities, *inputs],
        options.time,
        series=options.series,
        start=getattr(options, "from"),
        end=options.to,
        decimal=options.decimal,
        thousands=options.thousands,
    )
    output = output_of(options.file, options.out)
    for note in read.notes:
        print(remark("note", note))
    points = count(sum(t.size for t in read.times), "point")
    print(f"{points} of {', '.join(quantities)} over {read.time_name}", flush=True)
    progress = Progress(sys.stderr)
    progress("loading")
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.pipeline import DiscoveryError
    from nsode_jax.discovery.systems import discover_system
    from nsode_jax.reporting.system_analysis import residual_remarks
    from nsode_jax.reporting.system_text import system_text, table_text

    keep_compiled_programs()
    number = len(quantities)
    try:
        found = discover_system(
            list(read.times),
            [values[:, :number] for values in read.values],
            inputs=[values[:, number:] for values in read.values] if inputs else None,
            explicit_time=options.explicit_time,
            order=options.order,
            names=quantities,
            input_names=inputs or None,
            effort=options.effort,
            progress=progress,
        )
    except DiscoveryError as error:
        progress.end_line()
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        raise InputError(str(error)) from error
    finally:
        progress.end_line()
    print(f"\n{table_text(found, options.candidates)}\n\n{system_text(found)}")
    for name, residuals in residual_remarks(found):
        if residuals.warns:
            print(remark("note", f"{name}: {residuals.text}"))
    for note in found.notes:
        print(remark("note", note))
    _write(found, output, read, options)
    return 0


def _write(
    found: SystemDiscovery, output: Output, read: Quantities, options: argparse.Namespace
) -> None:
    """Draws the picture or writes the report, and says where."""
    from nsode_jax.reporting.system_plot import plot
    from nsode_jax.reporting.system_report import write_report

    # The report is to tell too what was done to the file.
    notes = tuple(dict.fromkeys((*read.notes, *found.notes)))
    found = dataclasses.replace(found, notes=notes)
    source, chosen = Path(options.file).name, _chosen(options)
    write(
        output,
        lambda path: plot(found, path, read.time_name),
        lambda path: write_report(found, path, read.time_name, source, chosen),
    )


def _chosen(options: argparse.Namespace) -> dict[str, object]:
    """The options that make the result what it is."""
    chosen: dict[str, object] = {"effort": options.effort}
    if options.order == 2:
        chosen["order"] = 2
    if options.explicit_time:
        chosen["explicit time"] = True
    return chosen
