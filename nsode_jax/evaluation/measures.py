"""What runs of an evaluation come to: percentages with intervals, top-k, recovery by complexity.

They are records (`NamedTuple`): a CSV file is the records as they are, and tables and
figures pick from the same ones.
"""

from __future__ import annotations

import collections
import math
import statistics
from collections.abc import Iterator
from typing import NamedTuple

from nsode_jax.evaluation.methods import MOST_BEAMS
from nsode_jax.evaluation.metrics import GOOD_SOLUTION_R2, METRICS
from nsode_jax.evaluation.published import (
    EARLIER_ODEBENCH,
    PAPER_METHODS,
    PAPER_PROBLEMS,
    SAMPLES,
    SECONDS,
    paper_value,
)
from nsode_jax.evaluation.results import Result, Run
from nsode_jax.results.uncertainty import quantile

_QUANTILE = float(quantile())

METRIC_NAMES = {
    "skeleton": "skeleton",
    "r2_high": "R² ≥ 0.999",
    "allclose": "allclose",
    "skeleton_and_r2": "skeleton & R² ≥ 0.999",
    "skeleton_and_allclose": "skeleton & allclose",
}
"""For people."""

ANY, FIRST = "any", "first"
OURS, PAPER, EARLIER = "ours", "paper", "earlier"
RECONSTRUCTION, GENERALIZATION = "reconstruction", "generalization"
RELATIVE_COMPLEXITY = "relative_complexity"


class Cell(NamedTuple):
    """One number of a table.

    Attributes:
      set, noise, drop: the data.
      source: `ours`, `paper`, or `earlier` (measured by us before).
      method: key of the method; of earlier rows its name.
      candidates: `any` if any candidate may satisfy the metric, `first` if the first has
        to; empty where the metric is of the method as a whole.
      metric: one of `METRICS`, `seconds`, `reconstruction`, `generalization` or
        `relative_complexity`.
      unit: `percent`, `seconds` (mean per problem) or `ratio` (median).
      value: the number, or None where no problem counts.
      low, high: 95% interval, Wilson's for percentages; None where not known.
      hits: problems that satisfy the metric; None if it is no percentage, or not ours.
      problems: problems that the number is over.
      of: problems that the set has.
    """

    set: str
    noise: float
    drop: float
    source: str
    method: str
    candidates: str
    metric: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    hits: int | None
    problems: int
    of: int


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share.

    Returns:
      Its ends, from 0 to 1. Unlike hits / trials plus or minus its standard error it
      has a width where none or all are hits.
    """
    share, weight = hits / trials, _QUANTILE**2 / trials
    centre = (share + weight / 2) / (1 + weight)
    half = _QUANTILE * math.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    half /= 1 + weight
    return max(0.0, centre - half), min(1.0, centre + half)


# --- cells --------------------------------------------------------------------


def result_cells(run: Run) -> Iterator[Cell]:
    """The paper's metrics of a run, by any candidate and by the first, and its seconds."""
    for candidates, last_rank in ((ANY, math.inf), (FIRST, 1)):
        for metric in METRICS:
            ranks = [result.ranks[metric] for result in run.results]
            hits = sum(rank is not None and rank <= last_rank for rank in ranks)
            yield _percent(run, candidates, metric, hits)
    yield _seconds(run)


def odebench_cells(run: Run) -> Iterator[Cell]:
    """ODEBench's measures of the first candidate; a missing solution is a miss."""
    for metric in (RECONSTRUCTION, GENERALIZATION):
        scores = [getattr(result, f"{metric}_r2") for result in run.results]
        hits = sum(score is not None and score > GOOD_SOLUTION_R2 for score in scores)
        yield _percent(run, FIRST, metric, hits)
    yield _percent(run, FIRST, "skeleton", sum(r.ranks["skeleton"] == 1 for r in run.results))
    yield _relative_complexity(run)
    yield _seconds(run)


def paper_cells(name: str) -> Iterator[Cell]:
    """The paper's numbers on a test set; on the whole one for a random sample."""
    name = SAMPLES.get(name, name)
    problems = PAPER_PROBLEMS.get(name, 0)
    for method in PAPER_METHODS:
        for metric in (*METRICS, SECONDS):
            value = paper_value(name, method, metric)
            if value is not None:
                candidates, unit = ("", SECONDS) if metric == SECONDS else (ANY, "percent")
                known = (PAPER, method, candidates, metric, unit, value)
                yield Cell(name, 0.0, 0.0, *known, None, None, None, problems, problems)


def earlier_cells() -> Iterator[Cell]:
    """Our earlier measurements on ODEBench-1D: 23 equations from two initial values."""
    for row in EARLIER_ODEBENCH:
        for (noise, drop), percents in row.percents.items():
            for metric, value in zip((RECONSTRUCTION, GENERALIZATION), percents):
                known = (EARLIER, row.method, FIRST, metric, "percent", value)
                yield Cell("odebench", noise, drop, *known, None, None, None, 46, 46)


def _percent(run: Run, candidates: str, metric: str, hits: int) -> Cell:
    problems = len(run.results)
    if not problems:
        return _cell(run, candidates, metric, "percent", None, None)
    interval = tuple(100.0 * end for end in wilson(hits, problems))
    return _cell(run, candidates, metric, "percent", 100.0 * hits / problems, interval, hits)


def _seconds(run: Run) -> Cell:
    times = [result.seconds for result in run.results]
    if len(times) < 2:
        return _cell(run, "", SECONDS, SECONDS, times[0] if times else None, None)
    mean = statistics.fmean(times)
    half = _QUANTILE * statistics.stdev(times) / math.sqrt(len(times))
    return _cell(run, "", SECONDS, SECONDS, mean, (mean - half, mean + half))


def _relative_complexity(run: Run) -> Cell:
    """Tokens of the first candidate by those of the truth, where both are known."""
    ratios = [
        result.first_complexity / result.complexity
        for result in run.results
        if result.first_complexity is not None and result.complexity is not None
    ]
    median = statistics.median(ratios) if ratios else None
    cell = _cell(run, FIRST, RELATIVE_COMPLEXITY, "ratio", median, None)
    return cell._replace(problems=len(ratios))


def _cell(
    run: Run,
    candidates: str,
    metric: str,
    unit: str,
    value: float | None,
    interval: tuple[float, ...] | None,
    hits: int | None = None,
) -> Cell:
    low, high = interval or (None, None)
    known = (OURS, run.method, candidates, metric, unit, value, low, high, hits)
    return Cell(*run.data, *known, len(run.results), run.of)


# --- top-k --------------------------------------------------------------------


class TopK(NamedTuple):
    """How many problems have a rank of at most k, where that number rises.

    Attributes:
      method, set, metric: of what.
      k: candidates that count.
      percent, low, high: of the problems, with Wilson's 95% interval.
      hits, problems, of: as in `Cell`.
    """

    method: str
    set: str
    metric: str
    k: int
    percent: float
    low: float
    high: float
    hits: int
    problems: int
    of: int


def top_k(run: Run, metric: str) -> list[TopK]:
    """The steps of the top-k curve (the paper's figure 2), from k = 1 to 1536."""
    if not run.results:
        return []
    rises = collections.Counter(result.ranks[metric] for result in run.results)
    ks = {1, MOST_BEAMS, *(k for k in rises if k is not None and k < MOST_BEAMS)}
    steps, hits, problems = [], 0, len(run.results)
    for k in sorted(ks):
        hits += rises[k]
        percent, (low, high) = 100.0 * hits / problems, wilson(hits, problems)
        where = (run.method, run.data.set, metric, k)
        steps.append(TopK(*where, percent, 100.0 * low, 100.0 * high, hits, problems, run.of))
    return steps


# --- recovery by complexity ---------------------------------------------------


class Recovery(NamedTuple):
    """Skeletons recovered among the true laws of one complexity.

    Attributes:
      method, set: of what.
      complexity: tokens of the true law; None where our operators cannot express it.
      problems: finished problems of this complexity.
      any, first: in how many of them any, or the first, candidate has the skeleton.
      any_low, any_high, first_low, first_high: Wilson's 95% interval of the percentage.
    """

    method: str
    set: str
    complexity: int | None
    problems: int
    any: int
    first: int
    any_low: float
    any_high: float
    first_low: float
    first_high: float


def recovery_by_complexity(run: Run) -> list[Recovery]:
    """Per complexity, the numbers of the paper's figures 3 and 6 to 9."""
    groups: dict[int | None, list[Result]] = collections.defaultdict(list)
    for result in run.results:
        groups[result.complexity].append(result)
    rows = []
    for complexity in sorted(groups, key=lambda c: (c is None, c)):
        ranks = [result.ranks["skeleton"] for result in groups[complexity]]
        counts = (sum(rank is not None for rank in ranks), sum(rank == 1 for rank in ranks))
        ends = [100.0 * end for count in counts for end in wilson(count, len(ranks))]
        rows.append(Recovery(run.method, run.data.set, complexity, len(ranks), *counts, *ends))
    return rows
