"""Errors of measurement in a table: a column or a number, read or refused."""

import numpy as np
import pytest
from reading import refusal

from nsode_jax.tables.table import read_measurements

T = np.arange(12.0)
Y = np.round(5 * np.exp(-0.3 * T), 4)
S = np.round(0.02 + 0.01 * Y, 4)


def table(tmp_path, *columns, names="t,y,s", delimiter=","):
    rows = (delimiter.join(map(str, row)) for row in zip(*columns, strict=True))
    path = tmp_path / "data.csv"
    path.write_text("\n".join([names.replace(",", delimiter), *rows]))
    return path


@pytest.mark.parametrize("names", ["t,y,s", "t,s,y"])
def test_a_column_is_named(tmp_path, names):
    """Whatever its place it is not taken for the values."""
    columns = {"t": T, "y": Y, "s": S}
    path = table(tmp_path, *(columns[name] for name in names.split(",")), names=names)
    found = read_measurements(path, sigma="s")
    (series,) = found.trajectories
    np.testing.assert_allclose(series.y, Y)
    np.testing.assert_allclose(series.errors, S)
    assert found.names == ("t", "y") and not found.notes


def test_a_number_is_for_all(tmp_path):
    path = table(tmp_path, T, Y, names="t,y")
    for sigma in ("0.05", 0.05):
        (series,) = read_measurements(path, sigma=sigma).trajectories
        assert series.sigma == pytest.approx(0.05) and series.noise is None


def test_a_name_comes_before_a_number(tmp_path):
    path = table(tmp_path, T, Y, S, names="t,y,2")
    (series,) = read_measurements(path, sigma="2").trajectories
    np.testing.assert_allclose(series.errors, S)


@pytest.mark.parametrize("sigma", ["s", "s,u"])
def test_replicates_have_one_column_or_each_their_own(tmp_path, sigma):
    path = table(tmp_path, T, Y, Y + 1, S, 2 * S, names="t,a,b,s,u")
    one, two = read_measurements(path, value="a,b", replicates=True, sigma=sigma).trajectories
    np.testing.assert_allclose(one.errors, S)
    np.testing.assert_allclose(two.errors, S if sigma == "s" else 2 * S)


def test_all_other_columns_are_replicates(tmp_path):
    path = table(tmp_path, T, Y, Y + 1, S, names="t,a,b,s")
    found = read_measurements(path, replicates=True, sigma="s")
    assert found.labels == ("a", "b")


@pytest.mark.parametrize("blank", ["", "NA"])
def test_a_row_without_an_error_is_dropped(tmp_path, blank):
    cells = [*map(str, S)]
    cells[4] = cells[11] = blank
    found = read_measurements(table(tmp_path, T, Y, cells), sigma="s")
    assert len(found.trajectories[0]) == 10
    assert "2 of 12 rows dropped" in found.notes[0] and "measurement error" in found.notes[0]


@pytest.mark.parametrize("cell", ["0", "-0.1", "inf", "<0.1"])
def test_what_is_no_standard_deviation_is_refused(tmp_path, cell):
    cells = [*map(str, S)]
    cells[4] = cell
    message = refusal(read_measurements, table(tmp_path, T, Y, cells), sigma="s")
    assert "positive and finite" in message and "line 6" in message and cell in message


def test_decimal_commas_are_read(tmp_path):
    columns = [[str(v).replace(".", ",") for v in column] for column in (T, Y, S)]
    (series,) = read_measurements(table(tmp_path, *columns, delimiter=";"), sigma="s").trajectories
    np.testing.assert_allclose(series.errors, S)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": "-0.1"}, "must be a positive number"),
        ({"sigma": "nan"}, "must be a positive number"),
        ({"sigma": "e"}, "has no column 'e'"),
        ({"sigma": "y", "value": "y"}, "named twice"),
        ({"sigma": "s,t", "time": "t", "value": "y"}, "named twice"),
        ({"sigma": "s,u", "value": "y"}, "2 columns of errors for 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path, options, words):
    assert words in refusal(
        read_measurements, table(tmp_path, T, Y, S, S, names="t,y,s,u"), **options
    )


def test_percent_of_the_value_is_refused(tmp_path):
    percent = [f"{value}%" for value in S]
    assert "have the unit '%'" in refusal(
        read_measurements, table(tmp_path, T, Y, percent), sigma="s"
    )


def test_words_among_the_errors_are_named(tmp_path):
    cells = [*map(str, S)]
    cells[4] = "bad"
    found = read_measurements(table(tmp_path, T, Y, cells), sigma="s")
    assert len(found.trajectories[0]) == 11 and any("'bad' in line 6" in n for n in found.notes)


def test_a_number_that_may_be_of_a_column_is_told(tmp_path):
    path = table(tmp_path, T, Y, S, names="t,y,s")
    found = read_measurements(path, value="y", sigma="3")
    assert found.trajectories[0].sigma == pytest.approx(3)
    assert "The measurement error 3 counts for all values" in found.notes[0]
    assert not read_measurements(path, value="y", sigma="0.3").notes


def test_columns_of_errors_may_have_commas_in_their_names(tmp_path):
    path = table(tmp_path, T, Y, Y + 1, S, 2 * S, names="t,a,b,SA,s")
    path.write_text(path.read_text().replace("SA", '"s, a"'))
    options = {"value": "a,b", "replicates": True}
    one, two = read_measurements(path, sigma='"s, a",s', **options).trajectories
    np.testing.assert_allclose(one.errors, S)
    np.testing.assert_allclose(two.errors, 2 * S)
