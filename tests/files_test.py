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

from nsode_jax.dynamics.trajectory import TrajectoryError
from nsode_jax.tables.table import read_table

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
