"""Numbers as people write them: units, percent signs, limits, odd minus signs; dates as numbers."""

import numpy as np
import pytest
from reading import read_text, refusal

from nsode_jax.tables.cells import kind_of

Y = [1.2, 0.905, 0.526, 0.317, 0.2, 0.133, 0.094, 0.071, 0.058]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [("1.5", "number"), ("-2e-3", "number"), (".5", "number"), ("1,5", "dressed")]
    + [("1.2 x 10^5", "dressed"), ("1.2\u00d710\u207b\u2075", "dressed"), ("1.5D+02", "dressed")]
    + [("$5.20", "dressed"), ("1,20,300", "dressed"), ("0,TRUE", "text"), ("8:00 AM", "clock")]
    + [("1 h 30 min", "clock"), ("1h30", "clock"), ("1 h", "dressed"), ("5 mM", "dressed")]
    + [("75.4%", "dressed"), ("1.49 min", "dressed"), ("12 866", "dressed"), ("<0.1", "dressed")]
    + [("2020-03-01", "date"), ("20/1/2020", "date"), ("01.03.2020", "date"), ("1:29", "clock")]
    + [("bad", "text"), ("1_000", "text"), ("0x10", "text"), ("\u0663", "text"), ("A590", "text")]
    + [("", "missing"), ("NA", "missing"), ("BLQ", "missing"), (float("nan"), "missing")],
)
def test_kinds(cell, kind):
    assert kind_of(cell) == kind


def read(cells, times=range(9), names="t,y"):
    rows = "".join(f"{a},{b}\n" for a, b in zip(times, cells, strict=True))
    return read_text(f"{names}\n{rows}")


def test_percent_signs():
    result = read([f"{y}%" for y in Y])
    assert result.trajectories[0].y.tolist() == Y and result.names == ("t", "y [%]")
    message = refusal(read, [f"{y}%" if i != 4 else y for i, y in enumerate(Y[:-1])] + ["1"])
    assert "2 cells without a number" in message and "'0.2' in line 6" in message


def test_units_in_cells():
    result = read(Y, [f"{i}.5 min" for i in range(9)])
    assert result.names == ("t [min]", "y") and result.trajectories[0].t[1] == 1.5
    assert "'min'" in result.notes[0]
    mixed = [f"{i} {'min' if i < 6 else 's'}" for i in range(1, 10)]
    assert "'6 s' in line 7" in refusal(read, Y, mixed)


def test_true_minus_signs():
    assert read([f"\u2212{y}" for y in Y]).trajectories[0].y.tolist() == [-y for y in Y]


@pytest.mark.parametrize("mark", ["<0.1", "< 0.1", "\u22640.1"])
def test_limits_are_handed_on_and_left_out(mark):
    result = read([*Y, mark, mark], range(11))
    limits = result.limits[0]
    assert len(result.trajectories[0]) == 9 and limits.t.tolist() == [9, 10] and limits.below.all()
    np.testing.assert_array_equal(limits.limit, [0.1] * 2)
    note = " ".join(result.notes)
    assert "2 values in column 'y' are only limits" in note and f"{mark!r} at 9" in note
    assert "only limits" in note and "contradicts" in note


def test_values_above_the_range():
    result = read([*Y, ">3", "OVRFLW"], range(11))
    assert not result.limits[0].below.any() and len(result.trajectories[0]) == 9
    assert result.limits[0].t.tolist() == [9]


@pytest.mark.parametrize(("word", "example"), [("BLQ", "<2"), ("<LOD", "<2"), ("OVRFLW", ">2")])
def test_words_for_limits_that_tell_none_are_left_out(word, example):
    """No law contradicts a limit that is not known."""
    for cells, text in (
        ([*Y, word, word], "2 values in column 'y' are only limits without a number"),
        ([*Y, word], "1 value in column 'y' is only a limit without a number"),
    ):
        result = read(cells, range(len(cells)))
        assert len(result.trajectories[0]) == 9 and result.limits[0].t.size == 0
        result.require_no_limits()
        (note,) = result.notes
        assert text in note and f"{word!r} at 9" in note and "contradicts" not in note
        assert "left out" in note and f"such as {example}," in note


def test_limits_with_and_without_a_number_in_one_column():
    result = read([*Y, "<0.1", "BLQ"], range(11))
    assert result.limits[0].t.tolist() == [9] and len(result.notes) == 2
    assert "('<0.1' at 9); no constant is fitted to it" in result.notes[0]
    assert "('BLQ' at 10): this row is left out" in result.notes[1]
    message = refusal(read, [*Y[:5], "BLQ"], range(6))
    assert "Only 5 usable points" in message and "'BLQ' at 5" in message


def test_limits_before_the_first_value_are_said_not_to_count():
    result = read(["<0.1", *Y], range(10))
    assert result.limits[0].t.tolist() == [0]
    (note,) = result.notes
    assert note.endswith("('<0.1' at 0), before the first value: it does not count.")


def test_unreadable_cells_at_an_end_or_many():
    for cells in ([*Y[:-2], "a", "b"], ["a", *Y[1:]], [*Y[:3], "a", "b", *Y[5:]]):
        message = refusal(read, cells)
        assert "'a' in line" in message and "NA if nothing was measured" in message
    result = read([*Y[:4], "a", *Y[5:]])
    assert "'a' in line 6" in result.notes[0] and len(result.trajectories[0]) == 8


def test_lines_of_text_below_the_table():
    rows = "".join(f"{a},{b}\n" for a, b in enumerate(Y))
    result = read_text(f"t,y\n{rows}\nEnd of data\n")
    assert result.trajectories[0].y.tolist() == Y and "1 row of text" in " ".join(result.notes)


def test_a_column_without_numbers_is_shown_by_its_first_such_cell():
    text = "t,y,z\n" + "".join(f"{a},{b},high\n" for a, b in enumerate(Y))
    message = refusal(read_text, text, value="z")
    assert "'z' does not hold numbers: 'high' in line 2" in message


def test_dates_as_numbers():
    days = [20200227, 20200228, 20200229, *range(20200301, 20200307)]
    result = read(Y, days, "day,y")
    assert result.trajectories[0].t.tolist() == list(range(9))
    assert result.names[0] == "day [days since 2020-02-27]" and "yyyymmdd" in result.notes[0]
    # The same as days and as seconds since 1970.
    result = read(Y, [1582761600 + 86400 * i for i in range(9)], "timestamp,y")
    assert result.trajectories[0].t.tolist() == list(range(9))
    counts = [20200290 + 7 * i for i in range(9)]  # No such days: they are counts.
    assert read(Y, counts, "n,y").trajectories[0].t[0] == 20200290


def test_minutes_and_seconds():
    times = [f"{i}:30" for i in range(9)]
    result = read(Y, times)
    assert result.names[0] == "t [hours]" and "if they are m:ss" in result.notes[0]
    result = read(Y, times, "t (min),y")
    assert result.names[0] == "t (min) [minutes]" and result.trajectories[0].t[0] == 0.5
    assert "'3:75'" in refusal(read, Y, ["0:10", "0:20", "3:75", *times[3:8], "9:99"])


@pytest.mark.parametrize(
    ("name", "unit", "doubt"),
    [("t (h:mm)", "minutes", False), ("t_hours", "minutes", False), ("clock", "minutes", True)]
    + [("time (min)", "seconds", True), ("m:ss", "seconds", True), ("h:mm:ss", "minutes", False)],
)
def test_the_name_says_whether_a_clock_has_hours(name, unit, doubt):
    """Of the window too."""
    rows = "".join(f"{i // 6}:{i % 6}0,{2.0 * 0.9**i:.4f}\n" for i in range(10))
    found = read_text(f"{name},y\n{rows}", start="0:20")
    assert found.names[0] == f"{name} [{unit}]"
    np.testing.assert_allclose(found.trajectories[0].t, 10.0 * np.arange(2, 10))
    assert any("60 times" in note for note in found.notes) == doubt


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (
            ["1.2 x 10^5", "1.3*10**5", "1.4\u00d710\u2075", "1.5e5", "160000"],
            [1.2, 1.3, 1.4, 1.5, 1.6],
        ),
        (["1.2D+05", "1.3d+05", "1.4D+05", "1.5E+05", "1.6D+05"], [1.2, 1.3, 1.4, 1.5, 1.6]),
        (['"98,450"', '"1,20,300"', '"10,30,000"', '"1,12,40,000"'], [0.9845, 1.203, 10.3, 112.4]),
        (["$120000", "$130000", "$140000"], [1.2, 1.3, 1.4]),
    ],
)
def test_numbers_as_people_and_programs_write_them(cells, values):
    cells, values = cells * 3, values * 3
    result = read(cells, range(len(cells)))
    np.testing.assert_allclose(result.trajectories[0].y, 1e5 * np.array(values), rtol=1e-12)


def test_units_are_not_mixed():
    assert "'\u20ac6' in line 9" in refusal(read, ["$5"] * 7 + ["\u20ac6"] * 2)


@pytest.mark.parametrize(
    "mark", ["-999", "-9999.0", "-99", "-99.9", "-99.99", "-999.9", "-999.99", "-9999.9"]
)
def test_marks_of_loggers_are_missing(mark):
    cells = [*Y[:4], mark, *Y[4:]]
    result = read(cells, range(10))
    assert result.trajectories[0].y.tolist() == Y and "first in line 6" in result.notes[0]
    negative = read([-1.5, *cells], range(11)).trajectories[0]
    assert len(negative) == 10  # As it is among negative ones, if it is far from all of them.
    near = [float(mark) * share for share in np.linspace(0.4, 1.8, 10)]
    assert len(read([*near, mark], range(11)).trajectories[0]) == 11


def test_a_cell_with_its_error_is_refused_with_a_hint():
    assert "--sigma" in refusal(read, [f"{y} \u00b1 0.1" for y in Y])
    message = refusal(read, ["1,5", *["1.2(3)"] * 8], names="t;y")
    assert "'1.2(3)'" in message or "1,5" in message


@pytest.mark.parametrize("name", ["Total", "Mean", "SD", "Average OD", "Max V"])
def test_rows_that_sum_up_others_are_left_out(name):
    result = read([*Y, 3.5], [*range(9), name])
    assert result.trajectories[0].y.tolist() == Y and repr(name) in " ".join(result.notes)
    assert "at an end" in refusal(read, [*Y, 3.5], [*range(9), "overnight"])


@pytest.mark.parametrize("word", ["\u2013", "\u2014", "n.a.", "missing", "no data", "..."])
def test_words_for_what_was_not_measured(word):
    result = read([*Y[:3], word, *Y[3:], word], range(11))
    assert result.trajectories[0].y.tolist() == Y


@pytest.mark.parametrize("columns", [("t", "sign", "y"), ("t", "y", "flag")])
def test_marks_of_limits_in_a_column_of_their_own(columns):
    rows = [(t, "<" if t > 8 else "=" * (t % 2), y) for t, y in enumerate([*Y, 0.05, 0.05])]
    order = [0, 1, 2] if columns[1] == "sign" else [0, 2, 1]
    text = "\n".join([",".join(columns), *(",".join(str(row[i]) for i in order) for row in rows)])
    result = read_text(text)
    assert result.trajectories[0].y.tolist() == Y and result.limits[0].limit.tolist() == [
        0.05,
        0.05,
    ]
    assert "were read as limits" in " ".join(result.notes)
    for other in (text.replace("<", "checked"), text.replace("<", "").replace("=", "")):
        assert len(read_text(other).trajectories[0]) == 11


def test_cells_that_spreadsheets_shall_leave_alone():
    text = "t,y\n" + "".join(f'="{i}",="{y}"\n' for i, y in enumerate(Y))
    assert read_text(text).trajectories[0].y.tolist() == Y
