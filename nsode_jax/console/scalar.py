"""The command for one quantity with dy/dt = f(y)."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from nsode_jax.console.arguments import InputError
from nsode_jax.console.output import Output, output_of, write
from nsode_jax.console.searching import print_notes, searched
from nsode_jax.console.terminal import columns, remark
from nsode_jax.dynamics.trajectory import MIN_POINTS, Trajectory
from nsode_jax.dynamics.vectors import count
from nsode_jax.expressions.notation import unknown_names
from nsode_jax.expressions.operators import VARIABLES

# JAX and the model are imported only once the input is known to be good, so that
# a mistyped file name is answered at once.
from nsode_jax.results.formatting import time_text
from nsode_jax.search.effort import SOURCES
from nsode_jax.selection.named_formula import NamedFormula, names_note
from nsode_jax.tables.table import Measurements, read_measurements

if TYPE_CHECKING:
    from nsode_jax.reporting.discovery import Discovery


def run(options: argparse.Namespace) -> int:
    """Reads the series, finds its law, prints it and writes what was asked for.

    Returns:
      Exit code: 0 if a law was found, 1 if none was.

    Raises:
      InputError, TrajectoryError: if the input cannot be used.
    """
    read = read_input(options)
    notes, names = read.notes, read.names
    output = output_of(options.file, options.out)
    announce(read)
    discovery = searched(partial(find, read, options))
    if discovery is None:
        return 1
    _print(discovery, names, notes, options.candidates)
    _write(discovery, output, *names, options)
    return 0


def read_input(options: argparse.Namespace) -> Measurements:
    """The series of the file.

    Raises:
      InputError, TrajectoryError: if the input cannot be used.
    """
    require_laws(options)
    read = read_series(options)
    require_in_y("--try", options.laws, read)
    said = [names_note(text, VARIABLES) for text in options.laws]
    return dataclasses.replace(read, notes=(*read.notes, *filter(None, said)))


def require_laws(options: argparse.Namespace) -> None:
    """Refuses laws of one's own that cannot be read, parts of them, and tables.

    Raises:
      InputError: naming the law or the table and what is wrong with it.
    """
    from nsode_jax.selection.belief import NO_LAWS
    from nsode_jax.selection.catalogue import Catalogue, CatalogueError

    if options.named_laws not in (None, NO_LAWS):
        try:
            Catalogue.read(options.named_laws)
        except CatalogueError as error:
            raise InputError(f"argument --named-laws: {error}") from None
    for text in options.laws:
        try:
            NamedFormula.of_user(text)
        except ValueError as error:
            raise InputError(f"argument --try: {text!r} is no law: {error}") from None
    if options.known is not None:
        from nsode_jax.observed.frame import Frame

        try:
            Frame.of(options.known)
        except ValueError as error:
            raise InputError(f"argument --known: {error}") from None


def require_in_y(option: str, formulas: Sequence[str], read: Measurements) -> None:
    """Refuses formulas with the names of the table's columns, which would be constants.

    Raises:
      InputError: saying what to write.
    """
    time, value = (name.split(" [")[0] for name in read.names)
    for text in formulas:
        names = unknown_names(text, VARIABLES)
        # Beside y it is a constant that happens to be called so.
        if value in names and not set(unknown_names(text, ())) & set(VARIABLES):
            raise InputError(f"argument {option}: write y for {value}, the values, in {text!r}")
        if time in names:
            raise InputError(
                f"argument {option}: {text!r} has the time {time} in it, which these laws do not "
                "depend on"
            )


def read_several(options: argparse.Namespace, asked: str, each: bool = False) -> Measurements:
    """The series of the file, which must be several.

    Args:
      options: of the command.
      asked: the option that takes several series.
      each: whether each is used by itself, so that some may be refused.

    Raises:
      InputError, TrajectoryError: if there is only one, or the file cannot be used.
    """
    read = read_series(options, each=each)
    if len(read.trajectories) + len(read.refused) < 2:
        raise InputError(
            f"{asked} takes several series: name the column that tells them apart (--series), or "
            "take each column of values for one (--replicates)"
        )
    return read


def read_series(
    options: argparse.Namespace, fewest: int = MIN_POINTS, each: bool = False
) -> Measurements:
    """The series of the file, with so many points in all, or if asked in each, at least."""
    start, end = getattr(options, "from"), options.to
    reading = ("time", "value", "series", "replicates", "decimal", "thousands", "dates", "sigma")
    chosen = {name: getattr(options, name) for name in reading}
    return read_measurements(options.file, **chosen, start=start, end=end, fewest=fewest, each=each)


def announce(read: Measurements) -> None:
    """Says what was read, and what of it was not as usual."""
    for note in read.notes:
        print(remark("note", note))
    print(what_was_read(read), flush=True)


def what_was_read(read: Measurements) -> str:
    """Points, names and times in a line."""
    trajectories, names = read.trajectories, read.names
    return count_and_span([series.t for series in trajectories], names[1], names[0])


def count_and_span(times: Sequence[Float[np.ndarray, " _"]], names: str, time_name: str) -> str:
    """Points, names and times of one series or of several."""
    points = count(sum(t.size for t in times), "point")
    span = f"from {time_text(min(t[0] for t in times))} to {time_text(max(t[-1] for t in times))}"
    several = f", {len(times)} series" if len(times) > 1 else ""
    return f"{points} of {names} over {time_name} {span}{several}"


def _print(
    discovery: Discovery, names: tuple[str, str], already_said: Sequence[str], rows: int
) -> None:
    from nsode_jax.reporting.certainty import certainty_text
    from nsode_jax.reporting.text import law_text, table_text, tried_text
    from nsode_jax.results.analysis import residual_remark

    print(f"\n{table_text(discovery, rows, columns())}\n")
    print(law_text(discovery, *names))
    if sure := certainty_text(discovery):
        print(remark("how sure", sure))
    if foretold := discovery.outlook():
        print(remark("beyond the data", str(foretold)))
    if advice := discovery.next_measurement():
        print(remark("to measure next", str(advice)))
    if tried := tried_text(discovery):
        print(remark("tried", tried))
    if (residuals := residual_remark(discovery)).warns:
        print(remark("note", residuals.text))
    print_notes(discovery.notes, already_said)


def find(
    read: Measurements, options: argparse.Namespace, progress: Callable[..., None]
) -> Discovery:
    """The law of series that were read; raises what `discover` does.

    The result tells too what was done to the file.
    """
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.pipeline import discover

    keep_compiled_programs()
    discovery = discover(
        *as_given(read.trajectories),
        sigma=errors_of(read.trajectories),
        limits=read.limits if any(limit.t.size for limit in read.limits) else (),
        progress=progress,
        **options_of(options),
    )
    notes = tuple(dict.fromkeys((*read.notes, *discovery.notes)))
    return dataclasses.replace(discovery, notes=notes)


def options_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `discover` is asked for, but for the data."""
    alike = ("weights", "effort", "beams", "samples", "sources", "operators", "max_symbols",
             "zero_at_zero", "known", "robust", "named_laws", "seed")  # fmt: skip
    return {"candidates": options.laws} | {name: getattr(options, name) for name in alike}


def as_given(trajectories: Sequence[Trajectory]) -> tuple:
    """Times and values as `discover` takes them: of one series, or lists of several."""
    pairs = [as_measured(series) for series in trajectories]
    return pairs[0] if len(pairs) == 1 else tuple(map(list, zip(*pairs, strict=True)))


def as_measured(
    series: Trajectory,
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
    """Times and values, the mean of n measurements n times, as which it counts.

    Known errors say by themselves how much a mean counts.
    """
    number = 1 if series.sigma is not None else np.round(series.weights**2).astype(int)
    return np.repeat(series.t, number), np.repeat(series.y, number)


def errors_of(trajectories: Sequence[Trajectory]) -> Any:
    """Known errors of measurement as `discover` takes them."""
    if len(trajectories) == 1:
        return trajectories[0].errors
    known = [series.errors for series in trajectories]
    return None if known[0] is None else known


def _write(
    discovery: Discovery,
    output: Output,
    time_name: str,
    value_name: str,
    options: argparse.Namespace,
) -> None:
    """Draws the picture or writes the report, and says where."""
    from nsode_jax.reporting.plot import plot
    from nsode_jax.reporting.report import write_report

    source = Path(options.file).name
    write(
        output,
        lambda path: plot(discovery, path, time_name, value_name),
        lambda path: write_report(discovery, path, time_name, value_name, source, chosen(options)),
    )


def chosen(options: argparse.Namespace) -> dict[str, object]:
    """The options that make the result what it is."""
    names = ("effort", "beams", "samples", "weights", "max_symbols", "seed")
    given = {name: getattr(options, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    if options.sources != SOURCES:
        given["sources"] = ", ".join(options.sources)
    if options.operators is not None:
        given["operators"] = ", ".join(options.operators) or "none"
    for name in ("robust", "zero_at_zero", "known", "sigma", "named_laws"):
        if getattr(options, name) not in (None, False):
            given[name] = getattr(options, name)
    if options.laws:
        given["tried"] = "; ".join(options.laws)
    return given
