"""Several series in one column of times: clocks that start again, labels that alternate."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.dynamics.vectors import TrajectoryError, count
from nsode_jax.tables.sheet import Sheet

RESTART = "restart"
"""As a name of the column of labels: a new series where the clock starts again."""

_FEWEST = 3  # Rows of a run; shorter ones are rows out of order.
_ROUNDS = (7, 12, 24, 52, 53, 60, 360, 365, 366, 1440, 3600, 86400)
"""After so many hours, minutes, days and the like clocks and calendars begin anew."""

_NEARLY_ALL = 0.9
_BLOCK = 3  # Rows with one label below each other.


def runs(t: Float[np.ndarray, " row"]) -> Int[np.ndarray, " row"]:
    """The number of the run, from 0, that each row belongs to: a new one where the clock
    starts again. All zeros for times that are merely out of order or that fall throughout."""
    numbers = np.zeros(t.shape, int)
    known = np.flatnonzero(np.isfinite(t))
    steps = np.diff(t[known])
    falling = np.median(np.sign(steps)) < 0 if steps.size else False
    breaks = np.flatnonzero(steps > 0 if falling else steps < 0)
    parts = np.split(t[known], breaks + 1)
    if len(parts) < 2 or min(map(len, parts)) < _FEWEST:
        return numbers
    # One mistyped time is no new start: two rows at least must fall into the run before.
    overlaps = [
        ((a.min() <= b) & (b <= a.max())).sum() > 1 or ((b.min() <= a) & (a <= b.max())).all()
        for a, b in zip(parts, parts[1:])
    ]
    if not any(overlaps):
        return numbers
    numbers[known[breaks + 1]] = 1
    return np.cumsum(numbers)


def series_within(
    sheet: Sheet, time: int, value: int, t: Float[np.ndarray, " row"], usable: np.ndarray
) -> int | str | None:
    """What tells several series apart; arguments as of `require_one_series`.

    Returns:
      The column of their labels, "restart" for a clock that starts again, or None for one series.
    """
    number = runs(np.where(usable, t, np.nan))
    label = _labels(sheet, time, value, usable, number)
    return RESTART if label is None and number[-1] > 0 else label


def require_one_series(
    sheet: Sheet, time: int, value: int | None, t: Float[np.ndarray, " row"], usable: np.ndarray
) -> None:
    """Refuses a table that holds several series in the same columns.

    Args:
      sheet: the table.
      time, value: the columns that were named or taken; None for a value that any may hold.
      t: the times.
      usable: rows with a time and a value.

    Raises:
      TrajectoryError: naming where the clock starts again, and the option that tells the
        series apart.
    """
    number = runs(np.where(usable, t, np.nan))
    label = _labels(sheet, time, value, usable, number)
    if number[-1] > 0:
        row = int(np.flatnonzero(np.diff(number) > 0)[0]) + 1
        how = (
            f"--series {RESTART} takes each run as one series"
            if label is None
            else f"column {sheet.label(label)} tells them apart: --series {sheet.option(label)}"
        )
        raise TrajectoryError(
            f"The times in column {sheet.label(time)} start again {count(int(number[-1]), 'time')} "
            f"(first in {sheet.place(row)}): these are several series. If they follow one law, "
            f"{how}."
        )
    if label is not None:
        raise TrajectoryError(
            f"Column {sheet.label(label)} seems to tell several series apart, whose rows are "
            f"mixed. If they follow one law: --series {sheet.option(label)}."
        )


def require_counting_on(sheet: Sheet, time: int, t: Float[np.ndarray, " row"]) -> None:
    """Refuses times that begin anew, as the hour of the day does after 23.

    Raises:
      TrajectoryError: naming the row.
    """
    if sheet.kind(time) != "number":
        return
    known = np.flatnonzero(np.isfinite(t))
    steps = np.diff(t[known])
    falls = np.flatnonzero(steps < 0)
    if not falls.size or 3 * falls.size > steps.size:
        return
    usual = np.median(steps[steps >= 0])
    for around in _ROUNDS:
        if np.max(t[known]) <= around and (np.abs(steps[falls] + around - usual) < usual).all():
            row = int(known[falls[0] + 1])
            raise TrajectoryError(
                f"The times in column {sheet.label(time)} begin anew in {sheet.place(row)} "
                f"({t[known[falls[0]]]:g} is followed by {t[row]:g}), as those of a clock or a "
                f"calendar do after {around}; write times that count on."
            )


def note_on_blocks(sheet: Sheet, time: int) -> list[str]:
    """A note on labels that stand in blocks below each other, though the times count on."""
    for column in sheet.frame.columns:
        if (
            column == time
            or sheet.kind(column) != "text"
            or (labels := sheet.labels(column)).hasnans
        ):
            continue
        blocks = (labels != labels.shift()).cumsum()
        if 1 < labels.nunique() == blocks.iloc[-1] and blocks.value_counts().min() >= _BLOCK:
            row = int(np.argmax(blocks.to_numpy() > 1))
            return [
                f"Column {sheet.label(column)} changes in {sheet.place(row)} to "
                f"{sheet.cell(row, column)!r}; if it tells several series apart: --series "
                f"{sheet.option(column)}."
            ]
    return []


def require_no_long_table(sheet: Sheet, time: int, value: int) -> None:
    """Refuses a time that counts rows, or labels, beside the clock of several series."""
    if (found := long_table(sheet, time, value)) is not None:
        clock, label = found
        number = runs(sheet.cells(clock).to_numpy(np.float64))
        raise TrajectoryError(
            f"This looks like several series below each other: the numbers in column "
            f"{sheet.label(clock)} start again {count(int(number[-1]), 'time')}, where "
            f"column {sheet.label(label)} changes. If they follow one law: --time "
            f"{sheet.option(clock)} --series {sheet.option(label)}."
        )


def long_table(sheet: Sheet, time: int, value: int) -> tuple[int, int] | None:
    """Another clock, which starts again, and the column of labels that changes where it does.

    It may be what was taken for the value, if there are other numbers that may be that.
    """
    numbers = {c for c in sheet.frame.columns if sheet.cells(c).dtype.kind in "iuf"}
    for column in sheet.frame.columns:
        if column == time or column not in numbers:
            continue
        number = runs(sheet.cells(column).to_numpy(np.float64))
        others = [c for c in sheet.frame.columns if c != column and _is_label(sheet, c, number)]
        if number[-1] > 0 and others and (column != value or numbers - {time, value, others[0]}):
            return column, others[0]
    return None


def _labels(
    sheet: Sheet, time: int, value: int | None, usable: np.ndarray, number: np.ndarray
) -> int | None:
    """A column that tells series apart: it changes where the clock starts again, or its
    labels come in turns."""
    for column in sheet.frame.columns:
        if column in (time, value):
            continue
        if number[-1] > 0 and _is_label(sheet, column, number):
            return column
        if number[-1] == 0 and _takes_turns(sheet, column, time, usable):
            return column
    return None


def _is_label(sheet: Sheet, column: int, number: np.ndarray) -> bool:
    """Whether the column is the same within each run and another in the next."""
    if number[-1] == 0:
        return False
    cells = sheet.cells(column)
    labels = cells if cells.dtype.kind in "iuf" else sheet.labels(column)
    if labels.hasnans:
        return False
    changes = (labels != labels.shift()).to_numpy()[1:]
    return bool((changes == (np.diff(number) > 0)).all()) and labels.nunique() > 1


def _takes_turns(sheet: Sheet, column: int, time: int, usable: np.ndarray) -> bool:
    """Whether a few labels come again and again, each once at a time that is repeated.

    Numbers that do so may be anything, unless they explain repeated times: as the subjects, the
    first of which is there at nearly all times.
    """
    if sheet.kind(column) in ("date", "clock") or sheet.cells(column).dtype.kind == "f":
        return False
    labels = sheet.labels(column).loc[usable]
    each = labels.value_counts()
    if labels.hasnans or not 2 <= len(each) <= len(labels) / _FEWEST:
        return False
    if int((labels != labels.shift()).sum()) < 2 * len(each):
        return False
    times = sheet.cells(time).loc[usable]
    if (times.astype("str") + "\0" + labels).duplicated().any():
        return False
    is_text = sheet.kind(column) == "text"
    even = bool(each.min() >= _FEWEST and each.max() <= each.min() + 2)
    if times.duplicated(keep=False).mean() > 0.5:
        return even or is_text or bool(each.max() >= _NEARLY_ALL * times.nunique())
    return even and is_text
