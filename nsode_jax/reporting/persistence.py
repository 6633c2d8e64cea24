"""Discoveries in files: JSON, every number exact, nothing in it ever executed.

    {"format": "nsode_jax discovery", "version": 2, "seconds": 12.3, "notes": [...],
     "tried": ["187 named laws", ...],
     "trajectories": [{"t": [...], "y": [...], "noise": null, "sigma": null}],
     "candidates": [{"formula": "0.53*y - 0.0008*y**2", "y0s": [9.6], ...}, ...]}

Formulas are text that only the package's own parser reads. JSON knows no NaN and no
infinity: they are the strings "nan", "inf" and "-inf". Files of version 1 are read too:
they call a probability a weight, and know neither the noise of a value nor the origin of
a law. Files without `tried`, `sigma` or `goodness_of_fit` are older than these.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.trajectory import Trajectory, TrajectoryError
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.reporting.result import Candidate, Result
from nsode_jax.selection.naming import Name
from nsode_jax.system.files import write_atomically

FORMAT = "nsode_jax discovery"
VERSION = 2
"""To be raised when a file of the older program's reading would be misread."""

LARGEST_FILE = 100_000_000
"""Bytes; discoveries take some hundred thousand."""

_LONGEST_FORMULA = 10_000  # Characters,
_MOST_TOKENS = 300  # and tokens: an endless sum would exhaust Python's stack later.

_NOT_FINITE = ("nan", "inf", "-inf")


_NAMED = 0.01
"""Laws that are less probable are not worth the time of looking for a name."""


class DiscoveryFileError(ValueError):
    """The file holds no discovery that this version can read. The message is one line."""


def save(result: Result, path: str | Path) -> None:
    """Writes a discovery as JSON; the file appears as a whole or not at all.

    Args:
      result: what `discover` found.
      path: where to; a file that is there is replaced.

    Raises:
      OSError: if the file cannot be written.
      DiscoveryFileError: if a formula is longer than `load` would accept.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "seconds": _encode(result.seconds),
        "notes": list(result.notes),
        "tried": list(result.tried),
        "trajectories": [_encode_trajectory(trajectory) for trajectory in result.trajectories],
        "candidates": [_encode_candidate(candidate) for candidate in result.candidates],
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
    write_atomically(path, f"{text}\n".encode())


def load(path: str | Path) -> Result:
    """Reads what `save` wrote: the same floats, bit by bit.

    Raises:
      OSError: if the file cannot be read.
      DiscoveryFileError: if it is damaged, no discovery, or of a newer version.
    """
    try:
        return _decode(_read(Path(path)))
    except (DiscoveryFileError, ExpressionError, TrajectoryError) as error:
        reason = " ".join(str(error).split())
        shown = reason if len(reason) <= 300 else f"{reason[:200]} ... {reason[-90:]}"
        raise DiscoveryFileError(f"cannot load the discovery {str(path)!r}: {shown}") from None


# --- writing ---------------------------------------------------------------------


def _encode(value: float) -> float | str:
    value = float(value)
    return value if math.isfinite(value) else str(value)


def _encode_trajectory(trajectory: Trajectory) -> dict[str, Any]:
    noise = trajectory.noise
    return {
        "t": trajectory.t.tolist(),
        "y": trajectory.y.tolist(),
        "noise": noise if noise is None else [_encode(value) for value in noise],
        "sigma": trajectory.sigma,
    }


def _encode_candidate(candidate: Candidate) -> dict[str, Any]:
    formula = candidate.infix
    if len(formula) > _LONGEST_FORMULA or candidate.complexity > _MOST_TOKENS:
        raise DiscoveryFileError(
            f"a formula of {candidate.complexity} tokens is too long to save; "
            f"the limit is {_MOST_TOKENS} tokens and {_LONGEST_FORMULA} characters"
        )
    covariance = candidate.covariance
    return {
        "formula": formula,
        "y0s": [_encode(y0) for y0 in candidate.y0s],
        "start_times": [_encode(start) for start in candidate.start_times],
        "end_times": [_encode(end) for end in candidate.end_times],
        "r2": _encode(candidate.r2),
        "residual_rms": _encode(candidate.residual_rms),
        "score": _encode(candidate.score),
        "log_probability": _encode(candidate.log_probability),
        "converged": bool(candidate.converged),
        "probability": _encode(candidate.probability),
        "held_out_rms": _encode(candidate.held_out_rms),
        "goodness_of_fit": _encode(candidate.goodness_of_fit),
        "covariance": covariance
        if covariance is None
        else [[_encode(value) for value in row] for row in covariance],
        "origin": candidate.origin,
        "observed": [_encode(value) for value in candidate.observed],
        # For readers of the file; it follows from the rest.
        "name": _encode_name(candidate.name) if candidate.probability >= _NAMED else None,
    }


def _encode_name(name: Name | None) -> dict[str, Any] | None:
    if name is None:
        return None
    parameters = [
        {
            "name": parameter.name,
            "meaning": parameter.meaning,
            "value": _encode(parameter.value),
            "standard_error": _encode(parameter.standard_error),
        }
        for parameter in name.parameters
    ]
    return {"law": name.law.name, "parameters": parameters}


# --- reading ---------------------------------------------------------------------


def _read(path: Path) -> Any:
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


def _decode(content: Any) -> Result:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DiscoveryFileError(f'it is not a "{FORMAT}" file')
    version = content.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise DiscoveryFileError("its version is not a whole number from 1")
    if version > VERSION:
        raise DiscoveryFileError(
            f"its version is {version}, this program reads up to {VERSION}; update nsode_jax"
        )
    if version == 1:
        _bring_up_to_date(content)
    trajectories = _field(content, "trajectories", _list(_decode_trajectory))
    if not trajectories:
        raise DiscoveryFileError("it has no trajectories")

    def decode_candidate(value: Any, where: str) -> Candidate:
        return _decode_candidate(value, where, len(trajectories))

    candidates = _field(content, "candidates", _list(decode_candidate))
    if not candidates:
        raise DiscoveryFileError("it has no candidates")
    if version == 1:
        ends = tuple(float(trajectory.t[-1]) for trajectory in trajectories)
        candidates = tuple(dataclasses.replace(law, end_times=ends) for law in candidates)
    return Result(
        candidates=candidates,
        trajectories=trajectories,
        notes=_field(content, "notes", _list(_text)),
        seconds=_field(content, "seconds", _number),
        tried=_field({"tried": [], **content}, "tried", _list(_text)),
    )


def _bring_up_to_date(content: dict[str, Any]) -> None:
    """Makes the content of a file of version 1 that of a file of version 2."""

    for name, news in (
        ("trajectories", {"noise": None}),
        ("candidates", {"origin": "", "end_times": []}),
    ):
        entries = content.get(name)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                entry.update(news)
                if "weight" in entry:
                    entry["probability"] = entry.pop("weight")


def _decode_trajectory(value: Any, where: str) -> Trajectory:
    entry = _dictionary(value, where)
    t, y = (_field(entry, name, _list(_finite), where) for name in ("t", "y"))
    noise = _optional(entry, "noise", _list(_number), where)
    noise = noise if noise is None else np.array(noise)
    sigma = _optional({"sigma": None, **entry}, "sigma", _number, where)
    return Trajectory(np.array(t), np.array(y), noise, sigma)


def _decode_candidate(value: Any, where: str, trajectories: int) -> Candidate:
    entry = _dictionary(value, where)
    expression = _field(entry, "formula", _expression, where)
    y0s = _field(entry, "y0s", _list(_number), where)
    start_times = _field(entry, "start_times", _list(_number), where)
    if not len(y0s) == len(start_times) == trajectories:
        raise DiscoveryFileError(
            f"{where} has {len(y0s)} y0s and {len(start_times)} start_times "
            f"for {trajectories} trajectories"
        )
    end_times = _field(entry, "end_times", _list(_number), where)
    if len(end_times) not in (0, trajectories):
        raise DiscoveryFileError(
            f"{where} has {len(end_times)} end_times for {trajectories} trajectories"
        )
    observed = _field({"observed": ["nan", "nan"], **entry}, "observed", _list(_number), where)
    if len(observed) != 2:
        raise DiscoveryFileError(f"{where}.observed is not the smallest and the largest value")
    numbers = ("r2", "residual_rms", "score", "log_probability", "probability", "held_out_rms")
    numbers, entry = (*numbers, "goodness_of_fit"), {"goodness_of_fit": "nan", **entry}
    return Candidate(
        expression=expression,
        y0s=y0s,
        start_times=start_times,
        end_times=end_times,
        origin=_field(entry, "origin", _text, where),
        observed=observed,
        converged=_field(entry, "converged", _boolean, where),
        covariance=_decode_covariance(entry, where, len(expression.constants)),
        **{name: _field(entry, name, _number, where) for name in numbers},
    )


def _decode_covariance(
    entry: dict[str, Any], where: str, size: int
) -> Float[np.ndarray, "constants constants"] | None:
    rows = _optional(entry, "covariance", _list(_list(_number)), where)
    if rows is None:
        return None
    if len(rows) != size or any(len(row) != size for row in rows):
        raise DiscoveryFileError(f"{where}.covariance is not {size} rows of {size} numbers")
    return np.array(rows, np.float64).reshape(size, size)


# Each of these checks one value and says where it stands.


def _field(
    entry: dict[str, Any], name: str, decode: Callable[[Any, str], Any], where: str = ""
) -> Any:
    path = f"{where}.{name}" if where else name
    if name not in entry:
        raise DiscoveryFileError(f"{path} is missing")
    return decode(entry[name], path)


def _optional(
    entry: dict[str, Any], name: str, decode: Callable[[Any, str], Any], where: str
) -> Any:
    """The same, or None where the file says null."""
    return None if entry.get(name, ...) is None else _field(entry, name, decode, where)


def _list(decode: Callable[[Any, str], Any]) -> Callable[[Any, str], tuple[Any, ...]]:
    def decode_list(values: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(values, list):
            raise DiscoveryFileError(f"{where} is not a list")
        return tuple(decode(value, f"{where}[{i}]") for i, value in enumerate(values))

    return decode_list


def _dictionary(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DiscoveryFileError(f"{where} is not an object")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DiscoveryFileError(f"{where} is not text")
    return value


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise DiscoveryFileError(f"{where} is not true or false")
    return value


def _number(value: Any, where: str) -> float:
    return float(value) if value in _NOT_FINITE else _finite(value, where)


def _finite(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise DiscoveryFileError(f"{where} is not a number")


def _expression(value: Any, where: str) -> Expression:
    formula = _text(value, where)
    if len(formula) > _LONGEST_FORMULA:
        raise DiscoveryFileError(f"{where} is longer than {_LONGEST_FORMULA} characters")
    expression = Expression.from_infix(formula)
    if expression.complexity > _MOST_TOKENS:
        raise DiscoveryFileError(f"{where} has more than {_MOST_TOKENS} operators and numbers")
    return expression
