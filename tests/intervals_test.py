"""The evaluation of intervals: what is asked, and how it is counted."""

import json

import numpy as np
import pytest

from nsode_jax.evaluation.intervals import LAWS, SOLVERS, data_of, evaluate, main, table
from nsode_jax.fitting.linearized import autocorrelation


def test_noise_is_as_large_and_as_alike_as_asked_for():
    clean = data_of("saturation", "LSODA to a millionth", 2000, 1)
    for alike in (0.0, 0.8):
        noise = data_of("saturation", str(alike), 2000, 1).y - clean.y
        assert noise.std() == pytest.approx(0.03 * clean.y.std(), rel=0.15)
        assert autocorrelation([noise]) == pytest.approx(alike, abs=0.08)
    coarse = data_of("saturation", "solve_ivp as it is", 2000, 1)
    assert 1e-6 < np.abs(coarse.y - clean.y).max() < 1e-2


def test_alike_noise_is_told_of_by_wider_intervals():
    line = evaluate("logistic growth", "0.8", 60, 10)
    assert line["constants"] == 20
    assert line["independent"] < line["held"]
    rows = table([line]).splitlines()
    share = f"{5 * line['held']:.0f} ({5 * line['independent']:.0f})"
    assert rows[5] == f"| autocorrelation 0.8 | 0 (0) | {share} |"


def test_the_command_does_all_of_it(tmp_path, capsys):
    path = tmp_path / "intervals.jsonl"
    assert main([str(path), "--seeds", "1"]) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == len(LAWS) * (4 + len(SOLVERS)) * 2
    assert capsys.readouterr().out.strip().endswith(table(lines))
