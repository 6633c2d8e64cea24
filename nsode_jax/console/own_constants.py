"""The command for many series whose law has constants of each series' own, and for a known form."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nsode_jax.console import scalar
from nsode_jax.console.arguments import (
    InputError,
    of_systems,
    refuse,
    require_one_quantity,
)
from nsode_jax.console.output import output_of, write
from nsode_jax.console.scalar import (
    announce,
    as_given,
    errors_of,
    read_series,
    read_several,
    require_in_y,
)
from nsode_jax.console.searching import print_notes, searched
from nsode_jax.console.terminal import remark
from nsode_jax.dynamics.trajectory import MIN_POINTS, MORE_THAN_CONSTANTS
from nsode_jax.search.effort import SOURCES
from nsode_jax.tables.table import Measurements

if TYPE_CHECKING:
    from nsode_jax.reporting.form_discovery import FormDiscovery


def run(options: argparse.Namespace) -> int:
    """As `scalar.run`."""
    read = read_input(options)
    output = output_of(options.file, options.out)
    announce(read)
    found = searched(partial(find, read, options))
    if found is None:
        return 1
    from nsode_jax.reporting.certainty import certainty_text
    from nsode_jax.reporting.report_own_constants import write_report

    print(f"\n{found.text(options.candidates)}")
    if found.tried and (sure := certainty_text(found)):  # Of a given form nothing was compared.
        print(remark("how sure", sure))
    print_notes(found.notes, read.notes)
    source = Path(options.file).name
    write(
        output,
        lambda path: found.plot(path, *read.names),
        lambda path: write_report(found, path, *read.names, source, chosen(options)),
    )
    return 0


def read_input(options: argparse.Namespace) -> Measurements:
    """As `scalar.read_input`: several series, but for a form that is known."""
    constants = _refuse(options)
    if options.constants == "own":
        read = read_several(options, "--constants own")
    else:
        read = read_series(options, min(MIN_POINTS, len(constants) + MORE_THAN_CONSTANTS))
        if len(read.trajectories) > 1:
            raise InputError(
                f"--form for {len(read.trajectories)} series takes --constants own, with --shared "
                "for constants that are the same in all"
            )
    read.require_no_limits()
    if options.form is not None:
        require_in_y("--form", [options.form], read)
    return read


def find(
    read: Measurements, options: argparse.Namespace, progress: Callable[..., None]
) -> FormDiscovery:
    """As `scalar.find`, of `discover_own_constants`."""
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.own_constants import discover_own_constants

    keep_compiled_programs()
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
    notes = tuple(dict.fromkeys((*read.notes, *found.notes)))
    return dataclasses.replace(found, notes=notes)


def chosen(options: argparse.Namespace) -> dict[str, object]:
    """The options that make the result what it is."""
    given: dict[str, object] = {"constants": options.constants}
    given |= scalar.chosen(options) if options.form is None else _chosen_with_form(options)
    return given | ({"shared": ", ".join(options.shared)} if options.shared else {})


def _chosen_with_form(options: argparse.Namespace) -> dict[str, object]:
    given: dict[str, object] = {"form": options.form}
    if options.bounds:
        given["bounds"] = ", ".join(_as_bound(*bound) for bound in options.bounds.items())
    return given | ({} if options.sigma is None else {"sigma": options.sigma})


def _as_bound(name: str, ends: tuple[float | None, float | None]) -> str:
    """As it was written: 0 < r < 5."""
    low, high = ends
    return f"{'' if low is None else f'{low:g} < '}{name}{'' if high is None else f' < {high:g}'}"


def _constants_of_form(options: argparse.Namespace) -> tuple[str, ...]:
    """The constants of the form, none where there is no form.

    Refuses one that cannot be read, and bounds and shared constants that it has not.
    """
    if options.form is None:
        return ()
    from nsode_jax.fitting.bounds import Bounds
    from nsode_jax.selection.named_formula import NamedFormula

    try:
        names = NamedFormula.of_user(options.form).names
    except ValueError as error:
        raise InputError(f"argument --form: {error}") from None
    if not names:
        raise InputError(
            f"argument --form: name the constants, such as r*y*(1 - y/K), in {options.form!r}"
        )
    try:
        Bounds.of(options.bounds, names)
    except ValueError as error:
        raise InputError(f"argument --bounds: {error}") from None
    if unknown := [name for name in options.shared if name not in names]:
        raise InputError(
            f"argument --shared: the form has the constants {', '.join(names)}; there is no "
            f"{', '.join(unknown)}"
        )
    return names


def _refuse(options: argparse.Namespace) -> tuple[str, ...]:
    """Refuses what does not go together; the constants of the form, if there is one."""
    require_one_quantity(options, "--constants own" if options.form is None else "--form")
    constants = _constants_of_form(options)
    refuse(
        {
            "--try": bool(options.laws),
            "--robust": options.robust,
            "--known": options.known is not None,
            "--beams": options.beams is not None,
            "--samples": options.samples is not None,
            **of_systems(options),
        },
        "is for one law with common constants"
        if options.form is None
        else "does not go with --form",
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
    return constants
