"""Columns of a table as quantities that were measured together."""

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import TrajectoryError
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
