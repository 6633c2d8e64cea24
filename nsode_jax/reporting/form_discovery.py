"""`FormDiscovery`: forms for many series with everything that can be done with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from nsode_jax.reporting.form_text import best_form_text, forms_text
from nsode_jax.reporting.plot_series import plot_series
from nsode_jax.results import own_constants_persistence
from nsode_jax.results.form_candidate import SHOWN
from nsode_jax.results.own_constants import FormResult

if TYPE_CHECKING:
    from nsode_jax.reporting.widget import LawWidget


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FormDiscovery(FormResult):
    """What `discover_own_constants` finds; `FormResult` says what it holds."""

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: float | None = None,
        trajectory: int | str = 0,
    ) -> Float[np.ndarray, " time"]:
        """The solution of the best form at increasing times; see `FormCandidate.predict`."""
        return self.best.predict(t, y0, trajectory)

    def to_callable(
        self, backend: str = "numpy", trajectory: int | str = 0
    ) -> Callable[[Any], Any]:
        """The best f of one series as a function; see `FormCandidate.to_callable`."""
        return self.best.to_callable(backend, trajectory)

    def plot(
        self, path: str | Path | None = None, time_name: str = "t", value_name: str = "y"
    ) -> Figure:
        """Every series with its solution by the best form, in small panels; see `plot_series`."""
        return plot_series(self, path, time_name, value_name)

    def to_latex(self) -> str:
        """The best form in LaTeX, with names for its constants."""
        return self.best.formula.latex()

    def explore(self, time_name: str = "t", value_name: str = "y") -> LawWidget:
        """A widget for a notebook: choose a form, see every series and all constants.

        Raises:
          MissingExtra: if ipywidgets is not installed (extra `notebook`).
        """
        from nsode_jax.reporting.form_exploration import FormExploration
        from nsode_jax.reporting.widget import LawWidget

        return LawWidget(FormExploration(self, time_name, value_name))

    def save(self, path: str | Path) -> None:
        """Writes everything to a JSON file; see `own_constants_persistence.save`."""
        own_constants_persistence.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What `save` wrote, number by number; see `own_constants_persistence.load`."""
        result = own_constants_persistence.load(path)
        return cls(**{f.name: getattr(result, f.name) for f in dataclasses.fields(result)})

    def text(self, rows: int = SHOWN) -> str:
        """The forms, so many of them, and what the constants of the best one are."""
        best = best_form_text(self)
        return f"{forms_text(self, rows)}\n\n{best}" if len(self.candidates) > 1 else best

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__
