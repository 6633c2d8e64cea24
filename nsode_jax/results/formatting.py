"""Numbers as people read them: R2, probabilities, values with their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence


def decimal_exponent(value: float, digits: int = 2) -> int:
    """Power of ten of the first digit of a number rounded to so many."""
    return int(f"{value:.{digits - 1}e}".split("e")[1])


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


def three_digits(value: float) -> float:
    """The value rounded to three significant digits."""
    return float(f"{value:.3g}")


def value_within(value: float, tolerance: float) -> str:
    """A value in as few digits, 4 to 12, as keep it within a tolerance."""
    digits = 4
    while digits < 12 and not abs(float(f"{value:.{digits}g}") - value) <= tolerance:
        digits += 1
    return f"{value:.{digits}g}"


def value_with_error(value: float, error: float) -> str:
    """0.5421 ± 0.0034: the error in two digits, the value to the same place.

    Args:
      value: any number.
      error: its standard error; NaN if that is unknown. Within rounding of 0 it is exact.
    """
    if math.isnan(error):
        return f"{value:.4g} ± unknown"
    if error <= 1e-12 * abs(value):
        return f"{value:.6g}"
    if not 1e-6 * abs(value) < error < math.inf:
        return f"{value:.6g} ± {error:.1g}"
    last = decimal_exponent(error) - 1  # Place of the second digit of the error.
    first = max(decimal_exponent(value) if value else last, last + 1)
    if -4 <= first <= 6:
        places = max(0, -last)
        return f"{value:.{places}f} ± {error:.{places}f}"
    places, unit = first - last, 10.0**first
    return f"({value / unit:.{places}f} ± {error / unit:.{places}f})e{first:+03d}"


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
