"""The evaluation on ODEBench's systems of several quantities."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from nsode_jax.evaluation import odebench_systems
from nsode_jax.evaluation.odebench_systems import (
    METHODS,
    r2,
    solve,
    summary,
    systems,
    true_laws,
)
from nsode_jax.expressions.expression import Expression


def test_the_forty_systems_are_there_and_can_be_evaluated():
    found = systems()
    assert len(found) == 40
    for entry in found:
        for start in entry["initial_conditions"]:
            assert all(np.isfinite(law.evaluate(*start)) for law in true_laws(entry))


def test_the_solver_gives_up_where_there_is_no_solution():
    t = np.linspace(0.0, 10.0, 20)
    explosion, decay, undefined = map(Expression.from_infix, ("y**2", "-y", "-sqrt(y - 0.5)"))
    assert solve([explosion], [1.0], t) is None
    assert solve([undefined], [0.2], t) is None
    np.testing.assert_allclose(solve([decay], [1.0], t)[:, 0], np.exp(-t), atol=1e-4)


def test_r2_weighs_quantities_by_their_variance():
    truth = np.stack([np.arange(10.0), 100 * np.arange(10.0)], axis=1)
    assert r2(truth, truth) == 1.0
    assert r2(truth, truth + [5.0, 0.0]) > 0.99
    assert r2(truth, None) is None


def test_a_run_is_resumed_and_summed_up(tmp_path, monkeypatch, capsys):
    entry = {
        "id": 1,
        "name": "rotation",
        "dim": 2,
        "equation_with_values": ["-x_1", "x_0"],
        "initial_conditions": [[1.0, 0.0], [2.0, 1.0]],
        "t_span": [0.0, 10.0],
    }
    monkeypatch.setattr(odebench_systems, "systems", lambda: [entry])
    path = tmp_path / "results.jsonl"
    assert odebench_systems.main([str(path)]) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["generalization_r2"] for line in lines] == pytest.approx([1.0, 1.0], abs=1e-3)
    capsys.readouterr()
    assert odebench_systems.main([str(path)]) == 0
    assert len(path.read_text().splitlines()) == 2
    assert capsys.readouterr().out.strip() == summary(lines)


@pytest.mark.parametrize("method, library", [("sindy", "PySINDy"), ("operon", "PyOperon")])
def test_what_is_missing_is_said_in_a_line(method, library, tmp_path, monkeypatch, capsys):
    for name in ("pysindy.optimizers", "pyoperon.sklearn"):
        monkeypatch.setitem(sys.modules, name, None)
    assert odebench_systems.main([str(tmp_path / "results.jsonl"), "--method", method]) == 2
    said = capsys.readouterr().err
    assert said == (
        f"odebench_systems: {library} needs the extra `baselines`: "
        "pip install 'nsode_jax[baselines]'\n"
    )


DOCS = Path(__file__).parent.parent / "docs"


def told(name):
    """The rows of the summary of a committed file: number of quantities and runs, and cells."""
    text = (DOCS / "evaluation" / "systems" / f"{name}.jsonl").read_text("utf-8")
    for line in summary(map(json.loads, text.splitlines())).splitlines()[1:]:
        dim, runs, reconstruction, generalization, seconds = line.split()
        yield (dim, runs), [f"{reconstruction} / {generalization}", seconds]


def rows(first, number):
    """Cells of the rows of the documentation's tables that begin so and have so many."""
    text = (DOCS / "results.md").read_text("utf-8")
    found = re.findall(rf"^\| ({first})((?: \| [\d. /]+)+) \|$", text, flags=re.MULTILINE)
    split = [(one, *(cell.strip() for cell in cells.split("|")[1:])) for one, cells in found]
    return [row for row in split if len(row) == number]


def test_the_table_in_the_documentation_is_that_of_the_files():
    shown = rows("2|3|4|named|others|all", 6)
    files = [list(told(name)) for name in ("clean", "noise0.05-drop0.5")]
    assert len(shown) == 6
    for row, clean, noisy in zip(shown, *files, strict=True):
        assert row == (*clean[0], *clean[1], *noisy[1])


@pytest.mark.parametrize("method", METHODS)
def test_so_is_that_of_the_methods(method):
    prefix = "" if method == "discover" else f"{method}-"
    cells = [list(told(f"{prefix}{name}"))[-1][1] for name in ("clean", "noise0.05-drop0.5")]
    assert rows(method, 5) == [(method, *cells[0], *cells[1])]
