"""The table of candidates."""

import math

from observing import CANDIDATES

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.reporting.discovery import Discovery

FOUND = Discovery(CANDIDATES, (Trajectory([0, 1, 2], [1, 2, 4]),), ("Beware of <b> & |.",), 2.5)


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
