"""The tables of the report: what runs come to, as CSV and in the layouts of Markdown."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nsode_jax.evaluation.markdown import escape, markdown_table
from nsode_jax.evaluation.measures import (
    ANY,
    FIRST,
    METRIC_NAMES,
    OURS,
    PAPER,
    Cell,
    paper_cells,
    result_cells,
)
from nsode_jax.evaluation.methods import METHODS
from nsode_jax.evaluation.metrics import METRICS
from nsode_jax.evaluation.published import (
    GPLEARN_PARSING_SECONDS,
    PAPER_METHODS,
    PAPER_PROBLEMS,
    SAMPLES,
    SECONDS,
)
from nsode_jax.evaluation.results import Data, Run
from nsode_jax.results.formatting import listed

NOTHING, INTERRUPTED = "-", "†"
"""Marks in Markdown: there is no number; it is over fewer problems than the set has."""


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
      runs: ours; each method with results on these data has a column, the network's two.
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
    holding = [i for i in range(len(header)) if {row[i] for row in rows} != {NOTHING}]
    return markdown_table(
        [header[i] for i in holding], ([row[i] for i in holding] for row in rows), words=2
    )


def not_run(runs: Sequence[Run], shown: Sequence[Data]) -> list[str]:
    """Texts like "Operon on skeletons", for each method with results on some of the data only."""
    done = {(run.method, run.data) for run in runs if run.results}
    texts = []
    for method in METHODS:
        missing = [data.title for data in shown if (method, data) not in done]
        if 0 < len(missing) < len(shown):
            texts.append(f"{METHODS[method].title} on {listed(missing)}")
    return texts


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
