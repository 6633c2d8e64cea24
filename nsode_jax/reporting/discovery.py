"""`Discovery`: a result with everything that can be done with it within reach."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float

from nsode_jax.reporting import tables, text
from nsode_jax.reporting.next_measurement import NextMeasurement, next_measurement
from nsode_jax.results import persistence
from nsode_jax.results.analysis import FixedPoint, find_fixed_points
from nsode_jax.results.outlook import Outlook, outlook
from nsode_jax.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    import sympy
    from matplotlib.figure import Figure

    from nsode_jax.reporting.widget import LawWidget


@dataclasses.dataclass(frozen=True, repr=False)
class Discovery(Result):
    """What `discover` finds; `Result` says what it holds.

    Printed, and in a notebook, it shows the best law and the table of the next ones.
    """

    def table(self, limit: int | None = None) -> pd.DataFrame:
        """The candidates, best first, `limit` of them at most; see `tables.candidates_table`."""
        return tables.candidates_table(self, limit)

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: float | None = None,
        trajectory: int = 0,
    ) -> Float[np.ndarray, " time"]:
        """The solution of the best law at increasing times; see `Candidate.predict`."""
        return self.best.predict(t, y0, trajectory)

    def to_sympy(self) -> sympy.Expr:
        """The best f as a SymPy expression in the symbol `y`."""
        return self.best.to_sympy()

    def to_latex(self) -> str:
        """The best f in LaTeX, rounded for display."""
        return self.best.latex()

    def to_callable(self, backend: str = "numpy") -> Callable[[Any], Any]:
        """The best f as a function of an array, in `numpy` or `jax`."""
        return self.best.to_callable(backend)

    def to_source(self, backend: str = "numpy") -> str:
        """The best law as the text of a Python program; see `source.program`."""
        return self.best.to_source(backend)

    def vector_field(self) -> Callable[[Any, Any, Any], Any]:
        """The best law for diffrax; see `Candidate.vector_field`."""
        return self.best.vector_field()

    def fixed_points(self) -> list[FixedPoint]:
        """Where the best law rests; see `analysis.find_fixed_points`."""
        return find_fixed_points(self)

    def plot(
        self, path: str | Path | None = None, time_name: str = "t", value_name: str = "y"
    ) -> Figure:
        """The picture of the data, the solution and the law; see `plot.plot`."""
        from nsode_jax.reporting.plot import plot  # Matplotlib is slow to import.

        return plot(self, path, time_name, value_name)

    def next_measurement(self) -> NextMeasurement | None:
        """Where one more observation would tell the candidates apart.

        See `next_measurement.next_measurement`.
        """
        return self._next_measurement

    @functools.cached_property
    def _next_measurement(self) -> NextMeasurement | None:
        return next_measurement(self)

    def outlook(self) -> Outlook | None:
        """What the laws that matter foretell beyond the data; see `outlook.outlook`."""
        return outlook(self)

    def explore(self, time_name: str = "t", value_name: str = "y") -> LawWidget:
        """A widget for a notebook: choose a law, move its constants, see its curve follow.

        Raises:
          MissingExtra: if ipywidgets is not installed (extra `notebook`).
        """
        from nsode_jax.reporting.law_exploration import LawExploration
        from nsode_jax.reporting.widget import LawWidget

        return LawWidget(LawExploration(self, time_name, value_name))

    def save(self, path: str | Path) -> None:
        """Writes everything to a JSON file; see `persistence.save`."""
        persistence.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote, number by number; see `persistence.load`."""
        result = persistence.load(path)
        return cls(**{f.name: getattr(result, f.name) for f in dataclasses.fields(result)})

    def __str__(self) -> str:
        return text.as_text(self)

    def __repr__(self) -> str:
        best = self.best.rounded().infix
        return f"<Discovery: dy/dt = {best}, best of {len(self.candidates)}>"

    def _repr_html_(self) -> str:
        return text.as_html(self)

    def _repr_markdown_(self) -> str:
        return text.as_markdown(self)
