"""Rows that are quantities, as plate readers write them."""

import numpy as np
import pytest
from reading import read_rows

from nsode_jax.tables.transposed import find_rows

T = [600 * i for i in range(10)]
Y = [round(0.1 * 1.3**i, 4) for i in range(10)]


TECAN = [
    ["Application: Tecan i-control"],
    ["Device: infinite 200Pro", "", "", "Serial number: 1"],
    [],
    ["Mode", "", "", "Absorbance"],
    ["Wavelength", "", "", "600", "nm"],
    ["Start Time:", "01/03/2020 12:00:00"],
    [],
    ["Cycle Nr.", *range(1, 11)],
    ["Time [s]", *T],
    ["Temp. [\u00b0C]", *(37 + i % 2 / 10 for i in range(10))],
    ["A1", *Y],
    ["A2", *(2 * y for y in Y)],
    [],
    ["End Time:", "01/03/2020 14:00:00"],
]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_cycles_in_columns_behind_a_preamble(padded, delimiter):
    lines = [line + [""] * (11 - len(line)) * padded for line in TECAN]
    got = read_rows(lines, delimiter)
    assert got.names == ("Time [s]", "A1") and got.trajectories[0].t.tolist() == T
    assert got.trajectories[0].y.tolist() == Y
    wells = read_rows(lines, delimiter, replicates=True)
    assert wells.labels == ("A1", "A2")
    assert "lines of text before" in wells.notes[0] and "1 row behind" in wells.notes[2]


def test_labels_before_durations():
    times = [f"{i // 6} h {i % 6 * 10} min" if i % 6 else f"{i // 6} h" for i in range(10)]
    lines = [["Well", "Content", *times], ["A1", "Sample X1", *Y], ["A2", "Blank B", *Y[::-1]]]
    got = read_rows(lines, replicates=True)
    assert got.names[0] == "time [minutes]" and got.labels == ("A1 Sample X1", "A2 Blank B")
    np.testing.assert_allclose(got.trajectories[1].t, np.arange(10) * 10)
    assert got.trajectories[1].y.tolist() == Y[::-1]


def test_dates_and_years_in_the_first_row():
    dates = [f"1/{22 + i}/20" for i in range(10)]
    lines = [["Province", "Country", "Lat", *dates]]
    lines += [["", "Italy", 41.9, *Y], ["Hubei", "China", 30.9, *Y[::-1]]]
    got = read_rows(lines, value="2")
    assert got.trajectories[0].t.tolist() == [*range(10)] and got.trajectories[0].y.tolist() == Y
    assert read_rows(lines, value="Hubei China 30.9").trajectories[0].y.tolist() == Y[::-1]
    years = [["Country Name", "Code", *range(1960, 1970)], ["Aruba", "ABW", *Y[:-1], ""]]
    assert len(read_rows([["Data Source", "World"], [], *years]).trajectories[0]) == 9


@pytest.mark.parametrize(
    "lines",
    [
        [["name", *"tabcde"], ["x", *range(6)], ["y", *range(1, 7)]],
        [["strain", "time", *"abcde"], ["WT", *range(6)], ["KO", *range(1, 7)]],
        [["WT", *range(6)], ["WT", *range(1, 7)], ["WT", *range(2, 8)]],
        [["time", *(f"{c} mM" for c in range(6))], *([t, *range(6)] for t in range(9))],
        [["time", *range(6)], *([t, *range(6)] for t in range(9))],
    ],
)
def test_columns_stay_columns(lines):
    assert find_rows([[str(cell) for cell in line] for line in lines]) is None
