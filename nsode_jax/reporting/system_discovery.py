"""`SystemDiscovery`: what was found in several quantities, with all one can do with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.dop853_system import Inputs
from nsode_jax.dynamics.vectors import times_as_counted
from nsode_jax.reporting import system_text, tables
from nsode_jax.results import system_persistence
from nsode_jax.results.system_analysis import SystemFixedPoints, find_fixed_points
from nsode_jax.results.system_result import SystemResult

if TYPE_CHECKING:
    import pandas as pd
    import sympy
    from matplotlib.figure import Figure

    from nsode_jax.reporting.widget import LawWidget


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SystemDiscovery(SystemResult):
    """What `discover` finds; `SystemResult` says what it holds."""

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: Sequence[float] | Mapping[str, float] | float | None = None,
        *,
        inputs: Float[np.ndarray, "time inputs"]
        | Float[np.ndarray, " time"]
        | Inputs
        | None = None,
        run: int = 0,
    ) -> Float[np.ndarray, "time states"]:
        """The solution of the best system; see `SystemCandidate.predict`.

        Without y0 and inputs, inputs are those that were measured in the run.
        """
        if inputs is None and y0 is None and self.system.inputs and run in range(len(self.runs)):
            inputs = self.runs[run].inputs
            last = inputs.breaks[-1]
            if (times_as_counted(t) > last).any():
                raise ValueError(
                    f"the inputs of the run are known up to {last:.6g}; give inputs, from the "
                    "first time of the run on, or y0 and inputs from t[0] on"
                )
        return self.best.predict(t, y0, inputs=inputs, run=run)

    def table(self, limit: int | None = None) -> pd.DataFrame:
        """The candidates, best first, `limit` of them at most; see `tables.systems_table`."""
        return tables.systems_table(self, limit)

    def fixed_points(self) -> SystemFixedPoints:
        """Where the best system rests; see `system_analysis.find_fixed_points`."""
        return find_fixed_points(self)

    def to_latex(self) -> str:
        """The best system in LaTeX, rounded for display."""
        return self.best.latex()

    def to_sympy(self) -> list[sympy.Basic]:
        """The best system as SymPy equations of functions of `t`."""
        return self.best.to_sympy()

    def to_callable(self, backend: str = "numpy") -> Callable[..., Any]:
        """The best system as a function f(y, u, t); see `system_callables.to_callable`."""
        return self.best.to_callable(backend)

    def vector_field(self, inputs: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
        """The best system for diffrax; see `system_callables.vector_field`."""
        return self.best.vector_field(inputs)

    def to_source(self, backend: str = "numpy") -> str:
        """The best system as the text of a program; see `source.program`."""
        return self.best.to_source(backend)

    def plot(self, path: str | Path | None = None, time_name: str = "t") -> Figure:
        """The picture of data, solutions and planes of states; see `system_plot.plot`."""
        from nsode_jax.reporting.system_plot import plot  # Matplotlib is slow to import.

        return plot(self, path, time_name)

    def explore(self, time_name: str = "t") -> LawWidget:
        """A widget for a notebook: choose a law, move its constants, see its curve follow.

        Raises:
          MissingExtra: if ipywidgets is not installed (extra `notebook`).
        """
        from nsode_jax.reporting.system_exploration import SystemExploration
        from nsode_jax.reporting.widget import LawWidget

        return LawWidget(SystemExploration(self, time_name))

    def save(self, path: str | Path) -> None:
        """Writes everything to a JSON file; see `system_persistence.save`."""
        system_persistence.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote, number by number; see `system_persistence.load`."""
        result = system_persistence.load(path)
        return cls(**{f.name: getattr(result, f.name) for f in dataclasses.fields(result)})

    def __str__(self) -> str:
        return system_text.as_text(self)

    def _repr_html_(self) -> str:
        return system_text.as_html(self)

    def _repr_markdown_(self) -> str:
        return system_text.as_markdown(self)

    def __repr__(self) -> str:
        laws = "; ".join(str(self.best).splitlines())
        return f"<SystemDiscovery: {laws}, best of {len(self.candidates)}>"
