"""Several series in one table: found, never sorted together."""

import numpy as np
import pytest
from reading import refusal

from nsode_jax.tables.runs import runs
from nsode_jax.tables.table import read_measurements

AGES = (118, 484, 664, 1004, 1231, 1372, 1582)


def write(tmp_path, text):
    (tmp_path / "data.csv").write_text(text)
    return tmp_path / "data.csv"


def test_runs():
    assert runs(np.array([0, 1, 2, 3, 0, 1, 2, 3.0])).tolist() == [0] * 4 + [1] * 4
    assert runs(np.array([3, 2, 1, 0, 3, 2, 1, 0.0])).tolist() == [0] * 4 + [1] * 4
    assert not runs(np.arange(9.0)).any() and not runs(-np.arange(9.0)).any()
    assert not runs(np.array([0, 1, 2, 3, 4, 3.5, 6, 7])).any()  # A slip of the pen.
    assert not runs(np.array([5, 6, 7, 8, 0, 1, 2, 3.0])).any()  # Halves out of order.
    assert not runs(np.array([np.nan] * 5)).any()


def orange(names: str) -> str:
    rows = [(tree, age, 30 + tree + age // 9) for tree in range(1, 6) for age in AGES]
    lines = [f'"{i}",{tree},{age},{size}' for i, (tree, age, size) in enumerate(rows, 1)]
    return "\n".join([names, *lines])


@pytest.mark.parametrize("names", ['"",tree,age,size', "rownames,tree,time,size"])
def test_a_long_table(tmp_path, names):
    path = write(tmp_path, orange(names))
    message = refusal(read_measurements, path)
    assert "start again 4 times" in message and "--series tree" in message
    read = read_measurements(path, series="tree")
    assert read.labels == tuple("12345") and read.names == (names.split(",")[2], "size")
    assert [series.t.tolist() for series in read.trajectories] == [list(AGES)] * 5
    assert read.trajectories[2].y[0] == 30 + 3 + 118 // 9


def test_labels_that_are_numbers_before_the_clock_are_no_times(tmp_path):
    """The first two columns look like time and value, and both y and hours start again."""
    rows = [f"{dose},{hour},{dose * 0.9**hour:.4f}" for dose in (1, 5, 10) for hour in range(12)]
    message = refusal(read_measurements, write(tmp_path, "\n".join(["dose,hours,y", *rows])))
    assert "column 'hours' start again 2 times" in message
    assert message.endswith("column 'dose' tells them apart: --series dose.")
    message = refusal(read_measurements, write(tmp_path, "\n".join(["dose,x,y", *rows])))
    assert "column 'x' start again 2 times, where column 'dose' changes" in message
    assert message.endswith("--time x --series dose.")


def test_a_clock_that_starts_again(tmp_path):
    block = "Cycle,Time [s],A1\n" + "".join(f"{i},{i * 600},{i * i}\n" for i in range(12))
    second = "\nMode,Kinetic,\n" + block.replace("A1", "B7")
    path = write(tmp_path, "Method: growth,,\n" + block + second)
    message = refusal(read_measurements, path)
    assert "start again 1 time (first in line 18)" in message and "--series restart" in message
    read = read_measurements(path, series="restart")
    assert [len(series) for series in read.trajectories] == [12, 12]
    assert "is named 'B7'" in " ".join(read.notes)


@pytest.mark.parametrize("mark", ["", ":"])
def test_labels_in_turns(tmp_path, mark):
    rows = [f"00:{m:02}:{13 * k} {k}{mark} {90 - m - k}" for m in range(12) for k in (1, 2, 3)]
    path = write(tmp_path, "\n".join(rows))
    if mark:
        assert "Column 2 seems to tell several series apart" in refusal(read_measurements, path)
    read = read_measurements(path, time="1", value="3", series="2")
    assert read.labels == ("1", "2", "3") and [len(s) for s in read.trajectories] == [12] * 3


def test_times_shared_by_labels_are_not_averaged(tmp_path):
    rows = [f"{t},{who},{t * k}" for t in range(12) for k, who in enumerate("abc", 2)]
    path = write(tmp_path, "\n".join(["t,who,y", *rows]))
    assert "--series who" in refusal(read_measurements, path)


def test_short_series_count_together(tmp_path):
    rows = [f"{who},{t},{2**t * k}" for k, who in enumerate("abc", 2) for t in range(3)]
    path = write(tmp_path, "\n".join(["who,t,y", *rows]))
    assert len(read_measurements(path, series="who").trajectories) == 3
    path = write(tmp_path, "\n".join(["who,t,y", *rows[:6]]))
    assert "Only 6 usable points in all series" in refusal(read_measurements, path, series="who")


WIDE = ",WT1,N455K1,WT2\n" + "".join(
    f"{i},{0.3 + i % 5},{0.4 + i * i % 7},{0.5 - i % 3}\n" for i in range(12)
)


def test_a_column_without_a_name_is_the_time_when_nothing_else_is(tmp_path):
    path = write(tmp_path, WIDE)
    for value in (None, "WT1", "WT2"):
        read = read_measurements(path, value=value)
        assert read.names == ("t", value or "WT1") and read.trajectories[0].t.tolist() == [
            *range(12)
        ]
        assert "no name, was taken as the time" in read.notes[0]


def test_wide_replicates(tmp_path):
    path = write(tmp_path, WIDE)
    read = read_measurements(path, value="WT1,WT2", replicates=True)
    assert read.labels == ("WT1", "WT2") and read.names == ("t", "WT")
    assert read.trajectories[1].y[1] == -0.5
    assert read_measurements(path, replicates=True).labels == ("WT1", "N455K1", "WT2")
    assert "no column 'WT9'" in refusal(read_measurements, path, value="WT1,WT9", replicates=True)
    assert "named twice" in refusal(read_measurements, path, value="WT1,WT1", replicates=True)


def test_a_window(tmp_path):
    path = write(tmp_path, WIDE)
    read = read_measurements(path, start="2", end="10.5")
    assert read.trajectories[0].t.tolist() == [*range(2, 11)]
    assert "3 rows outside the chosen window" in " ".join(read.notes)
    assert "must be in numbers" in refusal(read_measurements, path, start="2020-03-01")
    days = "\n".join(["day,y", *(f"2020-03-{i + 1:02},{i * i}" for i in range(12))])
    read = read_measurements(write(tmp_path, days), start="2020-03-03", end="11")
    assert read.trajectories[0].t.tolist() == [*range(2, 12)]
    assert "nor a time" in refusal(read_measurements, path, end="soon")
    # A cell that cannot be read outside the window does no harm.
    rows = "\n".join(["t,y", *(f"{i},{i * i}" for i in range(12)), "12,bad"])
    assert len(read_measurements(write(tmp_path, rows), end="11").trajectories[0]) == 12


def table(header, rows):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)])


def test_times_that_begin_anew_are_not_sorted(tmp_path):
    """20, 21, 22, 23, 0, 1 are hours of two days."""
    for around, step in ((24, 1), (60, 5), (365, 30)):
        rows = [((2 * around // 3 + i * step) % around, i * i) for i in range(12)]
        message = refusal(read_measurements, write(tmp_path, table("t,y", rows)))
        assert "begin anew in line" in message and f"do after {around};" in message
    slip = [(i if i != 5 else 3.9, i * i) for i in range(12)]
    assert len(read_measurements(write(tmp_path, table("t,y", slip))).trajectories[0]) == 12


def test_labels_in_blocks_whose_times_count_on_are_noted(tmp_path):
    rows = [("A1" if i < 6 else "A2", i, i * i) for i in range(12)]
    read = read_measurements(write(tmp_path, table("well,t,y", rows)))
    assert read.notes[-1].endswith(
        "line 8 to 'A2'; if it tells several series apart: --series well."
    )
    path = write(tmp_path, table("remark,t,y", [("", *row[1:]) for row in rows]))
    assert "series apart" not in " ".join(read_measurements(path).notes)


def test_labels_of_merged_cells(tmp_path):
    """They stand only in the first row of each series."""
    rows = [
        (who if i == 0 else "", i, k * 2**i) for k, who in enumerate("abc", 2) for i in range(5)
    ]
    read = read_measurements(write(tmp_path, table("who,t,y", rows)), series="who")
    assert read.labels == ("a", "b", "c") and [len(one) for one in read.trajectories] == [5] * 3
    rows[1] = ("a", *rows[1][1:])
    message = refusal(read_measurements, write(tmp_path, table("who,t,y", rows)), series="who")
    assert "is empty in 11 rows (first: line 4)" in message


def test_times_of_merged_cells_are_refused(tmp_path):
    rows = [(t if k == 1 else "", k, t * t + k) for t in range(12) for k in (1, 2, 3)]
    message = refusal(read_measurements, write(tmp_path, table("Time,rep,OD", rows)), value="OD")
    assert "no time for 24 values of 36 (first in line 3)" in message


def test_notes_on_all_series_are_told_once(tmp_path):
    rows = [(t, *(t * t + k if t != 5 else "" for k in range(9))) for t in range(12)]
    path = write(tmp_path, table("t," + ",".join(f"w{k}" for k in range(9)), rows))
    notes = read_measurements(path, replicates=True).notes
    assert notes[-1].startswith("All series: 1 of 12 rows dropped") and len(notes) == 1
    rows[7] = (7, *(49 + k if k else "" for k in range(9)))
    path = write(tmp_path, table("t," + ",".join(f"w{k}" for k in range(9)), rows))
    notes = read_measurements(path, replicates=True).notes
    assert notes[-1].startswith("Series 'w1', 'w2', 'w3' and 5 more: 1 of 12")


def test_what_was_taken_is_told_with_what_is_wrong_with_it(tmp_path):
    rows = [(t, 0.05, t * t) for t in range(12)]
    message = refusal(read_measurements, write(tmp_path, table("Time,blank,OD", rows)))
    assert "constant" in message and "'blank' as the value" in message


def test_windows_that_cannot_be(tmp_path):
    path = write(tmp_path, table("t,y", [(i, i * i) for i in range(12)]))
    assert "ends (--to 2) before it begins (8)" in refusal(
        read_measurements, path, start="8", end="2"
    )
    assert "(--to '8,5') must be in numbers" in refusal(read_measurements, path, end="8,5")


def test_errors_of_measurement_are_pointed_to(tmp_path):
    path = write(tmp_path, table("t,mean,sd", [(i, i * i, 0.1) for i in range(12)]))
    assert any("--sigma sd" in note for note in read_measurements(path).notes)
    assert not any("--sigma" in note for note in read_measurements(path, sigma="sd").notes)


@pytest.mark.parametrize("words", [("none", "drug"), ("-", "+"), ("NA", "A"), ("null", "Nan")])
def test_labels_may_be_words_for_nothing(tmp_path, words):
    rows = [f"{i // 2},{words[i % 2]},{5 * (i % 2) + 0.3 * i:.1f}" for i in range(24)]
    path = write(tmp_path, "\n".join(["time,treatment,y", *rows]))
    assert refusal(read_measurements, path).endswith("--series treatment.")
    read = read_measurements(path, series="treatment")
    assert read.labels == words and read.trajectories[1].y[1] == 5.9
    blocks = sorted(rows, key=lambda row: row.split(",")[1] != words[0])
    path = write(tmp_path, "\n".join(["time,treatment,y", *blocks]))
    assert "--series treatment." in refusal(read_measurements, path)
    assert read_measurements(path, series="treatment").labels == words


@pytest.mark.parametrize("labels", ["AB", "12"])
def test_labels_in_the_order_of_time_may_be_uneven(tmp_path, labels):
    rows = [(i, k, 5 * k + 0.3 * i) for i in range(10) for k in (0, 1) if i < (10, 6)[k]]
    lines = [f"{i},{labels[k]},{y:.1f}" for i, k, y in rows]
    path = write(tmp_path, "\n".join(["time,subject,y", *lines]))
    for value in (None, "y"):
        assert refusal(read_measurements, path, value=value).endswith("--series subject.")
    assert [len(one) for one in read_measurements(path, series="subject").trajectories] == [10, 6]


def test_counts_that_are_repeated_are_no_labels(tmp_path):
    rows = [f"{i // 2},{3 + i % 2 + i // 8},{5 + 0.3 * i:.1f}" for i in range(24)]
    path = write(tmp_path, "\n".join(["time,n,y", *rows]))
    assert len(read_measurements(path, value="y").trajectories[0]) == 12
