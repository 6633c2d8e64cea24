"""What is found in many series whose law has constants of each series' own, as data."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.results.form_candidate import FormCandidate
from nsode_jax.results.own_constants_remarks import remarks_on
from nsode_jax.results.source import program_of_series

if TYPE_CHECKING:
    import pandas as pd

_CONSPICUOUS = 3.0
"""Times the usual residual, relative to the spread of the series."""


@dataclasses.dataclass(frozen=True, eq=False)
class FormResult:
    """What `discover_own_constants` finds.

    Attributes:
      candidates: forms, best first.
      trajectories: the series, as they were fitted.
      labels: what they are called.
      notes: what was done to the data.
      seconds: how long it took.
      tried: what the forms were chosen from, in words.
    """

    candidates: tuple[FormCandidate, ...]
    trajectories: tuple[Trajectory, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    tried: tuple[str, ...] = ()

    @property
    def best(self) -> FormCandidate:
        """The form with the best score."""
        return self.candidates[0]

    def constants(self, rank: int = 1) -> pd.DataFrame:
        """The constants of every series by the form of this rank.

        Returns:
          A row per series: for each constant its value, `_error` (standard error), `_low`
          and `_high` (95% interval), then `y0`, `residual_rms` and `r2`.
        """
        import pandas as pd  # Slow to import.

        one = self.candidates[rank - 1]
        errors, intervals = one.standard_errors, one.confidence_intervals
        columns: dict[str, np.ndarray] = {}
        for place, name in enumerate(one.names):
            columns[name] = one.constants[:, place]
            columns[f"{name}_error"] = errors[:, place]
            columns[f"{name}_low"] = intervals[:, place, 0]
            columns[f"{name}_high"] = intervals[:, place, 1]
        columns |= {"y0": one.y0s, "residual_rms": one.residual_rms, "r2": one.r2}
        return pd.DataFrame(columns, index=pd.Index(self.labels, name="series"))

    def table(self, limit: int | None = None) -> pd.DataFrame:
        """The forms, best first, `limit` of them at most."""
        import pandas as pd  # Slow to import.

        rows = [
            {
                "rank": rank,
                "formula": one.formula.text,
                "name": one.name,
                "constants": len(one.names),
                "median_r2": float(np.median(one.r2)),
                "probability": one.probability,
                "score": one.score,
                "origin": one.origin,
            }
            for rank, one in enumerate(self.candidates[:limit], start=1)
        ]
        return pd.DataFrame(rows)

    def to_source(self) -> str:
        """The best form as the text of a Python program, with the constants of every series."""
        best = self.best
        known = np.flatnonzero(np.isfinite(best.constants).all(axis=1))
        labels = [self.labels[series] for series in known]
        starts = [(best.start_times[series], float(best.y0s[series])) for series in known]
        return program_of_series(best.formula, labels, best.constants[known], starts)

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Labels of series that the best form has no solution for."""
        solved = np.isfinite(self.best.residual_rms)
        return tuple(label for label, ok in zip(self.labels, solved, strict=True) if not ok)

    @functools.cached_property
    def remarks(self) -> tuple[str, ...]:
        """What speaks against the best form, in sentences; see `own_constants_remarks`."""
        return remarks_on(self.best, self.trajectories, self.labels)

    @property
    def conspicuous(self) -> tuple[str, ...]:
        """Labels of series whose relative residual is far above the usual one."""
        left = 1 - self.best.r2
        usual = float(np.median(left))
        far = np.isfinite(left) & (left > _CONSPICUOUS**2 * usual)
        return tuple(label for label, is_far in zip(self.labels, far, strict=True) if is_far)
