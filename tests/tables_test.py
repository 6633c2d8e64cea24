"""The table of candidates."""

import math

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results.result import Candidate


def candidate(formula, covariance=None, **fields):
    fit = {"y0s": (1.0,), "start_times": (0.0,), "r2": 0.99, "residual_rms": 0.1, "score": 1.0}
    return Candidate(Expression.from_infix(formula), covariance=covariance, **fit | fields)


LAWS = (
    candidate(
        "0.53214*y - 0.00081234*y**2",
        np.diag([0.0034, 0.0000021, 0.0]) ** 2,
        residual_rms=0.1,
        probability=0.9,
        log_probability=-3.5,
        origin="network",
        converged=True,
    ),
    candidate("0.3*y", residual_rms=0.5, probability=0.1, r2=0.91),
    candidate("exp(y)", residual_rms=math.inf, r2=-math.inf, score=math.inf),
    candidate("0.31*y + 0.1*y**3", residual_rms=0.2),
)
FOUND = Discovery(LAWS, (Trajectory([0, 1, 2], [1, 2, 4]),), ("Beware of <b> & |.",), 2.5)


def test_candidates():
    table = FOUND.table()
    assert list(table["rank"]) == [1, 2, 3, 4]
    assert table["formula"][0] == "0.5321*y - 0.0008123*y**2"
    assert list(table["complexity"]) == [9, 3, 2, 9]
    assert list(table["converged"]) == [True, False, False, False]
    assert list(table["on_pareto_front"]) == [True, True, False, False]
    assert table["r2"][2] == -math.inf and math.isnan(table["log_probability"][1])
    assert table["probability"][0] == 0.9 and table["score"][1] == 1.0
    assert list(table["origin"]) == ["network", "", "", ""]
    assert len(FOUND.table(limit=2)) == 2
    assert list(FOUND.table(limit=2).columns) == list(table.columns)
    assert len(FOUND.table(limit=0).columns) == len(table.columns)
