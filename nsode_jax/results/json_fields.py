"""Values in JSON files that anyone may have written: each is checked, and none executed.

JSON knows no NaN and no infinity: they are the strings "nan", "inf" and "-inf". Formulas are
text that only the package's own parser reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import VARIABLES
from nsode_jax.selection.named_formula import NamedFormula
from nsode_jax.system.files import one_line, write_atomically

LARGEST_FILE = 100_000_000
"""Bytes; discoveries take some hundred thousand."""

_LONGEST_FORMULA = 10_000  # Characters,
_MOST_TOKENS = 300  # and tokens: an endless sum would exhaust Python's stack later.

_NOT_FINITE = ("nan", "inf", "-inf")

_LARGEST_WHOLE = 10**9

_READERS = {
    "nsode_jax discovery": "Discovery",
    "nsode_jax system discovery": "SystemDiscovery",
    "nsode_jax form discovery": "FormDiscovery",
}
"""Which class reads the files of a format."""

Read = TypeVar("Read")


class DiscoveryFileError(ValueError):
    """The file holds no discovery that this version can read. The message is one line."""


# --- writing ---------------------------------------------------------------------


def write_discovery(
    path: str | Path,
    kind: tuple[str, int],
    seconds: float,
    notes: Iterable[str],
    content: dict[str, Any],
) -> None:
    """Writes a discovery; the file appears as a whole or not at all.

    Args:
      path: where to.
      kind: name of the format, and its version.
      seconds: how long the discovery took.
      notes: sentences on the data.
      content: all else.
    """
    name, version = kind
    head = {"format": name, "version": version, "seconds": encode(seconds), "notes": list(notes)}
    text = json.dumps(head | content, ensure_ascii=False, allow_nan=False, indent=1)
    write_atomically(path, f"{text}\n".encode())


def encode(value: float) -> float | str:
    """The number, or its name if it is not finite."""
    value = float(value)
    return value if math.isfinite(value) else str(value)


def encode_all(values: Iterable[float] | None) -> list[float | str] | None:
    """A number after the other; null where nothing is known."""
    return None if values is None else [encode(value) for value in values]


def encode_rows(rows: Iterable[Iterable[float]] | None) -> list[Any] | None:
    """Rows of numbers; null where nothing is known."""
    return None if rows is None else [encode_all(row) for row in rows]


def encode_trajectory(series: Trajectory) -> dict[str, Any]:
    """A series of values as JSON."""
    return {
        "t": series.t.tolist(),
        "y": series.y.tolist(),
        "noise": encode_all(series.noise),
        "sigma": series.sigma,
    }


def encode_formula(expression: Expression) -> str:
    """The formula as text.

    Raises:
      DiscoveryFileError: if it is longer than `expression` would read.
    """
    return _short_enough(expression.infix, expression.complexity)


def encode_named_formula(formula: NamedFormula) -> str:
    """The same of a formula whose constants have names, as it was written."""
    return _short_enough(formula.text, len(formula.template))


def _short_enough(formula: str, tokens: int) -> str:
    if len(formula) > _LONGEST_FORMULA or tokens > _MOST_TOKENS:
        raise DiscoveryFileError(
            f"a formula of {tokens} tokens is too long to save; "
            f"the limit is {_MOST_TOKENS} tokens and {_LONGEST_FORMULA} characters"
        )
    return formula


# --- reading ---------------------------------------------------------------------


def read_discovery(
    path: str | Path, kind: tuple[str, int], decode: Callable[[dict[str, Any]], Read]
) -> Read:
    """What `decode` makes of the content of a file that `write_discovery` wrote.

    Args:
      path: of the file.
      kind: name of the format, and its newest version.
      decode: is given the content.

    Raises:
      OSError: if the file cannot be read.
      DiscoveryFileError: if it is damaged, or `decode` refuses it.
    """
    try:
        content = _content(Path(path))
        _require_format(content, *kind)
        return decode(content)
    except (DiscoveryFileError, ExpressionError, TrajectoryError) as error:
        reason = one_line(error)
        shown = reason if len(reason) <= 300 else f"{reason[:200]} ... {reason[-90:]}"
        raise DiscoveryFileError(f"cannot load the discovery {str(path)!r}: {shown}") from None


def _content(path: Path) -> Any:
    """The file's JSON, and no more of a huge file than the limit."""
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise DiscoveryFileError(f"the file is larger than {LARGEST_FILE / 1e6:g} MB")
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise DiscoveryFileError("it is too deeply nested") from None
    except DiscoveryFileError:
        raise
    except ValueError as error:  # Also of UTF-8 and of endless integers.
        raise DiscoveryFileError(f"it is not JSON, or damaged: {error}") from None


def _refuse_constant(name: str) -> None:
    raise DiscoveryFileError(f"it is not strict JSON: {name} stands for a number")


def _require_format(content: Any, format_name: str, newest: int) -> None:
    """Refuses files of another format, or of a version that is newer than this program."""
    given = content.get("format") if isinstance(content, dict) else None
    if given != format_name:
        reader = _READERS.get(given) if isinstance(given, str) else None
        other = f', but a "{given}" file: {reader}.load reads it' if reader else ""
        raise DiscoveryFileError(f'it is not a "{format_name}" file{other}')
    version = content.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DiscoveryFileError("its version is not a whole number from 1")
    if version > newest:
        raise DiscoveryFileError(
            f"its version is {version}, this program reads up to {newest}; update nsode_jax"
        )


# Each of these checks one value and says where it stands.


def read_field(
    entry: dict[str, Any], name: str, decode: Callable[[Any, str], Any], where: str = ""
) -> Any:
    """A value of an object, as `decode` reads it."""
    path = f"{where}.{name}" if where else name
    if name not in entry:
        raise DiscoveryFileError(f"{path} is missing")
    return decode(entry[name], path)


def read_optional(
    entry: dict[str, Any], name: str, decode: Callable[[Any, str], Any], where: str
) -> Any:
    """The same, or None where the file says null."""
    return None if entry.get(name, ...) is None else read_field(entry, name, decode, where)


def read_some(
    entry: dict[str, Any], name: str, decode: Callable[[Any, str], Any]
) -> tuple[Any, ...]:
    """A list that is not empty."""
    values = read_field(entry, name, as_list(decode))
    if not values:
        raise DiscoveryFileError(f"it has no {name}")
    return values


def read_numbers(entry: dict[str, Any], name: str, where: str, number: int) -> tuple[float, ...]:
    """A list of so many numbers."""
    values = read_field(entry, name, as_list(as_number), where)
    if len(values) != number:
        raise DiscoveryFileError(f"{where}.{name} is not {number} numbers")
    return values


def as_list(decode: Callable[[Any, str], Any]) -> Callable[[Any, str], tuple[Any, ...]]:
    def decode_list(values: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(values, list):
            raise DiscoveryFileError(f"{where} is not a list")
        return tuple(decode(value, f"{where}[{i}]") for i, value in enumerate(values))

    return decode_list


def as_dictionary(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DiscoveryFileError(f"{where} is not an object")
    return value


def as_text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DiscoveryFileError(f"{where} is not text")
    return value


def as_boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise DiscoveryFileError(f"{where} is not true or false")
    return value


def as_number(value: Any, where: str) -> float:
    return float(value) if value in _NOT_FINITE else as_finite(value, where)


def as_finite(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise DiscoveryFileError(f"{where} is not a number")


def as_whole(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_WHOLE:
        return value
    raise DiscoveryFileError(f"{where} is not a whole number")


def as_expression(value: Any, where: str, variables: tuple[str, ...] = VARIABLES) -> Expression:
    law = Expression.from_infix(_as_formula(value, where), variables)
    _require_few_tokens(law.complexity, where)
    return law


def as_named_formula(value: Any, where: str) -> NamedFormula:
    try:
        formula = NamedFormula.parse(_as_formula(value, where))
    except (DiscoveryFileError, ExpressionError):
        raise
    except ValueError as error:  # Too many names.
        raise DiscoveryFileError(f"{where}: {error}") from None
    _require_few_tokens(len(formula.template), where)
    return formula


def _as_formula(value: Any, where: str) -> str:
    formula = as_text(value, where)
    if len(formula) > _LONGEST_FORMULA:
        raise DiscoveryFileError(f"{where} is longer than {_LONGEST_FORMULA} characters")
    return formula


def _require_few_tokens(tokens: int, where: str) -> None:
    if tokens > _MOST_TOKENS:
        raise DiscoveryFileError(f"{where} has more than {_MOST_TOKENS} operators and numbers")


def as_trajectory(value: Any, where: str) -> Trajectory:
    """What `encode_trajectory` wrote."""
    entry = as_dictionary(value, where)
    t, y = (read_field(entry, name, as_list(as_finite), where) for name in ("t", "y"))
    noise = read_optional(entry, "noise", as_list(as_number), where)
    noise = noise if noise is None else np.array(noise)
    sigma = read_optional({"sigma": None, **entry}, "sigma", as_number, where)
    return Trajectory(np.array(t), np.array(y), noise, sigma)


def read_covariance(
    entry: dict[str, Any], where: str, size: int
) -> Float[np.ndarray, "constants constants"] | None:
    rows = read_optional(entry, "covariance", as_list(as_list(as_number)), where)
    if rows is None:
        return None
    if len(rows) != size or any(len(row) != size for row in rows):
        raise DiscoveryFileError(f"{where}.covariance is not {size} rows of {size} numbers")
    return np.array(rows, np.float64).reshape(size, size)
