"""A law for each of many series: on all cores or on a cluster, with progress and resume."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import numpy as np

from nsode_jax.dynamics.vectors import TrajectoryError, times_alike
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.reporting.tables import laws_table
from nsode_jax.results.json_fields import DiscoveryFileError
from nsode_jax.search.effort import SOURCES
from nsode_jax.selection.belief import own_laws
from nsode_jax.system.files import in_words, write_atomically
from nsode_jax.system.settings import listed
from nsode_jax.system.workers import DIED, Workers, usable_cores

if TYPE_CHECKING:
    import pandas as pd

    from nsode_jax.reporting.discovery import Discovery

OPTIONS, TABLE = "options.json", "laws.csv"

_LONGEST_NAME = 180
"""Characters of a file's name; systems allow 255 bytes with all that is added to it."""

_STAGE = "finding a law for each series"

_Task = tuple[Any, ...]
"""Label, times, values, and what else is given of the series."""

_Outcome = tuple[str, str]
"""Label, and what went wrong; empty if nothing did."""

Done = TypeVar("Done")


class EachError(ValueError):
    """The folder or the series cannot be used; the message is one line."""


def discover_each(
    series: Mapping[str, tuple[Any, ...]],
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
        None for none.
      folder: where results go: a file `LABEL.json` for each series as it is done, which
        `Discovery.load` reads, and `laws.csv`.
      processes: that work side by side; by default as many as there are cores for this one, 1
        for none beside it. A series whose process dies is told of as one that failed.
      beam_options: of an Apache Beam pipeline (extra `beam`) that does the work instead, such
        as `["--runner=DirectRunner"]`; the folder must be one that all workers can write to.
      progress: told the share of series that are done.
      options: of `discover`, the same for all; `sigma` may be a number.

    Returns:
      A row per series, in their order: the best law, its name and customary parameters, R2,
      residual, probability, or what went wrong. The same is in `laws.csv`.

    Raises:
      EachError: if the folder holds results of other options, a label is empty, or some times
        are dates and others numbers.
      WeightsError: if those of the network cannot be read.
      ImportError: if Beam is asked for and not installed.
    """
    folder = Path(folder)
    series, notes = _times_alike(series)
    _require_weights(options)
    _prepare(folder, series, options)
    todo = [(label, *values) for label, values in series.items() if not _is_done(folder, label)]
    work: functools.partial[_Outcome] = functools.partial(
        _discover_one, folder=folder, options=options, notes=notes
    )
    errors: dict[str, str] = {}
    outcomes = (
        _on_beam(work, todo, beam_options)
        if beam_options is not None
        else _on_cores(work, todo, processes)
    )
    progress(_STAGE, 1 - len(todo) / max(len(series), 1))
    for number, (label, error) in enumerate(outcomes, start=1):
        if error:
            errors[label] = error
        progress(_STAGE, 1 - (len(todo) - number) / len(series))
    table = laws_table(
        (label, errors[label] if label in errors else _loaded(folder, label)) for label in series
    )
    table.to_csv(folder / TABLE)
    return table


def find_each(
    series: Mapping[str, tuple[Any, ...]],
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
    series, notes = _times_alike(series)
    _require_weights(options)
    tasks = [(label, *values) for label, values in series.items()]
    work = functools.partial(_found, options=options, notes=notes)
    found: dict[str, Discovery | str] = {}
    progress(_STAGE)
    for label, one in _on_cores(work, tasks, processes):
        found[label] = one
        progress(_STAGE, len(found) / len(series))
    return {label: found[label] for label in series}


def _times_alike(
    series: Mapping[str, tuple[Any, ...]],
) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
    """The same with dates and durations as numbers of one unit, and a note if there were any.

    Rates of all series stand in one table.

    Raises:
      EachError: if some are dates and others numbers or durations.
    """
    try:
        times, notes = times_alike([t for t, *_ in series.values()])
    except TrajectoryError as error:
        raise EachError(str(error)) from None
    pairs = zip(series.items(), times, strict=True)
    return {label: (t, *given[1:]) for (label, given), t in pairs}, notes


def result_file(folder: str | Path, label: str) -> Path:
    """Where the discovery of a series is kept; labels that no file can have are changed."""
    name = quote(label, safe=" ")
    if name.lower() == Path(OPTIONS).stem:
        name = f"%{ord(name[0]):X}{name[1:]}"
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"
    return Path(folder) / f"{name}.json"


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


# --- the folder ------------------------------------------------------------------


def _prepare(
    folder: Path, series: Mapping[str, tuple[Any, ...]], options: Mapping[str, Any]
) -> None:
    """Makes the folder, or checks that it is of the same search; drops results of other data."""
    _require_labels(series)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / OPTIONS
    asked = json.loads(json.dumps(_contents(options), default=_as_json))
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if before and before.get("options") != asked:
        raise EachError(f"{folder} holds results of other options: choose another folder")
    known = before.get("series", {})
    data = {label: _fingerprint(given) for label, given in series.items()}
    for label in data.keys() & known.keys():
        if data[label] != known[label]:
            result_file(folder, label).unlink(missing_ok=True)
    content = {"options": asked, "series": known | data}
    write_atomically(file, json.dumps(content, sort_keys=True, indent=1).encode())


def _require_labels(series: Mapping[str, tuple[Any, ...]]) -> None:
    if not series:
        raise EachError("there are no series")
    if not all(label.strip() for label in series):
        raise EachError("every series needs a label")


def _require_weights(options: Mapping[str, Any]) -> None:
    """Refuses weights that cannot be read once, and not for each series."""
    if "network" in listed(options.get("sources", SOURCES)):
        from nsode_jax.modeling.pretrained import load_pretrained

        load_pretrained(options.get("weights", "small"))


def _fingerprint(given: tuple[Any, ...]) -> str:
    """Of all that is given of a series: another one where anything differs."""
    text = json.dumps([part for part in given if part is not None], default=_as_json)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _as_json(value: Any) -> Any:
    """Values of options and data, with all that counts of them, as JSON knows them."""
    if hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    if isinstance(value, Expression):
        return value.infix
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, Path | datetime.date | datetime.timedelta) or not hasattr(
        value, "__dict__"
    ):
        return str(value)
    return {"": type(value).__qualname__, **getattr(value, "__dict__", {"is": str(value)})}


def _contents(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with what files say that they name."""
    found = dict(options)
    if (laws := own_laws(found.get("named_laws"))).laws:
        found["named_laws"] = [law.to_entry() for law in laws.laws]
    weights = found.get("weights")
    if weights and (about := Path(weights) / "model.json").is_file():
        found["weights"] = about.read_text(encoding="utf-8")
    return found


def _is_done(folder: Path, label: str) -> bool:
    """Whether there is a result that can be read: what is damaged is done again."""
    return result_file(folder, label).exists() and not isinstance(_loaded(folder, label), str)


def _loaded(folder: Path, label: str) -> Discovery | str:
    from nsode_jax.reporting.discovery import Discovery

    try:
        return Discovery.load(result_file(folder, label))
    except (OSError, DiscoveryFileError) as error:
        return str(error)
