"""Discoveries of forms for many series in files, as `persistence` keeps those of one law.

{"format": "nsode_jax form discovery", "version": 1, "seconds": 12.3, "notes": [...],
 "tried": [...], "labels": ["A1", "A2", ...],
 "trajectories": [{"t": [...], "y": [...], "noise": null, "sigma": null}, ...],
 "candidates": [{"formula": "r*y*(1 - y/K)", "names": ["r", "K"],
                 "constants": [[0.61, 1.2], ...], "covariances": [[[...], [...]], ...], ...}, ...]}
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.fitting.bounds import Bounds
from nsode_jax.results.json_fields import (
    DiscoveryFileError,
    as_boolean,
    as_dictionary,
    as_list,
    as_named_formula,
    as_number,
    as_text,
    as_trajectory,
    as_whole,
    encode,
    encode_all,
    encode_named_formula,
    encode_rows,
    encode_trajectory,
    read_discovery,
    read_field,
    read_numbers,
    read_optional,
    read_some,
    write_discovery,
)
from nsode_jax.results.own_constants import FormCandidate, FormResult

FORMAT = "nsode_jax form discovery"
VERSION = 1


def save(found: FormResult, path: str | Path) -> None:
    """Writes a discovery as JSON; the file appears as a whole or not at all.

    Raises:
      OSError: if the file cannot be written.
      DiscoveryFileError: if a formula is longer than `load` would accept.
    """
    content = {
        "tried": list(found.tried),
        "labels": list(found.labels),
        "trajectories": [encode_trajectory(series) for series in found.trajectories],
        "candidates": [_encode_candidate(candidate) for candidate in found.candidates],
    }
    write_discovery(path, (FORMAT, VERSION), found.seconds, found.notes, content)


def load(path: str | Path) -> FormResult:
    """Reads what `save` wrote: the same floats, bit by bit.

    Raises:
      OSError: if the file cannot be read.
      DiscoveryFileError: if it is damaged, no discovery of a form, or of a newer version.
    """
    return read_discovery(path, (FORMAT, VERSION), _decode)


# --- writing ---------------------------------------------------------------------


def _encode_candidate(candidate: FormCandidate) -> dict[str, Any]:
    return {
        "formula": encode_named_formula(candidate.formula),
        # For readers of the file; they follow from the formula.
        "names": list(candidate.names),
        "name": candidate.name,
        "meanings": list(candidate.meanings),
        "constants": encode_rows(candidate.constants),
        "covariances": [encode_rows(one) for one in candidate.covariances],
        "freedom": candidate.freedom.tolist(),
        "y0s": encode_all(candidate.y0s),
        "start_times": encode_all(candidate.start_times),
        "residual_rms": encode_all(candidate.residual_rms),
        "r2": encode_all(candidate.r2),
        "score": encode(candidate.score),
        "probability": encode(candidate.probability),
        "origin": candidate.origin,
        "converged": candidate.converged.tolist(),
        "shared": list(candidate.shared),
        "bounds": _encode_bounds(candidate.bounds),
        "goodness_of_fit": encode(candidate.goodness_of_fit),
        "shared_p_value": encode(candidate.shared_p_value),
    }


def _encode_bounds(bounds: Bounds | None) -> dict[str, Any] | None:
    if bounds is None:
        return None
    return {"low": encode_all(bounds.low), "high": encode_all(bounds.high)}


# --- reading ---------------------------------------------------------------------


def _decode(content: dict[str, Any]) -> FormResult:
    trajectories = read_some(content, "trajectories", as_trajectory)
    labels = read_field(content, "labels", as_list(as_text))
    if len(labels) != len(trajectories):
        raise DiscoveryFileError(f"it has {len(labels)} labels for {len(trajectories)} series")
    if len(set(labels)) < len(labels):
        raise DiscoveryFileError("its labels of series do not differ")

    def candidate(value: Any, where: str) -> FormCandidate:
        return _decode_candidate(value, where, labels)

    return FormResult(
        candidates=read_some(content, "candidates", candidate),
        trajectories=trajectories,
        labels=labels,
        notes=read_field(content, "notes", as_list(as_text)),
        seconds=read_field(content, "seconds", as_number),
        tried=read_field(content, "tried", as_list(as_text)),
    )


def _decode_candidate(value: Any, where: str, labels: tuple[str, ...]) -> FormCandidate:
    entry, series = as_dictionary(value, where), len(labels)
    formula = read_field(entry, "formula", as_named_formula, where)
    number = len(formula.names)
    meanings = read_field(entry, "meanings", as_list(as_text), where)
    if len(meanings) not in (0, number):
        raise DiscoveryFileError(f"{where} has {len(meanings)} meanings of {number} constants")
    shared = read_field(entry, "shared", as_list(as_text), where)
    if unknown := [name for name in shared if name not in formula.names]:
        raise DiscoveryFileError(f"{where}.shared names no constant: {', '.join(unknown)}")
    freedom = read_field(entry, "freedom", as_list(as_whole), where)
    converged = read_field(entry, "converged", as_list(as_boolean), where)
    if not len(freedom) == len(converged) == series:
        raise DiscoveryFileError(f"{where}.freedom or .converged is not one for each series")
    numbers = ("score", "probability", "goodness_of_fit")
    return FormCandidate(
        formula=formula,
        name=read_field(entry, "name", as_text, where),
        meanings=meanings,
        constants=_read_array(entry, "constants", where, (series, number)),
        covariances=_read_array(entry, "covariances", where, (series, number, number)),
        freedom=np.array(freedom, np.int64),
        start_times=read_numbers(entry, "start_times", where, series),
        **{
            name: _read_array(entry, name, where, (series,))
            for name in ("y0s", "residual_rms", "r2")
        },
        **{name: read_field(entry, name, as_number, where) for name in numbers},
        origin=read_field(entry, "origin", as_text, where),
        converged=np.array(converged, bool),
        shared=shared,
        bounds=_decode_bounds(entry, where, number),
        labels=labels,
        shared_p_value=as_number(entry.get("shared_p_value", "nan"), f"{where}.shared_p_value"),
    )


def _decode_bounds(entry: dict[str, Any], where: str, number: int) -> Bounds | None:
    given = read_optional(entry, "bounds", as_dictionary, where)
    if given is None:
        return None
    where = f"{where}.bounds"
    bounds = Bounds(*(_read_array(given, name, where, (number,)) for name in ("low", "high")))
    if not (bounds.low < bounds.high).all():
        raise DiscoveryFileError(f"{where} have nothing between them")
    return bounds


def _read_array(
    entry: dict[str, Any], name: str, where: str, shape: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    """Numbers in lists within lists, of this shape."""
    decode = as_number
    for _ in shape:
        decode = as_list(decode)
    values = read_field(entry, name, decode, where)
    if not _has_shape(values, shape):
        size = " lists of ".join(map(str, shape))
        raise DiscoveryFileError(f"{where}.{name} is not {size} numbers")
    return np.array(values, np.float64).reshape(shape)


def _has_shape(values: Sequence[Any], shape: tuple[int, ...]) -> bool:
    first, *rest = shape
    return len(values) == first and (
        not rest or all(_has_shape(part, tuple(rest)) for part in values)
    )
