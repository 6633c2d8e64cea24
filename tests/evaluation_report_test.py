"""The report of an evaluation: its numbers, to the last digit, and what it refuses to average."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nsode_jax.evaluation.figures import draw_recovery, draw_top_k
from nsode_jax.evaluation.markdown import escape
from nsode_jax.evaluation.measures import result_cells, top_k, wilson
from nsode_jax.evaluation.metrics import METRICS
from nsode_jax.evaluation.published import (
    EARLIER_ODEBENCH,
    PAPER_METHODS,
    PAPER_PROBLEMS,
    Contradiction,
    contradictions,
    paper_value,
)
from nsode_jax.evaluation.report import ReportError, write_report
from nsode_jax.evaluation.results import JOINT_METRICS, Data, problems, read_runs

TEXTBOOK = Data("textbook")


def line_of(problem, method, data=TEXTBOOK, **changes):
    """A line of a result file; without changes, of a method that solves nothing."""
    ranks = dict.fromkeys(METRICS) | changes.pop("rank", {})
    law = problem.expression
    line = {
        "name": problem.name,
        "truth": problem.law.infix,
        "complexity": None if law is None else len(law.skeleton.tokens),
        "expressible": law is not None,
        "y0": problem.y0,
        "method": method,
        "beams": 1536,
        "seed": 0,
        "noise": data.noise,
        "drop": data.drop,
        "seconds": 2.0,
        "error": None,
        "num_candidates": 1200,
        "rank": ranks,
        "candidates": [{"rank": 1, "formula": "y", "complexity": 9, "solution_r2": 0.5}],
        "machine": "EPYC, 2 cores",
        "date": "2026-11-28",
    }
    return line | changes


def write(results, method, lines, data=TEXTBOOK, seed=0):
    path = results / method / data.file_name(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def solved(method, ranks, data=TEXTBOOK, **changes):
    """Lines for the first problems of a set, with these ranks of the skeleton."""
    chosen = zip(problems(data.set), ranks)
    return [line_of(p, method, data, rank={"skeleton": rank}, **changes) for p, rank in chosen]


def random_ranks(rng):
    """Ranks as candidates give them: a joint metric is never reached before its parts."""
    scores = rng.random((3, 40)) < 0.03
    joint = [scores[0] & scores[1], scores[0] & scores[2]]
    found = [row.argmax() + 1 if row.any() else None for row in (*scores, *joint)]
    return {metric: None if rank is None else int(rank) for metric, rank in zip(METRICS, found)}


def records(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def record(path, **known):
    (found,) = (r for r in records(path) if all(r[key] == value for key, value in known.items()))
    return found


def rows(report, heading):
    """The cells of the first table below a heading, header first, the set in every row."""
    text = report.read_text(encoding="utf-8")
    below = text[text.index(f"## {heading}") :].splitlines()
    start = next(i for i, line in enumerate(below) if line.startswith("|"))
    end = next(i for i in range(start, len(below)) if not below[i].startswith("|"))
    cells = [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in below[start:end]]
    del cells[1]
    for above, row in zip(cells, cells[1:]):
        row[0] = row[0] or above[0]
    return cells


def cell(table, name, metric, column):
    (row,) = (row for row in table if row[:2] == [f"**{name}**", metric])
    return row[table[0].index(column)]


RANKS = [1, 1, 7, 200, 1536] + [None] * 7
ANY, FIRST = "NSODE<br>any of k", "NSODE<br>first"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Results of several methods, and the folder of their report."""
    results, out = (tmp_path_factory.mktemp(name) for name in ("results", "report"))
    rng = np.random.default_rng(0)
    write(results, "nsode", solved("nsode", RANKS))
    write(results, "nsode+refine", solved("nsode+refine", [1] * 12, seconds=0.25))
    write(results, "sindy", solved("sindy", [None, 3, 1]))
    for method in ("nsode", "gplearn"):
        lines = [line_of(p, method, rank=random_ranks(rng)) for p in problems("iv-163")]
        write(results, method, lines, Data("iv-163"))
    noisy = Data("odebench", 0.05, 0.5)
    r2s = [(0.95, 0.2), (0.95, None), (0.9, 0.91), (None, None)]
    scores = [{"reconstruction_r2": a, "generalization_r2": b} for a, b in r2s] + [{}] * 42
    lines = [line_of(p, "operon", noisy, **score) for p, score in zip(problems("odebench"), scores)]
    lines[0]["rank"]["skeleton"] = 1
    write(results, "operon", lines, noisy)
    assert write_report(results, out)[0] == out / "report.md"
    return results, out


def test_seeds_are_one_run(tmp_path):
    for seed in (0, 1):
        lines = solved("sindy", [1 + seed] * 12, seed=seed)
        write(tmp_path, "sindy", lines, seed=seed)
    (run,) = read_runs(tmp_path)
    assert (run.data, run.count) == (TEXTBOOK, "24 of 24")
    (skeletons,) = (
        cell
        for cell in result_cells(run)
        if (cell.candidates, cell.metric) == ("first", "skeleton")
    )
    assert (skeletons.hits, skeletons.problems) == (12, 24)
    write(tmp_path, "sindy", lines, seed=2)
    with pytest.raises(ReportError, match="is of seed 1, unlike the name of the file"):
        read_runs(tmp_path)


# --- tables -------------------------------------------------------------------


def test_numbers_of_any_and_first_stand_apart(written):
    _, out = written
    for heading, file in (("Results beside", "table1.csv"), ("All test sets", "table8.csv")):
        table = rows(out / "report.md", heading)
        assert cell(table, "textbook", "problems", ANY) == "12"
        assert cell(table, "textbook", "skeleton", ANY) == "41.7"
        assert cell(table, "textbook", "skeleton", FIRST) == "16.7"
        assert cell(table, "textbook", "allclose", ANY) == "0.0"
        assert cell(table, "textbook", "seconds per problem", FIRST) == "2.0"
        assert cell(table, "textbook", "skeleton", "NSODE + refine<br>any of k") == "100.0"
        assert cell(table, "textbook", "seconds per problem", "NSODE + refine<br>first") == "0.25"
        known = {"set": "textbook", "source": "ours", "method": "nsode", "metric": "skeleton"}
        found = record(out / file, **known, candidates="any")
        assert float(found["value"]) == 100 * 5 / 12
        assert [float(found[end]) for end in ("low", "high")] == pytest.approx([19.33, 68.05], 1e-3)
        assert [found[key] for key in ("hits", "problems", "of")] == ["5", "12", "12"]
        assert record(out / file, **known, candidates="first")["hits"] == "2"


def test_the_paper_stands_beside_ours(written):
    table = rows(written[1] / "report.md", "All test sets")
    assert cell(table, "textbook", "skeleton", "paper:<br>AIFeynman") == "91.7"
    assert cell(table, "iv-163", "seconds per problem", "paper:<br>GPLearn") == "29 + 22"
    assert cell(table, "iv", "problems", "paper:<br>NSODE") == "5793"
    assert cell(table, "iv", "allclose", "paper:<br>NSODE") == "50.6"
    assert cell(table, "iv", "allclose", "paper:<br>SINDy") == "-"
    assert cell(table, "iv", "allclose", ANY) == "-"
    assert not any(row[0] in ("**iv-500**", "**iv-163-even**") for row in table)
    assert "aifeynman" not in " ".join(table[0]).lower().replace("paper:<br>aifeynman", "")


def test_an_interrupted_run_says_so(written):
    _, out = written
    table = rows(out / "report.md", "Results beside")
    column = "SINDy<br>any of k"
    assert cell(table, "textbook", "problems", column) == "**3 of 12** †"
    assert cell(table, "textbook", "skeleton", column) == "66.7 †"
    assert "- SINDy on textbook: 3 of 12 problems" in (out / "report.md").read_text("utf-8")
    known = {"method": "sindy", "source": "ours", "metric": "skeleton", "candidates": "any"}
    found = record(out / "table1.csv", **known)
    assert (found["hits"], found["problems"], found["of"]) == ("2", "3", "12")


def test_a_joint_metric_is_never_above_its_parts(written):
    ours = [r for r in records(written[1] / "table8.csv") if r["source"] == "ours"]
    keys = ("set", "noise", "drop", "method", "candidates", "metric")
    hits = {tuple(r[key] for key in keys): int(r["hits"]) for r in ours if r["hits"]}
    joint = [key for key in hits if key[-1] in JOINT_METRICS]
    assert sum(hits[key] for key in joint) > 0
    for *where, metric in joint:
        assert all(hits[(*where, metric)] <= hits[(*where, p)] for p in JOINT_METRICS[metric])


def test_odebench_counts_a_missing_solution_as_a_miss(written):
    _, out = written
    found = record(out / "odebench.csv", method="operon", metric="reconstruction")
    assert (found["hits"], found["of"]) == ("2", "46")  # Exactly 0.9 is not above it.
    table = rows(out / "report.md", "ODEBench-1D")
    assert table[0] == ["method", "noise 0.05<br>dropped 0.5"]
    assert table[1] == ["Operon", "4.3 / 2.2"]
    assert table[2] == ["*earlier:* SINDy, polynomials to 3, tuned", "17.4 / 4.3"]
    truth = np.array([len(p.expression.skeleton.tokens) for p in problems("odebench")])
    known = {"method": "operon", "metric": "relative_complexity"}
    assert float(record(out / "odebench.csv", **known)["value"]) == np.median(9 / truth)
    text = (out / "report.md").read_text(encoding="utf-8")
    assert f"| Operon | 2.2 / {np.median(9 / truth):.2f} |" in text


def test_resolution_and_limits_are_stated(written):
    text = (written[1] / "report.md").read_text(encoding="utf-8")
    assert "8.3 in textbook" in text and "2.2 in odebench" in text
    assert "5793 (iv), 2720 (constants), 100 (skeletons) and 163 (iv-163)" in text
    assert "iv-500 is a random sample of iv and constants-250 is a random sample of cons" in text
    assert "1 of the 26 laws cannot be written with our operators" in text


def test_a_table_holds_what_was_measured_and_says_why_cells_are_empty(written):
    text = (written[1] / "report.md").read_text(encoding="utf-8")
    first, second = (rows(written[1] / "report.md", h) for h in ("Results beside", "All test sets"))
    # Operon has results on corrupted data only, which stand in neither of the two.
    for table in (first, second):
        assert not any("Operon" in name for name in table[0])
        for column in zip(*table[1:]):
            assert set(column) != {"-"}
    below = text[text.index("## Results beside") : text.index("## All test sets")]
    assert "Not run: NSODE + refine on iv-163; SINDy on iv-163; GPLearn on textbook." in below
    assert "1 in skeletons" not in below and "0.61 in iv-163, 8.3 in textbook" in below
    # Nothing was measured on iv, whose row holds the paper's numbers: it has a resolution.
    assert "0.017 in iv, 0.037 in constants" in text


def test_without_gaps_nothing_is_said_of_them(tmp_path):
    for name in ("iv-163", "textbook"):
        write(tmp_path, "nsode", solved("nsode", [1] * 12, Data(name)), Data(name))
    write_report(tmp_path, tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    below = text[text.index("## Results beside") : text.index("## All test sets")]
    assert "Not run" not in below and "Not run: NSODE on iv, constants" in text


def test_wilson():
    assert wilson(0, 12) == pytest.approx((0.0, 0.24249), abs=1e-5)
    assert wilson(12, 12) == pytest.approx((0.75751, 1.0), abs=1e-5)
    assert wilson(50, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)


def test_a_sample_stands_beside_the_papers_whole_set(tmp_path):
    sample = Data("iv-500")
    write(tmp_path / "results", "nsode", solved("nsode", [1] * 500, sample), sample)
    write_report(tmp_path / "results", tmp_path / "out")
    table = rows(tmp_path / "out" / "report.md", "All test sets")
    assert cell(table, "iv-500", "problems", ANY) == "500"
    assert cell(table, "iv-500", "problems", "paper:<br>NSODE") == "5793"
    assert cell(table, "iv-500", "skeleton", "paper:<br>NSODE") == "52.0"
    assert not any(row[0] == "**iv**" for row in table)
    assert cell(table, "constants", "skeleton", "paper:<br>NSODE") == "45.6"


# --- the paper ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "metric", "value"),
    [
        ("iv", "nsode", "skeleton", 52.0),
        ("constants", "nsode", "skeleton_and_allclose", 16.1),
        ("skeletons", "nsode", "allclose", 33.0),
        ("skeletons", "sindy", "allclose", None),
        ("iv-163", "nsode", "r2_high", 24.5),
        ("iv-163", "aifeynman", "seconds", 1203.6),
        ("textbook", "sindy", "skeleton_and_r2", 41.7),
        ("classic", "gplearn", "allclose", 30.8),
        ("classic", "nsode", "seconds", 5.2),
        ("odebench", "nsode", "skeleton", None),
    ],
)
def test_the_numbers_are_the_papers(name, method, metric, value):
    assert paper_value(name, method, metric) == value


def test_contradictions_of_the_paper():
    assert set(contradictions()) == {
        Contradiction("classic", "gplearn", "skeleton_and_r2", 7.7, "skeleton"),
        Contradiction("classic", "gplearn", "skeleton_and_allclose", 7.7, "skeleton"),
        Contradiction("textbook", "nsode", "skeleton_and_r2", 33.3, "r2_high"),
        Contradiction("textbook", "sindy", "skeleton_and_r2", 41.7, "skeleton"),
        Contradiction("textbook", "gplearn", "skeleton_and_allclose", 1.8, None),
    }


def test_all_percentages_are_percentages():
    percents = [
        paper_value(s, m, x) for s in PAPER_PROBLEMS for m in PAPER_METHODS for x in METRICS
    ]
    percents += [p for row in EARLIER_ODEBENCH for pair in row.percents.values() for p in pair]
    assert all(0 <= percent <= 100 for percent in percents if percent is not None)


# --- figures ------------------------------------------------------------------


def test_top_k_curves(written):
    results, out = written
    runs = [run for run in read_runs(results) if run.method == "nsode"]
    run = next(run for run in runs if run.data.set == "textbook")
    steps = [(1, 2), (7, 3), (200, 4), (1536, 5)]
    assert [(step.k, step.hits) for step in top_k(run, "skeleton")] == steps
    skeleton, *_, corner = draw_top_k(runs).axes
    line = next(x for x in skeleton.get_lines() if x.get_label() == "textbook (12)")
    assert line.get_drawstyle() == "steps-post" and skeleton.get_xscale() == "log"
    assert [(k, round(p * 12 / 100)) for k, p in line.get_xydata()] == steps
    assert [t.get_text() for t in corner.get_legend().get_texts()] == [
        "iv-163 (163)",
        line.get_label(),
    ]
    written_steps = [
        (int(r["k"]), int(r["hits"]))
        for r in records(out / "topk.csv")
        if (r["method"], r["set"], r["metric"]) == ("nsode", "textbook", "skeleton")
    ]
    assert written_steps == steps


def test_bars_are_numbers_of_problems(written):
    results, out = written
    runs = [r for r in read_runs(results) if r.data == TEXTBOOK]
    nsode, _, sindy = draw_recovery(runs).axes
    laws = [len(p.expression.skeleton.tokens) for p in problems("textbook")]
    expected = {
        "problems": laws,
        "recovered by any candidate": laws[:5],
        "by the first": laws[:2],
    }
    for bars in nsode.containers:
        counted = expected[bars.get_label()]
        for bar in bars:
            complexity = bar.get_x() + bar.get_width() / 2
            assert bar.get_height() == counted.count(round(complexity))
        assert sum(bar.get_height() for bar in bars) == len(counted)
    assert "2 of 3, 1 by the first (9 missing)" in [text.get_text() for text in sindy.texts]
    found = [
        r
        for r in records(out / "recovery_by_complexity.csv")
        if (r["method"], r["set"]) == ("nsode", "textbook")
    ]
    assert {int(r["complexity"]): int(r["problems"]) for r in found} == {
        c: laws.count(c) for c in laws
    }


def test_a_law_without_complexity_has_no_bar(tmp_path):
    lines = [line_of(p, "sindy", Data("classic")) for p in problems("classic")]
    write(tmp_path, "sindy", lines, Data("classic"))
    (panel,) = draw_recovery(read_runs(tmp_path)).axes
    assert sum(bar.get_height() for bar in panel.containers[0]) == 25


def test_files_and_links(written):
    _, out = written
    text = (out / "report.md").read_text(encoding="utf-8")
    links = set(re.findall(r"(?<!\\)\]\(([^)]+)\)", text))
    assert links | {"report.md"} == {path.name for path in out.iterdir()}
    pictures = [out / link for link in links if link.endswith(".png")]
    assert len(pictures) >= 6
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    counted = [r for r in records(out / "dataset_statistics.csv") if r["data"] == "textbook"]
    complexities = [int(r["count"]) for r in counted if r["quantity"] == "complexity"]
    assert sum(complexities) == 12


# --- how it was measured ------------------------------------------------------

HOSTILE = "<b> | `x` *y* [a](b) \n# _z_"


def test_settings_and_errors_are_listed_and_escaped(tmp_path):
    lines = solved("sindy", [1] * 12)
    for line in lines[:2]:
        line |= {"beams": 64, "threshold": HOSTILE, "machine": HOSTILE, "num_candidates": 0}
        line |= {"rank": dict.fromkeys(METRICS), "candidates": []}
        line["error"] = f"not finished in 60 s: {HOSTILE}"
    write(tmp_path / "results", "sindy", lines)
    write_report(tmp_path / "results", tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    shown = escape(HOSTILE)
    assert shown == r"\<b\> \| \`x\` \*y\* \[a\](b) \# \_z\_"
    assert HOSTILE not in text and "\n# _z_" not in text
    for words in (
        "- problems: 12 of 12 (files: 1)",
        "- seed: 0\n",
        "- beams: 1536 (10), 64 (2)\n",
        f"- threshold: not given (10), {shown} (2)\n",
        f"- machine: EPYC, 2 cores (10), {shown} (2)\n",
        "- errors: 2 of 12 problems, 2 of them time limits: “not finished in 60 s: ",
        "(2, such as textbook: autonomous Riccati)",
        "There are no results on odebench.",
        "There are no results of NSODE on clean data.",
    ):
        assert words in text


def test_corrupted_data_do_not_mix_with_clean_ones(tmp_path):
    noisy = Data("textbook", noise=0.01)
    write(tmp_path / "results", "nsode", solved("nsode", [1] * 12, noisy), noisy)
    write(tmp_path / "results", "nsode", solved("nsode", [2] * 12))
    out = tmp_path / "out"
    write_report(tmp_path / "results", out)
    table = rows(out / "report.md", "All test sets")
    assert cell(table, "textbook", "skeleton", FIRST) == "0.0"
    assert cell(table, "textbook, noise 0.01", "skeleton", FIRST) == "100.0"
    assert cell(table, "textbook, noise 0.01", "skeleton", "paper:<br>NSODE") == "-"
    assert {r["noise"] for r in records(out / "table1.csv")} == {"0.0"}


# --- reading ------------------------------------------------------------------


def test_a_line_that_was_cut_off_is_ignored(tmp_path):
    lines = solved("sindy", [1, 1, 1])
    path = write(tmp_path, "sindy", lines)
    whole = path.read_bytes()
    third = whole.rindex(b"\n", 0, -1) + 1
    for end in range(third + 1, len(whole) - 1, 7):
        path.write_bytes(whole[:end])
        assert [len(run.results) for run in read_runs(tmp_path)] == [2]
    path.write_bytes(whole[:-1])
    assert [len(run.results) for run in read_runs(tmp_path)] == [3]


def test_an_empty_file_is_a_run_without_results(tmp_path):
    write(tmp_path / "results", "nsode", [])
    write(tmp_path / "results", "sindy", solved("sindy", [1]))
    write_report(tmp_path / "results", tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "- NSODE on textbook: 0 of 12 problems" in text


def damaged(**changes):
    rank = changes.pop("rank", {})
    line = line_of(problems("textbook")[0], "sindy", rank=rank) | changes
    return json.dumps(line) + "\n"


IMPOSSIBLE = {"skeleton": 5, "r2_high": 1, "skeleton_and_r2": 1}


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("sindy/textbook.jsonl", "my diary\n", "line 1: is no result"),
        ("sindy/textbook.jsonl", "my diary", "line 1: is no result"),
        ("sindy/textbook.jsonl", "[1]\n", "line 1: is no result"),
        ("sindy/textbook.jsonl", '{"name": "a"\n{}\n', "line 1: is no result"),
        ("sindy/textbook.jsonl", "\xff\n", "line 1: is no result"),
        ("sindy/textbook.jsonl", damaged() * 2, "line 2: has a second result for"),
        ("sindy/textbook.jsonl", damaged(method="nsode"), "is of the method 'nsode'"),
        ("sindy/textbook.jsonl", damaged(noise=0.1), "is of noise 0.1"),
        ("sindy/textbook.jsonl", damaged(name="pendulum\n2"), "is no problem of textbook"),
        ("sindy/textbook.jsonl", damaged(y0=7.0), "starts at 7, in the test set at -0.2"),
        ("sindy/textbook.jsonl", damaged(seconds=None), "line 1: is no result"),
        ("sindy/textbook.jsonl", damaged(rank={"skeleton": 0}), "line 1: is no result"),
        ("sindy/textbook.jsonl", damaged(rank=IMPOSSIBLE), "skeleton_and_r2 contradicts"),
        ("sindy/cookbook.jsonl", damaged(), "of an unknown test set: known are iv, iv-500"),
        ("sindy/textbook-noise0.0.jsonl", damaged(), "should be called textbook.jsonl"),
        ("magic/textbook.jsonl", damaged(), "of the unknown method 'magic': known are nsode"),
        ("textbook.jsonl", damaged(), "must lie in a folder named after its method"),
        ("sindy/textbook.jsonl", "", "holds no results"),
        ("sindy/notes.txt", "my diary", "holds no results"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(tmp_path, file, text, message):
    path = tmp_path / "results" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ReportError) as refusal:
        write_report(tmp_path / "results", tmp_path / "out")
    assert message in str(refusal.value) and "\n" not in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_missing_and_unreadable_places(tmp_path):
    with pytest.raises(ReportError, match="there is no folder"):
        write_report(tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "sindy" / "textbook.jsonl").mkdir(parents=True)
    with pytest.raises(ReportError, match="cannot be read"):
        write_report(tmp_path, tmp_path / "out")


def test_a_report_needs_neither_jax_nor_pyplot():
    code = (
        "import sys, nsode_jax.evaluation.report; "
        "assert not {'jax', 'matplotlib'} & set(sys.modules)"
    )
    root = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=120)


def test_the_committed_report_is_that_of_the_committed_results(tmp_path):
    """What README and docs say was measured is in the files beside them."""
    committed = Path(__file__).parent.parent / "docs" / "evaluation"
    written = {path.name: path for path in write_report(committed / "results", tmp_path)}
    for name in ("report.md", "table8.csv", "odebench.csv", "recovery_by_complexity.csv"):
        assert (committed / name).read_text("utf-8") == written[name].read_text("utf-8"), name
    # Results of a greater effort, told in words; evaluations with commands of their own.
    beside = {
        "results", "thorough", "calibration", "systems", "wide_series.jsonl", "lag_phases.jsonl",
        "intervals.jsonl",
    }  # fmt: skip
    assert {path.name for path in committed.iterdir()} == {*written, *beside}


ROWS_IN_PROSE = {
    "**ours, the first law**": ("nsode+refine", 1),
    "ours, any of the candidates": ("nsode+refine", None),
    "network alone, any of 1536 beams": ("nsode", None),
    "the same, decoded as in the paper": ("nsode-paper", None),
    "SINDy, the first": ("sindy", 1),
    "SINDy, any": ("sindy", None),
    "Operon, the first": ("operon", 1),
    "Operon, any": ("operon", None),
    "gplearn, any of 200": ("gplearn", None),
}


def test_the_table_of_clean_sets_in_prose_is_that_of_the_committed_results():
    docs = Path(__file__).parent.parent / "docs"
    text = (docs / "results.md").read_text("utf-8")
    runs = {(run.method, run.data): run for run in read_runs(docs / "evaluation" / "results")}
    lines = text[text.index("| skeleton / allclose, % |") :].split("\n\n")[0].splitlines()
    table = {cells[0]: cells[1:] for cells in map(cells_of, lines)}
    sets = [title.split(" (")[0] for title in table["skeleton / allclose, %"]]
    for title, (method, within) in ROWS_IN_PROSE.items():
        for name, cell in zip(sets, table[title], strict=True):
            run = runs.get((method, Data(name)))
            assert (cell == "-") == (run is None), (title, name)
            if run is not None:
                assert cell == in_prose(run, within), (title, name)


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def in_prose(run, within):
    """Such as `16.7 / 33.3`, or `15.0 / 40.0 of 20` where these are not all."""
    shares = []
    for metric in ("skeleton", "allclose"):
        ranks = [result.ranks[metric] for result in run.results]
        hits = sum(rank is not None and (within is None or rank <= within) for rank in ranks)
        shares.append(f"{100 * hits / len(ranks):.1f}")
    return " / ".join(shares) + (f" of {len(run.results)}" if run.interrupted else "")
