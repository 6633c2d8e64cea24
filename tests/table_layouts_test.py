"""Known numbers in many layouts: read as they are, or refused; never misread."""

import datetime

import numpy as np
import pytest

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.files import Contents
from nsode_jax.tables.table import Measurements, read_measurements

FIRST = datetime.datetime(2019, 1, 1)
DATES = (
    ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%y/%m/%d", "%d-%b-%Y", "%Y%m%d", "%d%m%Y"]
    + ["%b %d %Y", "%Y-%m-%dT%H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y%m%d%H%M"]
)  # fmt: skip
NAMES = ("time", "Time [h]", "hours", "Elapsed (s)", "day", "t")
WELLS = ("A1", "A2", "B7")

Known = tuple[list[float], list[list[float]]]
"""Times, and the values of each series."""


def draw(rng: np.random.Generator) -> Known:
    n = int(rng.integers(8, 30))
    step = float(rng.choice([1, 2, 0.5, 7, 600]))
    first = float(rng.choice([0, 0, step, 20 * step]))
    t = [round(first + step * i, 3) for i in range(n)]
    scale = 10 ** rng.uniform(-1, 4)
    values = [
        [
            round(float(scale * (k + np.exp(0.1 * i) + 0.05 * rng.standard_normal())), 2)
            for i in range(n)
        ]
        for k in range(3)
    ]
    return t, values


def columns(rng, known: Known, *, index=False, units=False, summary=False) -> list[list[str]]:
    """One series, perhaps with numbers of rows, units in the cells, and a row of totals."""
    t, (y, *_) = known
    unit = (" h", "%") if units else ("", "")
    rows = [[str(rng.choice(NAMES)), "OD"]]
    rows += [[f"{a}{unit[0]}", f"{b}{unit[1]}"] for a, b in zip(t, y)]
    rows += [["Mean", str(np.mean(y))]] if summary else []
    if index:
        name = str(rng.choice(["", "Sample", "No.", "ID"]))
        rows = [[name, *rows[0]], *([str(i + 1), *row] for i, row in enumerate(rows[1:]))]
    return rows


def swapped(rng, known: Known) -> list[list[str]]:
    rows = columns(rng, known)
    rows[0][0] = str(rng.choice(["Elapsed hours", "day", "Time (s)"]))
    return [row[::-1] for row in rows]


def wide(rng, known: Known) -> list[list[str]]:
    t, values = known
    rows = [[str(x) for x in row] for row in zip(t, *values)]
    rows = [[str(rng.choice(NAMES)), *WELLS], *rows]
    if rng.random() < 0.5:  # The chamber, and a mean.
        rows = [
            [row[0], str(37 + i % 2 / 10) if i else "Temp. [C]", *row[1:], "1" if i else "Mean"]
            for i, row in enumerate(rows)
        ]
    return rows


def transposed(rng, known: Known) -> list[list[str]]:
    t, values = known
    rows = [["Time [s]", *map(str, t)], *([w, *map(str, y)] for w, y in zip(WELLS, values))]
    before = [["Method: growth"], ["Mode", "", "Absorbance"], []]
    return [*before[: rng.integers(4)], *rows]


def long(rng, known: Known) -> list[list[str]]:
    t, values = known
    blocks = [[[w, str(a), str(b)] for a, b in zip(t, y)] for w, y in zip(WELLS, values)]
    rows = [row for block in blocks for row in block]
    if rng.random() < 0.5:
        rows = [row for turn in zip(*blocks) for row in turn]
    return [["well", "time", "OD"], *rows]


def dated(rng, known: Known) -> tuple[list[list[str]], float]:
    """Days or months, and how many days lie between the first two."""
    t, (y, *_) = known
    start = FIRST + datetime.timedelta(int(rng.integers(400)))
    form, days = str(rng.choice(DATES)), int(rng.choice([1, 1, 7]))
    moments = [start + datetime.timedelta(days * i) for i in range(len(t))]
    return [["Date", "cases"], *([m.strftime(form), str(b)] for m, b in zip(moments, y))], days


def read(rng, rows: list[list[str]], **options) -> Measurements | None:
    """What is read; None if it is refused, in one line."""
    delimiter = str(rng.choice([",", ";", "\t"]))
    pad = max(map(len, rows)) if rng.random() < 0.3 else 0
    lines = [delimiter.join([*row, *[""] * (pad - len(row))]) for row in rows]
    text = rng.choice(["\n", "\r\n"]).join(lines)
    try:
        return read_measurements(Contents("data.csv", text.encode()), **options)
    except TrajectoryError as error:
        assert str(error) and "\n" not in str(error)
        return None


def same(found: Measurements, t: list[float], values: list[list[float]]) -> bool:
    return all(
        one.t.tolist() == t and one.y.tolist() == y
        for one, y in zip(found.trajectories, values, strict=True)
    )


@pytest.mark.parametrize(
    ("layout", "options", "number"),
    [
        (columns, {}, 1),
        (lambda rng, known: columns(rng, known, index=True), {}, 1),
        (lambda rng, known: columns(rng, known, units=True), {}, 1),
        (lambda rng, known: columns(rng, known, summary=True), {}, 1),
        (swapped, {}, 1),
        (wide, {"replicates": True}, 3),
        (wide, {"value": "A1,A2,B7", "replicates": True}, 3),
        (wide, {"value": "A1"}, 1),
        (transposed, {"replicates": True}, 3),
        (transposed, {}, 1),
        (long, {"series": "well"}, 3),
    ],
)
def test_layouts(layout, options, number):
    rng = np.random.default_rng(number)
    drawn, read_right = 60, 0
    for _ in range(drawn):
        known = draw(rng)
        rows = layout(rng, known)
        found = read(rng, rows, **options)
        if found is not None:
            assert same(found, known[0], known[1][:number]), (rows[:4], found.notes)
            read_right += 1
    assert read_right > 0.8 * drawn


def test_several_series_are_never_read_as_one():
    rng = np.random.default_rng(0)
    for _ in range(60):
        assert read(rng, long(rng, draw(rng))) is None


def test_dates():
    rng = np.random.default_rng(0)
    read_right = 0
    for _ in range(300):
        known = draw(rng)
        rows, days = dated(rng, known)
        found = read(rng, rows)
        if found is not None:
            (one,) = found.trajectories
            unit = {"days": 1, "hours": 1 / 24, "years": 365.25}[
                found.names[0].split("[")[1].split()[0]
            ]
            np.testing.assert_allclose(
                one.t * unit, days * np.arange(len(known[0])), err_msg=str((rows[:3], found.notes))
            )
            assert one.y.tolist() == known[1][0]
            read_right += 1
    assert read_right > 0.8 * 300
