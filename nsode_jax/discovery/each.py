"""A law for each of many series: on all cores or on a cluster, with progress and resume."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nsode_jax.discovery.each_folder import (
    TABLE,
    EachError,
    Given,
    is_done,
    loaded,
    prepare,
    result_file,
)
from nsode_jax.dynamics.vectors import TrajectoryError, times_alike
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.reporting.tables import laws_table
from nsode_jax.search.effort import SOURCES
from nsode_jax.system.files import in_words
from nsode_jax.system.settings import listed
from nsode_jax.system.workers import DIED, Workers, usable_cores

if TYPE_CHECKING:
    import pandas as pd

    from nsode_jax.reporting.discovery import Discovery

_STAGE = "finding a law for each series"

_Task = tuple[Any, ...]
"""Label, times, values, and what else is given of the series."""

_Outcome = tuple[str, str]
"""Label, and what went wrong; empty if nothing did."""

Done = TypeVar("Done")


def discover_each(
    series: Mapping[str, Given],
    folder: str | Path,
    *,
    processes: int | None = None,
    beam_options: Sequence[str] | None = None,
    progress: Progress = silent,
    **options: Any,
) -> pd.DataFrame:
    """Finds a law of its own for each series; what is in the folder already is not done again.

    What has changed of a series is done anew, and with other options the folder is refused.

    Args:
      series: by label times and values, shapes [time]; then, if they are known, the errors of
        measurement (`sigma` of `discover`) and values of which only a limit is known (`Limits`),
        None for none. In place of one that cannot be used it may be said why, in a line.
      folder: where results go: a file `LABEL.json` for each series as it is done, which
        `Discovery.load` reads, and `laws.csv`.
      processes: that work side by side; by default as many as there are cores for this one, 1
        for none beside it. A series whose process dies is told of as one that failed.
      beam_options: of an Apache Beam pipeline (extra `beam`) that does the work instead, such
        as `["--runner=DirectRunner"]`; the folder must be one that all workers can write to.
      progress: told the share of series that are done, and first what is in the folder already:
        series that are done, those that have changed, and others, which stay.
      options: of `discover`, the same for all; `sigma` may be a number.

    Returns:
      A row per series, in their order: the best law, its name and customary parameters, R2,
      residual, probability, notes, or what went wrong (`reporting.tables.laws_table`). The same is
      in `laws.csv`.

    Raises:
      EachError: if the folder holds results of other options (`OtherOptions`), a label is empty,
        or some times are dates and others numbers.
      WeightsError: if those of the network cannot be read.
      ImportError: if Beam is asked for and not installed.
    """
    folder = Path(folder)
    _require_labels(series)
    usable, notes = _usable(series)
    _require_weights(options)
    known = prepare(folder, series, usable, options)
    todo = [(label, *values) for label, values in usable.items() if not is_done(folder, label)]
    if said := known.in_words(len(series), len(usable) - len(todo)):
        progress(said)
    work: functools.partial[_Outcome] = functools.partial(
        _discover_one, folder=folder, options=options, notes=notes
    )
    errors = _refused(series)
    outcomes = (
        _on_beam(work, todo, beam_options)
        if beam_options is not None
        else _on_cores(work, todo, processes)
    )
    progress(_STAGE, 1 - len(todo) / len(series))
    for number, (label, error) in enumerate(outcomes, start=1):
        if error:
            errors[label] = error
        progress(_STAGE, 1 - (len(todo) - number) / len(series))
    table = laws_table(
        (label, errors[label] if label in errors else loaded(folder, label)) for label in series
    )
    table.to_csv(folder / TABLE)
    return table


def find_each(
    series: Mapping[str, Given],
    *,
    processes: int | None = None,
    progress: Progress = silent,
    **options: Any,
) -> dict[str, Discovery | str]:
    """The same in memory, with nothing written.

    Args:
      series, processes, progress, options: as of `discover_each`.

    Returns:
      By label, in the order of the series, the discovery, or in a line what went wrong.

    Raises:
      EachError: if there are no series, a label is empty, or some times are dates and others
        numbers.
      WeightsError: if those of the network cannot be read.
    """
    _require_labels(series)
    usable, notes = _usable(series)
    _require_weights(options)
    tasks = [(label, *values) for label, values in usable.items()]
    work = functools.partial(_found, options=options, notes=notes)
    found: dict[str, Discovery | str] = {**_refused(series)}
    progress(_STAGE)
    for label, one in _on_cores(work, tasks, processes):
        found[label] = one
        progress(_STAGE, len(found) / len(series))
    return {label: found[label] for label in series}


def _refused(series: Mapping[str, Given]) -> dict[str, str]:
    """Why some cannot be used."""
    return {label: given for label, given in series.items() if isinstance(given, str)}


def _usable(
    series: Mapping[str, Given],
) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
    """The others, dates and durations as numbers of one unit, and a note if there were any.

    Rates of all series stand in one table.

    Raises:
      EachError: if some are dates and others numbers or durations.
    """
    usable = {label: given for label, given in series.items() if not isinstance(given, str)}
    try:
        times, notes = times_alike([t for t, *_ in usable.values()])
    except TrajectoryError as error:
        raise EachError(str(error)) from None
    pairs = zip(usable.items(), times, strict=True)
    return {label: (t, *given[1:]) for (label, given), t in pairs}, notes


def _require_labels(series: Mapping[str, Given]) -> None:
    if not series:
        raise EachError("there are no series")
    if not all(label.strip() for label in series):
        raise EachError("every series needs a label")


def _require_weights(options: Mapping[str, Any]) -> None:
    """Refuses weights that cannot be read once, and not for each series."""
    if "network" in listed(options.get("sources", SOURCES)):
        from nsode_jax.modeling.pretrained import load_pretrained

        load_pretrained(options.get("weights", "small"))


# --- the work --------------------------------------------------------------------


def _discover_one(
    task: _Task, folder: Path, options: Mapping[str, Any], notes: tuple[str, ...]
) -> _Outcome:
    """Finds the law of one series and saves it."""
    label, found = _found(task, options, notes)
    if isinstance(found, str):
        return label, found
    try:
        found.save(result_file(folder, label))
    except Exception as error:
        return label, _what_failed(error)
    return label, ""


def _found(
    task: _Task, options: Mapping[str, Any], notes: tuple[str, ...]
) -> tuple[str, Discovery | str]:
    """Label and law of one series, or what went wrong."""
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.pipeline import discover

    label, t, y, *more = task
    sigma, limits = (*more, None, None)[:2]
    known = {} if sigma is None else {"sigma": sigma}
    known |= {} if limits is None else {"limits": (limits,)}
    keep_compiled_programs()
    try:
        found = discover(t, y, **{**options, **known})
        return label, dataclasses.replace(found, notes=(*notes, *found.notes))
    except Exception as error:  # The others go on.
        return label, _what_failed(error)


def _what_failed(error: Exception) -> str:
    """A line; of what nobody foresaw with its type."""
    of_this_package = type(error).__module__.startswith("nsode_jax.")
    foreseen = of_this_package or isinstance(error, ValueError | OSError)
    return in_words(error) if foreseen else f"{type(error).__name__}: {in_words(error)}"


def _lost(task: _Task) -> _Outcome:
    """The outcome of a series whose process died."""
    return task[0], DIED


def _on_cores(
    work: Callable[[_Task], tuple[str, Done]], todo: Sequence[_Task], processes: int | None
) -> Iterable[tuple[str, Done | str]]:
    """What is done of each, as it comes."""
    number = min(processes or usable_cores(), len(todo))
    with Workers(0 if number <= 1 else number) as workers:
        yield from workers.map(work, todo, in_order=False, lost=_lost)


def _on_beam(
    work: functools.partial[_Outcome], todo: Sequence[_Task], beam_options: Sequence[str]
) -> Iterable[_Outcome]:
    """The same by Apache Beam; outcomes come when all is done."""
    try:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise ImportError(
            "beam_options need Apache Beam, which is not installed: pip install 'nsode_jax[beam]'"
        ) from error
    with beam.Pipeline(options=PipelineOptions(list(beam_options))) as pipeline:
        tasks = pipeline | beam.Create(list(todo)) | beam.Reshuffle()
        _ = tasks | beam.Map(functools.partial(_and_note_errors, work=work))
    return _noted(work, todo)


def _and_note_errors(task: _Task, work: functools.partial[_Outcome]) -> None:
    """Workers elsewhere tell what went wrong by a file."""
    label, error = work(task)
    if error:
        _error_file(work.keywords["folder"], label).write_text(error, encoding="utf-8")


def _noted(work: functools.partial[_Outcome], todo: Sequence[_Task]) -> Iterable[_Outcome]:
    for label, *_ in todo:
        file = _error_file(work.keywords["folder"], label)
        error = file.read_text(encoding="utf-8") if file.exists() else ""
        file.unlink(missing_ok=True)
        yield label, error


def _error_file(folder: Path, label: str) -> Path:
    return result_file(folder, label).with_suffix(".error")
