"""Discoveries of systems in files, as `persistence` keeps those of one quantity.

{"format": "nsode_jax system discovery", "version": 1, "seconds": 12.3, "notes": [...],
 "system": {"observed": ["hare", "lynx"], "inputs": [], "explicit_time": false, "order": 1,
            "held": []},
 "runs": [{"t": [...], "y": [[...], ...], "u": [[], ...], "noise": null,
           "input_times": null}],
 "candidates": [{"formulas": ["0.5*hare - 0.03*hare*lynx", ...], "states": [...], ...}, ...]}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.observations import Run
from nsode_jax.results.json_fields import (
    DiscoveryFileError,
    as_boolean,
    as_dictionary,
    as_expression,
    as_finite,
    as_list,
    as_number,
    as_text,
    as_whole,
    encode,
    encode_all,
    encode_formula,
    encode_rows,
    read_covariance,
    read_discovery,
    read_field,
    read_numbers,
    read_some,
    write_discovery,
)
from nsode_jax.results.system_result import SystemCandidate, SystemResult

FORMAT = "nsode_jax system discovery"
VERSION = 1


def save(found: SystemResult, path: str | Path) -> None:
    """Writes a discovery as JSON; the file appears as a whole or not at all.

    Raises:
      OSError: if the file cannot be written.
      DiscoveryFileError: if a formula is longer than `load` would accept.
    """
    system = found.system
    content = {
        "system": {
            "observed": list(system.observed),
            "inputs": list(system.inputs),
            "explicit_time": system.explicit_time,
            "order": system.order,
            "held": list(system.held),
        },
        "runs": [_encode_run(run) for run in found.runs],
        "candidates": [_encode_candidate(candidate) for candidate in found.candidates],
    }
    write_discovery(path, (FORMAT, VERSION), found.seconds, found.notes, content)


def load(path: str | Path) -> SystemResult:
    """Reads what `save` wrote: the same floats, bit by bit.

    Raises:
      OSError: if the file cannot be read.
      DiscoveryFileError: if it is damaged, no discovery of a system, or of a newer version.
    """
    return read_discovery(path, (FORMAT, VERSION), _decode)


def _encode_run(run: Run) -> dict[str, Any]:
    arrays = {name: getattr(run, name).tolist() for name in "tyu"}
    times = None if run.input_times is None else run.input_times.tolist()
    return arrays | {"noise": encode_rows(run.noise_sizes), "input_times": times}


def _encode_candidate(candidate: SystemCandidate) -> dict[str, Any]:
    return {
        "formulas": [encode_formula(law) for law in candidate.laws],
        "states": encode_rows(candidate.states),
        "start_times": encode_all(candidate.start_times),
        "end_times": encode_all(candidate.end_times),
        "r2": encode(candidate.r2),
        "r2s": encode_all(candidate.r2s),
        "residuals": encode_all(candidate.residuals),
        "score": encode(candidate.score),
        "probability": encode(candidate.probability),
        "covariance": encode_rows(candidate.covariance),
        "freedom": encode(candidate.freedom),
        "segments": candidate.segments,
        "shared": [list(pair) for pair in candidate.shared],
        "converged": bool(candidate.converged),
        "asked_for": candidate.asked_for,
    }


# --- reading ---------------------------------------------------------------------


def _decode(content: dict[str, Any]) -> SystemResult:
    system = read_field(content, "system", _system)

    def run(value: Any, where: str) -> Run:
        return _run(value, where, system)

    runs = read_some(content, "runs", run)

    def candidate(value: Any, where: str) -> SystemCandidate:
        return _candidate(value, where, system, len(runs))

    return SystemResult(
        read_some(content, "candidates", candidate),
        runs,
        read_field(content, "notes", as_list(as_text)),
        read_field(content, "seconds", as_number),
    )


def _system(value: Any, where: str) -> System:
    entry = as_dictionary(value, where)
    try:
        return System(
            read_field(entry, "observed", as_list(as_text), where),
            read_field(entry, "inputs", as_list(as_text), where),
            read_field(entry, "explicit_time", as_boolean, where),
            read_field(entry, "order", as_whole, where),
            # Files of the first versions lack it: what they held was not known.
            read_field({"held": [], **entry}, "held", as_list(as_text), where),
        )
    except DiscoveryFileError:
        raise
    except ValueError as error:
        raise DiscoveryFileError(f"{where}: {error}") from None


def _run(value: Any, where: str, system: System) -> Run:
    entry = as_dictionary(value, where)
    t = _times(entry, "t", where)
    observed = len(system.observed)
    y, noise = _rows(entry, "y", where, t.size, observed), None
    driven = None if entry.get("input_times") is None else _times(entry, "input_times", where)
    if entry.get("noise") is not None:  # Files of the first version may lack it.
        noise = _rows(entry, "noise", where, t.size, observed)
        if not (noise > 0).all():
            raise DiscoveryFileError(f"{where}.noise is not positive")
    u = _rows(entry, "u", where, t.size if driven is None else driven.size, len(system.inputs))
    return Run(t, y, u, noise, driven, system.holds)


def _times(entry: dict[str, Any], name: str, where: str) -> Float[np.ndarray, " time"]:
    times = np.array(read_field(entry, name, as_list(as_finite), where), np.float64)
    if times.size < 2 or not (np.diff(times) > 0).all():
        raise DiscoveryFileError(f"{where}.{name} does not increase")
    return times


def _rows(
    entry: dict[str, Any], name: str, where: str, number: int, width: int
) -> Float[np.ndarray, "rows columns"]:
    rows = read_field(entry, name, as_list(as_list(as_finite)), where)
    if len(rows) != number or any(len(row) != width for row in rows):
        raise DiscoveryFileError(f"{where}.{name} is not {number} rows of {width} numbers")
    return np.array(rows, np.float64).reshape(number, width)


def _candidate(value: Any, where: str, system: System, runs: int) -> SystemCandidate:
    entry = as_dictionary(value, where)

    def law(value: Any, where: str) -> Expression:
        return as_expression(value, where, system.variables)

    laws = read_field(entry, "formulas", as_list(law), where)
    segments = read_field(entry, "segments", as_whole, where)
    constants = sum(len(law.constants) for law in laws)
    pairs = read_field(entry, "shared", as_list(as_list(as_whole)), where)
    if any(len(pair) != 2 or not max(pair) < constants for pair in pairs):
        raise DiscoveryFileError(f"{where}.shared is not pairs of constants")
    lists = {
        name: read_numbers(entry, name, where, number)
        for name, number in (
            ("start_times", runs),
            ("end_times", runs),
            ("r2s", len(system.observed)),
            ("residuals", len(system.observed)),
        )
    }
    if len(laws) != len(system.observed):
        raise DiscoveryFileError(f"{where} has {len(laws)} formulas for {system.observed}")
    return SystemCandidate(
        system=system,
        laws=laws,
        states=_rows(entry, "states", where, runs * segments, len(system.states)),
        **lists,
        **{name: read_field(entry, name, as_number, where) for name in ("r2", "score")},
        probability=read_field(entry, "probability", as_number, where),
        covariance=read_covariance(entry, where, constants),
        freedom=read_field({"freedom": "inf", **entry}, "freedom", as_number, where),
        segments=segments,
        shared=pairs,
        converged=read_field(entry, "converged", as_boolean, where),
        asked_for=read_field({"asked_for": False, **entry}, "asked_for", as_boolean, where),
    )
