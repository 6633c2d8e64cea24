"""The candidates of a result as a table of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsode_jax.reporting.result import Result

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
)


def candidates_table(result: Result, limit: int | None = None) -> pd.DataFrame:
    """The candidates, best first.

    Args:
      result: what was found.
      limit: most rows; None for all.

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
        for rank, candidate in enumerate(result.candidates[:limit], start=1)
    ]
    return pd.DataFrame(rows, columns=["rank", "formula", *_FIELDS, "on_pareto_front"])
