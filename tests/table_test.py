"""What a user's files become, and what is refused in which words."""

import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from reading import refusal

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.table import read_measurements, read_table

T = np.arange(12.0)
Y = T**2 + 0.5


@pytest.fixture
def table(tmp_path):
    """Writes a file and gives back its path."""

    def write(content: str | bytes, name: str = "data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(separator: str = ",", t=T, y=Y) -> str:
    return "".join(f"{a}{separator}{b}\n" for a, b in zip(t, y, strict=True))


class TestText:
    @pytest.mark.parametrize("separator", [",", ", ", "\t", ";", " ", "    ", " \t "])
    @pytest.mark.parametrize("header", [True, False])
    def test_separators_with_and_without_header(self, table, separator, header):
        top = f"hours{separator}mass\n" if header else ""
        trajectory, notes, names = read_table(table(top + rows(separator)))
        np.testing.assert_array_equal(trajectory.t, T)
        np.testing.assert_array_equal(trajectory.y, Y)
        assert notes == () and names == (("hours", "mass") if header else ("t", "y"))

    def test_numbers_are_exact(self, table):
        y = np.random.default_rng(0).normal(size=12) * 10.0 ** np.arange(-6, 6)
        trajectory, _, _ = read_table(table(rows(y=y)))
        np.testing.assert_array_equal(trajectory.y, y)

    def test_byte_order_mark_comments_blank_lines_quotes(self, table):
        content = '\ufeff# made up\n\n"time (h)","mass, g"\n\n' + rows() + "# end\n,,\n"
        trajectory, notes, names = read_table(table(content))
        assert len(trajectory) == 12 and notes == () and names == ("time (h)", "mass, g")

    def test_windows_line_ends(self, table):
        trajectory, notes, names = read_table(table(("t,y\n" + rows()).replace("\n", "\r\n")))
        assert len(trajectory) == 12 and notes == () and names == ("t", "y")

    def test_comments_behind_the_numbers(self, table):
        trajectory, notes, _ = read_table(table(rows().replace("\n", " # good\n")))
        np.testing.assert_array_equal(trajectory.y, Y)
        assert notes == ()

    def test_header_as_a_comment(self, table):
        _, _, names = read_table(table("# made by savetxt\n# hours mass\n" + rows(" ")))
        assert names == ("hours", "mass")

    def test_spreadsheet_unicode_text(self, table):
        trajectory, _, names = read_table(table(("t\tµ\n" + rows("\t")).encode("utf-16")))
        assert len(trajectory) == 12 and names == ("t", "µ")

    def test_encodings_of_windows_with_a_word(self, table):
        content = ("t;Preis [\u20ac]\n" + rows(";")).replace(";36.5", ";1\u2019100")
        trajectory, notes, names = read_table(table(content.encode("cp1252")))
        assert names == ("t", "Preis [\u20ac]") and "Windows-1252" in notes[0]
        assert 1100 in trajectory.y
        content = content.replace(";9.5", ";\u2013")
        _, notes, _ = read_table(table(content.encode("cp1252")))
        assert "1 of 12 rows dropped" in " ".join(notes)

    def test_latin_1_with_a_word(self, table):
        raw = ("t,\u00b5\n" + rows()).encode("latin-1") + b"# \x81\x85 1,2\n"
        _, notes, names = read_table(table(raw))
        assert names == ("t", "\u00b5") and "Latin-1" in notes[0]

    @pytest.mark.parametrize("mark", ["\x85", "\u2028", "\x1d"])
    def test_lines_end_where_editors_end_them(self, table, mark):
        content = "t,y,remark\n" + "".join(f"{t},{y},so{mark}5 ml\n" for t, y in zip(T, Y))
        if mark == "\x1d":
            assert "binary" in refusal(read_table, table(content))
            return
        trajectory, notes, _ = read_table(table(content), "t", "y")
        assert trajectory.y.tolist() == Y.tolist() and notes == ()

    def test_decimal_commas(self, table):
        trajectory, notes, _ = read_table(table("t;y\n" + rows(";").replace(".", ",")))
        np.testing.assert_array_equal(trajectory.y, Y)
        assert "Decimal commas" in notes[0]

    def test_lines_of_text_before_the_data(self, table):
        content = "Device 7\nmeasured on Monday\nhours,mass\n(h),(g)\n" + rows()
        trajectory, notes, names = read_table(table(content))
        assert len(trajectory) == 12 and names == ("hours", "mass")
        assert "3 lines of text" in notes[0]

    def test_cells_that_cannot_be_read(self, table):
        trajectory, notes, _ = read_table(table("t,y\n" + rows() + "12,bad\n13,NA\n14\n15,16\n"))
        np.testing.assert_array_equal(trajectory.t, [*T, 15])
        text = " ".join(notes)
        assert "'bad' in line 14" in text and "Column 'y' has 1 cell without" in text
        assert "more or fewer than 2 cells" in text and "3 of 16 rows dropped" in text

    def test_unsorted_and_repeated_times(self, table):
        trajectory, notes, _ = read_table(table("t,y\n5,25.5\n" + rows()))
        np.testing.assert_array_equal(trajectory.y, Y)
        assert "sorted" in notes[0] and "averaged" in notes[1]

    def test_text_columns_are_passed_over(self, table):
        content = "name,t,y\n" + "".join(f"a{i},{i},{i * i}\n" for i in range(12))
        trajectory, notes, names = read_table(table(content))
        assert names == ("t", "y") and trajectory.y[3] == 9 and "more than two columns" in notes[0]

    def test_row_numbers_of_pandas_and_r(self, table):
        body = "".join(f'"{i}",{i / 4},{i * i}\n' for i in range(12))
        for header in (",t,y\n", "t,y\n"):
            trajectory, notes, names = read_table(table(header + body))
            assert names == ("t", "y") and trajectory.t[1] == 0.25
            assert "counts the rows" in notes[0]

    def test_swapped_columns_are_told_by_their_names(self, table):
        trajectory, notes, names = read_table(table("mass,time_h\n" + rows(t=Y, y=T)))
        assert names == ("time_h", "mass") and "by its name" in notes[0]
        np.testing.assert_array_equal(trajectory.y, Y)

    def test_choosing_columns(self, table):
        path = table("s,a,b,b\n" + "".join(f"{i},{i}1,{i}2,{i}3\n" for i in range(12)))
        read = lambda **chosen: read_table(path, **chosen)[0].y[1]  # noqa: E731
        assert read() == 11 and read(value="a") == 11 and read(value="3") == 12
        assert read(time="a") == 1 and read(time="1", value="4") == 13 and read(value="A") == 11
        assert read(time="a", value="s") == 1
        message = refusal(read_table, path, value="b")
        assert "3 and 4" in message and "number" in message
        message = refusal(read_table, path, value="mass")
        assert "'mass'" in message and "1 's', 2 'a', 3 'b', 4 'b'" in message
        assert "no column '5'" in refusal(read_table, path, time="5")
        assert "same column" in refusal(read_table, path, time="a", value="2")

    def test_a_named_column_without_numbers(self, table):
        path = table("k,t,y\n" + "".join(f"x,{i},{i * i}\n" for i in range(12)))
        assert "'k' does not hold numbers" in refusal(read_table, path, value="k")

    def test_files_that_cannot_be_read(self, tmp_path, table):
        assert "no file" in refusal(read_table, tmp_path / "absent.csv")
        assert "folder" in refusal(read_table, tmp_path)
        assert "empty" in refusal(read_table, table(""))
        assert "empty" in refusal(read_table, table(" \n \n"))
        assert "no data" in refusal(read_table, table("# nothing\n\n"))
        assert "not a text file" in refusal(read_table, table(b"\x89PNG\r\n\x1a\n\x00\x01\x02"))
        assert "not a text file" in refusal(read_table, table(bytes(range(256)) * 9))

    @pytest.mark.parametrize(
        "content",
        ["a,b\nx,y\nu,v\n", "t,y\n", "just some words\n"],
    )
    def test_no_columns_of_numbers(self, table, content):
        assert "no two columns of numbers" in refusal(read_table, table(content))

    def test_one_column_of_numbers(self, table):
        message = refusal(read_table, table("y\n" + "".join(f"{i}\n" for i in range(12))))
        assert "only one column" in message and "two are needed" in message
        named = "name,y\n" + "".join(f"n{i},{i}\n" for i in range(12))
        assert "two columns of numbers" in refusal(read_table, table(named))

    @pytest.mark.parametrize(
        ("y", "words"),
        [
            (np.full(12, 2.0), "constant"),
            (Y * 1e300, "too large"),
            (Y * 1e-300, "too small"),
            (np.where(T < 9, np.nan, Y), "Only 3 usable points"),
        ],
    )
    def test_series_that_are_refused(self, table, y, words):
        assert words in refusal(read_table, table("t,y\n" + rows(y=y)))

    def test_a_stray_quotation_mark_does_not_crash(self, table):
        content = "t,y\n" + rows().replace("3.0,9.5", '3.0,"9.5')
        refusal(read_table, table(content))
        refusal(read_table, table(content + rows() * 20000))

    def test_many_rows(self, table):
        n = 200_000
        y = np.random.default_rng(0).random(n)
        trajectory, notes, _ = read_table(table("t,y\n" + rows(t=np.arange(n), y=y)))
        np.testing.assert_array_equal(trajectory.y, y)
        assert notes == ()

    def test_a_table_of_semicolons_with_some_decimal_commas(self, table):
        cells = [str(i) if i % 3 else f"{i},5" for i in range(12)]
        trajectory, _, _ = read_table(table(rows(";", range(12), cells)))
        np.testing.assert_array_equal(trajectory.y, np.where(T % 3, T, T + 0.5))

    def test_decimal_commas_between_spaces(self, table):
        trajectory, notes, _ = read_table(table(rows(" ").replace(".", ",")))
        np.testing.assert_array_equal(trajectory.y, Y)
        assert "Decimal commas" in notes[0]

    def test_a_line_of_units(self, table):
        trajectory, notes, names = read_table(table("hours,mass\nh,g\n" + rows()))
        assert len(trajectory) == 12 and names == ("hours", "mass") and "1 line" in notes[0]

    def test_more_text_than_data(self, table):
        trajectory, notes, names = read_table(table("some words\n" * 300 + "a,b\n" + rows()))
        assert len(trajectory) == 12 and names == ("a", "b") and "300 lines" in notes[0]

    def test_lines_are_counted_as_in_the_file(self, table):
        content = "# a\n\nt,y\n\n" + rows() + "# b\n\n,,\n12,bad\n13,9\n"
        assert "'bad' in line 20" in read_table(table(content))[1][0]
        content = 't,"y\n(g)"\n' + rows() + '12,"1\n"\n13,bad\n14,9\n'
        assert "'bad' in row 14" in read_table(table(content))[1][0]

    @pytest.mark.parametrize("header", ["t,y\n", ""])
    def test_the_first_value_may_be_missing(self, table, header):
        for cell in ("NA", ""):
            _, notes, _ = read_table(table(header + rows(y=[cell, *Y[1:]])))
            assert len(notes) == 1 and "1 of 12 rows dropped" in notes[0]

    def test_why_too_little_is_left(self, table):
        message = refusal(read_table, table(rows(y=[*Y[:7], *["<0.1"] * 5])))
        assert "7 usable points" in message and "5 values" in message and "limits" in message

    def test_text_with_marks_of_comments_stays(self, table):
        content = "id,t,y\n" + "".join(f"a#{i},{i},{i * i}\n" for i in range(12))
        assert len(read_table(table(content))[0]) == 12

    def test_gzip(self, table):
        packed = gzip.compress(rows().encode())
        trajectory, notes, _ = read_table(table(packed, "data.csv.gz"))
        np.testing.assert_array_equal(trajectory.y, Y)
        assert notes == ()
        assert "cannot be read" in refusal(read_table, table(packed[:-12]))
        assert "cannot be read" in refusal(read_table, table(b"\x1f\x8bnonsense"))
        assert "empty" in refusal(read_table, table(gzip.compress(b"")))

    def test_columns_that_look_swapped(self, table):
        mixed = [5, 3, 8, 1, 9, 2, 7, 4, 6, 0, 11, 10]
        path = table(rows(t=mixed, y=range(12)))
        assert "--time 2, which goes one way, or --time 1 if" in refusal(read_table, path)
        assert read_table(path, time="2", value="1")[1] == ()
        assert "swapped" not in " ".join(read_table(path, time="1")[1])


DAYS = pd.date_range("2020-03-01", periods=12)


def read_dates(table, times, header="date,y\n", **options):
    return read_table(table(header + rows(t=times)), **options)


class TestDates:
    @pytest.mark.parametrize(
        "form",
        ["%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d-%b-%Y", "%d %B %Y"]
        + [
            "%Y-%m-%dT%H:%M:%SZ",
            '"%Y-%m-%d %H:%M:%S.%f"',
            "%m/%d/%Y",
            "%d.%m.%Y",
            "%m/%d/%y %H:%M",
        ],
    )
    def test_become_numbers(self, table, form):
        trajectory, notes, names = read_dates(table, DAYS.strftime(form))
        np.testing.assert_array_equal(trajectory.t, T)
        np.testing.assert_array_equal(trajectory.y, Y)
        assert names == ("date [days since 2020-03-01]", "y")
        assert (
            notes[-1] == "Column 'date' holds dates; they were converted to days since 2020-03-01."
        )

    def test_without_names(self, table):
        _, notes, names = read_dates(table, DAYS.strftime("%Y-%m-%d"), header="")
        assert names == ("t [days since 2020-03-01]", "y") and "Column 1 holds" in notes[0]

    @pytest.mark.parametrize("form", ["%m/%d/%Y", "%d/%m/%Y"])
    def test_day_and_month_are_told_apart_where_the_dates_tell(self, table, form):
        trajectory, notes, _ = read_dates(table, (DAYS + pd.Timedelta("9D")).strftime(form))
        np.testing.assert_array_equal(trajectory.t, T)
        assert len(notes) == 1

    def test_day_and_month_that_cannot_be_told_apart_are_noted(self, table):
        trajectory, notes, _ = read_dates(table, DAYS.strftime("%d/%m/%Y"))
        np.testing.assert_array_equal(trajectory.t, T)
        assert "'01/03/2020' can be read in two ways" in notes[0] and "2020-03-01" in notes[0]

    def test_that_are_none_are_counted(self, table):
        times = [*DAYS.strftime("%Y-%m-%d")]
        trajectory, notes, _ = read_dates(table, [*times[:4], "2020-02-30", "", *times[6:]])
        np.testing.assert_array_equal(trajectory.t, np.delete(T, [4, 5]))
        assert "1 cell without a time" in notes[1] and "'2020-02-30' in line 6" in notes[1]
        message = refusal(read_dates, table, ["2020-02-30", "yesterday", "", *times[3:]])
        assert "at an end" in message and "'2020-02-30' in line 2, 'yesterday' in line 3" in message
        assert "12 cells without a time" in refusal(read_dates, table, ["2020-02-30"] * 12)

    def test_time_zones(self, table):
        times = [f"2020-03-{i + 1:02}T0{i % 3}:00+0{i % 3}:00" for i in range(12)]
        trajectory, notes, _ = read_dates(table, times)
        np.testing.assert_array_equal(trajectory.t, T)
        assert "(+00:00, +01:00, +02:00) were converted to UTC" in notes[0]
        times = [f"2020-03-{i + 1:02}{'T00:00Z' * (i > 3)}" for i in range(12)]
        assert "4 dates without a zone were taken as UTC" in read_dates(table, times)[1][0]

    def test_clock_times(self, table):
        trajectory, notes, names = read_dates(table, [f"0:{i + 10}" for i in range(12)])
        np.testing.assert_array_equal(trajectory.t, T + 10)
        assert names[0] == "date [minutes]" and "h:mm" in notes[0]
        trajectory, notes, _ = read_dates(table, [f"{(i + 20) % 24}:00:00" for i in range(12)])
        np.testing.assert_array_equal(trajectory.t, T + 20)
        assert "midnight 1 time" in notes[0]

    @pytest.mark.parametrize("separator", [",", " "])
    def test_with_the_clock_in_a_column_of_its_own(self, table, separator):
        times = [f"2020-03-0{1 + i // 6}{separator}{i % 6 * 4}:00:00" for i in range(12)]
        trajectory, notes, _ = read_table(table(rows(separator, times)))
        np.testing.assert_array_equal(trajectory.t, 4 * T)
        assert "hours since 2020-03-01" in notes[-1]

    def test_are_the_times_wherever_they_stand(self, table):
        content = "id,date,y\n" + "".join(f"{i * i},{d:%F},{i}\n" for i, d in enumerate(DAYS))
        path = table(content)
        _, notes, names = read_table(path)
        assert (
            names == ("date [days since 2020-03-01]", "y") and "was taken as the time" in notes[0]
        )
        assert read_table(path, time="y", value="id")[2] == ("y", "id")
        assert "'date' does not hold numbers" in refusal(read_table, path, value="date")
        only = table(rows(t=DAYS.strftime("%F"), y=DAYS.strftime("%F")))
        assert "no two columns of numbers" in refusal(read_table, only)


class TestParquet:
    @pytest.fixture
    def write(self, tmp_path):
        def write_frame(frame: pd.DataFrame):
            frame.to_parquet(tmp_path / "data.parquet")
            return tmp_path / "data.parquet"

        return write_frame

    def test_numbers(self, write):
        trajectory, notes, names = read_table(write(pd.DataFrame({"hours": T, "mass": Y})))
        np.testing.assert_array_equal(trajectory.y, Y)
        assert notes == () and names == ("hours", "mass")

    @pytest.mark.parametrize("index", [False, True])
    @pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
    def test_dates(self, write, index, zone):
        frame = pd.DataFrame({"date": DAYS.tz_localize(zone), "y": Y})
        trajectory, _, names = read_table(write(frame.set_index("date") if index else frame))
        np.testing.assert_array_equal(trajectory.t, T)
        assert names[0].startswith("date [days since 2020-0")

    def test_missing_and_text(self, write):
        frame = pd.DataFrame({"t": T, "y": [*map(str, Y[:4]), "bad", None, *map(str, Y[6:])]})
        trajectory, notes, _ = read_table(write(frame))
        assert len(trajectory) == 10 and "'bad' in row 5" in notes[0]
        assert "no two columns" in refusal(read_table, write(frame[:0]))

    def test_what_is_no_parquet(self, table):
        message = refusal(read_table, table(rows(), "data.parquet"))
        assert "cannot be read as Parquet" in message
        assert "cannot be read as Parquet" in refusal(read_table, table(b"PAR1 and no more"))

    def test_without_pyarrow(self, write, monkeypatch):
        path = write(pd.DataFrame({"t": T, "y": Y}))

        def absent(*args, **kwargs):
            raise ImportError("no pyarrow")

        monkeypatch.setattr(pd, "read_parquet", absent)
        assert "pip install pyarrow" in refusal(read_table, path)


def test_a_mistyped_name_is_answered_before_pandas_is_imported():
    code = """
import sys
from nsode_jax.tables.table import read_measurements, read_table
try:
    read_table("absent.csv")
except ValueError as error:
    print(error)
sys.exit("pandas" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0 and result.stdout == "There is no file 'absent.csv'.\n"


class TestSeveralSeries:
    LONG = "dish,hours,size\n" + "".join(
        f"{dish},{t},{size * 2**t}\n" for dish, size in (("b", 1.5), ("a", 3)) for t in range(9)
    )

    def test_series_are_told_apart_by_a_column(self, tmp_path):
        file = tmp_path / "long.csv"
        file.write_text(self.LONG)
        read = read_measurements(file, series="dish")
        assert read.names == ("hours", "size") and read.labels == ("b", "a")
        first, second = read.trajectories  # In the order of the file.
        np.testing.assert_array_equal(first.y, 1.5 * 2.0 ** np.arange(9))
        np.testing.assert_array_equal(second.y, 3.0 * 2.0 ** np.arange(9))

    def test_labels_may_be_numbers_and_rows_mixed(self, tmp_path):
        file = tmp_path / "long.csv"
        rows = self.LONG.replace("b,", "1,").replace("a,", "2,").splitlines()
        file.write_text("\n".join([rows[0], *sorted(rows[1:], key=lambda row: row.split(",")[1])]))
        read = read_measurements(file, "hours", "size", series="1")
        assert [len(trajectory) for trajectory in read.trajectories] == [9, 9]

    def test_a_series_that_is_too_short_is_named(self, tmp_path):
        file = tmp_path / "long.csv"
        file.write_text(self.LONG + "c,0,1\n")
        with pytest.raises(TrajectoryError, match="Series 'c': Only 1 usable point"):
            read_measurements(file, series="dish")
        with pytest.raises(TrajectoryError, match="no column"):
            read_measurements(file, series="plate")
