"""What there is to see and to move of the laws of a system."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nsode_jax.reporting import system_report
from nsode_jax.reporting.documents import Block, Heading, Paragraph, Table, blocks_to_html
from nsode_jax.reporting.exploration import (
    MOST_LAWS,
    NO_SOLUTION,
    SIZE,
    Exploration,
    Slider,
    constants_with,
    picture,
    slider,
)
from nsode_jax.reporting.system_plot import draw_planes, draw_solutions, has_planes
from nsode_jax.reporting.system_text import candidate_table
from nsode_jax.results.formatting import r2_text
from nsode_jax.results.moved import moved_system
from nsode_jax.results.source import program, with_names
from nsode_jax.results.system_analysis import find_fixed_points, is_autonomous
from nsode_jax.results.system_result import SystemResult

_PANEL = 1.9  # Inches, of each further quantity.


class SystemExploration(Exploration[SystemResult]):
    """One system of laws: of several quantities, of time, with inputs, of second order."""

    @property
    def table(self) -> Table:
        return candidate_table(self.found, MOST_LAWS)

    def law_html(self) -> str:
        best = self._shown.best
        left = ", ".join(f"{each:.3g}" for each in best.residuals)
        fit = f"R² = {r2_text(best.r2)}; residual (root mean square) {left}.{self._poor(best.r2)}"
        fit = fit if all(map(math.isfinite, best.residuals)) else NO_SOLUTION
        letters = system_report.letters_blocks(self._shown.system, self.time_name)
        return blocks_to_html([system_report.formula_block(best), *letters, Paragraph(fit)])

    def pictures_html(self) -> tuple[str, ...]:
        """Data with the solution, and the plane of the states."""
        shown = self._shown
        called = "solution with moved constants" if self.is_moved else ""
        panels = len(shown.system.observed) + len(shown.system.inputs)
        size = (SIZE[0], max(SIZE[1], 1.0 + _PANEL * panels))
        drawn = [
            picture(
                lambda figure: draw_solutions(
                    figure, shown, self.time_name, called, not self.is_moved
                ),
                "The data and the fitted solutions",
                size,
            )
        ]
        if has_planes(shown):
            alt = "Solutions in the plane of the states"
            drawn.append(picture(lambda figure: draw_planes(figure, shown, called), alt, size))
        return tuple(drawn)

    def latex(self) -> str:
        return self._shown.best.latex()

    def python(self) -> str:
        system, best = self._shown.system, self._shown.best
        return program(system.observed, system.states, system.inputs, best.equations)

    def _named(self) -> tuple[str, tuple[Slider, ...]]:
        best = self._fitted.best
        named = with_names(best.laws)
        self._places = named.places
        sliders = tuple(
            slider(f"c{number}", best.constants[place], best.standard_errors[place])
            for number, place in enumerate(self._places)
        )
        return system_report.with_left_sides(best, named), sliders

    def _with(self, values: Mapping[str, float]) -> SystemResult:
        constants = constants_with(self._fitted.best.constants, self._places, values)
        return moved_system(self._fitted, constants)

    def _details(self) -> list[Block]:
        fitted = self._fitted
        blocks = [Heading("Constants"), *system_report.constant_blocks(fitted.best)]
        if is_autonomous(fitted.best):
            blocks += system_report.behaviour_blocks(fitted, find_fixed_points(fitted))
        return blocks
