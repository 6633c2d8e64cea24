"""The data of systems: what is refused, what is mended with a word, and what columns are called."""

import numpy as np
import pandas as pd
import pytest

from nsode_jax.discovery import discover
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.observed.forcing import MAX_ROWS
from nsode_jax.observed.runs import MAX_POINTS, read_runs

T = np.linspace(0.0, 5.0, 30)
WAVES = np.stack([np.sin(T), np.cos(T)], axis=1)
_ON_A_GAP = (
    "1 of 30 rows dropped: where one of {} is missing, a row is left out for all quantities."
)


def read(t, y, inputs=None, names=None, input_names=None, explicit_time=False, order=1):
    return read_runs(
        t, y, inputs, names=names, input_names=input_names, explicit_time=explicit_time,
        order=order,
    )  # fmt: skip


def with_gap(column, rows):
    column = np.array(column, float)
    column[rows] = np.nan
    return column


@pytest.mark.parametrize(
    ("t", "values", "options", "message"),
    [
        (T, WAVES[:20], {}, "30 times, 20 rows of values and 20 of inputs; all need as many"),
        (T, [[1.0, 2.0], [1.0]], {}, "columns of numbers of one length"),
        (T, {"x": 1}, {}, "columns of numbers of one length"),
        (T, np.ones((30, 2)) * [[1.0, 2.0]], {}, "y1: The values are constant"),
        (
            T,
            np.repeat(WAVES, 3, axis=1)[:, :5],
            {},
            "5 quantities, a column each; a system has 4 at most",
        ),
        (T[:5], WAVES[:5], {}, "Only 5 usable rows; at least 8"),
        (
            T,
            with_gap(WAVES, slice(3, None)),
            {},
            r"3 usable rows \(of 30 rows y1 is missing in 27",
        ),
        (0 * T, WAVES, {}, "y1: All times are the same"),
        (T, WAVES * 1e300, {}, "too large"),
        (T, WAVES, {"inputs": with_gap(T, slice(25, None))}, "u is not known to the ends"),
        (T, WAVES, {"inputs": np.ones(30)}, "The input u is constant"),
        (T, [WAVES, WAVES], {"inputs": np.ones(30)}, "The input u is constant"),
        (T, WAVES, {"inputs": T[:20]}, "30 rows of values and 20 of inputs"),
        (T, WAVES, {"inputs": np.ones(20)}, "30 rows of values and 20 of inputs"),
        ([T, T], [WAVES, WAVES], {"inputs": [T, WAVES]}, "All runs need the same inputs"),
        (
            T,
            np.where(np.arange(30)[:, None] % 2 == [0, 1], WAVES, np.nan),
            {"names": ["x", "z"]},
            "No row has values of all of x, z, which the laws of a system need at the same times",
        ),
        ([T, T], [WAVES, WAVES[:, :1]], {}, "All runs need the same quantities"),
        ([T], [WAVES, WAVES], {}, "2 runs of values, 1 of times and 2 of inputs"),
        ([T, T], [WAVES, WAVES], {"inputs": [T]}, "2 runs of values, 2 of times and 1 of inputs"),
        ([T, T[:5]], [WAVES, WAVES[:5]], {}, "Run 2 of 2: Only 5 usable rows"),
        (T, np.zeros((30, 2, 2)), {}, "an array"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(t, values, options, message):
    with pytest.raises(TrajectoryError, match=message) as error:
        read(t, values, **options)
    assert "\n" not in str(error.value)


def test_names_must_fit():
    with pytest.raises(ValueError, match="there are 1 names for 2 columns"):
        read(T, WAVES, names=["x"])


def test_rows_with_a_gap_are_dropped_with_a_word():
    data, notes = read(T, with_gap(WAVES, (4, 1)))
    assert len(data.runs[0]) == 29
    assert notes == [_ON_A_GAP.format("y1, y2")]
    forced, notes = read(T, WAVES, with_gap(T**2, 7))
    assert len(forced.runs[0]) == 29 and notes == [_ON_A_GAP.format("y1, y2, u")]
    notes = read(T, with_gap(WAVES[:, 0], 4), explicit_time=True)[1]
    assert notes == ["1 of 30 rows dropped: a value is missing."]


def test_notes_tell_of_which_runs_they_are():
    gaps = [with_gap(WAVES, rows) for rows in ((4, 1), slice(0), 7, slice(5, 7))]
    notes = read(T, gaps)[1]
    assert notes == [
        "Run 1, 3 of 4: " + _ON_A_GAP.format("y1, y2"),
        "Run 4 of 4: " + _ON_A_GAP.format("y1, y2").replace("1", "2", 1),
    ]
    t = np.linspace(0.0, 5.0, 1000)
    assert read(t, [np.sin(t), np.cos(t)], order=2)[1] == [
        f"Each run: 1000 points thinned to {MAX_POINTS} for fitting."
    ]


def test_repeated_times_are_averaged_with_a_word():
    t = np.where(np.arange(30) == 7, T[6], T)
    data, notes = read(t, WAVES, T**2)
    (run,) = data.runs
    assert len(run) == 29 and len(notes) == 1 and "occurred more than once" in notes[0]
    np.testing.assert_allclose(run.y[6], WAVES[6:8].mean(axis=0))
    np.testing.assert_allclose(run.u[6, 0], (T[6] ** 2 + T[7] ** 2) / 2)


def test_long_runs_are_thinned_with_a_word():
    t = np.linspace(0.0, 5.0, 1000)
    data, notes = read(t, np.stack([np.sin(t), np.cos(t)], axis=1))
    assert len(data.runs[0]) == MAX_POINTS and data.runs[0].u.shape == (MAX_POINTS, 0)
    assert notes == [f"1000 points thinned to {MAX_POINTS} for fitting."]


def test_rows_that_are_kept_follow_what_a_run_does():
    """400 periods: three rows of four periods would look like a slow wave."""
    t = np.linspace(0.0, 400.0, 20_001)
    y = np.stack([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t)], axis=1)
    for noise in (0.0, 0.1):
        noisy = y + noise * np.random.default_rng(1).standard_normal(y.shape)
        data, notes = read(t, noisy, np.cos(0.3 * t))
        (run,) = data.runs
        periods = np.ptp(run.t)
        assert len(run) == MAX_POINTS and 5 * periods < len(run) < 40 * periods
        assert run.input_times[-1] == run.t[-1]
        assert len(notes) == 1 and f"to the time {run.t[-1]:.6g}" in notes[0]


def test_many_runs_share_the_points():
    t = np.linspace(0.0, 5.0, 400)
    waves = np.stack([np.sin(t), np.cos(t)], axis=1)
    for number, points in ((2, MAX_POINTS), (10, 150), (60, 50)):
        data, _ = read(t, [waves] * number)
        assert {len(run) for run in data.runs} == {points}


def test_inputs_are_known_where_quantities_are_thinned_or_missing():
    t = np.linspace(0.0, 5.0, 1000)
    waves, u = np.stack([np.sin(t), np.cos(t)], axis=1), np.sign(np.sin(40 * t))
    for y, points in ((waves, MAX_POINTS), (with_gap(waves, np.arange(1000) % 10 > 0), 100)):
        (run,) = read(t[::-1], y[::-1], u[::-1])[0].runs
        assert len(run) == points and np.isin(run.t, run.input_times).all()
        np.testing.assert_allclose(run.inputs(t)[0], u)


def test_many_inputs_are_thinned_with_a_word():
    t = np.linspace(0.0, 5.0, 2 * MAX_ROWS)
    data, notes = read(t, np.sin(t), np.cos(t), order=2)
    assert data.runs[0].input_times.size == MAX_ROWS
    assert notes[1:] == [
        f"{t.size} rows of inputs thinned to {MAX_ROWS}: what changes faster is not seen."
    ]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["hare", "lynx"], ("hare", "lynx")),
        (["größe", "2nd (k)"], ("gr_e", "y_2nd_k")),
        (["a b", "a-b"], ("a_b", "a_b_2")),
        (["t", "sin"], ("t_", "sin_")),
        ([0, 1], ("y_0", "y_1")),
        (["c", "pi"], ("c_", "pi_")),
        (["§", "lambda"], ("y", "lambda_")),
    ],
)
def test_columns_are_called_what_can_stand_in_a_formula(columns, names):
    data, notes = read(T, pd.DataFrame(WAVES, columns=columns))
    assert data.system.observed == names
    changed = [(a, b) for a, b in zip(map(str, columns), names) if a != b]
    assert notes == [f"{a!r} is called {b} in the laws." for a, b in changed]


def test_inputs_have_names_of_their_own():
    data, _ = read(T, WAVES, T**2, names=("u", "v"))
    assert (data.system.observed, data.system.inputs) == (("u", "v"), ("u_2",))


def test_columns_that_may_be_series_are_pointed_to():
    """An array [time, 3] is three quantities; options of one quantity mean that it is series."""
    with pytest.raises(ValueError, match=r"sigma, sources: for one quantity .* list\(y.T\)"):
        discover(T, np.stack([T, T, T], axis=1), sources=("library",), sigma=0.1)


# --- what lies in a run is read as it is elsewhere --------------------------------------


def test_masked_and_absent_values_are_missing():
    masked = np.ma.array(WAVES, mask=False)
    masked[3, 0] = 999.0
    masked.mask[3, 0] = True
    absent = pd.DataFrame(WAVES, columns=["x", "z"]).astype("Float64")
    absent.iloc[3, 0] = pd.NA
    for values in (masked, absent, np.where(masked.mask, None, WAVES).tolist()):
        data, notes = read(T, values)
        names = "x, z" if values is absent else "y1, y2"
        assert notes == [_ON_A_GAP.format(names)]
        np.testing.assert_array_equal(data.runs[0].y, np.delete(WAVES, 3, axis=0))


def test_single_precision_is_read_as_it_is_written():
    data, _ = read(T, np.round(WAVES, 3).astype(np.float32))
    np.testing.assert_array_equal(data.runs[0].y, np.round(WAVES, 3))


def test_columns_of_runs_are_joined_by_their_names():
    first = pd.DataFrame(WAVES, columns=["x", "z"])
    data, _ = read([T, T], [first, 2 * first[["z", "x"]]])
    np.testing.assert_array_equal(data.runs[1].y, 2 * WAVES)
    with pytest.raises(TrajectoryError, match="Run 2 of 2 has the quantities x, w, the first x, z"):
        read(T, [first, first.rename(columns={"z": "w"})])
    inputs = [pd.DataFrame({"heat": T, "light": -T}), pd.DataFrame({"light": -T, "heat": T})]
    data, _ = read(T, [first, first], inputs)
    np.testing.assert_array_equal(data.runs[1].u, np.stack([T, -T], axis=1))


def test_an_input_may_be_constant_within_each_run():
    data, _ = read(T, [WAVES, WAVES], [np.full(30, 20.0), np.full(30, 37.0)])
    assert [np.unique(run.u).tolist() for run in data.runs] == [[20.0], [37.0]]


def test_inputs_that_change_in_steps_are_said_to_be_held():
    switch = (T > 2.0).astype(float)
    _, notes = read(T, WAVES, np.stack([switch, np.sin(T)], axis=1), input_names=["heat", "x"])
    note = "heat changes in steps: each value was taken to hold until the next row."
    assert notes == [note]
    # Once for all runs, which have one system.
    levels = np.floor(T)
    data, notes = read(T, [WAVES, WAVES], [switch, 2 * levels], input_names=["heat"])
    assert notes == [note] and data.system.held == ("heat",)
    assert all(run.holds == (True,) for run in data.runs)


def test_whether_an_input_is_held_is_decided_before_rows_are_left_out():
    """2,000 steps in 20,000 rows are steps, whatever the 3,000 rows that are kept look like."""
    t, random = np.linspace(0.0, 100.0, 20_000), np.random.default_rng(0)
    u = np.repeat(random.uniform(size=2000), 10)
    data, _ = read(t, np.stack([np.sin(t), np.cos(t)], axis=1), u)
    between = np.linspace(0.0, 99.0, 4001) + 0.0031
    last = np.searchsorted(t, between, side="right") - 1
    np.testing.assert_array_equal(data.runs[0].inputs(between)[0], u[last])


def test_an_input_that_is_measured_again_and_again_is_still_a_curve():
    """Three rows a time hold as many values that do not change from one row to the next."""
    t = np.repeat(T, 4)
    u = 1 + np.sin(0.9 * t)
    data, _ = read(t, np.repeat(WAVES, 4, axis=0), u)
    assert data.system.held == ()
    np.testing.assert_allclose(data.runs[0].u[:, 0], 1 + np.sin(0.9 * T))
    np.testing.assert_allclose(data.runs[0].noise_sizes, 1.0)
    levels = np.repeat(np.floor(T), 4)
    assert read(t, np.repeat(WAVES, 4, axis=0), levels)[0].system.held == ("u",)


def test_what_a_row_of_inputs_lacks_moves_no_step():
    """A step where one logger wrote neither the quantities nor the other input."""
    valve, lamp = (T > 2.0).astype(float), np.sin(T)
    row = np.flatnonzero(valve)[0]
    waves, u = with_gap(WAVES, row), np.stack([valve, with_gap(lamp, row)], axis=1)
    (run,) = read(T, waves, u)[0].runs
    np.testing.assert_array_equal(run.inputs.jumps, [T[row]])
    np.testing.assert_allclose(run.inputs(T)[1], lamp, atol=2e-3)


def test_a_switch_may_be_logged_only_when_it_changes():
    switch = np.where((T > 1.0) & (T < 3.0), 1.0, 0.0)
    sparse = switch.copy()
    sparse[1:][np.diff(switch) == 0.0] = np.nan
    data, notes = read(T, WAVES, sparse, input_names=["valve"])
    assert len(data.runs[0]) == 30 and data.system.held == ("valve",)
    assert notes == ["valve changes in steps: each value was taken to hold until the next row."]
    middles = (T[1:] + T[:-1]) / 2
    np.testing.assert_array_equal(data.runs[0].inputs(middles)[0], switch[:-1])
    late = np.where(np.arange(30) < 5, np.nan, sparse)
    late[5] = 0.0
    assert len(read(T, WAVES, late)[0].runs[0]) == 25  # It is not known before.


def test_rows_of_one_time_may_hold_a_part_of_its_values_each():
    """Two loggers wrote them, in any order; where a row is complete, rows stay as they are."""
    x, z = np.full((2, 30, 2), np.nan)
    x[:, 0], z[:, 1] = WAVES.T
    for rows in (slice(None), np.random.default_rng(0).permutation(60)):
        data, _ = read(np.r_[T, T][rows], np.concatenate([x, z])[rows], np.r_[T, T + np.nan][rows])
        np.testing.assert_array_equal(data.runs[0].y, WAVES)
        np.testing.assert_array_equal(data.runs[0].u[:, 0], T)
    data, _ = read(np.r_[T, T[:1]], np.concatenate([WAVES, [[9.0, np.nan]]]))
    np.testing.assert_array_equal(data.runs[0].y, WAVES)


def test_a_step_logged_as_two_rows_of_one_time_is_a_step():
    for order in (slice(None), slice(None, None, -1)):
        rows = np.sort(np.r_[np.arange(30), 15])
        u = np.arange(31) > 15
        data, _ = read(T[rows][order], WAVES[rows][order], u[order])
        (run,) = data.runs
        np.testing.assert_array_equal(run.inputs.jumps, [T[15]])
        np.testing.assert_array_equal(run.u[:, 0], np.arange(30) >= 15)


def test_of_many_rows_of_an_input_all_steps_are_kept():
    t = np.linspace(0.0, 5.0, 4 * MAX_ROWS)
    switch = (np.sin(40 * t) > 0).astype(float)
    waves = np.stack([np.sin(t), np.cos(t)], axis=1)
    data, notes = read(t, waves, switch)
    jumps = t[1:][np.diff(switch) != 0.0]
    np.testing.assert_array_equal(data.runs[0].inputs.jumps, jumps)
    assert not any("rows of inputs thinned" in note for note in notes)


def test_one_array_of_inputs_is_that_of_all_runs_as_one_of_times():
    data, _ = read(pd.Series(T, index=np.arange(30) + 7), [WAVES, 2 * WAVES], T**2)
    assert [run.u[2, 0] for run in data.runs] == [T[2] ** 2] * 2


def test_what_other_runs_show_to_change_may_be_constant_in_one():
    control = WAVES * [1.0, 0.0]
    data, _ = read(T, [control, WAVES])
    np.testing.assert_array_equal(data.runs[0].y, control)
    with pytest.raises(TrajectoryError, match="Run 1 of 2: y2: The values are constant"):
        read(T, [control, control])
    with pytest.raises(TrajectoryError, match="Run 1 of 2: y1: The values are constant"):
        read(T, [0 * WAVES, WAVES])


def test_a_list_of_series_is_runs_of_one_quantity():
    x, z = WAVES.T
    data, _ = read(T, [x, z], order=2)
    assert data.system.observed == ("y",) and [run.y[1, 0] for run in data.runs] == [x[1], z[1]]
    data, _ = read([T, T[:20]], [x, z[:20]], order=2)
    assert [len(run) for run in data.runs] == [30, 20]
    rows, _ = read(T, WAVES.tolist())  # And a list of rows is a table.
    assert rows.system.observed == ("y1", "y2") and len(rows.runs) == 1


def test_dates_of_all_runs_are_counted_from_one():
    start = np.datetime64("2020-03-01")
    first = start + np.arange(30) * np.timedelta64(6, "h")
    second = start + np.timedelta64(100, "D") + np.arange(30) * np.timedelta64(1, "D")
    data, notes = read([first, second], [WAVES, WAVES], explicit_time=True)
    assert data.runs[0].t[1] == 0.25 and data.runs[1].t[1] == 101.0
    assert notes == ["The times are dates; they were converted to days since 2020-03-01."]


def test_laws_are_found_from_runs_that_differ_in_an_input():
    """A chemostat at two rates, the most usual of designs."""
    levels = (1.0, 2.0)
    values = [0.2 * np.exp(-0.5 * T) + 1.6 * u * (1 - np.exp(-0.5 * T)) for u in levels]
    inputs = [np.full(30, u) for u in levels]
    found = discover(T, values, inputs=inputs, input_names=["u"], effort="fast")
    assert found.best.laws[0].evaluate(2.0, 3.0) == pytest.approx(0.8 * 3.0 - 0.5 * 2.0, rel=1e-4)
