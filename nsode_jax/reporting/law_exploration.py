"""What there is to see and to move of the law of one quantity."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nsode_jax.reporting import law_blocks
from nsode_jax.reporting.documents import Block, Heading, Paragraph, Table, blocks_to_html
from nsode_jax.reporting.exploration import (
    MOST_LAWS,
    NO_SOLUTION,
    START,
    Exploration,
    Slider,
    constants_with,
    picture,
    slider,
)
from nsode_jax.reporting.plot import draw_fit, draw_law
from nsode_jax.reporting.text import candidate_table
from nsode_jax.results.analysis import residual_text
from nsode_jax.results.diagnostics import explained_share
from nsode_jax.results.formatting import r2_text
from nsode_jax.results.moved import moved_law
from nsode_jax.results.result import Result
from nsode_jax.results.source import with_names


class LawExploration(Exploration[Result]):
    """One law of one quantity; with one series its first value can be moved too."""

    @property
    def table(self) -> Table:
        return candidate_table(self.found, MOST_LAWS)

    def law_html(self) -> str:
        best = self._shown.best
        left = residual_text(self._shown)
        poor = self._poor(explained_share(best, self.found.trajectories))
        fit = f"R² = {r2_text(best.r2)}; residual (root mean square) {left}.{poor}"
        fit = fit if math.isfinite(best.residual_rms) else NO_SOLUTION
        return blocks_to_html([law_blocks.formula_block(best), Paragraph(fit)])

    def pictures_html(self) -> tuple[str, ...]:
        """Data with the solution, and f(y)."""
        shown, number = self._shown, self.place + 1
        called = f"candidate {number}{', moved' if self.is_moved else ''}"
        others = [(number, self._fitted.best)] if self.is_moved else []
        names, as_fitted = (self.time_name, self.value_name), not self.is_moved
        return (
            picture(
                lambda figure: draw_fit(
                    figure.add_subplot(), shown, *names, others, called, as_fitted
                ),
                f"The data and the solution of {called}",
            ),
            picture(
                lambda figure: draw_law(figure.add_subplot(), shown, *names, others),
                f"f(y) of {called}, its fixed points, and the slopes of the data",
            ),
        )

    def latex(self) -> str:
        return rf"\frac{{dy}}{{dt}} = {self._shown.best.latex()}"

    def python(self) -> str:
        return self._shown.best.to_source()

    def _named(self) -> tuple[str, tuple[Slider, ...]]:
        best = self._fitted.best
        named = with_names((best.expression,))
        values, errors = best.expression.constants, best.standard_errors
        self._places = named.places
        sliders = [
            slider(f"c{number}", values[place], errors[place])
            for number, place in enumerate(named.places)
        ]
        if len(self._fitted.trajectories) == 1:
            sliders.append(slider(START, best.y0, best.residual_rms))
        return law_blocks.with_left_side(named), tuple(sliders)

    def _with(self, values: Mapping[str, float]) -> Result:
        constants = constants_with(self._fitted.best.expression.constants, self._places, values)
        return moved_law(self._fitted, constants, values.get(START))

    def _details(self) -> list[Block]:
        fitted, names = self._fitted, (self.time_name, self.value_name)
        return [
            *law_blocks.name_blocks(fitted.best, *names),
            Heading("Constants"),
            *law_blocks.constant_blocks(fitted.best),
            Heading("Fixed points"),
            *law_blocks.fixed_point_blocks(fitted, self.value_name),
        ]
