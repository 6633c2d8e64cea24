"""Values over decades: true laws are what is asked for, and the table is that of the results."""

import json
from pathlib import Path

import numpy as np
import pytest

from nsode_jax.evaluation.wide_series import CASES, NOISES, POINTS, evaluate, table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/evaluation/wide_series.jsonl"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_solutions_span_decades(case):
    y = case.solution(30)
    assert y is not None and (y > 0).all()
    assert np.ptp(np.log10(y)) > 1.7


def test_a_law_is_judged_by_all_decades():
    line = evaluate(next(c for c in CASES if c.name == "virus under therapy"), 12, 0.1, 0)
    assert line["right"] and line["error_of_logs"] < 0.1


def test_the_table_in_the_docs_is_that_of_the_results():
    lines = [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()]
    assert len(lines) == len(CASES) * len(NOISES) * len(POINTS)
    assert table(lines) in (ROOT / "docs/results.md").read_text("utf-8")
