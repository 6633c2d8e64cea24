"""What a user's arrays and files become, and what is refused in which words."""

import time

import numpy as np
import pytest

from nsode_jax.dynamics.table import read_table
from nsode_jax.dynamics.trajectory import MIN_POINTS, Trajectory, TrajectoryError, clean

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


def refusal(function, *args, **kwargs) -> str:
    """The message of the TrajectoryError, which must be one line."""
    with pytest.raises(TrajectoryError) as caught:
        function(*args, **kwargs)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


class TestTrajectory:
    def test_holds_float64(self):
        trajectory = Trajectory([0, 1, 2], np.array([1, 2, 3], np.float32))
        assert trajectory.t.dtype == trajectory.y.dtype == np.float64
        assert len(trajectory) == 3

    def test_does_not_share_memory_with_the_caller(self):
        t = np.arange(3.0)
        trajectory = Trajectory(t, t + 1)
        t[0] = -5
        assert trajectory.t[0] == 0

    @pytest.mark.parametrize(
        ("t", "y", "words"),
        [
            ([0, 1], [0, 1, 2], "as many times as values"),
            ([], [], "at least one"),
            ([[0, 1]], [[0, 1]], "shapes"),
            ([0, 1, np.nan], [0, 1, 2], "finite"),
            ([0, 1, 2], [0, np.inf, 2], "finite"),
            ([0, 1, 1], [0, 1, 2], "strictly increasing"),
        ],
    )
    def test_refuses(self, t, y, words):
        assert words in refusal(Trajectory, t, y)


class TestClean:
    def test_good_data_is_untouched_and_without_notes(self):
        trajectory, notes = clean(list(T), list(Y))
        np.testing.assert_array_equal(trajectory.t, T)
        np.testing.assert_array_equal(trajectory.y, Y)
        assert notes == ()

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, None])
    def test_drops_and_counts_what_is_missing(self, bad):
        y, t = list(Y), list(T)
        y[3], t[7] = bad, bad
        trajectory, notes = clean(t, y)
        np.testing.assert_array_equal(trajectory.t, np.delete(T, [3, 7]))
        np.testing.assert_array_equal(trajectory.y, np.delete(Y, [3, 7]))
        assert len(notes) == 1 and "2 of 12 rows dropped" in notes[0]

    def test_masked_entries_are_missing(self):
        trajectory, notes = clean(T, np.ma.masked_array(Y, mask=T == 4))
        assert 4.0 not in trajectory.t and "1 of 12 rows dropped" in notes[0]

    def test_sorts(self):
        order = np.random.default_rng(0).permutation(12)
        trajectory, notes = clean(T[order], Y[order])
        np.testing.assert_array_equal(trajectory.t, T)
        np.testing.assert_array_equal(trajectory.y, Y)
        assert len(notes) == 1 and "sorted by time" in notes[0]

    def test_decreasing_and_negative_times(self):
        trajectory, notes = clean(-T, Y)
        np.testing.assert_array_equal(trajectory.t, -T[::-1])
        np.testing.assert_array_equal(trajectory.y, Y[::-1])
        assert len(notes) == 1 and "decreasing" in notes[0]

    def test_averages_repeated_times(self):
        trajectory, notes = clean([*T, 3, 3], [*Y, Y[3] + 3, Y[3] - 6])
        np.testing.assert_array_equal(trajectory.t, T)
        np.testing.assert_allclose(trajectory.y, np.where(T == 3, Y - 1, Y), rtol=1e-15)
        assert "averaged" in notes[-1] and "14 rows became 12" in notes[-1]

    def test_times_that_differ_by_rounding_are_one_time(self):
        t = np.arange(12) * 0.1
        trajectory, notes = clean([*t, 0.3], [*Y, Y[3]])  # 3 * 0.1 is not 0.3.
        assert len(trajectory) == 12 and "averaged" in notes[-1]

    def test_fewer_than_eight_points(self):
        message = refusal(clean, T[:7], Y[:7])
        assert "7 usable points" in message and "at least 8" in message
        assert len(clean(T[:MIN_POINTS], Y[:MIN_POINTS])[0]) == 8

    def test_fewer_than_eight_points_after_cleaning(self):
        assert "5 rows dropped" in refusal(clean, T, np.where(T < 5, np.nan, Y))
        assert "different times" in refusal(clean, T // 2, Y)
        assert "at least 8" in refusal(clean, [], [])

    @pytest.mark.parametrize("level", [0.0, 3.7, -1e12, 1e-300])
    def test_constant(self, level):
        assert "constant" in refusal(clean, T, np.full(12, level))

    def test_constant_up_to_rounding(self):
        assert "constant" in refusal(clean, T, 0.7 * (1 + 2e-16 * (T % 2)))

    def test_a_small_change_on_a_large_level_is_kept(self):
        assert clean(T, 1e6 + 1e-4 * T)[0].y[1] == 1e6 + 1e-4

    @pytest.mark.parametrize(
        ("scale", "words"), [(1e300, "too large"), (-1e300, "too large"), (1e-300, "too small")]
    )
    def test_magnitudes_that_cannot_be_computed_with(self, scale, words):
        assert "values" in (message := refusal(clean, T, Y * scale)) and words in message
        assert "times" in (message := refusal(clean, T * scale, Y)) and words in message

    def test_one_huge_value_among_ordinary_ones(self):
        assert "too large" in refusal(clean, T, np.where(T == 5, 1e300, Y))

    def test_one_tiny_value_among_ordinary_ones_is_ordinary(self):
        assert clean(T, np.where(T == 0, 1e-300, Y))[1] == ()

    @pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
    def test_units_do_not_matter(self, scale):
        trajectory, notes = clean(T * scale, Y * scale)
        np.testing.assert_array_equal(trajectory.y, Y * scale)
        assert notes == ()

    def test_no_time_passes(self):
        assert "same" in refusal(clean, np.full(12, 2.5), Y)

    def test_other_things_than_numbers(self):
        assert "real numbers" in refusal(clean, T, Y + 1j)
        assert "real numbers" in refusal(clean, T, ["a"] * 12)
        assert "real numbers" in refusal(clean, T, [[1.0], [1.0, 2.0]] * 6)
        assert "real numbers" in refusal(clean, T, [10**400] * 12)
        assert "dates" in refusal(clean, np.arange(12).astype("datetime64[D]"), Y)
        assert "shape" in refusal(clean, np.ones((3, 4)), Y)
        assert "12 times but 11 values" in refusal(clean, T, Y[:-1])

    def test_column_vectors(self):
        np.testing.assert_array_equal(clean(T[:, None], Y[:, None])[0].y, Y)


class TestReadTable:
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

    def test_latin_1_with_a_word(self, table):
        _, notes, names = read_table(table(("t,µ\n" + rows()).encode("latin-1")))
        assert names == ("t", "µ") and "Latin-1" in notes[0]

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
        ["a,b\nx,y\nu,v\n", "t,y\n", "just some words\n", "<html><body>1</body></html>\n"],
    )
    def test_no_columns_of_numbers(self, table, content):
        assert "no two columns of numbers" in refusal(read_table, table(content))

    def test_one_column_of_numbers(self, table):
        message = refusal(read_table, table("y\n" + "".join(f"{i}\n" for i in range(12))))
        assert "only one column" in message and "two are needed" in message
        named = "name,y\n" + "".join(f"n{i},{i}\n" for i in range(12))
        assert "two columns of numbers" in refusal(read_table, table(named))

    def test_dates_are_explained(self, table):
        content = "day,y\n" + "".join(f"2020-01-{i + 1:02},{i}\n" for i in range(12))
        assert "dates as numbers" in refusal(read_table, table(content))

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

    def test_a_million_rows(self, table):
        n = 1_000_000
        y = np.random.default_rng(0).random(n)
        path = table("t,y\n" + rows(t=np.arange(n), y=y))
        start = time.perf_counter()
        trajectory, notes, _ = read_table(path)
        assert time.perf_counter() - start < 15  # About 3 s on an idle core.
        np.testing.assert_array_equal(trajectory.y, y)
        assert notes == ()
