"""Which columns are taken for times and values where nobody names them."""

import pytest
from reading import read_rows, refusal

from nsode_jax.tables.files import Contents
from nsode_jax.tables.names import is_like_time, is_summary, numbers_rows, part_of_time
from nsode_jax.tables.table import read_measurements

T = [7 * i for i in range(12)]
Y = [round(1.5 + i**1.5, 3) for i in range(12)]


def read(names, rows, **options):
    return read_rows([[names], *rows], **options)


@pytest.mark.parametrize(
    "names",
    ["OD600,Elapsed hours", "cases,days", "Concentration (mg/L),Day", "pop,Year", "signal,x [s]"]
    + ["y,Reaction time (s)", "Wert,Zeit", "Keime,Stunde", "y,timestamp"],
)
def test_times_behind_the_values_are_told_by_their_name(names):
    for value, columns in ((None, (names, zip(Y, T))), ("1", (names, zip(Y, T)))):
        got = read(*columns, value=value)
        assert got.trajectories[0].t.tolist() == T and got.trajectories[0].y.tolist() == Y
    assert got.names[0] == names.split(",")[1]


@pytest.mark.parametrize(
    "name", ["Sample", "No.", "#", "ID", "Cycle Nr.", "", "point", "obs_no", "Sr#"]
)
def test_numbers_of_rows_are_neither_times_nor_values(name):
    rows = list(zip(range(1, 13), T, Y))
    for names in (f"{name},Elapsed (min),OD", f"{name},x,y"):
        got = read(names, rows)
        assert got.trajectories[0].t.tolist() == T and got.trajectories[0].y.tolist() == Y
    got = read(f"{name},when,y", rows, time="when")
    assert got.trajectories[0].y.tolist() == Y
    got = read(f"{name},time,a,b", [(*row, row[2]) for row in rows], replicates=True)
    assert got.labels == ("a", "b")
    if name not in ("", "#"):  # There may be nothing else.
        assert read(f"{name},y", zip(range(1, 13), Y)).names == (name, "y")


def test_numbers_of_rows_are_no_values_of_a_long_table():
    """`--time age --series tree` is what the refusal of such a table says."""
    rows = [(7 * k + i + 1, k, 9 * i, 30 + k + i * i) for k in range(5) for i in range(7)]
    got = read(",tree,age,size", rows, time="age", series="tree")
    assert got.names == ("age", "size") and got.trajectories[1].y[2] == 35
    assert "--series tree" in refusal(read, ",tree,age,size", rows, time="age")


def test_what_is_measured_again_at_each_time_has_labels_that_are_no_values():
    rows = [(t, k, y + k) for t, y in zip(T, Y) for k in (1, 2, 3)]
    assert refusal(read, "Time,rep,OD", rows).endswith("--series rep.")
    assert read("Time,rep,OD", rows, series="rep").names == ("Time", "OD")


def test_times_in_parts_are_refused():
    hours = [(i // 4, i % 4 * 15, y) for i, y in enumerate(Y)]
    assert "Columns 'hours' and 'minutes' seem to hold one time in parts" in refusal(
        read, "hours,minutes,OD", hours
    )
    months = [(2018 + i // 12, i % 12 + 1, i) for i in range(30)]
    assert "dates such as 2020-03-01" in refusal(read, "Year,Month,Sales", months)
    decimal = [(*row[:2], round(row[0] + row[1] / 12, 3), row[2]) for row in months]
    assert read("year,month,decimal date,ppm", decimal).names == ("decimal date", "ppm")


def test_means_errors_and_the_chamber_are_no_replicates():
    rows = [(t, 37 + i % 2 / 10, y, y + 1, y + 0.5, 0.5) for i, (t, y) in enumerate(zip(T, Y))]
    got = read("Time,T\u00b0 600,r1,r2,Mean,SD", rows, replicates=True)
    assert got.labels == ("r1", "r2") and "'Mean', 'SD'" in " ".join(got.notes)
    assert read("Time,T\u00b0 600,A1,A2,x,z", rows).names[1] == "A1"
    errors_first = [(t, 0.5, y) for t, y in zip(T, Y)]
    assert read("time,sd,mean", errors_first).names[1] == "mean"
    assert read("time,sd", [row[::2] for row in errors_first]).names[1] == "sd"


def test_settings_beside_a_table_are_no_columns():
    """Oscilloscopes write them so."""
    settings = [("Record Length", 2500), ("Sample Interval", 4e-7), ("Trigger Point", 1250)]
    rows = [(*(settings[i] if i < 3 else ("", "")), "", t, y) for i, (t, y) in enumerate(zip(T, Y))]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    got = read_measurements(Contents("scope.csv", text.encode())).trajectories[0]
    assert got.t.tolist() == T and got.y.tolist() == Y


def test_what_names_say():
    assert is_like_time("Latest: Time (s)") and is_like_time("decimal date")
    assert not any(map(is_like_time, ("lifetimes", "s", "d", "substrate", "OD [600]", "sometimes")))
    assert numbers_rows("Unnamed: 0") and not numbers_rows("nitrogen")
    assert is_summary("OD mean") and not is_summary("meander") and not is_summary("A1")
    assert [part_of_time(name) for name in ("Year", "min", "s")] == [0, 5, None]
