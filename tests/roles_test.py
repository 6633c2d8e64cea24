"""What columns seem to hold."""

import numpy as np
import pytest

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.files import Contents, open_table
from nsode_jax.tables.roles import Roles, columns_of_values, errors_of, suggest_roles

T = np.linspace(0.0, 9.0, 12)


def sheet(header, *columns):
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    return open_table(Contents("data.csv", "\n".join([header, *rows, ""]).encode()))[0]


def positive(shift=0.0):
    return np.abs(np.sin(T + shift)) + 0.1


@pytest.mark.parametrize(
    ("header", "roles"),
    [
        ("t,y,z", Roles(0, (1,), None, (), ())),
        ("t,y,sd", Roles(0, (1,), None, (2,), ())),
        ("t,sd,y", Roles(0, (2,), None, (), ())),
        ("time,od_sd,od", Roles(0, (2,), None, (1,), ())),
        ("time,OD [600],od_err [600]", Roles(0, (1,), None, (2,), ())),
        ("time,wisdom,shared", Roles(0, (1,), None, (), ())),
        ("time,y,input", Roles(0, (1,), None, (), (2,))),
        ("time,stimulus (mA),y", Roles(0, (2,), None, (), (1,))),
        ("time,rep1,rep2", Roles(0, (1, 2), None, (), ())),
        ("time,OD replicate 1,OD replicate 2", Roles(0, (1, 2), None, (), ())),
        ("time,A1,A2", Roles(0, (1,), None, (), ())),
        ("time,report,reports", Roles(0, (1,), None, (), ())),
    ],
)
def test_names_tell_what_columns_are(header, roles):
    assert suggest_roles(sheet(header, T, positive(), positive(1.0))) == roles


def test_what_is_named_as_an_error_may_be_all_there_is():
    assert suggest_roles(sheet("time,error", T, positive())) == Roles(0, (1,), None, (), ())


def test_errors_of_several_columns_are_of_all_or_none():
    table = sheet("t,a,a_sd,b,b_sd,c", T, *(positive(shift) for shift in range(5)))
    assert errors_of(table, (1,)) == (2,) and errors_of(table, (3,)) == (4,)
    assert errors_of(table, (1, 3)) == (2, 4)
    assert errors_of(table, (1, 5)) == errors_of(table, (5,)) == ()


def test_what_is_not_positive_is_no_error():
    assert suggest_roles(sheet("t,y,sd", T, T, T)).errors == ()


def test_what_is_constant_is_no_input():
    assert suggest_roles(sheet("t,y,stimulus", T, positive(), T * 0 + 1)).inputs == ()


def test_series_are_told_apart():
    names = np.repeat(["a", "b"], 12)
    t, y = np.tile(T, 2), np.tile(positive(), 2)
    assert suggest_roles(sheet("t,y,strain", t, y, names)).series == 2
    assert suggest_roles(sheet("t,y", t, y)).series == "restart"
    # A number for each series comes first, and is neither a time nor a value.
    numbers = np.repeat([1, 2], 12)
    assert suggest_roles(sheet("id,t,y", numbers, t, y)) == Roles(1, (2,), 0, (), ())
    assert suggest_roles(sheet("t,id,y", t, numbers, y)) == Roles(0, (2,), 1, (), ())


def test_dates_are_times():
    days = [f"2024-03-{day:02d}" for day in range(1, 13)]
    table = sheet("day,y,who", np.tile(days, 2), np.tile(positive(), 2), np.repeat(["a", "b"], 12))
    assert suggest_roles(table) == Roles(0, (1,), 2, (), ())


def test_no_table_has_no_roles():
    with pytest.raises(TrajectoryError, match="no two columns of numbers"):
        suggest_roles(sheet("a,b", ["x"] * 4, ["z"] * 4))


def test_wells_of_a_plate_are_series():
    wells = [f"{row}{column}" for row in "AB" for column in range(1, 5)]
    values = [positive(shift) for shift in range(8)]
    table = sheet(",".join(["time", "T", *wells]), T, T * 0 + 37, *values)
    assert suggest_roles(table).values == tuple(range(2, 10))
    few = sheet(",".join(["time", *wells[:3]]), T, *values[:3])
    assert suggest_roles(few).values == (1,)


def test_all_columns_of_values():
    columns = (positive(shift) for shift in range(4))
    table = sheet("t,a,a_sd,b,stimulus,who", T, *columns, ["x"] * 12)
    assert columns_of_values(table, (0,)) == (1, 3)
