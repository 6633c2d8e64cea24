"""What there is to see of a law of many series with constants of their own."""

from __future__ import annotations

import numpy as np

from nsode_jax.reporting import report_own_constants as report
from nsode_jax.reporting.documents import (
    Block,
    Formula,
    Heading,
    Paragraph,
    Table,
    blocks_to_html,
    image,
)
from nsode_jax.reporting.exploration import MOST_LAWS, Exploration, Slider
from nsode_jax.reporting.pictures import mathtext
from nsode_jax.reporting.plot_series import plot_constants, plot_series
from nsode_jax.reporting.report_parts import formula_svg, png_of
from nsode_jax.results.formatting import r2_text
from nsode_jax.results.own_constants import FormResult

_FEW = 6
"""Panels of more series are small, and need all the room there is."""


class FormExploration(Exploration[FormResult]):
    """One form at a time; its constants, of every series, are looked at and not moved."""

    @property
    def side_by_side(self) -> bool:
        return len(self.found.labels) <= _FEW

    @property
    def table(self) -> Table:
        return report.forms_table(self.found, MOST_LAWS)

    def law_html(self) -> str:
        best = self._shown.best
        text = f"dy/dt = {best.formula.text}"
        drawn = formula_svg(mathtext(rf"dy/dt \;=\; {best.formula.latex()}", text))
        number, least = len(self.found.labels), r2_text(float(best.r2.min()))
        fit = f"R² = {least}; residual (root mean square) {best.residual_rms[0]:.3g}."
        if number > 1:
            median = r2_text(float(np.median(best.r2)))
            fit = f"In {number} series R² is {median} (median); the least is {least}."
        return blocks_to_html([Formula(self.latex(), drawn, text), Paragraph(fit)])

    def pictures_html(self) -> tuple[str, ...]:
        """Every series with its solution, and the constants of all where there are several."""
        shown = self._shown
        series = png_of(plot_series(shown, None, self.time_name, self.value_name))
        if len(shown.labels) == 1:
            return (image(series, "png", "The data and the solution"),)
        return (
            image(series, "png", "Every series and its solution"),
            image(png_of(plot_constants(shown)), "png", "The constants of every series"),
        )

    def latex(self) -> str:
        return rf"\frac{{dy}}{{dt}} = {self._shown.best.formula.latex()}"

    def python(self) -> str:
        return self._shown.to_source()

    def _named(self) -> tuple[str, tuple[Slider, ...]]:
        return f"dy/dt = {self._fitted.best.formula.text}", ()

    def _details(self) -> list[Block]:
        name = self._fitted.best.name
        return [
            *([Paragraph(f"This is {name}.")] if name else []),
            Heading("Constants"),
            *report.constant_blocks(self._fitted),
            *report.series_blocks(self._fitted),
        ]

    def _wary(self) -> tuple[str, ...]:
        # Of a form that was given nothing was compared.
        sure = self._how_sure() if self.found.tried else ()
        return (*sure, *report.what_to_be_wary_of(self._fitted))
