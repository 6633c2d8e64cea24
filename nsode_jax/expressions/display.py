"""Formulas and numbers as people would write them.

Formulas without factors of one and no minus sign in front, numbers in the digits that are known.
"""

from __future__ import annotations

import itertools
import math

from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.prefix import Prefix, subtree_end


def tidied(prefix: Prefix) -> Prefix:
    """The same function; a sum begins with a term that has no minus sign, if it has one."""
    return positive_term_first(_without_ones(prefix))


def _without_ones(prefix: Prefix) -> Prefix:
    """The prefix without factors of 1 and -1, and exponents of 1."""
    operator = OPERATORS.get(prefix[0]) if isinstance(prefix[0], str) else None
    if operator is None:
        return prefix
    arguments, start = [], 1
    for _ in range(operator.arity):
        end = subtree_end(prefix, start)
        arguments.append(_without_ones(prefix[start:end]))
        start = end
    if prefix[0] in ("mul", "pow") and arguments[1] == (1.0,):
        return arguments[0]
    if prefix[0] == "mul" and arguments[0] == (1.0,):
        return arguments[1]
    if prefix[0] == "mul" and arguments[0] == (-1.0,):
        return ("neg", *arguments[1])
    if prefix[0] in ("mul", "div") and arguments[0][0] == "neg":  # (-x)*z is -(x*z).
        return ("neg", prefix[0], *arguments[0][1:], *arguments[1])
    if prefix[0] in ("add", "sub") and arguments[1][0] == "neg":
        other = "sub" if prefix[0] == "add" else "add"
        return (other, *arguments[0], *arguments[1][1:])
    return (prefix[0], *itertools.chain.from_iterable(arguments))


def positive_term_first(prefix: Prefix) -> Prefix:
    """The same sum, begun with its first term that has no minus sign, if there is one."""
    terms, rest = [], prefix
    while rest[0] in ("add", "sub"):
        middle = subtree_end(rest, 1)
        terms.insert(0, (rest[0], rest[middle:]))
        rest = rest[1:middle]
    terms.insert(0, ("add", rest))

    def is_positive(sign: str, term: Prefix) -> bool:
        head = next(token for token in term if token not in ("mul", "div"))
        return sign == "add" and head != "neg" and (isinstance(head, str) or head >= 0)

    first = next((i for i, term in enumerate(terms) if is_positive(*term)), 0)
    terms.insert(0, terms.pop(first))
    joined = terms[0][1]
    for sign, term in terms[1:]:
        if sign == "add" and term[0] == "neg":  # Was in front: -y + 2 becomes 2 - y.
            sign, term = "sub", term[1:]
        joined = (sign, *joined, *term)
    return joined


def decimal_exponent(value: float, digits: int = 2) -> int:
    """Power of ten of the first digit of a number rounded to so many."""
    return int(f"{value:.{digits - 1}e}".split("e")[1])


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
    if error == math.inf:
        return f"{value:.6g} ± {error}"
    last = decimal_exponent(error) - 1  # Place of the second digit of the error.
    first = max(decimal_exponent(value) if value else last, last + 1)
    if -4 <= first <= 6:
        places, unit = max(0, -last), 10 ** max(0, last)
        value, error = (unit * round(number / unit, places) for number in (value, error))
        return f"{value:.{places}f} ± {error:.{places}f}"
    places, unit = first - last, 10.0**first
    return f"({value / unit:.{places}f} ± {error / unit:.{places}f})e{first:+03d}"
