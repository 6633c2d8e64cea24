"""A result in words: for a terminal, in Markdown and in HTML, all from the same parts."""

from __future__ import annotations

import math
import re

from nsode_jax.expressions.display import value_with_error
from nsode_jax.expressions.operators import OPERATORS
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
from nsode_jax.results.analysis import find_fixed_points, residual_text
from nsode_jax.results.formatting import aligned, probability_text, r2_text, time_text, value_within
from nsode_jax.results.outlook import outlook
from nsode_jax.results.result import Candidate, Result
from nsode_jax.results.rounding import NEGLIGIBLE, SHARE
from nsode_jax.results.uncertainty import constants_as_shown
from nsode_jax.tables.units import unit_of

_SHOWN = 5
"""Candidates in the text of a result; its table holds all of them."""


# --- the whole ---------------------------------------------------------------


def as_text(result: Result) -> str:
    """The result for a terminal: the best law, the next ones, how sure it is, notes."""
    lines = [law_text(result), "", table_text(result, _SHOWN)]
    lines += [f"({more})"] if (more := _rest(result)) else []
    return "\n".join([*lines, *(f"{topic}: {said}" for topic, said in _remarks(result))])


def _remarks(result: Result) -> list[tuple[str, str]]:
    """Topics and sentences on them: how sure the law is, what it foretells, what was tried."""
    remarks = (
        ("how sure", certainty_text(result)),
        ("beyond the data", str(outlook(result) or "")),
        ("tried", tried_text(result)),
        *(("note", note) for note in result.notes),
    )
    return [(topic, said) for topic, said in remarks if said]


def as_markdown(result: Result) -> str:
    """The result for a notebook, the best law in LaTeX."""
    law = result.best.latex()
    return blocks_to_markdown(_blocks(result, Formula(rf"\frac{{dy}}{{dt}} = {law}", b"", "")))


def as_html(result: Result) -> str:
    """The result for a notebook, in plain tags: they show where LaTeX does not."""
    return blocks_to_html(_blocks(result, Code(f"dy/dt = {result.best.rounded().infix}")))


def _blocks(result: Result, law: Block) -> list[Block]:
    more = _rest(result)
    remarks = tuple(f"{topic.capitalize()}: {said}" for topic, said in _remarks(result))
    return [
        law,
        Paragraph(f"with {fit_text(result)}"),
        candidate_table(result, _SHOWN),
        *([Paragraph(more)] if more else []),
        *([Bullets(remarks)] if remarks else []),
    ]


def _rest(result: Result) -> str:
    hidden = len(result.candidates) - len(ranked(result.candidates, _SHOWN))
    if hidden <= 0:
        return ""
    return f"{hidden} more candidate{'' if hidden == 1 else 's'}: table() lists all"


def tried_text(result: Result) -> str:
    """What the candidates were chosen from, as one line; empty if unknown."""
    return f"{'; '.join(result.tried)}." if result.tried else ""


# --- the candidates ----------------------------------------------------------


def candidate_table(result: Result, rows: int, *, wide: bool = False) -> Table:
    """The best candidates and the user's own: rank, probability, R2, complexity and f(y).

    Args:
      result: what was found.
      rows: most of the best.
      wide: with their residual and origin too.
    """

    def row(rank: int, candidate: Candidate) -> tuple[str, ...]:
        return (
            str(rank),
            probability_text(candidate.probability),
            r2_text(candidate.r2),
            *((residual_text(result, candidate),) if wide else ()),
            str(candidate.complexity),
            *((candidate.origin or "-",) if wide else ()),
            candidate.rounded().infix + ("" if wide else mark_of(candidate)),
        )

    names = ("rank", "probability", "R²", "residual", "complexity", "origin", "dy/dt =")
    header = tuple(name for name in names if wide or name not in ("residual", "origin"))
    shown = ranked(result.candidates, rows)
    return Table(header, tuple(row(*one) for one in shown), code=True)


def table_text(result: Result, rows: int, columns: int | None = None) -> str:
    """The best candidates as aligned text.

    Args:
      result: what was found.
      rows: most of the best.
      columns: formulas are cut to this width; None: never.
    """
    table = candidate_table(result, rows)
    marks = ["", *(mark_of(candidate) for _, candidate in ranked(result.candidates, rows))]
    lines = zip(aligned([table.header, *table.rows]), marks, strict=True)
    return "\n".join(_cut(line, columns, mark) for line, mark in lines)


def _cut(line: str, columns: int | None, mark: str) -> str:
    """A line in so many columns; the mark at its end stays."""
    if columns is None or len(line) <= columns:
        return line
    end = f"...{mark}"
    return line[: columns - len(end)] + end


# --- the best law ------------------------------------------------------------


def law_text(result: Result, time_name: str = "t", value_name: str = "y") -> str:
    """The best law in the words of the file, its start, constants and fixed points."""
    best = result.best
    t, y = _as_symbol(time_name), _as_symbol(value_name)
    formula = re.sub(r"\by\b", lambda _: y, best.rounded().infix)
    lines = [f"d{y}/d{t} = {formula}", f"with {fit_text(result, t, y)}"]
    if name := best.named(unit_of(value_name), unit_of(time_name, is_time=True)):
        lines.append(f"this is {name}")
    (shown,) = constants_as_shown((best.expression,), best.standard_errors, best.freedom)
    constants = [value_with_error(value, error) for _, value, error, *_ in shown if error != 0.0]
    points = []
    for point in find_fixed_points(result):
        kind = "stable" if point.stable else "unstable"
        where = "" if point.observed else ", beyond the data"
        points.append(f"{value_with_error(point.y, point.standard_error)} ({kind}{where})")
    errors = "constants, with standard errors that hold if this form is right"
    for name, entries in ((errors, constants), ("fixed points", points)):
        if entries:
            lines += [f"{name}:", *(f"  {entry}" for entry in entries)]
    return "\n".join(lines)


def _as_symbol(name: str) -> str:
    """A name that cannot be mistaken for a part of the formula."""
    return name if name.isidentifier() and name not in OPERATORS else f"[{name}]"


def fit_text(result: Result, time: str = "t", value: str = "y") -> str:
    """Where the best law's solution starts, and how well it fits."""
    candidate = result.best
    others = len(candidate.y0s) - 1
    more = f" (and {others} more trajector{'y' if others == 1 else 'ies'})" if others else ""
    return (
        f"{start_text(candidate, 0, time, value)}{more}, R² = {r2_text(candidate.r2)}, "
        f"residual {residual_text(result)}{goodness_text(candidate)}"
    )


def goodness_text(candidate: Candidate) -> str:
    """, goodness of fit 42%, if it is known."""
    if math.isnan(candidate.goodness_of_fit):
        return ""
    return f", goodness of fit {probability_text(candidate.goodness_of_fit)}"


def start_text(candidate: Candidate, trajectory: int, time: str = "t", value: str = "y") -> str:
    """The fitted first value and its time, as exactly as the law is printed."""
    y0 = candidate.y0s[trajectory]
    tolerance = SHARE * max(candidate.residual_rms, NEGLIGIBLE * abs(y0))
    start = time_text(candidate.start_times[trajectory])
    return f"{value} = {value_within(y0, tolerance)} at {time} = {start}"
