"""The law of one quantity as blocks of a document, for reports and other pages."""

from __future__ import annotations

from nsode_jax.expressions.display import value_with_error
from nsode_jax.reporting.documents import Block, Code, Formula, Paragraph, Table
from nsode_jax.reporting.plot import law_mathtext
from nsode_jax.reporting.report_parts import INTERVALS, MOST_STARTS, constant_row, formula_svg
from nsode_jax.reporting.text import goodness_text, start_text
from nsode_jax.results.analysis import find_fixed_points, residual_text
from nsode_jax.results.formatting import probability_text, r2_text
from nsode_jax.results.result import Candidate, Result
from nsode_jax.results.source import NamedConstants
from nsode_jax.results.uncertainty import constants_as_shown
from nsode_jax.tables.units import unit_of


def law_blocks(result: Result, time_name: str, value_name: str) -> list[Block]:
    """The best law as a formula, its start, its fit, its name, and all its digits."""
    best = result.best
    starts = [start_text(best, number) for number in range(min(len(best.y0s), MOST_STARTS))]
    more = len(best.y0s) - len(starts)
    listed = "; ".join(starts) + (f"; and {more} more" if more else "")
    return [
        formula_block(best),
        Paragraph(f"y is {value_name}, t is {time_name}. The fitted solution starts at {listed}."),
        Paragraph(
            f"R² = {r2_text(best.r2)}; residual (root mean square) {residual_text(result)}"
            f"{goodness_text(best)}; "
            f"probability {probability_text(best.probability)}."
        ),
        *name_blocks(best, time_name, value_name),
        Paragraph("With all digits, to be copied:"),
        Code(best.infix),
    ]


def formula_block(best: Candidate) -> Formula:
    """dy/dt = f(y), rounded for display."""
    text = f"dy/dt = {best.rounded().infix}"
    return Formula(rf"\frac{{dy}}{{dt}} = {best.latex()}", formula_svg(law_mathtext(best)), text)


def name_blocks(best: Candidate, time_name: str, value_name: str) -> list[Block]:
    """What the law is called, and its customary parameters."""
    name = best.named(unit_of(value_name), unit_of(time_name, is_time=True))
    if name is None:
        return []
    rows = tuple((str(parameter), parameter.meaning) for parameter in name.parameters)
    others = f" It also equals: {', '.join(name.others)}." if name.others else ""
    return [
        Paragraph(f"Over the data this is {name.law.name} ({name.law.reference}).{others}"),
        *([Table(("parameter", "meaning"), rows)] if rows else []),
    ]


def with_left_side(named: NamedConstants) -> str:
    """The law with names for its constants."""
    return f"dy/dt = {named.texts[0]}"


def constant_blocks(best: Candidate) -> list[Block]:
    """The constants with standard errors and intervals."""
    (constants,) = constants_as_shown((best.expression,), best.standard_errors, best.freedom)
    rows = tuple((name, *constant_row(*constant)) for name, *constant in constants)
    if not rows:
        return [Paragraph("The law has no constants.")]
    return [
        Paragraph(INTERVALS),
        Table(("constant", "value", "standard error", "95% interval"), rows),
    ]


def fixed_point_blocks(result: Result, value_name: str) -> list[Block]:
    """Where the best law rests."""
    found = find_fixed_points(result)
    if not found:
        return [Paragraph("None in the range of the data or near it.")]
    rows = tuple(
        (
            value_with_error(point.y, point.standard_error),
            "stable" if point.stable else "unstable",
            "yes" if point.observed else "no",
        )
        for point in found
    )
    return [Table((value_name, "stability", "in the range of the data"), rows)]
