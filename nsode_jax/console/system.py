"""The command for several quantities, laws of time, inputs, and second order."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nsode_jax.console.arguments import InputError, refuse
from nsode_jax.console.output import Output, output_of, write
from nsode_jax.console.scalar import count_and_span
from nsode_jax.console.searching import print_notes, searched
from nsode_jax.console.terminal import remark
from nsode_jax.dynamics.system import MOST_OBSERVED
from nsode_jax.observed.runs import read_runs
from nsode_jax.search.effort import SOURCES
from nsode_jax.selection.named_formula import names_note
from nsode_jax.tables.names import listed
from nsode_jax.tables.quantities import Quantities, read_quantities

if TYPE_CHECKING:
    from nsode_jax.reporting.system_discovery import SystemDiscovery


def run(options: argparse.Namespace) -> int:
    """As `scalar.run`."""
    read = read_input(options)
    output = output_of(options.file, options.out)
    for note in read.notes:
        print(remark("note", note))
    print(what_was_read(read), flush=True)
    found = searched(partial(find, read, options))
    if found is None:
        return 1
    _print(found, read.notes, options.candidates)
    _write(found, output, read.time_name, options)
    return 0


def read_input(options: argparse.Namespace) -> Quantities:
    """As `scalar.read_input`."""
    _refuse(options)
    read = read_quantities(
        options.file,
        listed(options.value or "") or None,
        options.time,
        inputs=listed(options.input or ""),
        series=options.series,
        start=getattr(options, "from"),
        end=options.to,
        decimal=options.decimal,
        thousands=options.thousands,
        dates=options.dates,
    )
    return dataclasses.replace(read, notes=(*read.notes, *_on_use(read, options)))


def _on_use(read: Quantities, options: argparse.Namespace) -> list[str]:
    """Notes on which rows the search uses, and on names in laws of one's own.

    Refuses what the search would refuse: too few data, laws of one's own that are none.
    """
    data, notes = read_runs(
        list(read.times),
        list(read.values),
        list(read.inputs) if read.input_names else None,
        names=read.names,
        input_names=read.input_names or None,
        explicit_time=options.explicit_time,
        order=options.order,
    )
    if options.laws:
        from nsode_jax.search.own_systems import OwnSystem  # It imports JAX.
    for laws in options.laws:
        try:
            OwnSystem.parse(laws, data.system)
        except ValueError as error:
            raise InputError(f"argument --try: {error}") from None
        if note := names_note(laws, data.system.variables):
            notes.append(note)
    return notes


def _refuse(options: argparse.Namespace) -> None:
    refuse(
        {
            "--replicates": options.replicates,
            "--robust": options.robust,
            "--sigma": options.sigma is not None,
            "--known": options.known is not None,
            "--named-laws": options.named_laws is not None,
            "--zero-at-zero": options.zero_at_zero,
            "--sources": options.sources != SOURCES,
            "--weights": options.weights != "small",
            "--beams": options.beams is not None,
            "--samples": options.samples is not None,
            "--seed": options.seed != 0,
        },
        "is for one quantity with dy/dt = f(y) only",
    )
    if (number := len(listed(options.value or ""))) > MOST_OBSERVED:
        raise InputError(
            f"--value names {number} quantities, and a system has {MOST_OBSERVED} at most; if each "
            "is a series of one quantity, add --replicates"
        )


def what_was_read(read: Quantities) -> str:
    """Points, names and times in a line."""
    points = count_and_span(read.complete, ", ".join(read.names), read.time_name)
    inputs = f", with the input{'s' * (len(read.input_names) > 1)} " if read.input_names else ""
    listed = inputs + ", ".join(read.input_names)
    return points + listed


def find(
    read: Quantities, options: argparse.Namespace, progress: Callable[..., None]
) -> SystemDiscovery:
    """As `scalar.find`, of `discover_system`."""
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.systems import discover_system

    keep_compiled_programs()
    found = discover_system(
        list(read.times),
        list(read.values),
        inputs=list(read.inputs) if read.input_names else None,
        names=read.names,
        input_names=read.input_names or None,
        explicit_time=options.explicit_time,
        order=options.order,
        candidates=options.laws,
        operators=options.operators,
        max_symbols=options.max_symbols,
        effort=options.effort,
        progress=progress,
    )
    notes = tuple(dict.fromkeys((*read.notes, *found.notes)))
    return dataclasses.replace(found, notes=notes)


def _print(found: SystemDiscovery, already_said: Sequence[str], rows: int) -> None:
    from nsode_jax.reporting.certainty import certainty_text
    from nsode_jax.reporting.system_text import system_text, table_text
    from nsode_jax.results.system_analysis import residual_remarks

    print(f"\n{table_text(found, rows)}\n\n{system_text(found)}")
    if sure := certainty_text(found):
        print(remark("how sure", sure))
    for name, residuals in residual_remarks(found):
        if residuals.warns:
            print(remark("note", f"{name}: {residuals.text}"))
    print_notes(found.notes, already_said)


def _write(
    found: SystemDiscovery, output: Output, time_name: str, options: argparse.Namespace
) -> None:
    """Draws the picture or writes the report, and says where."""
    from nsode_jax.reporting.system_plot import plot
    from nsode_jax.reporting.system_report import write_report

    source = Path(options.file).name
    write(
        output,
        lambda path: plot(found, path, time_name),
        lambda path: write_report(found, path, time_name, source, chosen(options)),
    )


def chosen(options: argparse.Namespace) -> dict[str, object]:
    """The options that make the result what it is."""
    given: dict[str, object] = {"effort": options.effort}
    if options.order == 2:
        given["order"] = 2
    if options.explicit_time:
        given["explicit time"] = True
    if options.operators is not None:
        given["operators"] = ", ".join(options.operators) or "none"
    if options.max_symbols is not None:
        given["max_symbols"] = options.max_symbols
    if options.laws:
        given["tried"] = " and ".join(options.laws)
    return given
