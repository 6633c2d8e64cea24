"""What a user's arrays become, and what is refused in which words."""

import datetime
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from reading import refusal

from nsode_jax.dynamics.trajectory import MIN_POINTS, Trajectory, clean
from nsode_jax.dynamics.vectors import TrajectoryError, elapsed, times_alike

T = np.arange(12.0)
Y = T**2 + 0.5


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

    def test_one_of_several_quantities_may_be_constant(self):
        series, notes = clean(T, np.full(12, 0.1), constant=True)
        assert series.y.tolist() == [0.1] * 12 and notes == ()

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
        assert "real numbers" in refusal(clean, [*T[:11], datetime.date(2020, 1, 1)], Y)
        assert "real numbers" in refusal(clean, (i for i in T), Y)
        assert "real numbers" in refusal(clean, [Decimal("sNaN"), *T[1:]], Y)
        assert "real numbers" in refusal(clean, [Fraction(10**400), *T[1:]], Y)
        assert "real numbers" in refusal(clean, pd.period_range("2020", periods=12), Y)
        assert "shape" in refusal(clean, np.ones((3, 4)), Y)
        assert "12 times but 11 values" in refusal(clean, T, Y[:-1])

    def test_column_vectors(self):
        np.testing.assert_array_equal(clean(T[:, None], Y[:, None])[0].y, Y)


DAYS = pd.date_range("2020-03-01", periods=12)


class TestTimesThatAreNoNumbers:
    @pytest.mark.parametrize(
        "times",
        [
            DAYS,
            pd.Series(DAYS, index=range(5, 17)),
            pd.Series(DAYS).astype("timestamp[ns][pyarrow]"),
            DAYS.to_numpy(),
            DAYS.to_numpy().astype("datetime64[D]"),
            list(DAYS),
            [day.to_pydatetime() for day in DAYS],
            [day.date() for day in DAYS],
            DAYS.tz_localize("UTC"),
            [day.tz_localize("UTC") for day in DAYS],
        ],
        ids=lambda times: type(times).__name__,
    )
    def test_dates_become_numbers(self, times):
        trajectory, notes = clean(times, pd.Series(Y))
        np.testing.assert_array_equal(trajectory.t, T)
        np.testing.assert_array_equal(trajectory.y, Y)
        assert notes == ("The times are dates; they were converted to days since 2020-03-01.",)

    @pytest.mark.parametrize(
        ("step", "unit"),
        [("s", "seconds"), ("30s", "minutes"), ("20min", "hours"), ("8h", "days"), ("D", "days")],
    )
    def test_the_unit_suits_the_span(self, step, unit):
        times = pd.date_range("2020-03-01 06:30", periods=12, freq=step)
        (numbers,), name = elapsed(times.to_numpy())
        assert name == f"{unit} since 2020-03-01 06:30"
        span = (times[-1] - times[0]) / pd.Timedelta(1, unit)
        np.testing.assert_allclose(numbers, np.linspace(0, span, 12), rtol=1e-14)

    def test_several_series_have_one_unit_and_one_beginning(self):
        start = np.datetime64("2020-03-01T06")
        hourly = start + np.arange(12) * np.timedelta64(1, "h")  # Hours would suit these alone.
        daily = start + np.timedelta64(2, "D") + np.arange(12) * np.timedelta64(1, "D")
        (short, long), notes = times_alike([hourly, daily.tolist()])
        np.testing.assert_allclose(short, np.arange(12) / 24)
        np.testing.assert_allclose(long, np.arange(12) + 2.0)
        assert notes == (
            "The times are dates; they were converted to days since 2020-03-01 06:00.",
        )
        (first, second), notes = times_alike([hourly - start, daily - start])
        np.testing.assert_allclose(second, np.arange(12) + 2.0)
        assert first[1] == pytest.approx(1 / 24) and "durations" in notes[0]

    def test_numbers_of_several_series_stay(self):
        assert times_alike([[1, 2], [3, 4]]) == ([[1, 2], [3, 4]], ())
        with pytest.raises(TrajectoryError, match="give all in one way"):
            times_alike([DAYS, T])

    @pytest.mark.parametrize("bad", [
        ["soon"] * 3, [None] * 3, [], [datetime.datetime(2020, 3, 1, tzinfo=datetime.UTC), DAYS[0]],
        [DAYS[0], "late"],
    ])  # fmt: skip
    def test_times_that_cannot_be_read_are_left_alone(self, bad):
        hours = np.datetime64("2020-03-01") + np.arange(12) * np.timedelta64(1, "h")
        (short, same, long), notes = times_alike([hours, bad, DAYS])
        assert same is bad and len(notes) == 1
        np.testing.assert_allclose(np.diff(short), 1 / 24)
        np.testing.assert_allclose(np.diff(long), 1.0)

    def test_years(self):
        (numbers,), name = elapsed(np.arange(12).astype("datetime64[Y]"))
        assert name == "years since 1970-01-01"
        np.testing.assert_allclose(numbers, T, atol=3e-3)  # Years differ in length.

    def test_other_zones_are_converted_to_utc(self):
        _, notes = clean(DAYS.tz_localize("Asia/Tokyo"), Y)
        assert "since 2020-02-29 15:00" in notes[0]

    def test_durations(self):
        _, notes = clean(pd.timedelta_range("1h", periods=12, freq="15min"), Y)
        assert notes == ("The times are durations; they were converted to minutes.",)
        trajectory, _ = clean([datetime.timedelta(seconds=i) for i in range(12)], Y)
        np.testing.assert_array_equal(trajectory.t, T)
        assert "fixed unit" in refusal(clean, np.arange(12).astype("timedelta64[M]"), Y)

    @pytest.mark.parametrize("missing", [None, pd.NaT, pd.NA])
    def test_missing_dates(self, missing):
        trajectory, notes = clean([*DAYS[:11], missing], Y)
        assert len(trajectory) == 11 and "1 of 12 rows dropped" in notes[1]

    def test_masked_dates(self):
        masked = np.ma.masked_array(DAYS.to_numpy(), mask=T == 4)
        assert 4.0 not in clean(masked, Y)[0].t

    def test_what_is_refused(self):
        zoned = [DAYS[0].tz_localize("UTC"), *DAYS[1:]]
        assert "time zone in some rows" in refusal(clean, zoned, Y)
        assert "values are dates; they must be numbers" in refusal(clean, T, DAYS)
        assert "0 usable points" in refusal(clean, [pd.NaT] * 12, Y)
        assert "same" in refusal(clean, [DAYS[0]] * 12, Y)


class TestNumbersOfOtherKinds:
    @pytest.mark.parametrize(
        "values",
        [
            [Decimal(value) for value in Y],
            [Fraction(value) for value in Y],
            pd.Series(Y, dtype="Float64"),
            pd.Series(Y, dtype="double[pyarrow]"),
            pd.Series(Y).astype("category"),
            pd.DataFrame({"y": Y}),
            [str(value) for value in Y],
        ],
    )
    def test_are_read(self, values):
        np.testing.assert_array_equal(clean(T, values)[0].y, Y)

    @pytest.mark.parametrize("missing", [None, pd.NA, Decimal("NaN"), float("nan")])
    @pytest.mark.parametrize("kind", [float, Decimal, Fraction])
    def test_what_is_missing_is_dropped(self, missing, kind):
        trajectory, notes = clean(T, [missing, *map(kind, Y[1:])])
        assert len(trajectory) == 11 and "1 of 12 rows dropped" in notes[0]

    def test_missing_entries_of_pandas(self):
        assert len(clean(T, pd.array([1, None, *range(10)], dtype="Int64"))[0]) == 11


def test_pandas_is_not_imported():
    code = "import sys, nsode_jax.dynamics.trajectory; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
