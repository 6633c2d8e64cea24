"""The report of an evaluation: the paper's tables and figures from files of results.

`report.md` links the pictures beside it; every number in it stands, in full precision,
in one of the CSV files. Names, errors and settings come from files and may hold
anything: they are escaped.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import nsode_jax
from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.statistics import Statistics
from nsode_jax.evaluation.comparability import comparability
from nsode_jax.evaluation.figures import draw_recovery, draw_top_k
from nsode_jax.evaluation.markdown import Picture, bullets, escape, images, link, section
from nsode_jax.evaluation.measures import (
    GENERALIZATION,
    RECONSTRUCTION,
    RELATIVE_COMPLEXITY,
    Cell,
    Recovery,
    TopK,
    earlier_cells,
    odebench_cells,
    paper_cells,
    recovery_by_complexity,
    result_cells,
    top_k,
)
from nsode_jax.evaluation.methods import METHODS
from nsode_jax.evaluation.metrics import METRICS
from nsode_jax.evaluation.origin import origin
from nsode_jax.evaluation.published import (
    EARLIER_ODEBENCH,
    EARLIER_OPERON_COMPLEXITY,
    PAPER_PROBLEMS,
    SAMPLES,
)
from nsode_jax.evaluation.results import (
    Data,
    ReportError,
    Run,
    problems,
    read_runs,
)
from nsode_jax.evaluation.tables import (
    INTERRUPTED,
    NOTHING,
    methods_with_results,
    not_run,
    odebench_grid,
    results_table,
    write_csv,
)
from nsode_jax.evaluation.testsets import TEST_SETS
from nsode_jax.expressions.expression import Skeleton

__all__ = ["ReportError", "write_report"]

TABLE_1, TABLE_8, ODEBENCH = "table1.csv", "table8.csv", "odebench.csv"
TOP_K, RECOVERY, STATISTICS = "topk.csv", "recovery_by_complexity.csv", "dataset_statistics.csv"

_TABLE_1_SETS = ("iv-163", "textbook")
_BANK = "base"


def write_report(results: str | Path, out: str | Path) -> list[Path]:
    """Writes `report.md`, its pictures and its tables to a folder.

    Args:
      results: folder of `<method>/<set>.jsonl`, see `results`.
      out: where to; made if it is not there. Files of an earlier report are replaced.

    Returns:
      The files written, `report.md` first.

    Raises:
      ReportError: if there are no results, or a file is damaged, foreign, or of a
        method or a test set that is not known.
      OSError: if the report cannot be written.
    """
    runs, out = read_runs(Path(results)), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    clean = [run for run in runs if run.data.clean]
    tables = _write_tables(runs, out)
    top_k_pictures = list(_draw_all_top_k(clean, out))
    recovery_pictures = list(_draw_all_recovery(clean, out))
    statistics_pictures = list(_draw_all_statistics(out))
    sections = (
        _introduction(runs),
        _table_1(runs),
        _table_8(runs),
        comparability(),
        _odebench(runs),
        _top_k(top_k_pictures),
        _recovery(recovery_pictures),
        _statistics(statistics_pictures),
        _measured(runs),
    )
    report = out / "report.md"
    report.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    pictures = (*top_k_pictures, *recovery_pictures, *statistics_pictures)
    return [report, *tables, *(out / picture.file for picture in pictures)]


# --- the files beside it ------------------------------------------------------


def _write_tables(runs: Sequence[Run], out: Path) -> list[Path]:
    clean = [run for run in runs if run.data.clean]
    cells = [cell for run in runs for cell in result_cells(run)]
    cells += [cell for name in PAPER_PROBLEMS for cell in paper_cells(name)]
    grid = [cell for run in runs if run.data.set == "odebench" for cell in odebench_cells(run)]
    excerpt = [c for c in cells if c.set in _TABLE_1_SETS and c.noise == 0 and c.drop == 0]
    curves = [
        step
        for run in clean
        if METHODS[run.method].uses_network
        for metric in METRICS
        for step in top_k(run, metric)
    ]
    bars = [row for run in clean for row in recovery_by_complexity(run)]
    contents = (
        (TABLE_1, Cell._fields, excerpt),
        (TABLE_8, Cell._fields, cells),
        (ODEBENCH, Cell._fields, [*grid, *earlier_cells()]),
        (TOP_K, TopK._fields, curves),
        (RECOVERY, Recovery._fields, bars),
        (STATISTICS, ("data", "quantity", "of", "count"), list(_statistics_records())),
    )
    for file, columns, records in contents:
        write_csv(out / file, columns, records)
    return [out / file for file, *_ in contents]


def _draw_all_top_k(clean: Sequence[Run], out: Path) -> Iterator[Picture]:
    for method in (name for name, method in METHODS.items() if method.uses_network):
        runs = [run for run in clean if run.method == method and run.results]
        if runs:
            file = f"topk-{method.replace('+', '-')}.png"
            draw_top_k(runs).savefig(out / file)
            alt = "percentage of problems solved by the first k candidates"
            yield Picture(file, METHODS[method].title, alt)


def _draw_all_recovery(clean: Sequence[Run], out: Path) -> Iterator[Picture]:
    for name in TEST_SETS:
        runs = [run for run in clean if run.data.set == name and run.results]
        if runs:
            file = f"recovery-{name}.png"
            draw_recovery(runs).savefig(out / file)
            alt = "recovered skeletons by complexity of the true law, a panel per method"
            yield Picture(file, name, alt)


def _draw_all_statistics(out: Path) -> Iterator[Picture]:
    for name, what, statistics in _all_statistics():
        file = f"statistics-{name}.png"
        statistics.plot(out / file, what)
        yield Picture(file, name, f"{what} by complexity, and how often each operator occurs")


# --- the sections -------------------------------------------------------------


def _introduction(runs: Sequence[Run]) -> str:
    parts = [
        "# Evaluation",
        f"Written by nsode\\_jax {nsode_jax.__version__}. A prediction is judged by the metrics of "
        "Becker et al. 2022, section 2.3: *skeleton* (the structure of f is right), *R² ≥ 0.999* "
        "and *allclose* (the values of f are right between the smallest and the largest y "
        "observed); a joint metric holds if one and the same candidate satisfies both parts. "
        "Numbers are percentages of the problems unless stated; the tables in CSV hold them "
        "in full, with 95% intervals (Wilson's).",
        "*NSODE* is the network alone, without refinement, as in the paper, but for three things "
        "in its decoding: a grammar admits only what can become a formula, the grid tokens of one "
        "constant count together, and a series that leaves |y| ≤ 5 or 4 units of time is scaled "
        "into them. *NSODE, paper's decoding* does without all three; what is no formula is a "
        "miss. The shipped network differs from the paper's too: it is small, reads patches of 8 "
        "points and a channel with dy/dt, is normalized before each layer, and was trained on "
        "noisy series of a wider prior (docs/paper.md lists all differences). *NSODE + refine* "
        "is this package's method: the network's candidates and others, constants fitted to the "
        "trajectory and all ranked anew. These are never mixed. *Any of k*: at least one of a "
        "method's candidates satisfies the metric (of NSODE's up to 1536 beams, as in the paper); "
        "*first*: the one that the method ranks first does, chosen without the truth.",
    ]
    interrupted = [run for run in runs if run.interrupted]
    if interrupted:
        items = (
            f"{METHODS[r.method].title} on {r.data.title}: {r.count} problems" for r in interrupted
        )
        parts.append(
            f"**Some runs are not finished.** Their numbers, marked {INTERRUPTED}, are over the "
            f"finished problems only:\n\n{bullets(items)}"
        )
    return "\n\n".join(parts)


def _table_1(runs: Sequence[Run]) -> str:
    shown = [Data(name) for name in _TABLE_1_SETS]
    return section(
        "Results beside the paper's (its Table 1)",
        results_table(runs, shown),
        f"{_resolution(shown)} Columns marked *paper* are the paper's own numbers, of any of each "
        "method's candidates (k = 1536 for NSODE), on its machines; the seconds after the plus "
        f"sign went into reading GPLearn's long formulas. Numbers in full: {link(TABLE_1)}.",
        _dashes(runs, shown),
    )


def _table_8(runs: Sequence[Run]) -> str:
    found = {run.data for run in runs if run.results}
    sampled = {SAMPLES[data.set] for data in found if data.set in SAMPLES}
    wanted = PAPER_PROBLEMS.keys() - sampled  # Shown even if nothing was measured on them.
    shown = [
        *(Data(name) for name in TEST_SETS if name in wanted or Data(name) in found),
        *sorted(data for data in found if not data.clean and data.set != "odebench"),
    ]
    return section(
        "All test sets (the paper's Table 8)",
        results_table(runs, shown),
        f"{_resolution(shown)} Corrupted data of odebench stand further below. "
        f"Numbers in full: {link(TABLE_8)}.",
        _dashes(runs, shown),
    )


def _dashes(runs: Sequence[Run], shown: Sequence[Data]) -> str:
    """Why cells of a table are empty; nothing if none is for want of a run."""
    missing = not_run(runs, shown)
    if not missing:
        return ""
    return (
        f"A dash ({NOTHING}) is no zero: the paper prints no number there, or we have not run the "
        f"method, as some need minutes for a problem. Not run: {'; '.join(missing)}."
    )


def _resolution(shown: Sequence[Data]) -> str:
    names = dict.fromkeys(data.set for data in shown)
    points = (f"{100 / len(problems(name)):.2g} in {name}" for name in names)
    return f"Resolution: one problem is, in percentage points, {', '.join(points)}."


def _odebench(runs: Sequence[Run]) -> str:
    heading = "ODEBench-1D"
    runs = [run for run in runs if run.data.set == "odebench" and run.results]
    if not runs:
        return section(heading, "There are no results on odebench.")
    cells = [*(cell for run in runs for cell in odebench_cells(run)), *earlier_cells()]
    corruptions = sorted({run.data[1:] for run in runs}, key=lambda pair: (pair[1], pair[0]))
    grid = functools.partial(odebench_grid, cells, corruptions)
    methods = methods_with_results(runs)
    earlier = [row.method for row in EARLIER_ODEBENCH]
    shortest, longest = EARLIER_OPERON_COMPLEXITY
    return section(
        heading,
        "23 equations from two initial values each, by the benchmark's protocol: the law is "
        "found from the corrupted trajectory of one initial value. Percentage of the problems "
        "with R² > 0.9 between the solution of the first candidate and the clean trajectory: "
        "from the same initial value (*reconstruction*) / from the other one "
        f"(*generalization*). A result without a solution is a miss; {NOTHING}: not run.",
        grid([*methods, *earlier], RECONSTRUCTION, GENERALIZATION),
        "Rows marked *earlier* were measured by us before, on two cores with one seed; the "
        "ceilings are told the true skeleton and fit only its constants. Seconds per problem "
        f"then: {'; '.join(f'{r.seconds} ({escape(r.method)})' for r in EARLIER_ODEBENCH)}. "
        f"PyOperon's formulas had {shortest} to {longest} tokens on average.",
        "Skeleton recovered by the first candidate (percent) / its complexity as a multiple of "
        "the true law's (median over the problems with a candidate):",
        grid(methods, "skeleton", RELATIVE_COMPLEXITY),
        f"{_resolution([Data('odebench')])} Numbers in full: {link(ODEBENCH)}.",
    )


def _top_k(pictures: Sequence[Picture]) -> str:
    heading = "Top-k (the paper's figure 2)"
    if not pictures:
        return section(heading, "There are no results of NSODE on clean data.")
    return section(
        heading,
        "Percentage of problems that one of the first k candidates solves, up to k = 1536, on "
        "clean data.",
        images(pictures),
        f"Where the curves rise: {link(TOP_K)}.",
    )


def _recovery(pictures: Sequence[Picture]) -> str:
    heading = "Recovery by complexity (the paper's figures 3 and 6 to 9)"
    if not pictures:
        return section(heading, "There are no results on clean data.")
    return section(
        heading,
        "Skeletons recovered among the finished problems of each complexity, on clean data. Laws "
        "that our operators cannot express have no complexity and no bar.",
        images(pictures),
        f"Numbers in full: {link(RECOVERY)}.",
    )


# --- what the sets hold -------------------------------------------------------


def _all_statistics() -> Iterator[tuple[str, str, Statistics]]:
    """(name, what is counted, statistics) of each test set but samples, and of the bank."""
    for name in TEST_SETS:
        if name not in SAMPLES:
            laws = (problem.expression for problem in problems(name))
            skeletons = (law.skeleton for law in laws if law is not None)
            yield name, "problems", Statistics.of(skeletons)
    yield "bank", "skeletons", _bank_statistics()


@functools.cache
def _bank_statistics() -> Statistics:
    """Of the shipped bank; its 300,000 skeletons take seconds to count."""
    return Statistics.of(map(Skeleton.from_key, SkeletonBank.load(_BANK).keys))


def _statistics_records() -> Iterator[tuple[str, str, str, int]]:
    for name, _, statistics in _all_statistics():
        content = statistics.to_json()
        for quantity, key in (("complexity", "complexities"), ("operator", "operators")):
            for value, count in content[key].items():
                yield name, quantity, value, count


def _statistics(pictures: Sequence[Picture]) -> str:
    return section(
        "What the test sets hold (the paper's figure 5)",
        "Complexity (operators, variables and constants) and operators of the true laws, for "
        "each test set; *bank* are the skeletons that ship with the package, "
        "from which training examples are made.",
        images(pictures),
        f"Numbers in full: {link(STATISTICS)}.",
    )


# --- how it was measured ------------------------------------------------------


def _measured(runs: Sequence[Run]) -> str:
    methods = methods_with_results(runs)
    parts = [
        f"### {METHODS[method].title}\n\n{bullets(origin(runs, method))}" for method in methods
    ]
    return section(
        "How it was measured",
        "As the result files say; behind each of several values, in brackets, the number of "
        "problems it was used for.",
        *parts,
    )
