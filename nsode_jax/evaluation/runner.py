"""Runs a method over a test set: in parallel, under a time limit, resumable.

Results go to DIR/<method>/<set>.jsonl, one JSON line per problem as each ends.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any

import numpy as np

from nsode_jax.evaluation.methods import METHODS, weights_of
from nsode_jax.evaluation.protocol import evaluate_problems, failed
from nsode_jax.evaluation.results import Data, problems
from nsode_jax.system.files import write_atomically

Result = dict[str, Any]

_LINE_START = '{"name": '


class EvaluationError(Exception):
    """What stands in the way, in one line for the user."""


@dataclasses.dataclass(frozen=True)
class Task:
    """A method on a set of data.

    Attributes:
      data: test set, noise and dropped share.
      method: a name in `METHODS`.
      settings: of the method, and `seed`.
    """

    data: Data
    method: str
    settings: dict[str, Any]

    def path(self, out: Path) -> Path:
        """The file of the results below the folder `out`."""
        return out / self.method / self.data.file_name(self.settings["seed"])

    def evaluate(self, places: Sequence[int]) -> list[Result]:
        """The results of some problems of the set, which the method is given at once."""
        chosen = [problems(self.data.set)[place] for place in places]
        return evaluate_problems(
            chosen, self.method, self.settings, self.data.noise, self.data.drop
        )

    def failed(self, place: int, error: str, seconds: float) -> Result:
        """The result of a problem that could not be finished."""
        problem, data = problems(self.data.set)[place], self.data
        return failed(problem, self.method, self.settings, data.noise, data.drop, error, seconds)


def run(
    task: Task,
    out: Path,
    *,
    processes: int = 1,
    together: int | None = None,
    most: int | None = None,
    time_limit: float | None = None,
    started: Callable[[int, int], None] = lambda done, of: None,
    finished: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Evaluates the problems whose results are missing.

    Args:
      task: what is to be done.
      out: folder of all results.
      processes: worker processes; 0 works in this process, without a time limit.
      together: problems that the method is given at once; by default as many as it is
        best given.
      most: problems, a random sample of the set, the same for all methods; all by default.
      time_limit: seconds of wall time, for each problem that a method is given, after
        which they are given up. Several at once are then tried one by one; a single one
        counts as a miss.
      started: called with the number of problems that are done already and of all.
      finished: called with each result, old ones first.

    Returns:
      The results of these problems and of those that were done before, in the order of the set.

    Raises:
      EvaluationError: if the file holds something else.
      WeightsError: if the method's weights are missing or damaged.
    """
    path = task.path(out)
    done = {result["name"]: result for result in read_results(path, task)}
    names = [problem.name for problem in problems(task.data.set)]
    started(len(done), len(names))
    for name in filter(done.__contains__, names):
        finished(done[name])
    wanted = _sample(len(names), most)
    missing = [place for place in wanted if names[place] not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    size = together or METHODS[task.method].together
    batches = [missing[start : start + size] for start in range(0, len(missing), size)]
    for results in _evaluate_all(task, batches, processes, time_limit):
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(result, allow_nan=False) + "\n" for result in results)
        for result in results:
            done[result["name"]] = result
            finished(result)
    return [done[name] for name in names if name in done]


def _sample(number: int, most: int | None) -> list[int]:
    """Places in a set: so many at random, the first of one and the same order, or all in turn."""
    if most is None:
        return list(range(number))
    return np.random.default_rng(0).permutation(number)[:most].tolist()


def read_results(path: Path, task: Task) -> list[Result]:
    """The finished lines of a result file; a line cut off by a kill is removed.

    Raises:
      EvaluationError: if the file holds results of other settings or weights, or no results.
      WeightsError: if the method's weights are missing or damaged.
    """
    settings, weights = {"method": task.method, **task.settings}, weights_of(task.settings)
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    complete, cut_off = text[: text.rfind("\n") + 1], text[text.rfind("\n") + 1 :]
    try:
        if not cut_off.startswith(_LINE_START[: len(cut_off)]):
            raise TypeError("not a line of ours")
        results = [json.loads(line) for line in complete.splitlines()]
        for result in results:
            found = {name: result[name] for name in settings}
            found |= {name: result.get(name) for name in weights}
            _require(path, found, settings | weights)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path} is not a result file: choose another --out") from error
    if cut_off:
        write_atomically(path, complete.encode())
    return results


def _require(path: Path, found: Result, wanted: Result) -> None:
    """Refuses a line of other settings, or of other weights that had the same name.

    Raises:
      EvaluationError: if it is such a line.
    """
    differing = [name for name in wanted if found[name] != wanted[name]]
    if differing == ["weights_sha256"] and found["weights_sha256"] is None:
        raise EvaluationError(
            f"{path} does not say of which weights its results are, as an older version wrote "
            "it: move it away, or choose another --out"
        )
    if differing:
        others = ", ".join(f"{name} {found[name]}" for name in differing)
        raise EvaluationError(f"{path} holds results of {others}: choose another --out")


def _evaluate_all(
    task: Task, batches: Sequence[Sequence[int]], processes: int, time_limit: float | None
) -> Iterator[list[Result]]:
    """Results of the batches as they come."""
    if not processes:
        yield from map(task.evaluate, batches)
        return
    from pebble import ProcessPool

    pool = ProcessPool(
        max_workers=min(processes, len(batches)) or 1,
        initializer=_start_worker,
        initargs=[METHODS[task.method].uses_network],
        context=multiprocessing.get_context("spawn"),  # Threads of JAX do not survive a fork.
    )

    def schedule(batches: Sequence[Sequence[int]]) -> Iterator[list[Result]]:
        futures = {}
        for batch in batches:
            limit = None if time_limit is None else time_limit * len(batch)
            futures[pool.schedule(task.evaluate, args=[batch], timeout=limit)] = batch
        for future in as_completed(futures):
            batch = futures[future]
            results = _outcome(future, task, batch, time_limit)
            if results is None:  # One of them is to blame: the others must not suffer for it.
                yield from schedule([[place] for place in batch])
            else:
                yield results

    with pool:
        try:
            yield from schedule(batches)
        except BaseException:
            pool.stop()  # Else leaving the block would wait for all that are scheduled.
            raise


def _outcome(
    future: Future, task: Task, batch: Sequence[int], time_limit: float | None
) -> list[Result] | None:
    """The results of a batch, or None for several problems that were not finished."""
    from pebble import ProcessExpired

    try:
        return future.result()
    except (TimeoutError, ProcessExpired) as error:
        if len(batch) > 1:
            return None
        (place,) = batch
        if isinstance(error, ProcessExpired):
            return [task.failed(place, f"its process died with exit code {error.exitcode}", 0.0)]
        if time_limit is None:
            raise
        return [task.failed(place, f"not finished in {time_limit:g} s", time_limit)]


def _start_worker(uses_network: bool) -> None:
    """One thread of linear algebra each: problems are what runs in parallel."""
    import threadpoolctl

    threadpoolctl.threadpool_limits(1)
    if uses_network:
        from nsode_jax.decoding.compiled import keep_compiled_programs  # JAX is slow to import.

        keep_compiled_programs()
