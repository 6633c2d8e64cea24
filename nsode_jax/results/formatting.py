"""Numbers as people read them: R2, probabilities, times, tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

_NOTHING, _SHARE = 1e-9, 0.005
"""Of a range: what is 0 in it, and what is not seen in it."""


def r2_text(r2: float) -> str:
    """R2 in so many digits that 0.99996 does not read as 1."""
    if math.isnan(r2):
        return "unknown"
    if r2 == -math.inf:
        return "diverges"
    return f"{r2:.5f}" if abs(r2) < 10 else f"{r2:.1e}"


def probability_text(probability: float) -> str:
    """A posterior probability in percent, such as 97.8%; a dash if it is unknown."""
    if math.isnan(probability):
        return "-"
    return f"{probability:.1%}" if probability >= 0.0005 else "<0.1%"


def time_text(time: float) -> str:
    """A time with the digits it has, 1700000123 too, but not those of rounding."""
    return f"{time:.12g}"


def value_of_range(value: float, span: float) -> str:
    """A value in as many digits, 3 to 12, as tell two hundred values of a range apart.

    Args:
      value: any number; 0 if it is so but for rounding.
      span: the width of the range.
    """
    return "0" if abs(value) <= _NOTHING * span else value_within(value, _SHARE * span, 3)


def value_within(value: float, tolerance: float, fewest: int = 4) -> str:
    """A value in as few digits, 4 to 12 if not told otherwise, as keep it within a tolerance."""
    digits = fewest
    while digits < 12 and not abs(float(f"{value:.{digits}g}") - value) <= tolerance:
        digits += 1
    return f"{value:.{digits}g}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines: columns flush right, the last one as it is."""
    widths = [max(map(len, column)) for column in list(zip(*rows))[:-1]]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths)), row[-1]])
        for row in rows
    ]


def listed(items: Sequence[object]) -> str:
    """At least one item, as people list them: "1, 3 and 4"."""
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last
