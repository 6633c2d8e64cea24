"""Which of comma and point is the decimal mark: decided by a column as a whole, or refused.

"1,020" is 1020 to an American and 1.02 to a German. A column tells which by its other cells
(0,526 can only be a decimal comma, 1,234,567 only thousands), by its neighbours in the series
(785 is followed by 1020 rather than by 1.02), or by the other columns of the file.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.cells import NUMBER, clean_number, unit_of_cell, usual_unit
from nsode_jax.tables.dates import ORDERS
from nsode_jax.tables.sheet import Sheet

_FEW = 0.05  # A share of cells that may contradict the others: slips of the pen.
_CLEAR = 1.0  # Decades by which one reading must jump more than the other.
_MANY = 8
_ENOUGH = 2  # Cells of another column that say something: one may be a slip.
_SAMPLE = 200
_ONE_GROUP = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}")
_LAKHS = r"\d{1,2}(?:,\d\d)+,\d{3}"
_GROUPS = re.compile(
    r"[-+]?(?:[1-9]\d{0,2}(?:([.,])\d{3}(?:\1\d{3})+|([.,])\d{3}(?:\2\d{3})*[.,]\d+)"
    rf"|{_LAKHS})"
)
_COMPARED = re.compile(r"[-+]?(\d{1,3}|\d*[.,][\d.,]*)")
_THREE = re.compile(r"[-+]?(0|\d{4,})[.,]\d{3}")


@dataclass(frozen=True)
class Convention:
    """How numbers and dates are written, as far as the user says.

    Attributes:
      decimal: "." or ","; None: found from the cells.
      thousands: ",", ".", " " or "'"; None: found from the cells.
      dates: "day-first" or "month-first", of dates such as 01/03/2020; None: likewise.
    """

    decimal: str | None = None
    thousands: str | None = None
    dates: str | None = None

    def __post_init__(self):
        if self.decimal not in (None, ".", ","):
            raise TrajectoryError(f"The decimal mark is '.' or ',', not {self.decimal!r}.")
        if self.thousands not in (None, ",", ".", " ", "'"):
            raise TrajectoryError(
                f"The mark of thousands is one of , . ' or a space, not {self.thousands!r}."
            )
        if self.decimal is not None and self.decimal == self.thousands:
            raise TrajectoryError(f"{self.decimal!r} cannot mark both decimals and thousands.")
        if self.dates not in (None, *ORDERS):
            raise TrajectoryError(f"Dates are {' or '.join(ORDERS)}, not {self.dates!r}.")

    @property
    def mark(self) -> str | None:
        """The decimal mark that follows from what is said."""
        if self.decimal is None and self.thousands in (",", "."):
            return "." if self.thousands == "," else ","
        return self.decimal


AS_FOUND = Convention()


def evidence(number: str) -> str:
    """What a (clean) number says about its decimal mark: "." or "," for certain, "?." or "?,"
    for a group of three digits behind that mark, "" for a whole number."""
    point, comma = "." in number, "," in number
    if not (point or comma):
        return ""
    if point and comma:
        return "," if number.rfind(",") > number.rfind(".") else "."
    mark = "." if point else ","
    if _ONE_GROUP.fullmatch(number):
        return f"?{mark}"
    if _GROUPS.fullmatch(number):
        return "," if point else "."
    return mark


def decimal_mark(
    sheet: Sheet, column: int, numbers: Sequence[str | None], convention: Convention
) -> tuple[str, str | None]:
    """The decimal mark of a column, and a sentence where commas or points were thousands.

    Args:
      sheet, column: where the numbers stand.
      numbers: clean numbers row by row, None where there is none.
      convention: what the user says.

    Raises:
      TrajectoryError: if the column can be read in two ways, naming both.
    """
    if convention.mark is not None:
        _require_some(sheet, column, numbers, convention)
        return convention.mark, None
    said = [evidence(number) if number else "" for number in numbers]
    if convention.thousands is not None:  # Blanks or apostrophes: then no point or comma is one.
        said = [mark.lstrip("?") for mark in said]
    points, commas = said.count("."), said.count(",")
    if points and commas:
        if min(points, commas) > _FEW * (points + commas):
            raise _mixed(sheet, column, said)
        return ("." if points > commas else ","), None
    if points or commas:
        return _of_certain(sheet, column, numbers, said, "." if points else ","), None
    marks = {s[1] for s in said if s.startswith("?")}
    if not marks:
        return ".", None
    if len(marks) == 2:
        raise _mixed(sheet, column, [s.lstrip("?") for s in said])
    return _of_groups(sheet, column, numbers, said, marks.pop())


def _require_some(
    sheet: Sheet, column: int, numbers: Sequence[str | None], convention: Convention
) -> None:
    """Refuses a decimal mark with which no cell is a number."""
    mark = str(convention.mark)
    known = [row for row, number in enumerate(numbers) if number]
    if known and all(math.isnan(to_float(str(numbers[row]), mark)) for row in known):
        option = "decimal" if convention.decimal else "thousands"
        raise TrajectoryError(
            f"Column {sheet.label(column)} holds no number whose decimal mark is {mark!r} (first: "
            f"{numbers[known[0]]!r} in {sheet.place(known[0])}); leave out --{option}, or give "
            "another mark."
        )


def _of_certain(
    sheet: Sheet, column: int, numbers: Sequence[str | None], said: list[str], mark: str
) -> str:
    """The decimal mark that some cells show for certain; a few must fit all the others.

    One slip of the pen, 1.5 among 1.020 and 1.351, must not make 1.02 of 1020.
    """
    certain, groups = said.count(mark), [s[1] for s in said if s.startswith("?")]
    if not groups or certain > max(1, _FEW * len(groups)):
        return mark
    if any(_THREE.fullmatch(number) for number, s in zip(numbers, said) if number and s == mark):
        return mark  # 0.123 among 1.234 and 12.345: all have three decimals.
    known = [(n, s) for n, s in zip(numbers, said) if n]
    sizes = [abs(to_float(number, mark)) or math.nan for number, _ in known]
    jumps = [
        abs(math.log10(b / a))
        for a, b, (_, s), (_, r) in zip(sizes, sizes[1:], known, known[1:])
        if mark in (s, r) and s != r and math.isfinite(a * b)
    ]
    others = {_mark_of_other_columns(sheet, column), _mark_by_neighbours(numbers, said, groups[0])}
    if others - {None, mark} or not jumps or min(jumps) > _CLEAR:
        raise _two_ways(sheet, column, numbers, said, groups[0])
    return mark


def _of_groups(
    sheet: Sheet, column: int, numbers: Sequence[str | None], said: list[str], mark: str
) -> tuple[str, str | None]:
    """The decimal mark where each mark stands before three digits."""
    other = "," if mark == "." else "."
    example = str(numbers[next(i for i, s in enumerate(said) if s)])
    from_file = _mark_of_other_columns(sheet, column)
    from_neighbours = _mark_by_neighbours(numbers, said, mark)
    verdicts = {verdict for verdict in (from_file, from_neighbours) if verdict}
    if not verdicts and not _mixed_with_whole(numbers, said):
        if sheet.delimiter in (",", None):
            verdicts = {"."}  # Who writes decimal commas separates cells by something else.
        if sheet.delimiter == " " and mark == ".":
            verdicts = {"."}
    if len(verdicts) != 1:
        raise _two_ways(sheet, column, numbers, said, mark)
    decimal = verdicts.pop()
    if decimal == mark:
        return decimal, None
    note = (
        f"Column {sheet.label(column)}: {mark!r} was read as a mark of thousands ({example} is "
        f"{example.replace(mark, '')}); if it is a decimal mark, give --decimal {mark!r}."
    )
    return other, note


def _mixed_with_whole(numbers: Sequence[str | None], said: list[str]) -> bool:
    """Whether whole numbers stand among many with three digits behind the mark each.

    Who writes 6 for 6.000 writes 6.7 for 6.700: then it would be odd that none is shorter.
    """
    whole = sum(number is not None and not s for number, s in zip(numbers, said))
    return whole > 0 and sum(s.startswith("?") for s in said) >= _MANY


def _mark_of_other_columns(sheet: Sheet, column: int) -> str | None:
    """The decimal mark that the other columns show, if they agree."""
    found = set()
    for other in sheet.frame.columns:
        cells = sheet.cells(other)
        if other == column or cells.dtype.kind in "iuMm":
            continue
        if cells.dtype.kind == "f":
            values = cells.to_numpy(np.float64)
            if not looks_grouped(values):
                found |= (
                    {"."} if (np.isfinite(values) & (values != np.round(values))).any() else set()
                )
                continue
        text = (str(cell).strip() for cell in sheet.text(other).iloc[:_SAMPLE])
        matches = [NUMBER.fullmatch(cell) for cell in text]
        unit = usual_unit(matches)
        numbers = [
            clean_number(match["number"]) if match and unit_of_cell(match) == unit else None
            for match in matches
        ]
        said = [evidence(number) if number else "" for number in numbers]
        certain = {mark for mark in ".," if said.count(mark) >= _ENOUGH}
        certain |= {
            s for n, s in zip(numbers, said) if n and s in (".", ",") and _THREE.fullmatch(n)
        }
        groups = {s[1] for s in said if s.startswith("?")}
        if len(groups) == 1 and not certain and said.count(f"?{min(groups)}") >= _ENOUGH:
            certain = {_mark_by_neighbours(numbers, said, groups.pop())}
        found |= certain
    found &= {".", ","}
    return found.pop() if len(found) == 1 else None


def looks_grouped(values: np.ndarray) -> bool:
    """Whether numbers read with decimal points could be thousands grouped by points."""
    broken = values[np.isfinite(values) & (values != np.round(values))]
    return broken.size > 0 and _as_groups(broken)


def _as_groups(broken: np.ndarray) -> bool:
    thousandfold = np.abs(broken) * 1000
    whole = np.abs(thousandfold - np.round(thousandfold)) < 1e-6
    return bool((whole & (1 <= np.abs(broken)) & (np.abs(broken) < 1000)).all())


def _mark_by_neighbours(numbers: Sequence[str | None], said: list[str], mark: str) -> str | None:
    """The decimal mark for which whole numbers and grouped ones continue each other."""
    # Neither inf nor 1e3, nor 1234: who groups digits would have grouped it.
    known = [(n, s) for n, s in zip(numbers, said) if n and _COMPARED.fullmatch(n)]
    jumps = {}
    for decimal in ".,":
        logs = [_log(to_float(number, decimal)) for number, _ in known]
        jumps[decimal] = [
            abs(b - a)
            for a, b, (_, s), (_, r) in zip(logs, logs[1:], known, known[1:])
            if bool(s) != bool(r) and math.isfinite(a - b)
        ]
    if not jumps["."]:
        return None
    other = "," if mark == "." else "."
    as_decimal, as_thousands = np.median(jumps[mark]), np.median(jumps[other])
    if abs(as_decimal - as_thousands) < _CLEAR or min(as_decimal, as_thousands) > _CLEAR:
        return None
    return mark if as_decimal < as_thousands else other


def _log(value: float) -> float:
    """Decades of the magnitude; NaN for zero, which has none to compare."""
    if value == 0.0:
        return math.nan
    return math.log10(min(max(abs(value), 1.0), sys.float_info.max))


def to_float(number: str, decimal: str) -> float:
    """The value of a clean number; NaN where it breaks the rules of the decimal mark."""
    grouping = "," if decimal == "." else "."
    if grouping in number:
        whole = number.partition(decimal)[0]
        head, *groups = whole.lstrip("-+").split(grouping)
        regular = 1 <= len(head) <= 3 and all(len(group) == 3 for group in groups)
        if not regular and (decimal == "," or not re.fullmatch(_LAKHS, whole.lstrip("-+"))):
            return float("nan")
        if grouping in number[len(whole) :]:
            return float("nan")
        number = number.replace(grouping, "")
    try:
        return float(number.replace(decimal, "."))
    except ValueError:
        return float("nan")


def _two_ways(
    sheet: Sheet, column: int, numbers: Sequence[str | None], said: list[str], mark: str
) -> TrajectoryError:
    row = next(i for i, s in enumerate(said) if s == f"?{mark}")
    example = str(numbers[row])
    return TrajectoryError(
        f"Column {sheet.label(column)} can be read in two ways: {example!r} in "
        f"{sheet.place(row)} is {example.replace(mark, '')} if {mark!r} separates thousands "
        f"(--thousands {mark!r}) and {example.replace(mark, '.')} if it is the decimal mark "
        f"(--decimal {mark!r}); choose one."
    )


def _mixed(sheet: Sheet, column: int, said: list[str]) -> TrajectoryError:
    first = {mark: said.index(mark) for mark in ".,"}
    shown = " and ".join(
        f"{sheet.text(column).iloc[row]!r} in {sheet.place(row)}" for row in sorted(first.values())
    )
    return TrajectoryError(
        f"Column {sheet.label(column)} has decimal points and decimal commas ({shown}); write all "
        "numbers alike, or say which is meant with --decimal '.' or --decimal ','."
    )
