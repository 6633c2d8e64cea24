"""Files that are no text, standard input and the clipboard."""

import builtins
import datetime
import io
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from pandas.io import clipboard
from reading import refusal

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.table import read_measurements, read_table

T = np.arange(12.0)
Y = T**2 + 0.5
FRAME = pd.DataFrame({"hours": T, "mass": Y})


def test_what_may_be_meant_by_a_file_that_is_not_there(tmp_path):
    (tmp_path / "yeast_growth.csv").touch()
    said = refusal(read_table, tmp_path / "yeast_grwth.csv")
    assert said.endswith(f"yeast_grwth.csv'; did you mean {str(tmp_path / 'yeast_growth.csv')!r}?")
    assert refusal(read_table, tmp_path / "none" / "a.csv").endswith("a.csv'.")
    assert refusal(read_table, "https://example.com/a.csv").endswith(
        "; download what stands on the web first."
    )


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_spreadsheets(tmp_path, suffix):
    pytest.importorskip("openpyxl" if suffix == ".xlsx" else "odf")
    path = tmp_path / f"data{suffix}"
    dates = pd.date_range("2020-03-01", periods=12)
    sheet = [["Method: growth", None], [None, None], ["day", "mass"]]
    with pd.ExcelWriter(str(path)) as writer:
        pd.DataFrame([*sheet, *zip(dates, Y)]).to_excel(
            writer, sheet_name="data", index=False, header=False
        )
        FRAME.to_excel(writer, sheet_name="more", index=False)
    trajectory, notes, names = read_table(path)
    np.testing.assert_array_equal(trajectory.t, T)
    np.testing.assert_array_equal(trajectory.y, Y)
    assert names == ("day [days since 2020-03-01]", "mass") and "'more'" in notes[0]


@pytest.mark.parametrize("form", ["h:mm:ss", "hh:mm", "[h]:mm:ss"])
@pytest.mark.parametrize("first", [18, 30, 1400])
def test_clock_times_of_more_than_a_day(tmp_path, form, first):
    """openpyxl makes dates in 1900 of what is formatted as h:mm and is 24 h or more."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["time", "mass"])
    for t, y in zip(T, Y):
        book.active.append([(first + t) / 24, y])
        book.active.cell(book.active.max_row, 1).number_format = form
    book.save(tmp_path / "data.xlsx")
    trajectory, _, names = read_table(tmp_path / "data.xlsx")
    unit = 24 if "days" in names[0] else 1
    np.testing.assert_allclose(trajectory.t * unit, first + T, rtol=1e-6)


def test_dates_from_1900_on_are_dates(tmp_path):
    pytest.importorskip("openpyxl")
    dates = [datetime.datetime(1900 + i, 1, 1) for i in range(12)]
    pd.DataFrame({"day": dates, "y": Y}).to_excel(tmp_path / "a.xlsx", index=False)
    assert read_table(tmp_path / "a.xlsx")[2][0] == "day [years since 1900-01-01]"


def test_numbers_of_a_spreadsheet_keep_their_digits(tmp_path):
    pytest.importorskip("openpyxl")
    y = np.random.default_rng(0).normal(size=12)
    pd.DataFrame({"t": T, "y": y}).to_excel(tmp_path / "a.xlsx", index=False)
    # openpyxl writes 16 of 17 digits.
    np.testing.assert_allclose(read_table(tmp_path / "a.xlsx")[0].y, y, rtol=1e-15)


def test_the_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "data.xlsx"
    path.write_bytes(b"PK\x03\x04")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "pip install 'nsode_jax[excel]'" in refusal(read_table, path)
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "h5py":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    (tmp_path / "data.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    assert "h5py" in refusal(read_table, tmp_path / "data.h5")


def test_feather(tmp_path):
    FRAME.to_feather(tmp_path / "data.feather")
    trajectory, _, names = read_table(tmp_path / "data.feather")
    np.testing.assert_array_equal(trajectory.y, Y)
    assert names == ("hours", "mass")


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["run/hours"], file["run/mass"], file["run/comment"] = T, Y, "text"
    trajectory, _, names = read_table(tmp_path / "data.h5")
    np.testing.assert_array_equal(trajectory.y, Y)
    assert names == ("hours", "mass")
    with h5py.File(tmp_path / "none.h5", "w") as file:
        file["comment"] = "text"
    assert "no vectors of numbers" in refusal(read_table, tmp_path / "none.h5")


def write_hdf(path, columns):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, column in columns.items():
            file[name] = column


def test_vectors_of_an_hdf5_file_are_called_by_their_groups_where_they_must(tmp_path):
    path = tmp_path / "data.h5"
    write_hdf(path, {"run1/t": T, "run1/y": Y, "run2/t": 2 * T, "run2/y": Y + 1, "run2/z": Y + 2})
    trajectory, _, names = read_table(path)
    assert names == ("run1/t", "run1/y") and trajectory.y.tolist() == Y.tolist()
    trajectory, _, names = read_table(path, "run2/t", "z")
    assert trajectory.t.tolist() == (2 * T).tolist() and trajectory.y[0] == Y[0] + 2


def test_vectors_of_an_hdf5_file_are_not_left_out_for_their_names(tmp_path):
    write_hdf(tmp_path / "data.h5", {"conc": Y, "temp": Y + 1, "time_axis": T})
    assert read_table(tmp_path / "data.h5")[2] == ("time_axis", "conc")


def test_vectors_of_another_length_are_told(tmp_path):
    settings = dict.fromkeys("abc", np.arange(3.0))
    write_hdf(tmp_path / "data.h5", {"t": T, "y": Y, **settings})
    trajectory, notes, names = read_table(tmp_path / "data.h5")
    assert names == ("t", "y") and len(trajectory) == 12
    assert notes == ("Left out, as they have not 12 rows as the others: a, b, c.",)


def test_texts_and_matrices_of_an_hdf5_file(tmp_path):
    days = np.array([f"2020-03-{1 + i:02}" for i in range(12)], "S10")
    write_hdf(tmp_path / "a.h5", {"conc": Y, "date": days, "temp": Y + 1})
    trajectory, _, names = read_table(tmp_path / "a.h5")
    assert names == ("date [days since 2020-03-01]", "conc") and trajectory.t.tolist() == T.tolist()
    write_hdf(tmp_path / "b.h5", {"t": T[:, None], "y": Y[:, None]})
    assert read_table(tmp_path / "b.h5")[0].y.tolist() == Y.tolist()
    write_hdf(tmp_path / "c.h5", {"data": np.stack([T, Y], axis=1), "picture": np.ones((12, 12))})
    assert read_table(tmp_path / "c.h5", "data 1", "data 2")[0].y.tolist() == Y.tolist()


@pytest.mark.parametrize("kind", ["float", "datetime64[ns]", "integer"])
def test_frames_in_hdf5_as_pandas_writes_them(tmp_path, kind):
    h5py = pytest.importorskip("h5py")
    labels = {
        "float": T / 2,
        "datetime64[ns]": pd.date_range("2020-03-01", periods=12).as_unit("ns").asi8,
        "integer": np.arange(12),
    }[kind]
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["df/axis0"] = np.array([b"hours", b"mass"])
        file["df/axis1"] = labels
        file["df/axis1"].attrs["kind"] = kind
        file["df/block0_items"] = np.array([b"mass", b"hours"])
        file["df/block0_values"] = np.stack([Y, T], axis=1)
    trajectory, _, names = read_table(tmp_path / "data.h5", value="mass")
    assert trajectory.y.tolist() == Y.tolist()
    told = {"float": "t", "datetime64[ns]": "hours", "integer": "hours"}
    assert names == (told[kind], "mass")
    frame_of = read_table(tmp_path / "data.h5", "1", "mass")[2][0]
    assert frame_of == {"datetime64[ns]": "t [days since 2020-03-01]"}.get(kind, told[kind])


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_row_labels_are_columns(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    up_and_down = np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    frame = pd.DataFrame({"conc": up_and_down, "temp": Y})

    def read(labels, **options):
        getattr(frame.set_axis(labels), f"to_{suffix}")(path)
        return read_table(path, **options)

    trajectory, _, names = read(pd.Index(T / 2))
    assert names == ("t", "conc") and trajectory.t.tolist() == (T / 2).tolist()
    days = [f"2020-03-{1 + i:02}" for i in range(12)]
    assert read(pd.Index(days, name="date"))[2] == ("date [days since 2020-03-01]", "conc")
    both = pd.MultiIndex.from_product([["A", "B"], range(6)], names=["subject", "time"])
    assert "--series subject" in refusal(read, both)
    notes = read(pd.Index(5 * np.arange(12)), time="temp", value="conc")[1]
    assert "row labels of the frame (0, 5, 10, ...) were left out" in notes[0]


def test_missing_seconds_since_1970(tmp_path):
    seconds = pd.array([1580515200 + 60 * i for i in range(11)] + [None], "Int64")
    pd.DataFrame({"timestamp": seconds, "y": Y}).to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet")[0].t.tolist() == [*range(11)]


def test_a_window_among_dates_that_are_no_text(tmp_path):
    days = pd.date_range("2020-01-01", periods=40)
    pd.DataFrame({"day": days, "y": range(40)}).to_parquet(tmp_path / "a.parquet")

    def read(**options):
        return read_measurements(tmp_path / "a.parquet", **options).trajectories[0].t

    assert read(start="02/01/2020", dates="day-first")[0] == 1
    assert read(start="02/01/2020", dates="month-first")[0] == 31
    assert read(start="2020-01-03")[0] == 2 and read(start="13/01/2020")[0] == 12
    said = refusal(read, start="02/01/2020")
    assert "2020-01-02 (--dates day-first)" in said and "2020-02-01 (--dates month-first)" in said


@pytest.mark.parametrize("name", ["data.xlsx", "data.ods", "data.feather", "data.h5"])
def test_what_is_no_such_file(tmp_path, name):
    (tmp_path / name).write_text("t,y\n1,2\n")
    assert "cannot be read as" in refusal(read_table, tmp_path / name)


def test_old_excel_files(tmp_path):
    (tmp_path / "data.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500))
    assert "save it as .xlsx or CSV" in refusal(read_table, tmp_path / "data.xls")


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(FRAME.to_csv(index=False).encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    np.testing.assert_array_equal(read_table("-")[0].y, Y)
    assert "empty" in refusal(read_table, "-")


def test_the_clipboard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copied = FRAME.to_csv(index=False, sep="\t")
    monkeypatch.setattr(clipboard, "clipboard_get", lambda: copied)
    np.testing.assert_array_equal(read_table("clipboard")[0].y, Y)
    monkeypatch.setattr(clipboard, "clipboard_get", lambda: " ")
    assert "clipboard is empty" in refusal(read_table, "clipboard")


def test_the_first_sheet_with_numbers_is_read(tmp_path):
    path = tmp_path / "data.xlsx"
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame({"About": ["a", "b"]}).to_excel(writer, sheet_name="Readme", index=False)
        FRAME.to_excel(writer, sheet_name="Data", index=False)
    trajectory, notes, _ = read_table(path)
    assert len(trajectory) == len(FRAME) and "'Data' was read" in notes[0] and "Readme" in notes[0]


@pytest.mark.parametrize("name", ["data.zip", "data.docx", "data"])
def test_archives_are_no_spreadsheets(tmp_path, name):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("a.csv", "t,y\n0,1\n")
    with pytest.raises(TrajectoryError, match="archive without a spreadsheet"):
        read_table(tmp_path / name)
