"""One law of a result at a time, whose constants can be moved: what pages and widgets show.

Nothing here knows what shows it: sliders are numbers, and what is seen is HTML.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from matplotlib.figure import Figure

from nsode_jax.reporting import law_blocks, system_report
from nsode_jax.reporting.certainty import certainty_text
from nsode_jax.reporting.documents import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Table,
    blocks_to_html,
    image,
)
from nsode_jax.reporting.plot import draw_fit, draw_law
from nsode_jax.reporting.report_parts import svg
from nsode_jax.reporting.system_plot import draw_planes, draw_solutions, has_planes
from nsode_jax.reporting.system_text import candidate_table as system_table
from nsode_jax.reporting.text import candidate_table
from nsode_jax.results.analysis import residual_text
from nsode_jax.results.formatting import r2_text
from nsode_jax.results.moved import chosen, moved_law, moved_system
from nsode_jax.results.result import Result
from nsode_jax.results.source import program, with_names
from nsode_jax.results.system_analysis import find_fixed_points, is_autonomous
from nsode_jax.results.system_result import SystemResult

START = "y0"
"""The name of the slider of the first value."""

MOST_LAWS = 20

_REACH, _ERRORS, _FARTHEST = 0.5, 4.0, 2.0  # Of a value, of its errors, and of a value at most.
_SIZE = (6.4, 4.4)  # Inches, of a picture.
_PANEL = 1.9  # Inches, of each further quantity.


class Slider(NamedTuple):
    """A number that can be moved, and how far."""

    name: str
    value: float
    low: float
    high: float


class Exploration:
    """The law that is looked at, and where its constants are.

    Attributes:
      found: what `discover` found, its candidates in order.
      place: of the law that is looked at, from 0.
      sliders: its constants as fitted; with one series of one quantity the first value too.
    """

    def __init__(self, found: Result | SystemResult, time_name: str = "t", value_name: str = "y"):
        """
        Args:
          found: what `discover` found.
          time_name, value_name: what time and value are called; the quantities of a system
            have names.
        """
        self.found = found
        self.time_name, self.value_name = time_name, value_name
        self.choose(0)

    # --- what can be done ----------------------------------------------------

    def choose(self, place: int) -> None:
        """Looks at another candidate, as it was fitted."""
        self.place = place
        self._fitted = self._shown = chosen(self.found, place)
        self._formulas, self._places = _named(self._fitted)
        self.sliders = self._as_fitted()
        self._moved: dict[str, float] = {}

    def move(self, **values: float) -> None:
        """Moves some sliders; the others stay where they are.

        Raises:
          KeyError: if there is no such slider.
        """
        names = {slider.name for slider in self.sliders}
        if unknown := set(values) - names:
            raise KeyError(f"no constant {', '.join(sorted(unknown))}; there are {sorted(names)}")
        fitted = {slider.name: slider.value for slider in self.sliders}
        moved = self._moved | values
        self._moved = {name: value for name, value in moved.items() if value != fitted[name]}
        self._shown = self._with(self._moved) if self._moved else self._fitted

    def reset(self) -> None:
        """All constants as they were fitted."""
        self.choose(self.place)

    # --- what is seen --------------------------------------------------------

    @property
    def is_moved(self) -> bool:
        """Whether the constants are not those that were fitted."""
        return bool(self._moved)

    @property
    def shown(self) -> Result | SystemResult:
        """The result with the law that is looked at in front, its constants where they are."""
        return self._shown

    @property
    def table(self) -> Table:
        """The first candidates."""
        if isinstance(self.found, SystemResult):
            return system_table(self.found, MOST_LAWS)
        return candidate_table(self.found, MOST_LAWS)

    @property
    def names(self) -> str:
        """The formula with the names of its constants, a line for each equation."""
        return "\n".join(self._formulas)

    def law_html(self) -> str:
        """The formula, and how well it fits."""
        shown = self._shown
        if isinstance(shown, SystemResult):
            formula, rms = system_report.formula_block(shown.best), shown.best.residuals
            left = ", ".join(f"{each:.3g}" for each in rms)
        else:
            formula, rms = law_blocks.formula_block(shown.best), (shown.best.residual_rms,)
            left = residual_text(shown)
        fit = f"R² = {r2_text(shown.best.r2)}; residual (root mean square) {left}."
        if not all(map(math.isfinite, rms)):
            fit = "With these constants there is no solution over the observed times."
        return blocks_to_html([formula, Paragraph(fit)])

    def pictures_html(self) -> tuple[str, ...]:
        """Data with the solution, and f(y) or the plane of the states."""
        shown, number = self._shown, self.place + 1
        if isinstance(shown, SystemResult):
            return self._system_pictures(shown)
        called = f"law {number}{', moved' if self.is_moved else ''}"
        fitted = self._fitted
        others = [(number, fitted.best)] if self.is_moved and isinstance(fitted, Result) else []
        names, as_fitted = (self.time_name, self.value_name), not self.is_moved
        return (
            _picture(
                lambda figure: draw_fit(
                    figure.add_subplot(), shown, *names, others, called, as_fitted
                ),
                f"The data and the solution of {called}",
            ),
            _picture(
                lambda figure: draw_law(figure.add_subplot(), shown, *names, others),
                f"f(y) of {called}, its fixed points, and the slopes of the data",
            ),
        )

    def details_html(self) -> str:
        """Of the law as it was fitted: its name, constants with errors, fixed points, remarks."""
        fitted, blocks = self._fitted, []
        if isinstance(fitted, SystemResult):
            blocks += [Heading("Constants"), *system_report.constant_blocks(fitted.best)]
            if is_autonomous(fitted.best):
                blocks += system_report.behaviour_blocks(fitted, find_fixed_points(fitted))
        else:
            names = self.time_name, self.value_name
            blocks += law_blocks.name_blocks(fitted.best, *names)
            blocks += [Heading("Constants"), *law_blocks.constant_blocks(fitted.best)]
            rests = law_blocks.fixed_point_blocks(fitted, self.value_name)
            blocks += [Heading("Fixed points"), *rests]
        return blocks_to_html([*blocks, *self._remarks()])

    def latex(self) -> str:
        """The law in LaTeX, its constants where they are."""
        best = self._shown.best
        if isinstance(self._shown, SystemResult):
            return self._shown.best.latex()
        return rf"\frac{{dy}}{{dt}} = {best.latex()}"

    def python(self) -> str:
        """The law as a program, its constants where they are."""
        shown = self._shown
        if isinstance(shown, SystemResult):
            system, best = shown.system, shown.best
            return program(system.observed, system.states, system.inputs, best.equations)
        return shown.best.to_source()

    # --- how -----------------------------------------------------------------

    def _as_fitted(self) -> tuple[Slider, ...]:
        fitted = self._fitted
        values, errors = _constants(fitted), fitted.best.standard_errors
        sliders = [
            _slider(f"c{number}", values[place], errors[place])
            for number, place in enumerate(self._places)
        ]
        if isinstance(fitted, Result) and len(fitted.trajectories) == 1:
            sliders.append(_slider(START, fitted.best.y0, fitted.best.residual_rms))
        return tuple(sliders)

    def _with(self, values: dict[str, float]) -> Result | SystemResult:
        constants = list(_constants(self._fitted))
        for number, place in enumerate(self._places):
            constants[place] = values.get(f"c{number}", constants[place])
        if isinstance(self._fitted, SystemResult):
            return moved_system(self._fitted, constants)
        return moved_law(self._fitted, constants, values.get(START))

    def _system_pictures(self, shown: SystemResult) -> tuple[str, ...]:
        called = "solution with moved constants" if self.is_moved else ""
        panels = len(shown.system.observed) + len(shown.system.inputs)
        size = (_SIZE[0], max(_SIZE[1], 1.0 + _PANEL * panels))
        drawn = [
            _picture(
                lambda figure: draw_solutions(
                    figure, shown, self.time_name, called, not self.is_moved
                ),
                "The data and the fitted solutions",
                size,
            )
        ]
        if has_planes(shown):
            alt = "Solutions in the plane of the states"
            drawn.append(_picture(lambda figure: draw_planes(figure, shown), alt, size))
        return tuple(drawn)

    def _remarks(self) -> list[Block]:
        found = self.found
        sure = certainty_text(found)
        remarks = (*([f"How sure: {sure}"] if sure else []), *found.notes)
        return [Heading("To be wary of"), Bullets(remarks)] if remarks else []


def _picture(draw: Callable[[Figure], None], alt: str, size: tuple[float, float] = _SIZE) -> str:
    return image(svg(draw, size), "svg+xml", alt)


def _constants(found: Result | SystemResult) -> tuple[float, ...]:
    if isinstance(found, SystemResult):
        return found.best.constants
    return found.best.expression.constants


def _named(found: Result | SystemResult) -> tuple[list[str], list[int]]:
    """Formulas with named constants, and the places of these among all constants."""
    if isinstance(found, Result):
        named = with_names(found.best.expression)
        return [f"dy/dt = {named.text}"], list(named.places)
    formulas, places, before = [], [], 0
    for left, law in zip(found.best.left_sides, found.best.laws, strict=True):
        named = with_names(law, len(places))
        formulas.append(f"{left} = {named.text}")
        places += [before + place for place in named.places]
        before += len(law.constants)
    return formulas, places


def _slider(name: str, value: float, error: float) -> Slider:
    """So far on either side that the curve is seen to move, and its errors are within reach."""
    reach = _REACH * abs(value)
    if math.isfinite(error):
        farthest = _FARTHEST * abs(value) or math.inf
        reach = max(reach, min(_ERRORS * error, farthest))
    reach = reach or 1.0
    return Slider(name, value, value - reach, value + reach)
