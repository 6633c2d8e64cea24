"""The main job with the shipped weights: measured data in, a law out."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from nsode_jax import discover as cli
from nsode_jax.discovery import discover
from nsode_jax.expressions.constants import structure
from nsode_jax.tables.table import read_table

YEAST = Path(__file__).parent.parent / "examples" / "yeast_growth.csv"


@pytest.fixture(scope="module")
def yeast():
    trajectory, _, _ = read_table(YEAST)
    return discover(trajectory.t, trajectory.y)


def test_yeast_grows_logistically(yeast):
    best = yeast.best
    # r*y - (r/K)*y**2, in this order or the other.
    assert best.expression.skeleton.unsigned_key == "add mul c pow y c mul c y"
    quadratic, exponent, rate = best.expression.constants
    assert exponent == 2.0
    assert 0.50 <= rate <= 0.58
    assert 640 <= -rate / quadratic <= 690
    assert best.r2 >= 0.99
    assert best.converged


def test_candidates_are_distinct_and_best_first(yeast):
    assert len(yeast.candidates) >= 5
    structures = [structure(c.expression) for c in yeast.candidates]
    assert len(set(structures)) == len(structures)
    scores = [c.score for c in yeast.candidates]
    assert scores == sorted(scores)


def test_the_fitted_solution_is_what_r2_says(yeast):
    trajectory, best = yeast.trajectory, yeast.best
    solution = best.predict(trajectory.t)
    residual = np.sum((solution - trajectory.y) ** 2)
    total = np.sum((trajectory.y - trajectory.y.mean()) ** 2)
    assert 1 - residual / total == pytest.approx(best.r2, abs=1e-6)
    # The carrying capacity is where every solution ends up.
    assert best.predict([0.0, 200.0], y0=1.0)[-1] == pytest.approx(
        -best.expression.constants[2] / best.expression.constants[0], rel=1e-4
    )


def test_the_same_data_give_the_same_answer(yeast):
    again = discover(yeast.trajectory.t, yeast.trajectory.y)
    assert [c.infix for c in again.candidates] == [c.infix for c in yeast.candidates]


def test_command_line(tmp_path, monkeypatch, capsys):
    shutil.copy(YEAST, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["yeast_growth.csv"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ +1 +\d+\.\d% +0\.99\d+ +\d+  .*y\*\*2", out, re.MULTILINE)
    assert "dyeast_amount/dtime_h" in out
    assert (tmp_path / "yeast_growth_law.png").stat().st_size > 10_000
