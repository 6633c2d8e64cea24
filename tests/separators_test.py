"""Comma or point: decided by the column as a whole, or refused with both readings."""

import numpy as np
import pytest
from reading import read_rows, read_text, refusal

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.separators import Convention, evidence, to_float


def column(cells, delimiter="\t", names="day\tcases") -> str:
    rows = (f"{i}{delimiter}{cell}\n" for i, cell in enumerate(cells))
    return f"{names.replace(chr(9), delimiter)}\n" + "".join(rows)


@pytest.mark.parametrize(
    ("number", "says"),
    [("5", ""), ("1,020", "?,"), ("1.020", "?."), ("0,526", ","), ("1,234,567", ".")]
    + [("1.234.567", ","), ("1,234.5", "."), ("1.234,5", ","), ("12,5", ","), ("1234.567", ".")],
)
def test_what_one_number_says(number, says):
    assert evidence(number) == says


@pytest.mark.parametrize(
    ("number", "decimal", "value"),
    [("1,020", ".", 1020), ("1,020", ",", 1.02), ("-12.345.678,5", ",", -12345678.5)]
    + [("1,02", ".", np.nan), ("1.5.2", ".", np.nan), ("2,5e-3", ",", 0.0025)],
)
def test_the_value_by_the_mark(number, decimal, value):
    np.testing.assert_equal(to_float(number, decimal), value)


def test_the_rest_of_the_column_decides():
    """26b: 1,200 stands among 0,905; and 1,020 follows 785."""
    cells = ["1,200", "0,905", "0,526", "0,317", "0,200", "0,133", "0,094", "0,071"]
    assert read_text(column(cells, ";")).trajectories[0].y[0] == 1.2
    cells = ["331", "448", "642", "785", "1,020", "1,280", "1,600", "2,060"]
    grown = read_text(column(cells))
    assert grown.trajectories[0].y[-1] == 2060 and "1,020 is 1020" in " ".join(grown.notes)


def test_the_other_columns_decide():
    rows = "".join(f"{i},5;{i + 1}.200\n" for i in range(9))
    assert read_text("Zeit;Keime\n" + rows).trajectories[0].y[0] == 1200
    rows = "".join(f"{i}.5;{i + 1}.200\n" for i in range(9))
    assert read_text("Zeit;Keime\n" + rows).trajectories[0].y[0] == 1.2


@pytest.mark.parametrize(("mark", "other"), [(",", "."), (".", ",")])
def test_what_stays_open_is_refused_with_both_readings(mark, other):
    text = column([f"{i + 1}{mark}{200 + i}" for i in range(9)])
    message = refusal(read_text, text)
    for part in (f"'1{mark}200' in line 2", "is 1200", "1.200", f"--thousands '{mark}'"):
        assert part in message
    assert f"--decimal '{mark}'" in message
    assert read_text(text, thousands=mark).trajectories[0].y[0] == 1200
    assert read_text(text, decimal=other).trajectories[0].y[0] == 1200
    assert read_text(text, decimal=mark).trajectories[0].y[0] == 1.2


def test_quoted_thousands_above_999_only_are_no_missing_values():
    cells = [
        str(v) if v < 1000 else f'"{v:,}"' for v in (331, 448, 642, 785, 1020, 1280, 1600, 9999)
    ]
    assert read_text(column(cells, ",")).trajectories[0].y[-1] == 9999


def test_unquoted_thousands_between_commas_are_refused():
    cells = [str(v) if v < 1000 else f"{v:,}" for v in (331, 448, 642, 785, 1020, 1280, 1600, 9999)]
    assert "names 2 columns but its rows have 3 cells" in refusal(read_text, column(cells, ","))
    message = refusal(read_text, column([*cells[:5], *range(9)], ","))
    assert "more cells than its 2 columns" in message and "'4,1,020' in line 6" in message


def test_unquoted_decimal_commas_between_commas_are_refused():
    rows = "".join(f"{i},5,1,0{i}\n" for i in range(9))
    assert "broken in two" in refusal(read_text, rows)
    assert "2 columns but its rows have" in refusal(
        read_text, "year population\n" + "".join(f"{1790 + 10 * i} {3 + i} 929\n" for i in range(9))
    )


def test_points_and_commas_mixed_are_refused():
    cells = ["1.5", "2,5", "3.5", "4,5", "5.5", "6,5", "7.5", "8.5"]
    message = refusal(read_text, column(cells, ";"))
    assert "'1.5' in line 2 and '2,5' in line 3" in message


@pytest.mark.parametrize("group", [" ", "\u00a0", "\u202f", "'", "\u2019"])
def test_blanks_and_apostrophes_group(group):
    cells = [f"{v:,}".replace(",", group) for v in (3929, 5308, 12866, 131669, 179323, 10**6, 5, 7)]
    assert read_text(column(cells, ";")).trajectories[0].y[5] == 1e6


def test_marks_that_cannot_be():
    for marks in ({"decimal": "x"}, {"thousands": "x"}, {"decimal": ",", "thousands": ","}):
        with pytest.raises(TrajectoryError):
            Convention(**marks)


@pytest.mark.filterwarnings("error")
def test_numbers_beyond_floating_point_are_compared_without_a_warning():
    assert "in two ways" in refusal(read_text, column(["9" * 400, "1,020"] * 3))


@pytest.mark.parametrize("cell", ["", "NA", "<0,1", "7,5 mg", "bad"])
def test_a_long_column_is_read_as_a_short_one(cell):
    """Long columns of nothing but decimal commas are read at once, others cell by cell."""
    values = np.round(5 * np.exp(-np.arange(3000) / 900), 4)
    cells = [f"{value:.4f}".replace(".", ",") for value in values]
    cells[40] = cell
    long, short = (read_text(column(cells[:rows], ";")).trajectories[0] for rows in (3000, 900))
    assert long.y.tolist() == np.delete(values, 40).tolist()
    assert short.y.tolist() == long.y[:899].tolist()


@pytest.mark.parametrize("delimiter", ["\t", ";", ","])
@pytest.mark.parametrize("small", ["0.123", "1234.567"])
def test_three_decimals_are_decimals_where_one_cell_says_so(delimiter, small):
    cells = [small, *(f"{1.234 * 1.1**i:.3f}" for i in range(30))]
    found = read_text(column(cells, delimiter))
    assert found.trajectories[0].y.tolist() == [float(cell) for cell in cells]
    assert not found.notes


def test_a_slip_does_not_decide_for_a_column_of_thousands():
    """1.5, a slip of the pen, would make 1.05 of 1050."""
    cells = [str(210 * i) if i < 5 else f"{210 * i / 1000:.3f}" for i in range(20)]
    cells[9] = "1.5"
    assert "in two ways" in refusal(read_text, column(cells))
    cells = [f"{926.640 - i:.3f}" for i in range(20)]
    cells[9] = "1,5"
    assert "in two ways" in refusal(read_text, column(cells, ";"))


def test_whole_numbers_among_three_digits_are_asked_about_in_comma_files():
    """0, 6.744, 15.820: 6744 of a German, or 6.744 of somebody who writes 0 for 0.000?"""
    cells = ["0", *(f"{6.744 + 9.076 * i:.3f}" for i in range(12))]
    message = refusal(read_text, column(cells, ","))
    assert "is 6744 if" in message and "6.744 if" in message
    assert read_text(column(cells, ","), decimal=".").trajectories[0].y[1] == 6.744
    assert read_text(column(["0.000", *cells[1:]], ",")).trajectories[0].y[1] == 6.744
    assert read_text(column(cells[1:], ",")).trajectories[0].y[0] == 6.744


def test_a_column_of_decimal_commas_tells_of_the_others_in_comma_files():
    rows = "".join(f'"{i},500","{3.017 + i:.3f}"\n' for i in range(12))
    assert read_text("t,y\n" + rows).trajectories[0].y[0] == 3017


def test_a_group_that_is_one_thousand_is_compared_with_its_neighbours():
    """1.000 as a decimal number is 1, whose magnitude is no less than another."""
    cells = ["0", "500", "1.000", "1.500", "2.000", "2.500", "3.000", "3.500", "4.000", "4.500"]
    rows = [(cell, i * i) for i, cell in enumerate(cells)]
    found = read_rows([["t", "y"], *rows], ";")
    assert found.trajectories[0].t.tolist() == [500 * i for i in range(10)]
    rows = [(cell, f"{i * i}.5") for i, cell in enumerate(cells)]
    assert "in two ways" in refusal(read_rows, [["t", "y"], *rows], ";")


@pytest.mark.parametrize("thousands", ["'", " "])
@pytest.mark.parametrize("mark", [".", ","])
def test_with_another_mark_of_thousands_points_and_commas_are_decimal(thousands, mark):
    """What would be 1020 or 1.02 is told: it is no group of thousands."""
    cells = [f"{1.02 + 0.331 * i:.3f}".replace(".", mark) for i in range(12)]
    assert "two ways" in refusal(read_text, column(cells, ";"))
    got = read_text(column(cells, ";"), thousands=thousands)
    assert got.trajectories[0].y.tolist() == [round(1.02 + 0.331 * i, 3) for i in range(12)]
    grouped = [f"{i + 1}{thousands}{100 + i}{mark}125" for i in range(12)]
    got = read_text(column(grouped, ";"), thousands=thousands)
    assert got.trajectories[0].y[2] == 3102.125


@pytest.mark.parametrize(
    ("options", "words"),
    [({"decimal": ","}, "leave out --decimal"), ({"thousands": "."}, "leave out --thousands")],
)
def test_a_mark_with_which_nothing_is_a_number(options, words):
    cells = [f"{1.5 + i:.2f}" for i in range(12)]
    said = refusal(read_text, column(cells, ";"), **options)
    assert "no number whose decimal mark is ',' (first: '1.50' in line 2)" in said and words in said
