"""The command for several quantities, laws of time, inputs, and second order."""

from __future__ import annotations

import argparse
import sys

from nsode_jax.console.arguments import PROGRAM, InputError
from nsode_jax.console.terminal import Progress, remark
from nsode_jax.dynamics.trajectory import count
from nsode_jax.search.effort import SOURCES
from nsode_jax.tables.quantities import read_quantities


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
        ("--out", options.out is not None),
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
    for note in read.notes:
        print(remark("note", note))
    points = count(sum(t.size for t in read.times), "point")
    print(f"{points} of {', '.join(quantities)} over {read.time_name}", flush=True)
    progress = Progress(sys.stderr)
    progress("loading")
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.pipeline import DiscoveryError
    from nsode_jax.discovery.systems import discover_system
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
    for note in found.notes:
        print(remark("note", note))
    return 0
