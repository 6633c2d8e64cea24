"""A system of laws in words: for a terminal, in Markdown and in HTML."""

from __future__ import annotations

from nsode_jax.expressions.display import value_with_error
from nsode_jax.reporting.certainty import certainty_text
from nsode_jax.reporting.documents import (
    Block,
    Bullets,
    Code,
    Formula,
    Paragraph,
    Table,
    blocks_to_html,
    blocks_to_markdown,
)
from nsode_jax.reporting.tables import mark_of, ranked
from nsode_jax.results.formatting import probability_text, r2_text, time_text
from nsode_jax.results.system_analysis import find_fixed_points, fixed_point_text
from nsode_jax.results.system_result import SystemCandidate, SystemResult
from nsode_jax.results.uncertainty import constants_as_shown

_SHOWN = 5
"""Candidates in the text of a result."""


def as_text(found: SystemResult) -> str:
    """The best system, the table of the next ones, notes."""
    notes = [f"note: {note}" for note in found.notes]
    sure = [f"how sure: {sure}"] if (sure := certainty_text(found)) else []
    return "\n".join([system_text(found), "", table_text(found, _SHOWN), *sure, *notes])


def as_markdown(found: SystemResult) -> str:
    """The same for a notebook, the best system in LaTeX."""
    return blocks_to_markdown(_blocks(found, Formula(found.best.latex(), b"", "")))


def as_html(found: SystemResult) -> str:
    """The same in plain tags, which show where LaTeX does not."""
    return blocks_to_html(_blocks(found, Code(str(found.best))))


def _blocks(found: SystemResult, laws: Block) -> list[Block]:
    points = [fixed_point_text(p, found.system.states) for p in find_fixed_points(found).points]
    sure = certainty_text(found)
    remarks = (
        *([f"How sure: {sure}"] if sure else []),
        *(f"Fixed point: {point}" for point in points),
        *(f"Note: {note}" for note in found.notes),
    )
    return [
        laws,
        Paragraph(f"with {start_text(found.best, 0)}, R² = {r2_text(found.best.r2)}"),
        candidate_table(found, _SHOWN),
        *([Bullets(remarks)] if remarks else []),
    ]


def candidate_table(found: SystemResult, rows: int) -> Table:
    """The best candidates and the user's own: rank, probability, R2, complexity, equations."""
    return Table(
        ("rank", "probability", "R²", "complexity", "equations"),
        tuple(
            (
                str(rank),
                probability_text(candidate.probability),
                r2_text(candidate.r2),
                str(candidate.complexity),
                str(candidate).replace("\n", "; ") + mark_of(candidate),
            )
            for rank, candidate in ranked(found.candidates, rows)
        ),
        code=True,
    )


def table_text(found: SystemResult, rows: int) -> str:
    """The same as text, a line for each equation."""
    lines = ["rank  probability       R²  complexity  equations"]
    for rank, candidate in ranked(found.candidates, rows):
        equations = (str(candidate) + mark_of(candidate)).splitlines()
        lines.append(
            f"{rank:4d}  {probability_text(candidate.probability):>11}  "
            f"{r2_text(candidate.r2):>7}  {candidate.complexity:10d}  {equations[0]}"
        )
        lines += [" " * 40 + equation for equation in equations[1:]]
    return "\n".join(lines)


def system_text(found: SystemResult) -> str:
    """The equations, their start, the constants with standard errors, and fixed points."""
    best = found.best
    lines = [str(best), f"with {start_text(best, 0)}"]
    lines[-1] += f", R² = {r2_text(best.r2)}"
    if best.segments > 1:
        lines.append(f"fitted in {best.segments} pieces, each with initial values of its own")
    lines.append("constants, with standard errors that hold if these forms are right:")
    by_law = constants_as_shown(best.laws, best.standard_errors, best.freedom)
    for left, constants in zip(best.left_sides, by_law, strict=True):
        shown = [value_with_error(c.value, c.error) for c in constants if c.error != 0.0]
        lines += [f"  {left}: {', '.join(shown)}"] if shown else []
    points, curve = find_fixed_points(found)
    if points or curve:
        lines.append("fixed points:")
        lines += [f"  {fixed_point_text(point, best.system.states)}" for point in points]
        lines += [f"  {'and ' if points else ''}a curve of them"] if curve else []
    return "\n".join(lines)


def start_text(best: SystemCandidate, run: int) -> str:
    """Where the fitted solution of a run starts."""
    values = zip(best.system.states, best.starts[run], strict=True)
    states = ", ".join(f"{name} = {value:.5g}" for name, value in values)
    return f"{states} at t = {time_text(best.start_times[run])}"
