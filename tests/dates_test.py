"""Dates in many forms, decided by the column as a whole or refused."""

import datetime

import numpy as np
import pytest
from reading import read_text, refusal

from nsode_jax.tables.files import Contents
from nsode_jax.tables.table import read_measurements

DAYS = [datetime.datetime(2020, 3, 1 + i) for i in range(12)]
MONTHS = [datetime.datetime(2019 + i // 12, i % 12 + 1, 1) for i in range(20)]
DAYS_OF_MONTHS = [(month - MONTHS[0]).days for month in MONTHS]


def read(form, moments, name="Date", **options):
    cells = [date if isinstance(date, str) else date.strftime(form) for date in moments]
    text = "\n".join([f"{name},y", *(f"{cell},{i * i + 1.5}" for i, cell in enumerate(cells))])
    return read_text(text, **options)


@pytest.mark.parametrize(
    "form",
    ["%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m-%d-%y", "%y/%m/%d", "%d.%m.%y", "%y.%m.%d"]
    + ["%d%m%Y", "%m%d%Y", "%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%Y-%m-%d %I:%M:%S %p"],
)
def test_days_in_a_row_tell_which_of_day_and_month_is_which(form):
    got = read(form, DAYS)
    assert got.trajectories[0].t.tolist() == list(range(12))
    assert got.names[0] == "Date [days since 2020-03-01]"


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y", "%Y%m", "%Y-%m"])
def test_months_in_a_row_likewise(form):
    assert read(form, MONTHS).trajectories[0].t.tolist() == DAYS_OF_MONTHS


def test_dates_that_may_be_days_or_months_are_refused_until_told():
    message = refusal(read, "%d/%m/%Y", MONTHS[:10])
    assert "'01/02/2019' in line 3 is 2019-01-02 (month-first) or 2019-02-01 (day-first)" in message
    assert "--dates month-first or --dates day-first" in message
    for form, order in (("%d/%m/%Y", "day-first"), ("%m/%d/%Y", "month-first")):
        got = read(form, MONTHS[:10], dates=order)
        assert got.trajectories[0].t.tolist() == DAYS_OF_MONTHS[:10]
        assert read(form, DAYS, dates=order).trajectories[0].t.tolist() == list(range(12))
    assert "(yyyymm) or 2020-03-01 (yymmdd)" in refusal(read, "%y%m%d", DAYS)
    assert "day-first or month-first, not 'dmy'" in refusal(read, "%d/%m/%Y", DAYS, dates="dmy")


def test_where_readings_begin_elsewhere_only_it_is_noted():
    hours = [datetime.datetime(2020, 3, 4, hour) for hour in range(12)]
    got = read("%d/%m/%Y %H:%M", hours)
    assert got.trajectories[0].t.tolist() == list(range(12)) and "two ways" in got.notes[0]


def test_a_window_is_read_as_the_dates_of_the_file():
    window = {"start": "03/03/2020", "end": "11/03/2020"}
    assert read("%d/%m/%Y", DAYS, **window).trajectories[0].t.tolist() == [*range(2, 11)]
    late = [day + datetime.timedelta(19) for day in DAYS]  # The first, 20/03/2020, is no doubt.
    assert len(read("%d/%m/%Y", late, start="23/03/2020", end="01/04/2020").trajectories[0]) == 9
    window = {"start": "2020-03-03", "end": "11.03.2020"}
    assert len(read("%d.%m.%Y", DAYS, **window).trajectories[0]) == 9
    for window in ({"start": "20200303", "end": "20200311"}, {"start": "2", "end": "2020-03-11"}):
        assert len(read("%Y%m%d", DAYS, **window).trajectories[0]) == 9
    assert "neither a number nor a time" in refusal(read, "%d/%m/%Y", DAYS, start="yesterday")


def test_numbers_are_dates_only_where_they_can_be_little_else():
    counts = [str(201801 + i) for i in range(9)]
    assert read("", counts, "count").names[0] == "count"
    assert read("", counts, "month").names[0] == "month [days since 2018-01-01]"
    assert read("", [str(10_000_000 + i) for i in range(9)]).names[0] == "Date"
    over_a_year = ["201810", "201811", "201812", *(f"20190{i}" for i in range(1, 7))]
    assert read("", over_a_year, "t").names[0] == "t [days since 2018-10-01]"


@pytest.mark.parametrize("power", [0, 3, 6, 9])
def test_stamps_of_computers(power):
    got = read("", [f"{1584000000 + 60 * i}{'0' * power}" for i in range(9)], "timestamp")
    assert got.trajectories[0].t.tolist() == [*range(9)]
    assert got.names[0] == "timestamp [minutes since 2020-03-12 08:00]"


# --- clock times ----------------------------------------------------------------------

HOURS = np.arange(10.0)


def test_a_clock_of_twelve_hours():
    halves = ["AM", "am", "a.m.", "PM", "pm", "p.m.", "PM", "PM", "PM", "PM"]
    cells = [f"{(9 + i - 1) % 12 + 1}:00{' ' * (i % 2)}{half}" for i, half in enumerate(halves)]
    assert read("", cells, "clock").trajectories[0].t.tolist() == [*range(9, 19)]
    assert "'13:00 PM'" in refusal(read, "", [f"{hour}:00 PM" for hour in range(9, 19)])


@pytest.mark.parametrize(
    ("cells", "step"),
    [
        ([f"{i // 6} h {i % 6 * 10} min" if i % 6 else f"{i // 6} h" for i in range(12)], 10),
        ([f"{i // 2}h{30 * (i % 2):02}" for i in range(12)], 30),
        ([f"{i // 2}h{30 * (i % 2)}m" for i in range(12)], 30),
        ([f"{i // 2} h{' 30 min' if i % 2 else ''}" for i in range(12)], 30),
        ([f"{i} days 0 hours" for i in range(12)], 1440),
        ([f"{i} days 00:00:00" for i in range(12)], 1440),
        ([f"{i:02}:00.0" for i in range(12)], 1),
    ],
)
def test_durations_with_their_units(cells, step):
    got = read("", cells, "Time")
    unit = {"minutes": 1, "hours": 60, "days": 1440}[got.names[0].split("[")[1].rstrip("]")]
    np.testing.assert_allclose(got.trajectories[0].t * unit, step * np.arange(12))


def test_a_window_after_midnight():
    cells = [f"{(20 + i) % 24}:00:00" for i in range(12)]
    got = read("", cells, start="22:00:00", end="6:00:00")
    assert got.trajectories[0].t.tolist() == [*range(22, 31)]


@pytest.mark.parametrize(
    ("header", "cells", "t"),
    [
        ("Date,Time", [f"{1 + i}/03/2020,12:{i:02}:00" for i in range(9)], 1441 / 1440),
        ("Time,Date", [f"12:{i:02}:00,{1 + i}/03/2020" for i in range(9)], 1441 / 1440),
        ("Day,Time", [f"{1 + i},{20 - i}:00:00" for i in range(9)], 23 / 24),
    ],
)
def test_days_beside_clock_times(header, cells, t):
    text = "\n".join([f"{header},y", *(f"{cell},{i * i}" for i, cell in enumerate(cells))])
    got = read_measurements(Contents("data.csv", text.encode())).trajectories[0]
    np.testing.assert_allclose(got.t - got.t[0], t * np.arange(9), atol=1e-9)
    assert got.y.tolist() == [i * i for i in range(9)]


def test_hours_and_minutes_without_a_colon_are_refused():
    cells = [f"{8 + i // 4:02}{i % 4 * 15:02}" for i in range(12)]
    assert "hours and minutes without a colon (800" in refusal(read, "", cells, "time")
    assert len(read("", [str(800 + 15 * i) for i in range(12)], "time").trajectories[0]) == 12


@pytest.mark.parametrize(
    ("form", "order"),
    [("%d/%m/%Y", "month-first"), ("%m/%d/%Y", "day-first"), ("%d.%m.%Y", "month-first")]
    + [("%d%m%Y", "month-first"), ("%d-%m-%y", "month-first")],
)
def test_an_order_that_contradicts_the_dates_is_refused(form, order):
    """Read cell by cell, 05/02/2020 would be in May and 13/02/2020 in February."""
    said = refusal(read, form, [day + datetime.timedelta(5) for day in DAYS], dates=order)
    assert f"--dates {order}" in said and "leave the option out" in said


def test_a_day_that_is_no_month_is_not_read_the_other_way():
    days = [day + datetime.timedelta(5) for day in DAYS]
    moments = [*days[:6], "03/25/2020", *days[7:]]
    got = read("%d/%m/%Y", moments)
    assert got.trajectories[0].t.tolist() == [*range(6), *range(7, 12)]
    assert "'03/25/2020' in line 8" in " ".join(got.notes)


@pytest.mark.parametrize("form", ["%d/%m/%y", "%d-%b-%y", "%d.%m.%y", "%y%m%d"])
@pytest.mark.parametrize(
    ("first", "told"),
    [(1960, "1960 to 1971"), (1972, "1972 to 1983"), (1965, "1965 to 1976")]
    + [(1988, "1988 to 1999"), (2012, "2012 to 2023")],
)
def test_years_of_two_digits_are_of_one_century(form, first, told):
    moments = [datetime.datetime(first + i, 1 + i % 2 * 2, 31) for i in range(12)]
    got = read(form, moments)
    days = [(moment - moments[0]).days for moment in moments]
    np.testing.assert_allclose(got.trajectories[0].t, np.array(days) / 365.25)
    assert f"Years of two digits were read as {told}." in got.notes
    start, end = moments[2].strftime(form), moments[10].strftime(form)
    got = read(form, moments, start=start, end=end)
    np.testing.assert_allclose(got.trajectories[0].t, np.array(days[2:11]) / 365.25)


def test_years_of_two_digits_may_pass_the_turn_of_the_century():
    moments = [datetime.datetime(1995 + i, 1 + i % 2 * 2, 31) for i in range(12)]
    got = read("%d/%m/%y", moments)
    assert got.names[0] == "Date [years since 1995-01-31]" and got.trajectories[0].t[-1] < 11.2


def test_midnight_at_the_end_of_the_day():
    cells = [f"{1 + i // 24:02}/02/2020 {i % 24 + 1:02}:00" for i in range(72)]
    got = read("", cells, dates="day-first")
    np.testing.assert_allclose(got.trajectories[0].t, np.arange(72))
    got = read("", [f"2020-03-{1 + i}T24:00:00Z" for i in range(12)])
    assert got.names[0] == "Date [days since 2020-03-02]"


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S", "%d/%m/%Y %H:%M:%S.%f", "%Y-%m-%d %H:%M"])
def test_minutes_and_seconds_of_24_are_no_midnight(form):
    """A time for every minute of two days, and every second of half an hour."""
    start = datetime.datetime(2020, 3, 30)
    got = read(form, [start + datetime.timedelta(minutes=i) for i in range(2880)])
    np.testing.assert_allclose(np.diff(got.trajectories[0].t), got.trajectories[0].t[1])
    if "%S" in form:
        got = read(form, [start + datetime.timedelta(seconds=i) for i in range(1800)])
        np.testing.assert_allclose(np.diff(got.trajectories[0].t), got.trajectories[0].t[1])


@pytest.mark.parametrize("cell", ["18:00", "6:30 pm", "today", "May"])
def test_what_is_no_date_is_none_of_today(cell):
    got = read("%Y-%m-%d", [*DAYS[:5], cell, *DAYS[6:]])
    assert got.trajectories[0].t.tolist() == [*range(5), *range(6, 12)]
    assert "1 cell without a time" in " ".join(got.notes)


def test_a_year_as_a_bound_is_refused():
    days = [datetime.datetime(2015 + i // 2, 1 + i % 2 * 6, 1) for i in range(20)]
    said = refusal(read, "%Y-%m-%d", days, start="2017")
    assert "'2017' may be a year, or a number (years since 2015-01-01)" in said
    assert len(read("%Y-%m-%d", days, start="2017-01-01").trajectories[0]) == 16
    assert len(read("%Y-%m-%d", DAYS, end="8").trajectories[0]) == 9
    assert len(read("%Y%m%d", DAYS, end="20200309").trajectories[0]) == 9
    assert len(read("%Y-%m-%d", DAYS, end="20200309").trajectories[0]) == 9


def test_a_clock_of_twelve_hours_without_its_halves():
    cells = ["9:00", "10:00", "11:30", "12:00", "12:59", "1:00", "2:00", "3:00", "4:30"]
    got = read("", cells, "clock (h)")
    hours = [9, 10, 11.5, 12, 12 + 59 / 60, 13, 14, 15, 16.5]
    np.testing.assert_allclose(got.trajectories[0].t, hours)
    assert "The clock passed noon or midnight 1 time." in got.notes
    assert read("", cells, "clock (h)", end="15:00").trajectories[0].t[-1] == 15
    assert "counts on" in refusal(read, "", cells, "clock (h)", end="3:00")


@pytest.mark.parametrize("name", ["time (min)", "t"])
def test_minutes_and_seconds_beyond_the_full_hour(name):
    tenths = "" if name != "t" else ".5"
    cells = [f"{(54 + i) % 60:02}:00{tenths}" for i in range(12)]
    got = read("", cells, name)
    np.testing.assert_allclose(np.diff(got.trajectories[0].t), 1)
    assert "The clock passed the full hour 1 time." in got.notes


@pytest.mark.parametrize(
    "cells",
    [
        ["9:00", "9:30", "10:00", "10:30", "11:00", "9:45", "11:30", "12:00", "12:30"],
        ["08:00", "09:00", "10:00", "11:00", "12:00", "13:00", "14:00", "6:30", "7:30"],
        ["09:00", "20:00", "08:50", "20:10", "09:10", "20:20", "09:20", "20:30", "09:30"],
    ],
)
def test_clocks_that_go_back_are_refused(cells):
    for time in (None, "clock"):
        said = refusal(read, "", cells, "clock", time=time)
        assert "clock times in column 'clock' go up and down" in said and "count on" in said


def test_clocks_that_go_back_throughout_are_put_in_order():
    cells = [f"{12 - i}:00" for i in range(10)]
    assert read("", cells, "clock").trajectories[0].t.tolist() == [*range(3, 13)]


def test_clock_times_before_the_start():
    cells = ["-2:30", "-1:00", "\u22120:30", *(f"{i}:00" for i in range(9))]
    got = read("", cells, "Time (h)")
    assert got.trajectories[0].t.tolist() == [-2.5, -1, -0.5, *range(9)]
    assert read("", cells, "Time (min)").trajectories[0].t.tolist() == [-2.5, -1, -0.5, *range(9)]


@pytest.mark.parametrize("names", ["date,time", "time,date"])
@pytest.mark.parametrize("chosen", [None, "date"])
def test_clock_times_beside_numbers_that_are_dates(names, chosen):
    days, hours = [1, 2, 5, 6], [6, 12, 23]
    cells = [(f"2020030{d}", f"{h:02}:00") for d in days for h in hours]
    rows = [
        ",".join([*(cell if names[0] == "d" else cell[::-1]), str(i * i)])
        for i, cell in enumerate(cells)
    ]
    got = read_text("\n".join([f"{names},y", *rows]), time=chosen, value="y")
    t = np.array([24 * d + h - 30 for d in days for h in hours]) / 24
    np.testing.assert_allclose(got.trajectories[0].t, t, atol=1e-9)


def test_a_day_without_a_number_has_no_time():
    rows = [f"{'' if i == 5 else 1 + i // 3},{6 * (i % 3)}:00,{i * i}" for i in range(12)]
    got = read_text("\n".join(["day,time,y", *rows]))
    t = [24 * (i // 3) + 6 * (i % 3) for i in range(12) if i != 5]
    np.testing.assert_allclose(got.trajectories[0].t * 24, t)


@pytest.mark.parametrize("form", ["%Y.%m", "%m.%Y"])
def test_months_as_decimals_of_their_years_are_refused(form):
    months = [datetime.datetime(2020 + (3 + i) // 12, 1 + (3 + i) % 12, 1) for i in range(16)]
    said = refusal(read, form, months, "month")
    assert "seem to be" in said and "write them as 2020-11" in said
    decimal = [f"{2020 + i / 12:.2f}" for i in range(16)]
    assert len(read("", decimal, "year").trajectories[0]) == 16
