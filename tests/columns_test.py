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


# Cells that speak of time and that nothing reads, as m runs from 1 to 12.
UNREADABLE = ["{month}-20", "2020Q{m}", "2020-W{m:02}", "2020-{m:03}", "20200301T{m:02}0000Z"]
UNREADABLE += ["2020-03-01 {m:02}:00 CET", "Sun Mar {m:02} 00:00:00 2020", "{m}. M\u00e4rz 2020"]
UNREADABLE += ["2020-03-01 {m:02}.30", "0:{m:02}:00:00", "{month}"]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


@pytest.mark.parametrize("form", UNREADABLE)
@pytest.mark.parametrize("name", ["Date", "Time", "when"])
def test_times_that_cannot_be_read_are_not_passed_over(form, name):
    """Another quantity would be taken as the time, even one that rises."""
    cells = [form.format(m=m, month=month) for m, month in enumerate(MONTHS, 1)]
    for value in (None, "price"):
        said = refusal(read, f"{name},sales,price", zip(cells, T, Y), value=value)
        assert f"'{name}' does not hold numbers or dates" in said and "2020-03-01" in said
    assert read(f"{name},sales,price", zip(cells, T, Y), time="sales").names == ("sales", "price")


def test_a_date_that_cannot_be_read_beside_a_clock_is_not_passed_over():
    rows = [(f"{1 + i // 3}. M\u00e4rz 2020", f"{6 + i % 3}:00", i * i) for i in range(12)]
    assert "'Datum' does not hold" in refusal(read, "Datum,Zeit,y", rows)


def test_names_of_samples_are_passed_over():
    rows = [(f"S{i}", t, y) for i, (t, y) in enumerate(zip(T, Y))]
    assert read("sample,x,y", rows).names == ("x", "y")


@pytest.mark.parametrize("names", ["x,y", "T,y", "sales,price", ","])
def test_what_goes_up_and_down_is_no_time_without_a_name(names):
    mixed = [5, 3, 8, 1, 9, 2, 7, 4, 6, 0, 11, 10]
    said = refusal(read, names, zip(mixed, Y))
    assert "goes up and down (first in line 4)" in said
    assert read(names, zip(mixed, Y), time="1").trajectories[0].t.tolist() == [*range(12)]
    for name in ("t", "Time", "t (min)", "day"):
        assert len(read(f"{name},y", zip(mixed, Y)).trajectories[0]) == 12


def test_each_series_has_times_that_go_one_way():
    rows = [(k, x, 3 + x * x) for k in "ab" for x in range(6)]
    assert len(read("run,x,y", rows, series="run").trajectories) == 2
    rows[2], rows[4] = rows[4], rows[2]
    assert "up and down" in refusal(read, "run,x,y", rows, series="run")


def test_the_column_of_times_is_told_unless_it_is_named_so():
    rows = [(x, y, y * y) for x, y in zip(T, Y)]
    assert read("a,b,c", rows, value="c").notes == ("Column 'a' was taken as the time.",)
    assert read("day,b,c", rows, value="c").notes == ()
    assert read("a,b", zip(T, Y), value="b").notes == ()


@pytest.mark.parametrize(
    "names",
    ["hours,T (\u00b0C)", "min,T", "elapsed_s,T_C", "day,temps", "minute,T air", "hour,t2m"]
    + ["Minuten,T_max", "day,T_min", "year,T"],
)
def test_temperatures_are_no_times(names):
    for y in (Y, Y[::-1], [y * (-1) ** i for i, y in enumerate(Y)]):
        got = read(names, zip(T, y))
        assert got.names == tuple(names.split(",")) and got.trajectories[0].y.tolist() == y
        got = read(f"{names},RH", zip(T, y, Y))
        assert got.names == tuple(names.split(","))
        got = read(",".join(names.split(",")[::-1]), zip(y, T))
        assert got.names == tuple(names.split(","))


@pytest.mark.parametrize("name", ["T_max", "t2m", "T", "temps", "T_min"])
def test_temperatures_beside_dates_are_values(name):
    days = [f"2020-03-{1 + i:02}" for i in range(12)]
    got = read(f"date,{name},rain", zip(days, T, Y))
    assert got.names == ("date [days since 2020-03-01]", name)
    assert got.trajectories[0].y.tolist() == T


@pytest.mark.parametrize("name", ["t", "T", "temps", "t (min)", "T [s]", "t_h", "t0", "t [ns]"])
def test_short_names_of_times(name):
    got = read(f"y,{name}", zip(Y, T))
    assert got.names == (name, "y") and got.trajectories[0].t.tolist() == T


def test_advice_can_be_copied():
    rows = [(t, y, y + 1, 0.1) for t, y in zip(T, Y)]
    note = " ".join(read("time,OD,b c,OD sd.", rows).notes)
    assert "(--value 'OD,b c')" in note
    rows = [(t, y, 0.1) for t, y in zip(T, Y)]
    assert "--sigma 'OD sd.'." in " ".join(read("time,OD,OD sd.", rows).notes)
    assert "(--value 2,3)" in " ".join(read("time,rep,rep", rows).notes)
    rows = [(t, y, 0.1, y, 0.1) for t, y in zip(T, Y)]
    note = " ".join(read("time,a,sd,b,sd", rows, value="a,b", replicates=True).notes)
    assert "--sigma 3,5." in note
