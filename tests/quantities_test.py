"""Columns of a table as quantities that were measured together."""

import numpy as np
import pytest
from reading import refusal

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.observed.runs import read_runs
from nsode_jax.tables.files import Contents
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


def test_what_was_done_to_rows_is_told_once_of_all_quantities():
    """Two values are missing of each, one time is counted twice, one row holds no value."""
    cells = [[f"{t}", f"{t * t}", f"{30 - t}"] for t in range(20)]
    for row, column in ((3, 1), (5, 1), (5, 2), (8, 2), (9, 2)):
        cells[row][column] = "n/a"
    cells.insert(13, ["12", "140", "19"])
    text = "\n".join(["t,hares,lynx", *map(",".join, cells)])
    read = read_quantities(Contents("data.csv", text.encode()), ["hares", "lynx"])
    assert read.notes == ("1 of 21 rows dropped: the time or all values are missing.",)
    assert read.times[0].size == 20 and read.complete[0].size == 16


def test_notes_on_cells_tell_the_column_and_those_on_rows_the_run():
    cells = [f"{run},{t},{t * t},{'BLQ' if t == 4 and run == 'b' else 30 - t}"
             for run in "ab" for t in reversed(range(9))]  # fmt: skip
    text = "\n".join(["run,t,x,y", *cells])
    read = read_quantities(Contents("d.csv", text.encode()), ["x", "y"], series="run", start="1")
    outside, limit = read.notes
    assert outside == "All series: 1 row outside the chosen window left out."
    assert limit.startswith("Series 'b': 1 value in column 'y' is only a limit without a number")
    assert [times.size for times in read.complete] == [8, 7]


def test_rows_stay_as_the_table_has_them():
    """Repeated times are steps of inputs, or measurements that count so much more."""
    rows = [(5, 1.0, 0), (5, 1.2, 1), *((t, t * t, 0) for t in range(5)), (6, 2, 1), (7, 3, 1)]
    text = "t,x,valve\n" + "\n".join(",".join(map(str, row)) for row in rows)
    read = read_quantities(Contents("d.csv", text.encode()), ["x"], inputs=["valve"])
    np.testing.assert_array_equal(read.times[0], [row[0] for row in rows])
    np.testing.assert_array_equal(read.values[0][:, 0], [row[1] for row in rows])
    np.testing.assert_array_equal(read.inputs[0][:, 0], [row[2] for row in rows])
    np.testing.assert_array_equal(read.complete[0], range(8))
    data, notes = read_runs(
        read.times, read.values, read.inputs, names=["x"], input_names=["valve"],
        explicit_time=False, order=1,
    )  # fmt: skip
    (run,) = data.runs
    np.testing.assert_array_equal(run.inputs.jumps, [5.0])
    assert run.weights[5, 0] == pytest.approx(np.sqrt(2) * run.weights[0, 0])
    assert any("1 time occurred more than once" in note for note in notes)


def test_no_errors_are_asked_for_where_they_do_not_count():
    text = "t,x,y,x_sd,y_sd\n" + "".join(f"{t},{t * t},{9 - t},0.1,0.2\n" for t in range(9))
    assert read_quantities(Contents("data.csv", text.encode()), ["x", "y"]).notes == ()


def test_the_only_column_of_values_is_taken():
    rows = [(k, 0.1 * k, k * k % 17, k % 3) for k in range(12)]

    def read(names, columns, **options):
        lines = (",".join(str(row[column]) for column in columns) for row in rows)
        text = "\n".join([names, *lines]).encode()
        return read_quantities(Contents("data.csv", text), **options)

    for names, columns, options in (
        ("t/s,x/mm", (1, 2), {}),
        ("No.,t/s,x/mm", (0, 1, 2), {}),
        ("x/mm,time", (2, 1), {}),
        ("t,u,x/mm", (1, 3, 2), {"inputs": ["u"]}),
    ):
        found = read(names, columns, **options)
        assert found.names == ("x/mm",) and found.input_names == tuple(options.get("inputs", ()))
        assert found.values[0][:, 0].tolist() == [row[2] for row in rows]
    message = refusal(read, "t,x (mm),u", (1, 2, 3))
    assert message == (
        "'data.csv' has 2 columns of values; name the columns that have laws, one or several, "
        "such as --value 'x (mm),u'."
    )
    assert "'u' is named twice" in refusal(read, "t,x,u", (1, 2, 3), inputs=["u", "u"])
    assert "'t' is named twice" in refusal(read, "t,x,u", (1, 2, 3), inputs=["t"], time="t")


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
