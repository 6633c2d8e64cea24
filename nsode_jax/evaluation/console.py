"""Results as a person reads them in a terminal: a row per problem, then totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nsode_jax.evaluation.metrics import GOOD_SOLUTION_R2, METRICS
from nsode_jax.expressions.expression import Expression

_COLUMNS = "{:<28} {:<34} {:>8} {:>8} {:>9} {:>7}"


def header(title: str) -> str:
    """The heads of the columns of `row`."""
    return _COLUMNS.format(title, "first formula", "skeleton", "allclose", "R2", "s")


def row(result: dict[str, Any]) -> str:
    """A problem: the first candidate, its R2, and which candidate is right first."""

    def rank(metric: str) -> str:
        value = result["rank"][metric]
        return "-" if value is None else f"#{value}"

    formula, fit = f"({result['error']})", "-"
    if result["candidates"]:
        first = result["candidates"][0]
        formula = "(no formula)"
        if first["formula"] is not None:
            formula = Expression.from_infix(first["formula"]).rounded(3).infix
        fit = "-" if first["r2"] is None else _number(first["r2"])
    return _COLUMNS.format(
        _shortened(result["name"], 28),
        _shortened(formula, 34),
        rank("skeleton"),
        rank("allclose"),
        fit,
        f"{result['seconds']:.1f}",
    )


def totals(results: Sequence[dict[str, Any]]) -> str:
    """Per metric, how many problems satisfy it: by any candidate, by the first."""
    lines = [f"of {len(results)} problems          any candidate   first candidate"]
    for metric in METRICS:
        ranks = [result["rank"][metric] for result in results]
        found, first = sum(r is not None for r in ranks), sum(r == 1 for r in ranks)
        lines.append(f"  {metric:<24} {found:>10} {first:>17}")
    for name in ("reconstruction", "generalization"):
        key = f"{name}_r2"
        if any(key in result for result in results):
            good = sum((result.get(key) or -math.inf) > GOOD_SOLUTION_R2 for result in results)
            lines.append(f"  {name + ' R2 > 0.9':<40} {good / len(results):>10.1%}")
    return "\n".join(lines) + "\n"


def _number(r2: float) -> str:
    return f"{r2:.5f}" if r2 > -10 else f"{r2:.0e}"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
