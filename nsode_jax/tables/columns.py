"""Which columns hold the times, the values, and the labels of series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.expressions.coupled import MOST_STATES
from nsode_jax.system.files import one_line
from nsode_jax.tables.names import (
    is_error,
    is_like_time,
    is_of_chamber,
    is_summary,
    listed,
)
from nsode_jax.tables.numbers import not_numbers, words_in
from nsode_jax.tables.sheet import Sheet
from nsode_jax.tables.time_column import choose_time, counts_rows

_FEW_CELLS = 8
"""Cells below which a column may be a remark beside the table, if others have thrice as many."""


@dataclass(frozen=True)
class Choice:
    """Numbers of the chosen columns, counted from 0, and why.

    Attributes:
      likely: the columns that the value was chosen from, if it was not named.
    """

    time: int
    values: tuple[int, ...]
    series: int | None
    notes: tuple[str, ...]
    likely: tuple[int, ...] = ()


def choose_columns(
    sheet: Sheet,
    time: str | None = None,
    value: str | Sequence[str] | None = None,
    series: str | None = None,
    replicates: bool = False,
    taken: Sequence[int] = (),
    each: bool = False,
) -> Choice:
    """The columns that the user names, or that the table's shape suggests.

    Args:
      sheet: the table.
      time, value, series: columns by name or number from 1. With `replicates`, `value`
        may be several, in a list or with commas between them; None: all columns of numbers.
      replicates: whether each column of values is a series.
      taken: columns that hold something else.
      each: whether columns of values may be empty, as those of a well that was not used: they
        are series that cannot be used then.

    Raises:
      TrajectoryError: if there are no such columns.
    """
    hidden = () if series is None else (find_column(sheet, series),)
    chosen_time = None if time is None else find_column(sheet, time)
    chosen = [] if value is None else _find_columns(sheet, value, replicates)
    if chosen_time is not None and chosen_time in chosen:
        raise TrajectoryError(
            f"Time and value are the same column, {sheet.label(chosen_time)}; two are needed."
        )
    for column in taken:
        if column in (chosen_time, *chosen, *hidden):
            raise TrajectoryError(
                f"Column {sheet.label(column)} is named twice: it cannot hold errors of "
                "measurement and something else."
            )
    kinds = [sheet.kind(column) for column in sheet.frame.columns]
    if chosen_time is not None and kinds[chosen_time] == "text":
        raise not_numbers(sheet, chosen_time, "numbers or dates")
    empty = _empty(sheet, kinds) if replicates and each else []
    for column in chosen:
        if kinds[column] != "number" and column not in empty:
            raise not_numbers(sheet, column)
    others = (*hidden, *taken)
    usable = [c for c, kind in enumerate(kinds) if kind != "text" and c not in others]
    free = [column for column in usable if column != chosen_time and column not in chosen]
    numbers = [column for column in free if kinds[column] == "number"]
    if len(usable) < 2 or (not chosen and not numbers):
        raise _no_two_columns(sheet, usable)
    notes, likely = [], []
    if chosen_time is None:
        filled = _filled(sheet, free)
        left = [column for column in numbers if column in filled]
        chosen_time, notes = choose_time(sheet, kinds, filled, left, bool(chosen), hidden)
        numbers = [column for column in numbers if column != chosen_time]
        if (
            chosen
            and free != [chosen_time]
            and not (notes or is_like_time(sheet.names[chosen_time]))
        ):
            notes = [f"Column {sheet.label(chosen_time)} was taken as the time."]
    if not chosen:
        likely, remarks = _likely_values(sheet, numbers, replicates)
        after = [column for column in likely if time is None and column > chosen_time]
        chosen = sorted({*likely, *empty} - {*others}) if replicates else (after or likely)[:1]
        notes += remarks if replicates else []
        if not replicates and (len(usable) > 2 or sum(map(bool, sheet.names)) > 2 + len(taken)):
            notes.append(
                f"The file has more than two columns; {sheet.label(chosen_time)} was taken as the "
                f"time and {sheet.label(chosen[0])} as the value; choose others with --time and "
                f"--value{_several(sheet, likely)}."
            )
    labels = hidden[0] if hidden else None
    return Choice(chosen_time, tuple(chosen), labels, tuple(notes), tuple(likely))


def choose_together(
    sheet: Sheet,
    time: str | None,
    quantities: str | Sequence[str] | None,
    inputs: Sequence[str],
    series: str | None,
) -> Choice:
    """The columns of quantities, then those of inputs.

    Args:
      sheet, time, series: as of `choose_columns`.
      quantities: their columns by name or number; None for the only one that is left.
      inputs: columns of inputs likewise.

    Raises:
      TrajectoryError: if there are no such columns, or several are left.
    """
    if quantities is not None:
        named = [quantities] if isinstance(quantities, str) else quantities
        return choose_columns(sheet, time, [*named, *inputs], series, True)
    forced = tuple(find_column(sheet, name) for name in inputs)
    roles = [*forced, *(find_column(sheet, name) for name in (time, series) if name is not None)]
    if twice := [column for column in roles if roles.count(column) > 1]:
        raise TrajectoryError(f"Column {sheet.label(twice[0])} is named twice.")
    for column in forced:
        if sheet.kind(column) != "number":
            raise not_numbers(sheet, column)
    choice = choose_columns(sheet, time, None, series, False, forced)
    if len(choice.likely) > 1:
        raise TrajectoryError(
            f"{sheet.file} has {len(choice.likely)} columns of values; name the columns that have "
            f"laws, one or several, such as --value {sheet.option(*choice.likely[:MOST_STATES])}."
        )
    return replace(choice, values=(*choice.values, *forced))


def _empty(sheet: Sheet, kinds: Sequence[str]) -> list[int]:
    """Columns with a name and without any number."""
    others = [c for c, kind in enumerate(kinds) if kind == "number" or not sheet.names[c]]
    return [c for c in sheet.frame.columns if c not in others and not words_in(sheet, c)]


def _several(sheet: Sheet, columns: list[int]) -> str:
    """How to ask for several columns, if these are few and have names."""
    if not 2 <= len(columns) <= MOST_STATES or not all(sheet.names[c] for c in columns):
        return ""
    return (
        f", all of quantities that act on each other (--value {sheet.option(*columns)}), or add "
        "--replicates if each column is a series of one quantity"
    )


def _filled(sheet: Sheet, columns: list[int]) -> list[int]:
    """Without columns of a few cells beside columns of many, such as settings of an instrument."""
    cells = [int(sheet.cells(column).count()) for column in columns] or [0]
    return [c for c, n in zip(columns, cells) if n >= min(_FEW_CELLS, max(cells) / 3)]


def _likely_values(
    sheet: Sheet, numbers: list[int], replicates: bool
) -> tuple[list[int], list[str]]:
    """The columns that are likely to hold values, all if none is, and a note on the others."""

    def is_likely(column: int) -> bool:
        name = sheet.names[column]
        derived = is_summary(name) if replicates else is_error(name)
        apart = is_of_chamber(name) or is_like_time(name) or derived
        return not (apart or counts_rows(sheet, column))

    filled = _filled(sheet, numbers)
    likely = [column for column in filled if is_likely(column)]
    left = [column for column in numbers if column not in likely]
    if not likely or not left:
        return likely or filled, []
    names = ", ".join(map(sheet.label, left[:6])) + (", ..." if len(left) > 6 else "")
    return likely, [f"Not taken as series, judged by their names and cells: columns {names}."]


def _find_columns(sheet: Sheet, wanted: str | Sequence[str], several: bool) -> list[int]:
    names = wanted
    if isinstance(names, str):
        try:
            return [find_column(sheet, names)]
        except TrajectoryError:
            names = listed(names)
            if not names or (len(names) > 1 and not several):
                raise
    columns = [find_column(sheet, name) for name in names]
    if len(set(columns)) < len(columns):
        raise TrajectoryError(f"A column is named twice in {wanted!r}.")
    return columns


def _no_two_columns(sheet: Sheet, usable: list[int]) -> TrajectoryError:
    found = f", only one column ({sheet.label(usable[0])})" if len(usable) == 1 else ""
    names = [name[:60] for name in sheet.names if name][:20]
    found += f" (columns: {', '.join(map(repr, names))})" if names and not found else ""
    message = (
        f"{sheet.file} has no two columns of numbers{found}; two are needed, one for time (or "
        "dates) and one for the value."
    )
    others = [c for c in sheet.frame.columns if c not in usable and sheet.cells(c).count()]
    if others:
        message += f" {not_numbers(sheet, others[-1])}"
    return TrajectoryError(message)


def find_column(sheet: Sheet, wanted: str) -> int:
    """Number, from 0, of a column given by its name or by its number from 1.

    Raises:
      TrajectoryError: if there is none, or if several have that name.
    """
    wanted = one_line(wanted)
    for key in (str, str.casefold):
        found = [i for i, name in enumerate(sheet.names) if name and key(name) == key(wanted)]
        if len(found) > 1:
            numbers = " and ".join(str(i + 1) for i in found)
            raise TrajectoryError(
                f"Columns {numbers} are both named {wanted!r}; choose by number instead."
            )
        if found:
            return found[0]
    numbers = [str(i + 1) for i in range(len(sheet.names))]
    if wanted in numbers:
        return numbers.index(wanted)
    known = ", ".join(
        f"{i + 1} {name[:60]!r}" if name else str(i + 1) for i, name in enumerate(sheet.names[:20])
    )
    raise TrajectoryError(f"{sheet.file} has no column {wanted[:60]!r}; its columns are {known}.")
