"""A system of laws in words, for a terminal."""

from __future__ import annotations

from nsode_jax.reporting.formatting import probability_text, r2_text, time_text, value_with_error
from nsode_jax.reporting.system_result import SystemResult

_SHOWN = 5
"""Candidates in the text of a result."""


def as_text(found: SystemResult) -> str:
    """The best system, the table of the next ones, notes."""
    notes = [f"note: {note}" for note in found.notes]
    return "\n".join([system_text(found), "", table_text(found, _SHOWN), *notes])


def table_text(found: SystemResult, rows: int) -> str:
    """The best candidates: rank, probability, R2, complexity and a line for each equation."""
    lines = ["rank  probability       R²  complexity  equations"]
    for rank, candidate in enumerate(found.candidates[:rows], start=1):
        equations = str(candidate).splitlines()
        lines.append(
            f"{rank:4d}  {probability_text(candidate.probability):>11}  "
            f"{r2_text(candidate.r2):>7}  {candidate.complexity:10d}  {equations[0]}"
        )
        lines += [" " * 40 + equation for equation in equations[1:]]
    return "\n".join(lines)


def system_text(found: SystemResult) -> str:
    """The equations, their start, and the constants with standard errors."""
    best = found.best
    starts = ", ".join(
        f"{name} = {value:.5g}"
        for name, value in zip(best.system.states, best.starts[0], strict=True)
    )
    lines = [str(best), f"with {starts} at t = {time_text(best.start_times[0])}"]
    lines[-1] += f", R² = {r2_text(best.r2)}"
    if best.segments > 1:
        lines.append(f"fitted in {best.segments} pieces, each with initial values of its own")
    lines.append("constants:")
    errors = iter(best.standard_errors)
    for left, law in zip(best.left_sides, best.laws, strict=True):
        shown = [value_with_error(constant, next(errors)) for constant in law.constants]
        lines.append(f"  {left}: {', '.join(shown)}")
    return "\n".join(lines)
