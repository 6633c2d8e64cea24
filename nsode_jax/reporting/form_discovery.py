"""`FormDiscovery`: forms for many series with everything that can be done with them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from nsode_jax.reporting.plot_series import plot_series
from nsode_jax.results.own_constants import SHOWN, FormResult, best_form_text, forms_text

if TYPE_CHECKING:
    from nsode_jax.reporting.widget import LawWidget


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FormDiscovery(FormResult):
    """What `discover_own_constants` finds; `FormResult` says what it holds."""

    def plot(
        self, path: str | Path | None = None, time_name: str = "t", value_name: str = "y"
    ) -> Figure:
        """Every series with its solution by the best form, in small panels; see `plot_series`."""
        return plot_series(self, path, time_name, value_name)

    def to_latex(self) -> str:
        """The best form in LaTeX, with names for its constants."""
        return self.best.formula.named.latex()

    def explore(self, time_name: str = "t", value_name: str = "y") -> LawWidget:
        """A widget for a notebook: choose a form, see every series and all constants.

        Raises:
          MissingExtra: if ipywidgets is not installed (extra `notebook`).
        """
        from nsode_jax.reporting.form_exploration import FormExploration
        from nsode_jax.reporting.widget import LawWidget

        return LawWidget(FormExploration(self, time_name, value_name))

    def text(self, rows: int = SHOWN) -> str:
        """The forms, so many of them, and what the constants of the best one are."""
        best = best_form_text(self)
        return f"{forms_text(self, rows)}\n\n{best}" if len(self.candidates) > 1 else best

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__
