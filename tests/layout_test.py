"""Where the data are: preambles, rows of units, told delimiters, transposed tables."""

import numpy as np
import pytest

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.layout import parse_text
from nsode_jax.tables.table import read_table

T = np.arange(12.0)
ROWS = "".join(f"{i},{i * 600},{0.09 * 1.2**i:.3f}\n" for i in range(12))


def read(tmp_path, text):
    (tmp_path / "data.csv").write_text(text, encoding="utf-8")
    return read_table(tmp_path / "data.csv")


@pytest.mark.parametrize("pad", ["", ",,"])
def test_a_preamble_may_be_padded(tmp_path, pad):
    text = f"Method: growth{pad}\nPlate{pad}\n{pad}\nCycle Nr.,Time [s],A1\n" + ROWS
    trajectory, notes, names = read(tmp_path, text)
    assert (
        names == ("Time [s]", "A1") and trajectory.t[-1] == 6600 and "2 lines of text" in notes[0]
    )


def test_pairs_of_words_above_are_no_names(tmp_path):
    text = "Operator,Smith\nDevice,reader\nhours,mass\n" + "".join(f"{t},{t * t}\n" for t in T)
    assert read(tmp_path, text)[2] == ("hours", "mass")


@pytest.mark.parametrize("units", ["h,mg/l", "(h),(g)", "[min],%", "s,-"])
def test_a_row_of_units(tmp_path, units):
    text = f"x,mass\n{units}\n" + "".join(f"{t},{t * t}\n" for t in T)
    trajectory, notes, names = read(tmp_path, text)
    assert len(trajectory) == 12 and names == ("x", "mass")


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
def test_the_delimiter_may_be_told(tmp_path, delimiter):
    rows = "".join(f"{t}{delimiter}{t * t}\n" for t in T)
    trajectory, notes, names = read(tmp_path, f"sep={delimiter}\nt{delimiter}y\n{rows}")
    assert len(trajectory) == 12 and names == ("t", "y") and notes == ()


def test_columns_named_by_numbers(tmp_path):
    text = "time,1,2,3\n" + "".join(f"{t},{t * t},{t + 1},{t + 2}\n" for t in T)
    trajectory, _, names = read(tmp_path, text)
    assert names == ("time", "1") and len(trajectory) == 12


def test_doses_are_names(tmp_path):
    text = "time,5 mM,10 mM\n" + "".join(f"{t},{t * t},{t + 1}\n" for t in T)
    assert read(tmp_path, text)[2] == ("time", "5 mM")


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("named", [True, False])
def test_transposed(tmp_path, delimiter, named):
    rows = [T, T**2 + 0.5]
    lines = [delimiter.join([*["Time [s]"] * named, *map(str, rows[0])])]
    lines += [delimiter.join([*["A1"] * named, *map(str, rows[1])])]
    trajectory, notes, names = read(tmp_path, "\n".join(lines))
    np.testing.assert_array_equal(trajectory.t, T)
    np.testing.assert_array_equal(trajectory.y, rows[1])
    assert (
        names == (("Time [s]", "A1") if named else ("t", "y")) and "rows of the table" in notes[0]
    )


def test_a_short_wide_table_is_not_transposed():
    text = "name,t,a,b,c\nx,1,2,3,4\ny,2,3,4,5\n"
    assert parse_text(text, "f").names == ["name", "t", "a", "b", "c"]


def test_the_first_row_of_data_is_not_taken_for_text(tmp_path):
    with pytest.raises(ValueError, match="'bad' in line 2"):
        read(tmp_path, "t;y\n0;bad\n" + "".join(f"{t + 1};{t * t}\n" for t in T))


@pytest.mark.parametrize("row", ['5,3000,"0.2', '5,3000,0.22,"', '"', '5,"3000'])
@pytest.mark.parametrize("place", [0, 4, 11])
def test_a_quotation_mark_that_is_not_closed_hides_no_row(tmp_path, row, place):
    lines = ROWS.splitlines()
    lines[place] = row
    lines[-1:] = [lines[-1], '"12","7200","0.803"']
    with pytest.raises(TrajectoryError, match="quotation mark that is not closed"):
        read(tmp_path, "n,s,A\n" + "\n".join(lines))


def test_a_comment_over_two_lines_is_no_row(tmp_path):
    rows = "".join(f'{i},{0.09 * 1.2**i:.3f},"fine\nindeed"\n' for i in range(12))
    trajectory, _, _ = read(tmp_path, "t,y,remark\n" + rows)
    assert len(trajectory) == 12


def test_semicolons_left_between_numbers_are_refused(tmp_path):
    rows = "".join(f"{i},0;{0.09 * 1.2**i:.3f}".replace(".", ",") + "\n" for i in range(12))
    with pytest.raises(TrajectoryError, match="hold two numbers"):
        read(tmp_path, 'Method: growth;"\n' + rows)


def test_commas_or_spaces_between_the_cells_is_asked(tmp_path):
    """174,1 461,4 is 174.1 and 461.4, or 174, 1461 and 4."""
    rows = "".join(f"{17 * i},{i % 10} {461 + i},{i % 7}\n" for i in range(12))
    with pytest.raises(TrajectoryError, match="split in two ways"):
        read(tmp_path, "0,0 518,-2\n" + rows)


@pytest.mark.parametrize(
    ("delimiter", "row"),
    [(",", "{t},{y:.1f}"), (" ", "{year} {t} 866"), (",", "{t},5,{y:.2f}"), (";", "{t};{y:.1f};7")],
)
def test_rows_with_more_cells_than_names_are_refused(tmp_path, delimiter, row):
    """Decimal commas between commas, and groups of thousands between spaces, are broken numbers."""
    rows = [row.format(t=t, y=1.5 + t**1.5, year=1990 + t).replace(".", ",") for t in range(12)]
    with pytest.raises(TrajectoryError, match="names 2 columns but its rows have"):
        read(tmp_path, f"time{delimiter}pop\n" + "\n".join(rows))


@pytest.mark.parametrize("row", ['"{n}" {t} {y}', "{n} {t} {y}.5", "r{n} {t} {y}"])
def test_names_of_rows_as_r_writes_them(tmp_path, row):
    rows = [row.format(n=t + 1, t=t, y=t * t) for t in range(12)]
    trajectory, _, names = read(tmp_path, "time pop\n" + "\n".join(rows))
    assert trajectory.t.tolist() == [*range(12)] and names == ("time", "pop")


def test_a_remark_without_a_name_stays_behind_the_data(tmp_path):
    rows = [f"{t + 1},{t * t},{'odd' if t % 3 else ''}" for t in range(12)]
    trajectory, _, names = read(tmp_path, "time,OD\n" + "\n".join(rows))
    assert trajectory.t.tolist() == [*range(1, 13)] and names == ("time", "OD")


@pytest.mark.parametrize("rule", ["|---|---|\n", "| --- | :-: |\n", ""])
def test_bars(tmp_path, rule):
    rows = "".join(f"| {t} | {t * t} |\n" for t in range(12))
    trajectory, _, names = read(tmp_path, "| Time | OD |\n" + rule + rows)
    assert trajectory.y.tolist() == [t * t for t in range(12)] and names == ("Time", "OD")


def test_the_column_of_row_numbers_may_be_named_by_a_hash(tmp_path):
    rows = "".join(f"{t + 1},{10 * t},{t * t}\n" for t in range(12))
    trajectory, _, names = read(tmp_path, "#,x,OD\n" + rows)
    assert trajectory.t.tolist() == [10 * t for t in range(12)] and names == ("x", "OD")


def test_a_footnote_names_no_column(tmp_path):
    rows = "".join(f"{t},{t * t}\n" for t in range(12))
    _, notes, _ = read(tmp_path, f"Time,OD600\n{rows}\n* at 600 nm, 1 cm path\nn = 3\n")
    assert "is named" not in " ".join(notes) and "rows of text" in " ".join(notes)


def test_a_few_long_rows_are_refused_with_what_they_lack(tmp_path):
    with pytest.raises(TrajectoryError, match="2 rows and 12 columns; if each row is a quantity"):
        read(tmp_path, "t = [1 2 3 4 5 6 7 8 9 10]\ny = [2 3 4 5 6 7 8 9 10 11]\n")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<table><tr><td>1</td></tr></table>", "a web page"),
        ("<!DOCTYPE html><p>", "a web page"),
        ("{\\rtf1 1 2}", "rich text"),
        ('[{"t": 0, "y": 1.2}]', "JSON"),
        ('{"t": [0, 1], "y": [1, 2]}', "JSON"),
        ('{"t": 0, "y": 1.2}\n{"t": 1, "y": 1.3}\n', "JSON"),
    ],
)
def test_documents_of_another_kind_are_named(tmp_path, text, kind):
    with pytest.raises(TrajectoryError, match=f"{kind}.*save it as CSV"):
        read(tmp_path, text)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-16", "utf-8-sig"])
def test_unicode_with_and_without_its_mark(tmp_path, codec):
    path = tmp_path / "data.txt"
    path.write_bytes(
        ("Zeit\tGr\u00f6\u00dfe\n" + "".join(f"{t}\t{t * t}\n" for t in range(12))).encode(codec)
    )
    assert read_table(path)[2] == ("Zeit", "Gr\u00f6\u00dfe")


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_spaces_within_cells_split_nothing(tmp_path, delimiter):
    counts = [int(3000 * 1.3**t) for t in range(24)]  # Up to a million: of two groups and three.
    rows = [f"{1990 + t}{delimiter}{y:,}".replace(",", " ") for t, y in enumerate(counts)]
    trajectory, _, _ = read(tmp_path, f"Year{delimiter}Pop\n" + "\n".join(rows))
    assert trajectory.y.tolist() == counts


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_rows_between_spaces_with_an_absent_cell_are_left_out(tmp_path, absent):
    """Which one is absent nobody can tell: the others would be read a column further left."""
    rows = [[f"{t:4d}", f"{5 + 0.1 * t:6.1f}", f"{100 + 3 * t:6d}"] for t in range(24)]
    rows[6][absent] = " " * len(rows[6][absent])
    text = "   t      a      b\n" + "\n".join(" ".join(row) for row in rows)
    for value in "ab":
        (tmp_path / "data.txt").write_text(text)
        trajectory, notes, _ = read_table(tmp_path / "data.txt", value=value)
        assert trajectory.t.tolist() == [t for t in range(24) if t != 6]
        assert "1 row left out with fewer than 3 cells (first: line 8)" in notes[0]
    rows = [[t, "" if i % 3 else a, b] for i, (t, a, b) in enumerate(rows)]
    with pytest.raises(TrajectoryError, match="rows with more cells than its 2 columns"):
        read(tmp_path, "t a b\n" + "\n".join(" ".join(row) for row in rows))


def test_words_at_the_end_of_a_row_may_be_absent(tmp_path):
    rows = [f"{t} {t * t} {'good' if t % 3 else ''}" for t in range(12)]
    trajectory, _, _ = read(tmp_path, "t y remark\n" + "\n".join(rows))
    assert len(trajectory) == 12


@pytest.mark.parametrize("word", ["baseline", "pre"])
def test_a_row_before_the_start_is_no_header(tmp_path, word):
    text = f"time,OD,pH\n{word},10.0,3.0\n" + "".join(f"{t},{t * t},7.1\n" for t in T)
    with pytest.raises(TrajectoryError, match=f"'time' has 1 cell without a time.*'{word}'"):
        read(tmp_path, text)


def test_numbers_name_columns_below_a_title(tmp_path):
    text = "Strain,A,B\nhours,1,2\n" + "".join(f"{t},{t * t},7.1\n" for t in T)
    assert read(tmp_path, text)[2] == ("hours", "1")
