"""Columns of a table as quantities that were measured together."""

import numpy as np
import pytest

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.quantities import read_quantities

HEADER = "run,t,x,y\n"


def test_columns_are_aligned_and_gaps_stay_gaps(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"a,{t},{t * t},{'' if t == 4 else t + 1}" for t in range(10)]
    rows += [f"b,{t},{2 * t},{3 * t}" for t in range(5, 14)]
    path.write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    read = read_quantities(path, ["x", "y"], "t", series="run")
    assert [times.size for times in read.times] == [10, 9]
    first, second = read.values
    np.testing.assert_array_equal(first[:, 0], np.arange(10.0) ** 2)
    assert np.flatnonzero(np.isnan(first[:, 1])).tolist() == [4]
    np.testing.assert_array_equal(second[:, 1], 3 * np.arange(5.0, 14.0))
    assert read.time_name == "t"


def test_limits_are_refused_where_they_would_not_count(tmp_path):
    path = tmp_path / "table.csv"
    rows = "\n".join(f"{t},{3 + t},{9 - t}" for t in range(8))
    path.write_text(f"t,x,y\n{rows}\n8,11,<0.1\n")
    with pytest.raises(TrajectoryError, match="1 value of which only a limit is known"):
        read_quantities(path, ["x", "y"])


def test_a_quantity_or_an_input_may_be_constant_in_a_run(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{run},{t},{t * t + 1},{t * rate},{rate}" for run, rate in (("a", 0), ("b", 2))
            for t in range(8)]  # fmt: skip
    path.write_text("run,t,prey,predator,rate\n" + "\n".join(rows))
    read = read_quantities(path, ["prey", "predator"], inputs=["rate"], series="run")
    assert [values[:, 1].tolist() for values in read.values] == [[0] * 8, [*range(0, 16, 2)]]
    assert [inputs[:, 0].tolist() for inputs in read.inputs] == [[0] * 8, [2] * 8]


@pytest.mark.parametrize("key", ["mass, g", "2"])
def test_names_with_commas(tmp_path, key):
    path = tmp_path / "table.csv"
    rows = "\n".join(f"{t},{t * t},{9 - t}" for t in range(9))
    path.write_text(f't,"mass, g",y\n{rows}\n')
    read = read_quantities(path, [key, "y"])
    assert read.names == ("mass, g", "y") and read.values[0][3].tolist() == [9, 6]


def test_columns_of_one_name_are_told_apart(tmp_path):
    path = tmp_path / "table.csv"
    rows = "\n".join(f"{t},{t * t},{9 - t}" for t in range(9))
    path.write_text(f"t,rep,rep\n{rows}\n")
    assert read_quantities(path, ["2", "3"]).names == ("rep (2)", "rep (3)")
