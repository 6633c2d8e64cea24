"""Where results come from: the settings, machines and dates that their files name, and errors."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Iterator, Sequence

from nsode_jax.evaluation.markdown import escape
from nsode_jax.evaluation.results import Result, Run

_MOST_VALUES = 12  # Of a setting that are listed,
_MOST_ERRORS = 3  # kinds of errors shown,
_LONGEST = 160  # and characters of each.


def origin(runs: Sequence[Run], method: str) -> Iterator[str]:
    """Lines on the results of a method: how many, settings, machine, date, and what failed."""
    runs = [run for run in runs if run.method == method and run.results]
    results = [result for run in runs for result in run.results]
    yield f"problems: {len(results)} of {sum(run.of for run in runs)} (files: {len(runs)})"
    for key in dict.fromkeys(key for result in results for key in result.settings):
        yield f"{escape(key)}: {_values(result.settings.get(key) for result in results)}"
    yield f"machine: {_values(result.machine for result in results)}"
    yield f"date: {_values(result.date for result in results)}"
    counts = sorted(result.num_candidates for result in results)
    yield f"candidates per problem: median {counts[len(counts) // 2]}, at most {counts[-1]}"
    yield _failures(runs)


def _values(values: Iterable[object]) -> str:
    """All values, those in use most often first, with their numbers if they are several."""
    counter = collections.Counter(map(_value, values))
    if len(counter) == 1:
        return escape(*counter)
    shown = [f"{escape(text)} ({n})" for text, n in counter.most_common(_MOST_VALUES)]
    more = len(counter) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def _value(value: object) -> str:
    return "not given" if value is None else _shortened(str(value))


def _failures(runs: Sequence[Run]) -> str:
    """How many problems ended without candidates, for what reasons, and where."""
    failed = [(run, r) for run in runs for r in run.results if _has_failed(r)]
    total = sum(len(run.results) for run in runs)
    if not failed:
        return f"errors: none in {total} problems"
    limits = sum(_hit_time_limit(result) for _, result in failed)
    kinds = collections.Counter(_reason(result) for _, result in failed)
    examples = []
    for reason, n in kinds.most_common(_MOST_ERRORS):
        run, result = next(pair for pair in failed if _reason(pair[1]) == reason)
        where = escape(f"{run.data.title}: {result.name}")
        examples.append(f"“{escape(reason)}” ({n}, such as {where})")
    more = len(kinds) - len(examples)
    listed = "; ".join(examples) + (f"; and {more} more kinds" if more else "")
    return f"errors: {len(failed)} of {total} problems, {limits} of them time limits: {listed}"


def _has_failed(result: Result) -> bool:
    return result.error is not None or result.num_candidates == 0


def _hit_time_limit(result: Result) -> bool:
    """Whether a method's own limit, or that of the evaluation, has ended it."""
    return re.search("time limit|not finished in", result.error or "") is not None


def _reason(result: Result) -> str:
    return _shortened(result.error or "no candidates")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
