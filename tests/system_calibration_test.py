"""Whether the stated probabilities of systems mean what they say."""

import json
from pathlib import Path

import numpy as np
import pytest

from nsode_jax.evaluation import system_calibration
from nsode_jax.evaluation.coupled_systems import CASES
from nsode_jax.evaluation.system_calibration import ALL, main, table


def test_names_tell_cases_apart():
    assert len({case.name for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_coupled_systems_have_solutions(case):
    for number in (0, 1):
        seen = case.run(number)
        assert np.isfinite(seen).all() and (np.ptp(seen, axis=0) > 0).all()


def test_shares_are_of_what_was_stated():
    line = {"noise": 0.01, "quantities": 2}
    lines = [line | {"probability": p, "right": right} for p, right in ((0.8, True), (0.6, False))]
    rows = table(lines).splitlines()
    assert "| all | 2 | 50% | 70% |" in rows
    assert "| - two | 2 | 50% | 70% |" in rows
    assert "| - stated 75% to 90% | 1 | 100% | 80% |" in rows


def test_a_run_is_resumed(tmp_path, monkeypatch, capsys):
    case = next(case for case in CASES if case.name == "reversible reaction")
    monkeypatch.setattr(system_calibration, "ALL", (case,))
    monkeypatch.setattr(system_calibration, "NOISES", (0.01,))
    path = tmp_path / "results.jsonl"
    main([str(path)])
    (line,) = map(json.loads, path.read_text().splitlines())
    assert line["right"] and 0.5 < line["probability"] < 1.0
    capsys.readouterr()
    main([str(path)])
    assert len(path.read_text().splitlines()) == 1
    assert "| all | 1 | 100% |" in capsys.readouterr().out


def test_the_documentation_shows_the_committed_results():
    docs = Path(__file__).parent.parent / "docs"
    lines = (docs / "evaluation" / "systems" / "calibration.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(ALL) * len(system_calibration.NOISES)
    shown = table([json.loads(line) for line in lines])
    assert shown in (docs / "results.md").read_text("utf-8")
