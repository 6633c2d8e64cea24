"""MDBench's protocol: slopes at noisy states beyond the data."""

import json
from pathlib import Path

import numpy as np
import pytest

from nsode_jax.evaluation import mdbench
from nsode_jax.evaluation.mdbench import TRUTH, equations, evaluate, nmse, slopes, summary
from nsode_jax.expressions.expression import Expression

ROTATION = {
    "id": 7,
    "name": "rotation",
    "dim": 2,
    "equation_with_values": ["-x_1", "x_0"],
    "initial_conditions": [[1.0, 0.0], [2.0, 1.0]],
    "t_span": [0.0, 10.0],
}


def test_all_systems_of_the_benchmark_are_there():
    found = equations()
    assert [entry["id"] for entry in found] == list(range(1, 64))
    assert sum(entry["dim"] == 1 for entry in found) == 23
    assert all(len(entry["equation_with_values"]) == entry["dim"] for entry in found)


def test_the_error_is_of_slopes_and_none_where_there_are_none():
    def given(*texts):
        return slopes([Expression.from_infix(text, ("x", "y")) for text in texts], states)

    states = np.array([[1.0, 2.0], [3.0, -1.0]])
    true = given("x", "y")
    np.testing.assert_array_equal(true, states)
    assert nmse(true, given("x + 1", "y")) == pytest.approx(2.0 / 15.0)
    for undefined in ("sqrt(y)", "1/(x - 1)", "exp(1e4*x)"):
        assert nmse(true, given("x", undefined)) is None


@pytest.mark.parametrize("snr", [20.0, 40.0])
def test_the_true_system_errs_by_the_noise_of_the_states(snr):
    assert evaluate(ROTATION, TRUTH, None, 0)["nmse"] == 0.0
    # Of a rotation the slopes are the states: the error is the noise's variance.
    error = evaluate(ROTATION, TRUTH, snr, 0)["nmse"]
    assert error == pytest.approx(10 ** (-snr / 10), rel=0.5)
    assert error != evaluate(ROTATION, TRUTH, snr, 1)["nmse"]


def test_only_the_first_part_is_seen(monkeypatch):
    seen = {}

    def method(t, y, names):
        seen.update(t=t, y=y, names=names)
        return tuple(Expression.from_infix(text, names) for text in ("-x_1", "x_0"))

    monkeypatch.setitem(mdbench.METHODS, "right", method)
    line = evaluate(ROTATION, "right", None, 0)
    assert (line["nmse"], line["complexity"]) == (0.0, 3)
    assert seen["names"] == ("x_0", "x_1")
    assert seen["t"].shape == (120,)
    np.testing.assert_allclose(seen["y"][:, 0], np.cos(seen["t"]), atol=1e-3)


def test_a_run_is_resumed_and_summed_up(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mdbench, "equations", lambda: [ROTATION])
    path = tmp_path / "results.jsonl"
    for _ in range(2):
        assert mdbench.main([str(path)]) == 0
        (line,) = map(json.loads, path.read_text().splitlines())
    assert line["nmse"] < 1e-6
    assert line["complexity"] <= 7
    assert capsys.readouterr().out.strip().endswith(summary([line]))
    worse = [line, {**line, "nmse": None}, {**line, "nmse": 0.5}]
    assert "33.3%" in summary(worse)
    rows = summary([{**line, "snr": snr} for snr in (0.0, 40.0, None)]).splitlines()[1:]
    assert [row.split()[1] for row in rows] == ["none", "40.0", "0.0"]


def test_the_documentation_shows_the_committed_results():
    docs = Path(__file__).parent.parent / "docs"
    files = sorted((docs / "evaluation" / "systems").glob("*mdbench.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    assert {line["method"] for line in lines} == {"discover", "sindy", "operon", TRUTH}
    assert summary(lines) in (docs / "results.md").read_text("utf-8")
