"""Several problems at a time, in processes that may hang, die or fail."""

import dataclasses
import json
import os
import signal
import time
from pathlib import Path

import pytest

from nsode_jax.evaluation.results import Data, problems, read_runs
from nsode_jax.evaluation.runner import Task, run


@dataclasses.dataclass(frozen=True)
class Odd(Task):
    """Some problems hang, some kill their process, and `broken` is a fault of ours."""

    hang: tuple[int, ...] = ()
    die: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()

    def evaluate(self, places):
        if set(places) & set(self.hang):
            time.sleep(600)
        if set(places) & set(self.die):
            os.kill(os.getpid(), signal.SIGKILL)
        if set(places) & set(self.broken):
            raise ZeroDivisionError("a fault in the code")
        more = {"process": os.getpid(), "batch": len(places)}
        return [self.failed(place, "nothing found", 0.1) | more for place in places]


def odd(**places):
    return Odd(Data("textbook"), "operon", {"seed": 0}, **places)


def test_problems_that_hang_or_die_are_misses_and_the_rest_goes_on(tmp_path):
    told = []
    task = odd(hang=(3,), die=(5,))
    results = run(task, tmp_path, processes=2, time_limit=20.0, finished=told.append)
    names = [problem.name for problem in problems("textbook")]
    assert [result["name"] for result in results] == names
    assert sorted(result["name"] for result in told) == sorted(names)
    errors = [result["error"] for result in results]
    assert errors[3] == "not finished in 20 s" and results[3]["seconds"] == 20.0
    assert errors[5].startswith("its process died")
    assert set(errors[:3] + errors[6:]) == {"nothing found"}
    workers = {result.get("process") for result in results} - {None}
    assert os.getpid() not in workers and len(workers) >= 2

    # The file is whole, and a report reads it.
    (found,) = read_runs(tmp_path)
    assert len(found.results) == 12 and not found.interrupted
    assert all(rank is None for result in found.results for rank in result.ranks.values())
    # Nothing is left to do.
    assert run(odd(broken=tuple(range(12))), tmp_path, processes=2) == sorted(
        results, key=lambda result: names.index(result["name"])
    )


def test_a_sample_is_the_same_for_all_and_grows(tmp_path):
    few = run(odd(), tmp_path, processes=0, most=3)
    names = [problem.name for problem in problems("textbook")]
    assert len(few) == 3 and [r["name"] for r in few] != names[:3]
    more = run(odd(), tmp_path, processes=0, most=5)
    assert len(more) == 5 and all(result in more for result in few)
    assert more == sorted(more, key=lambda result: names.index(result["name"]))
    assert run(odd(), tmp_path / "other", processes=0, most=3) == [
        result | {"process": os.getpid()} for result in few
    ]
    assert len(run(odd(), tmp_path, processes=0)) == 12


def test_a_fault_of_ours_ends_the_run_and_keeps_what_was_done(tmp_path):
    with pytest.raises(ZeroDivisionError, match="a fault in the code"):
        run(odd(broken=(11,)), tmp_path, processes=1)
    path = tmp_path / "operon" / "textbook.jsonl"
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert 0 < len(lines) <= 11
    assert len(run(odd(), tmp_path, processes=0)) == 12


def test_a_batch_that_dies_is_tried_one_by_one(tmp_path):
    results = run(odd(die=(5,)), tmp_path, processes=1, together=4)
    assert [result.get("batch", 0) for result in results] == [4] * 4 + [1, 0, 1, 1] + [4] * 4
    assert results[5]["error"].startswith("its process died")
