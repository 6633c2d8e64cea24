"""The numbers of the report: percentages with their intervals, top-k, recovery by complexity.

They are records (`NamedTuple`): a CSV file is the records as they are, and the tables in
Markdown pick from the same ones.
"""

from __future__ import annotations

import collections
import csv
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nsode_jax.evaluation.methods import METHODS, MOST_BEAMS
from nsode_jax.evaluation.metrics import GOOD_SOLUTION_R2, METRICS
from nsode_jax.evaluation.published import (
    EARLIER_ODEBENCH,
    GPLEARN_PARSING_SECONDS,
    PAPER_METHODS,
    PAPER_PROBLEMS,
    SAMPLES,
    SECONDS,
    paper_value,
)
from nsode_jax.evaluation.results import Data, Result, Run
from nsode_jax.results.uncertainty import QUANTILE

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

NOTHING, INTERRUPTED = "-", "†"
"""Marks in Markdown: there is no number; it is over fewer problems than the set has."""


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
    share, weight = hits / trials, QUANTILE**2 / trials
    centre = (share + weight / 2) / (1 + weight)
    half = QUANTILE * math.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
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
    half = QUANTILE * statistics.stdev(times) / math.sqrt(len(times))
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


# --- Markdown -----------------------------------------------------------------


def escape(text: object) -> str:
    """Anything as one line that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]|<>~$#&])", r"\\\1", " ".join(str(text).split()))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> str:
    """A table of cells that are Markdown already.

    Args:
      header: of the columns.
      rows: their cells.
      words: how many of the columns hold words; the others are numbers, set to the right.
    """
    lines = [header, [":---"] * words + ["---:"] * (len(header) - words), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class _Column(NamedTuple):
    source: str
    method: str
    candidates: str

    @property
    def header(self) -> str:
        label = METHODS[self.method].title if self.method in METHODS else self.method
        if self.source == PAPER:
            return f"paper:<br>{label}"
        return f"{label}<br>{'first' if self.candidates == FIRST else 'any of k'}"


def _columns(runs: Sequence[Run]) -> list[_Column]:
    """Ours for each method that has results, then the paper's."""
    ours = [
        _Column(OURS, method, candidates)
        for method in methods_with_results(runs)
        for candidates in ((ANY, FIRST) if METHODS[method].uses_network else (ANY,))
    ]
    return ours + [_Column(PAPER, method, ANY) for method in PAPER_METHODS]


def methods_with_results(runs: Sequence[Run]) -> list[str]:
    """In the order of the tables."""
    return [method for method in METHODS if any(r.method == method and r.results for r in runs)]


def results_table(runs: Sequence[Run], shown: Sequence[Data]) -> str:
    """The layout of the paper's Tables 1 and 8, in Markdown.

    Args:
      runs: ours; each method with results has a column, the network's two.
      shown: the data; each has a row per metric, and one that says how many problems.
    """
    columns = _columns(runs)
    header = ["set", "metric", *(column.header for column in columns)]
    rows = []
    for data in shown:
        here = {run.method: run for run in runs if run.data == data}
        cells = [cell for run in here.values() for cell in result_cells(run)]
        cells += paper_cells(data.set) if data.clean else ()
        known = {(*_Column(c.source, c.method, c.candidates), c.metric): c for c in cells}
        rows.append(
            [f"**{data.title}**", "problems", *(_problems_text(c, here, data) for c in columns)]
        )
        for metric in (*METRICS, SECONDS):
            name = METRIC_NAMES.get(metric, "seconds per problem")
            row = [_cell_text(known.get((*_of(c, metric), metric))) for c in columns]
            rows.append(["", escape(name), *row])
    return markdown_table(header, rows, words=2)


def _of(column: _Column, metric: str) -> _Column:
    """The column that holds the metric: seconds are the method's, whatever candidates count."""
    return column._replace(candidates="") if metric == SECONDS else column


def _problems_text(column: _Column, here: dict[str, Run], data: Data) -> str:
    if column.source == PAPER:
        known = any(cell.method == column.method for cell in paper_cells(data.set))
        of = PAPER_PROBLEMS.get(SAMPLES.get(data.set, data.set))
        return str(of) if known and data.clean else NOTHING
    if column.method not in here:
        return NOTHING
    run = here[column.method]
    return f"**{run.count}** {INTERRUPTED}" if run.interrupted else str(run.of)


def _cell_text(cell: Cell | None) -> str:
    if cell is None or cell.value is None:
        return NOTHING
    text = f"{cell.value:.1f}" if cell.unit == "percent" else _seconds_text(cell.value)
    if (cell.source, cell.method, cell.metric) == (PAPER, "gplearn", SECONDS):
        text += f" + {GPLEARN_PARSING_SECONDS:.0f}"
    return text + (f" {INTERRUPTED}" if cell.problems < cell.of else "")


def _seconds_text(seconds: float) -> str:
    """About two digits: 0.41, 5.3, 29, 1204."""
    if seconds < 1:
        return f"{seconds:.2g}"
    return f"{seconds:.{0 if seconds >= 10 else 1}f}"


def odebench_grid(
    cells: Iterable[Cell],
    corruptions: Sequence[tuple[float, float]],
    methods: Sequence[str],
    *metrics: str,
) -> str:
    """A table of methods by corruptions, in Markdown.

    Args:
      cells: with the numbers.
      corruptions: the columns, (noise, share dropped) each.
      methods: the rows; one that is not in `METHODS` is an earlier measurement.
      metrics: two, which stand in each of the table's cells as `first / second`.
    """
    known = {(cell.method, cell.noise, cell.drop, cell.metric): cell for cell in cells}
    header = ["method", *(f"noise {noise:g}<br>dropped {drop:g}" for noise, drop in corruptions)]
    rows = []
    for method in methods:
        label = METHODS[method].title if method in METHODS else f"*earlier:* {escape(method)}"
        pairs = ([known.get((method, *c, metric)) for metric in metrics] for c in corruptions)
        rows.append([label, *(_pair_text(*pair) for pair in pairs)])
    return markdown_table(header, rows, words=1)


def _pair_text(first: Cell | None, second: Cell | None) -> str:
    if first is None or second is None or first.value is None:
        return NOTHING
    ratio = second.unit == "ratio"
    other = NOTHING if second.value is None else f"{second.value:.{2 if ratio else 1}f}"
    mark = f" {INTERRUPTED}" if first.problems < first.of else ""
    return f"{first.value:.1f} / {other}{mark}"


# --- files --------------------------------------------------------------------


def write_csv(path: Path, columns: Sequence[str], records: Iterable[Sequence[object]]) -> None:
    """Writes records under their columns, numbers in full precision, None as nothing."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(records)
