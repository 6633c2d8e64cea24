"""The candidates of a result, or the laws of many series, as a table of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nsode_jax.reporting.certainty import first_form_probability, is_believable
from nsode_jax.results.result import Candidate, Result
from nsode_jax.results.system_result import SystemCandidate, SystemResult

if TYPE_CHECKING:
    import pandas as pd

_FIELDS = (
    "complexity",
    "r2",
    "residual_rms",
    "held_out_rms",
    "goodness_of_fit",
    "probability",
    "score",
    "log_probability",
    "converged",
    "origin",
    "asked_for",
)


_SYSTEM_FIELDS = ("complexity", "r2", "probability", "score", "converged", "segments", "asked_for")


BETWEEN_NOTES = " | "
"""Between the notes on a series in the table of laws."""

_LAW_COLUMNS = ("formula", "name", "parameters", "r2", "residual_rms", "probability",
                "form_probability", "believable", "y0", "notes", "error")  # fmt: skip

_YOURS = "  (yours)"

OfAKind = TypeVar("OfAKind", Candidate, SystemCandidate)


def mark_of(candidate: Candidate | SystemCandidate) -> str:
    """What stands behind a law, or a system, of the user's own; nothing behind others."""
    return _YOURS if candidate.asked_for else ""


def ranked(candidates: Sequence[OfAKind], rows: int | None) -> list[tuple[int, OfAKind]]:
    """So many of the best (None: all) with their ranks, and the user's own of any rank."""
    places, last = enumerate(candidates, start=1), len(candidates) if rows is None else rows
    return [(rank, one) for rank, one in places if rank <= last or one.asked_for]


def candidates_table(result: Result, limit: int | None = None) -> pd.DataFrame:
    """The candidates, best first.

    Args:
      result: what was found.
      limit: most of the best; None for all. The user's own are there in any case.

    Returns:
      A row per candidate, with its `rank` from 1 and its `formula` rounded for
      display (`Candidate.infix` has all digits), and whether it is `on_pareto_front`;
      the other columns are attributes of `Candidate`.
    """
    import pandas as pd  # Slow to import.

    front = {id(candidate) for candidate in result.pareto_front}
    rows = [
        {
            "rank": rank,
            "formula": candidate.rounded().infix,
            **{name: getattr(candidate, name) for name in _FIELDS},
            "on_pareto_front": id(candidate) in front,
        }
        for rank, candidate in ranked(result.candidates, limit)
    ]
    return pd.DataFrame(rows, columns=["rank", "formula", *_FIELDS, "on_pareto_front"])


def systems_table(found: SystemResult, limit: int | None = None) -> pd.DataFrame:
    """The candidates of a system, best first.

    Returns:
      A row per candidate: its `rank` from 1, the equations rounded for display, a column for
      each by its left side, and attributes of `SystemCandidate`.
    """
    import pandas as pd

    rows = []
    for rank, candidate in ranked(found.candidates, limit):
        laws = zip(candidate.left_sides, candidate.rounded(), strict=True)
        rows.append(
            {
                "rank": rank,
                **{left: law.infix for left, law in laws},
                **{name: getattr(candidate, name) for name in _SYSTEM_FIELDS},
            }
        )
    return pd.DataFrame(rows)


def laws_table(found: Iterable[tuple[str, Result | str]]) -> pd.DataFrame:
    """The best law of each of many series.

    Args:
      found: label, and what was found or in a line what went wrong.

    Returns:
      A row per series: its law, the law's name and customary parameters, R2, residual, its
      probability and that of all candidates of its form, whether it is `believable`
      (`certainty.is_believable`), first value and notes, " | " between them; or the error.
    """
    import pandas as pd  # Slow to import.

    labels: list[str] = []
    rows: list[dict[str, Any]] = []
    for label, one in found:
        labels.append(label)
        rows.append({"error": one} if isinstance(one, str) else _law(one))
    index = pd.Index(labels, name="series")
    return pd.DataFrame(rows, index=index).reindex(columns=list(_LAW_COLUMNS))


def _law(result: Result) -> dict[str, Any]:
    best = result.best
    name = best.name
    return {
        "formula": best.rounded().infix,
        "name": name.law.name if name else "",
        "parameters": "; ".join(map(str, name.parameters)) if name else "",
        "r2": best.r2,
        "residual_rms": best.residual_rms,
        "probability": best.probability,
        "form_probability": first_form_probability(result),
        "believable": is_believable(result),
        "y0": best.y0,
        "notes": BETWEEN_NOTES.join(result.notes),
        "error": "",
    }
