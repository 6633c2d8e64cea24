"""Discoveries in files: JSON, every number exact, nothing in it ever executed.

    {"format": "nsode_jax discovery", "version": 2, "seconds": 12.3, "notes": [...],
     "tried": ["187 named laws", ...],
     "trajectories": [{"t": [...], "y": [...], "noise": null, "sigma": null}],
     "limits": [{"t": [...], "limit": [...], "below": [true, ...]}],
     "candidates": [{"formula": "0.53*y - 0.0008*y**2", "y0s": [9.6], ...}, ...]}

Formulas are text that only the package's own parser reads. JSON knows no NaN and no
infinity: they are the strings "nan", "inf" and "-inf". Files without
`tried`, `limits`, `sigma` or `goodness_of_fit` are older than these.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from nsode_jax.dynamics.limits import Limits
from nsode_jax.results.json_fields import (
    DiscoveryFileError,
    as_boolean,
    as_dictionary,
    as_expression,
    as_finite,
    as_list,
    as_number,
    as_text,
    as_trajectory,
    encode,
    encode_all,
    encode_formula,
    encode_rows,
    encode_trajectory,
    read_covariance,
    read_discovery,
    read_field,
    read_numbers,
    read_some,
    write_discovery,
)
from nsode_jax.results.result import Candidate, Result
from nsode_jax.selection.catalogue import CatalogueError, NamedLaw
from nsode_jax.selection.naming import Name

FORMAT = "nsode_jax discovery"
VERSION = 2
"""To be raised when a file of the older program's reading would be misread."""


_NAMED = 0.01
"""Laws that are less probable are not worth the time of looking for a name."""


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
        "tried": list(result.tried),
        "trajectories": [encode_trajectory(trajectory) for trajectory in result.trajectories],
        "limits": [_encode_limits(limits) for limits in result.limits],
        "candidates": [_encode_candidate(candidate) for candidate in result.candidates],
        "own_laws": [law.to_entry() for law in result.candidates[0].own_laws],
    }
    write_discovery(path, (FORMAT, VERSION), result.seconds, result.notes, content)


def load(path: str | Path) -> Result:
    """Reads what `save` wrote: the same floats, bit by bit.

    Raises:
      OSError: if the file cannot be read.
      DiscoveryFileError: if it is damaged, no discovery, or of a newer version.
    """
    return read_discovery(path, (FORMAT, VERSION), _decode)


# --- writing ---------------------------------------------------------------------


def _encode_limits(limits: Limits) -> dict[str, Any]:
    return {
        "t": limits.t.tolist(),
        "limit": encode_all(limits.limit),
        "below": limits.below.tolist(),
    }


def _encode_candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "formula": encode_formula(candidate.expression),
        "y0s": encode_all(candidate.y0s),
        "start_times": encode_all(candidate.start_times),
        "end_times": encode_all(candidate.end_times),
        "r2": encode(candidate.r2),
        "residual_rms": encode(candidate.residual_rms),
        "score": encode(candidate.score),
        "log_probability": encode(candidate.log_probability),
        "converged": bool(candidate.converged),
        "probability": encode(candidate.probability),
        "held_out_rms": encode(candidate.held_out_rms),
        "goodness_of_fit": encode(candidate.goodness_of_fit),
        "covariance": encode_rows(candidate.covariance),
        "freedom": encode(candidate.freedom),
        "origin": candidate.origin,
        "observed": encode_all(candidate.observed),
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
            "value": encode(parameter.value),
            "standard_error": encode(parameter.standard_error),
        }
        for parameter in name.parameters
    ]
    return {"law": name.law.name, "parameters": parameters}


# --- reading ---------------------------------------------------------------------


def _decode(content: dict[str, Any]) -> Result:
    trajectories = read_some(content, "trajectories", as_trajectory)
    limits = read_field({"limits": [], **content}, "limits", as_list(_decode_limits))
    if len(limits) not in (0, len(trajectories)):
        raise DiscoveryFileError(
            f"it has {len(limits)} limits for {len(trajectories)} trajectories"
        )
    own_laws = read_field({"own_laws": [], **content}, "own_laws", as_list(_decode_own_law))

    def decode_candidate(value: Any, where: str) -> Candidate:
        candidate = _decode_candidate(value, where, len(trajectories))
        return dataclasses.replace(candidate, own_laws=own_laws)

    candidates = read_some(content, "candidates", decode_candidate)
    return Result(
        candidates=candidates,
        trajectories=trajectories,
        notes=read_field(content, "notes", as_list(as_text)),
        seconds=read_field(content, "seconds", as_number),
        tried=read_field({"tried": [], **content}, "tried", as_list(as_text)),
        limits=limits,
    )


def _decode_own_law(value: Any, where: str) -> NamedLaw:
    try:
        return NamedLaw.from_entry(as_dictionary(value, where), where)
    except CatalogueError as error:
        raise DiscoveryFileError(str(error)) from error


def _decode_limits(value: Any, where: str) -> Limits:
    entry = as_dictionary(value, where)
    t = read_field(entry, "t", as_list(as_finite), where)
    limit = read_field(entry, "limit", as_list(as_number), where)
    below = read_field(entry, "below", as_list(as_boolean), where)
    if not len(t) == len(limit) == len(below):
        raise DiscoveryFileError(
            f"{where} has {len(t)} times, {len(limit)} limits, {len(below)} sides"
        )
    return Limits(np.array(t), np.array(limit), np.array(below, bool))


def _decode_candidate(value: Any, where: str, trajectories: int) -> Candidate:
    entry = as_dictionary(value, where)
    expression = read_field(entry, "formula", as_expression, where)
    end_times = read_field(entry, "end_times", as_list(as_number), where)
    if len(end_times) not in (0, trajectories):
        raise DiscoveryFileError(
            f"{where} has {len(end_times)} end_times for {trajectories} trajectories"
        )
    entry = {"observed": ["nan", "nan"], "goodness_of_fit": "nan", "freedom": "inf", **entry}
    low, high = read_numbers(entry, "observed", where, 2)
    numbers = "r2 residual_rms score log_probability probability held_out_rms goodness_of_fit"
    numbers += " freedom"
    return Candidate(
        expression=expression,
        y0s=read_numbers(entry, "y0s", where, trajectories),
        start_times=read_numbers(entry, "start_times", where, trajectories),
        end_times=end_times,
        origin=read_field(entry, "origin", as_text, where),
        observed=(low, high),
        converged=read_field(entry, "converged", as_boolean, where),
        covariance=read_covariance(entry, where, len(expression.constants)),
        **{name: read_field(entry, name, as_number, where) for name in numbers.split()},
    )
