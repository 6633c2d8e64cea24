"""Reads what evaluations have written: RESULTS/<method>/<set>.jsonl, one line per problem.

Corrupted data stand in the name: `odebench-noise0.05-drop0.5-seed1.jsonl`; a part that is 0
is left out.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nsode_jax.evaluation.methods import METHODS
from nsode_jax.evaluation.metrics import METRICS
from nsode_jax.evaluation.testsets import TEST_SETS, Problem

JOINT_METRICS = {
    "skeleton_and_r2": ("skeleton", "r2_high"),
    "skeleton_and_allclose": ("skeleton", "allclose"),
}
"""The parts of each joint metric."""

_FIELDS = frozenset(
    "name truth complexity expressible y0 method seconds error reconstruction_r2 "
    "generalization_r2 num_candidates rank candidates machine date".split()
)
"""Fields of a line that are no settings of the method."""

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?"
_FILE_NAME = re.compile(
    rf"(.+?)(?:-noise({_NUMBER}))?(?:-drop({_NUMBER}))?(?:-seed([0-9]+))?\.jsonl"
)


class ReportError(Exception):
    """Why there can be no report, in one line for the user."""


class Data(NamedTuple):
    """A test set as a method has seen it.

    Attributes:
      set: its name, one of `TEST_SETS`.
      noise: sigma of y (1 + sigma xi) with standard normal xi.
      drop: share of the points that was dropped.
    """

    set: str
    noise: float = 0.0
    drop: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether the data are as the solver gave them."""
        return self.noise == 0 and self.drop == 0

    def file_name(self, seed: int = 0) -> str:
        """Where the results on these data stand, noise and all else drawn by a seed."""
        noise = f"-noise{self.noise:g}" if self.noise else ""
        drop = f"-drop{self.drop:g}" if self.drop else ""
        drawn = f"-seed{seed}" if seed else ""
        return f"{self.set}{noise}{drop}{drawn}.jsonl"

    @property
    def title(self) -> str:
        """Such as `odebench, noise 0.05, dropped 0.5`."""
        noise = f", noise {self.noise:g}" if self.noise else ""
        drop = f", dropped {self.drop:g}" if self.drop else ""
        return f"{self.set}{noise}{drop}"


@dataclasses.dataclass(frozen=True)
class Result:
    """What a method made of one problem.

    Attributes:
      name: of the problem.
      complexity: tokens of the true law; None where our operators cannot express it.
      seconds: wall time.
      error: why there are no candidates, or None.
      ranks: by metric, the rank (from 1) of the first candidate that satisfies it, or None.
      num_candidates: how many there are.
      first_complexity: tokens of the first candidate, or None without one.
      reconstruction_r2, generalization_r2: of the first candidate's solutions from the
        problem's two initial values; None where there is no solution, or no such value.
      settings: of the method.
      machine, date: where and when; None if the line does not say.
    """

    name: str
    complexity: int | None
    seconds: float
    error: str | None
    ranks: Mapping[str, int | None]
    num_candidates: int
    first_complexity: int | None
    reconstruction_r2: float | None
    generalization_r2: float | None
    settings: Mapping[str, Any]
    machine: str | None
    date: str | None


@dataclasses.dataclass(frozen=True)
class Run:
    """The results of one method on one set of data.

    Attributes:
      method: one of `METHODS`.
      data: what it has seen.
      results: of the problems that are finished, in the order of the file; where there are
        several seeds, of all of them.
      of: how many problems the set has, times the number of seeds.
    """

    method: str
    data: Data
    results: tuple[Result, ...]
    of: int

    @property
    def interrupted(self) -> bool:
        """Whether results are missing."""
        return len(self.results) < self.of

    @property
    def count(self) -> str:
        """Such as `12 of 12`."""
        return f"{len(self.results)} of {self.of}"


@functools.cache
def problems(name: str) -> tuple[Problem, ...]:
    """The problems of a test set; `classic` takes seconds, as it solves for its start."""
    return TEST_SETS[name]()


# --- folders and files --------------------------------------------------------


def read_runs(folder: Path) -> tuple[Run, ...]:
    """All runs below a folder, by method, then by set, noise and drop; all seeds are one run.

    Files with other endings, and folders without result files, are left alone.

    Raises:
      ReportError: if there are no results, or a file is damaged, foreign, or of a
        method or a test set that is not known.
    """
    if not folder.is_dir():
        raise ReportError(f"there is no folder {folder}")
    found: dict[tuple[str, Data], Run] = {}
    for path in _result_files(folder):
        method = path.parent.name
        if path.parent == folder:
            raise ReportError(f"{path} must lie in a folder named after its method")
        if method not in METHODS:
            known = ", ".join(METHODS)
            raise ReportError(f"{path} is of the unknown method {method!r}: known are {known}")
        data, seed = _data_of(path)
        before = found.get((method, data), Run(method, data, (), 0))
        found[method, data] = Run(
            method,
            data,
            (*before.results, *_read(path, method, data, seed)),
            before.of + len(problems(data.set)),
        )
    runs = found.values()
    if not any(run.results for run in runs):
        raise ReportError(f"{folder} holds no results: <method>/<set>.jsonl")
    methods, sets = list(METHODS), list(TEST_SETS)
    return tuple(
        sorted(runs, key=lambda r: (methods.index(r.method), sets.index(r.data.set), r.data))
    )


def _result_files(folder: Path) -> list[Path]:
    try:
        return sorted([*folder.glob("*.jsonl"), *folder.glob("*/*.jsonl")])
    except OSError as error:
        raise ReportError(f"{folder} cannot be read: {error.strerror}") from error


def _data_of(path: Path) -> tuple[Data, int]:
    """What the name of a file says, and the seed."""
    match = _FILE_NAME.fullmatch(path.name)
    name, noise, drop, seed = match.groups() if match else ("", None, None, None)
    if name not in TEST_SETS:
        raise ReportError(f"{path} is of an unknown test set: known are {', '.join(TEST_SETS)}")
    data, number = Data(name, float(noise or 0), float(drop or 0)), int(seed or 0)
    if (wanted := data.file_name(number)) != path.name:
        raise ReportError(f"{path} should be called {wanted}")
    return data, number


def _read(path: Path, method: str, data: Data, seed: int) -> Iterator[Result]:
    """The results of a file; a last line that was cut off is ignored."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}") from error
    if lines[-1].startswith(b"{") and not _is_json(lines[-1]):
        del lines[-1]
    y0s = {problem.name: problem.y0 for problem in problems(data.set)}
    seen = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
            result = _result(content)
            _check_origin(content, method, data, seed, y0s)
            if result.name in seen:
                raise ReportError(f"has a second result for {result.name!r}")
        except ReportError as error:
            raise ReportError(f"{path}, line {number}: {_one_line(str(error))}") from error
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ReportError(f"{path}, line {number}: is no result") from error
        seen.add(result.name)
        yield result


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- lines --------------------------------------------------------------------


def _result(content: dict[str, Any]) -> Result:
    """A line as a result.

    Raises:
      ReportError: if its ranks contradict each other.
      KeyError, TypeError, ValueError, AttributeError: if it is something else.
    """
    firsts = [c["complexity"] for c in content["candidates"] if c["rank"] == 1]
    error = content["error"]
    return Result(
        name=_text(content["name"]),
        complexity=_count(content["complexity"]),
        seconds=float(content["seconds"]),
        error=None if error is None else _one_line(_text(error)),
        ranks=_ranks(content["rank"]),
        num_candidates=int(content["num_candidates"]),
        first_complexity=_count(firsts[0]) if firsts else None,
        reconstruction_r2=_number(content.get("reconstruction_r2")),
        generalization_r2=_number(content.get("generalization_r2")),
        settings={key: value for key, value in content.items() if key not in _FIELDS},
        machine=content.get("machine"),
        date=content.get("date"),
    )


def _ranks(content: dict[str, Any]) -> dict[str, int | None]:
    ranks = {metric: _count(content[metric]) for metric in METRICS}
    for joint, parts in JOINT_METRICS.items():
        # A candidate with both has each: the joint rank is the last of the three.
        rank = ranks[joint]
        if rank is not None and any((ranks[part] or math.inf) > rank for part in parts):
            raise ReportError(f"the rank of {joint} contradicts those of its parts")
    return ranks


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value


def _count(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise TypeError(f"not a number from 1: {value!r}")
    return value


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _check_origin(
    content: dict[str, Any], method: str, data: Data, seed: int, y0s: Mapping[str, float]
) -> None:
    """Refuses a line that was moved here, or comes from an older test set."""
    if content["method"] != method:
        raise ReportError(f"is of the method {content['method']!r}")
    name, y0 = content["name"], float(content["y0"])
    if name not in y0s:
        raise ReportError(f"{name!r} is no problem of {data.set}")
    if not math.isclose(y0, y0s[name], rel_tol=1e-6, abs_tol=1e-9):
        raise ReportError(f"{name!r} starts at {y0:g}, in the test set at {y0s[name]:g}")
    for key, value in (("noise", data.noise), ("drop", data.drop), ("seed", seed)):
        if float(content.get(key) or 0) != value:
            raise ReportError(f"is of {key} {content[key]}, unlike the name of the file")
