"""One law of a result at a time, whose constants can be moved: what pages and widgets show.

Nothing here knows what shows it: sliders are numbers, and what is seen is HTML. What there is to
see of one quantity, of a system and of series with constants of their own stands in
`law_exploration`, `system_exploration` and `form_exploration`.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from matplotlib.figure import Figure

from nsode_jax.reporting.certainty import certainty_text
from nsode_jax.reporting.documents import Block, Bullets, Heading, Table, blocks_to_html, image
from nsode_jax.reporting.report_parts import svg
from nsode_jax.results.diagnostics import POOR_R2
from nsode_jax.results.moved import chosen
from nsode_jax.results.own_constants import FormResult
from nsode_jax.results.result import Result
from nsode_jax.results.system_result import SystemResult

START = "y0"
"""The name of the slider of the first value."""

MOST_LAWS = 20

SIZE = (6.4, 4.4)  # Inches, of a picture.

_REACH, _ERRORS, _FARTHEST = 0.5, 4.0, 2.0  # Of a value, of its errors, and of a value at most.

_SAME = 1e-9
"""Of the range of a slider, by which values that are the same may differ."""

Found = TypeVar("Found", bound=Result | SystemResult | FormResult)


class Slider(NamedTuple):
    """A number that can be moved, and how far."""

    name: str
    value: float
    low: float
    high: float


class Exploration(abc.ABC, Generic[Found]):
    """The law that is looked at, and where its constants are.

    Attributes:
      found: what `discover` found, its candidates in order.
      place: of the law that is looked at, from 0.
      sliders: its constants as fitted, those that can be moved.
      names: the formula with the names of the sliders, a line for each equation.
      time_name, value_name: what time and value are called.
    """

    def __init__(self, found: Found, time_name: str = "t", value_name: str = "y"):
        """
        Args:
          found: what `discover` found.
          time_name, value_name: what time and value are called; the quantities of a system
            have names.
        """
        self.found: Found = found
        self.time_name, self.value_name = time_name, value_name
        self.choose(0)

    # --- what can be done ----------------------------------------------------

    def choose(self, place: int) -> None:
        """Looks at another candidate, as it was fitted."""
        self.place = place
        self._fitted: Found = chosen(self.found, place)
        self._shown = self._fitted
        self._moved: dict[str, float] = {}
        self.names, self.sliders = self._named()

    def move(self, **values: float) -> None:
        """Moves some sliders; the others stay where they are.

        Raises:
          KeyError: if there is no such slider.
        """
        names = {slider.name for slider in self.sliders}
        if unknown := set(values) - names:
            raise KeyError(f"no constant {', '.join(sorted(unknown))}; there are {sorted(names)}")
        moved = self._moved | values
        for name, value, low, high in self.sliders:
            # Browsers put a slider on the nearest of its steps, an ulp beside.
            if abs(moved.get(name, value) - value) <= _SAME * (high - low):
                moved.pop(name, None)
        self._moved = moved
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
    def shown(self) -> Found:
        """The result with the law that is looked at in front, its constants where they are."""
        return self._shown

    @property
    def side_by_side(self) -> bool:
        """Whether two pictures have room beside each other."""
        return True

    @property
    @abc.abstractmethod
    def table(self) -> Table:
        """The first candidates."""

    @abc.abstractmethod
    def law_html(self) -> str:
        """The formula, and how well it fits."""

    @abc.abstractmethod
    def pictures_html(self) -> tuple[str, ...]:
        """Data with the solution, and what else is drawn of the law."""

    def details_html(self) -> str:
        """Of the law as it was fitted: its name, constants with errors, fixed points, remarks."""
        return blocks_to_html([*self._details(), *self._remarks()])

    @abc.abstractmethod
    def latex(self) -> str:
        """The law in LaTeX, its constants where they are."""

    @abc.abstractmethod
    def python(self) -> str:
        """The law as a program, its constants where they are."""

    # --- how -----------------------------------------------------------------

    @abc.abstractmethod
    def _named(self) -> tuple[str, tuple[Slider, ...]]:
        """`names` and `sliders` of the law as it was fitted."""

    def _with(self, values: Mapping[str, float]) -> Found:
        """The result with the law in front as it is with other values of some sliders."""
        raise NotImplementedError("there is no slider")

    @abc.abstractmethod
    def _details(self) -> list[Block]: ...

    def _remarks(self) -> list[Block]:
        remarks = self._wary()
        return [Heading("Remarks"), Bullets(remarks)] if remarks else []

    def _wary(self) -> tuple[str, ...]:
        """What one should know before one believes the law."""
        return (*self._how_sure(), *self.found.notes)

    def _poor(self, r2: float) -> str:
        """A word on a law that hardly explains the data as it was fitted."""
        if self.is_moved or not r2 < POOR_R2:
            return ""
        return f" It explains only {max(r2, 0.0):.0%} of the variance of the data; do not trust it."

    def _how_sure(self) -> tuple[str, ...]:
        sure = certainty_text(self.found)
        return (f"How sure: {sure}",) if sure else ()


def picture(draw: Callable[[Figure], None], alt: str, size: tuple[float, float] = SIZE) -> str:
    """What is drawn on a figure, as a tag."""
    return image(svg(draw, size), "svg+xml", alt)


def slider(name: str, value: float, error: float) -> Slider:
    """So far on either side that the curve is seen to move, and its errors are within reach."""
    reach = _REACH * abs(value)
    if math.isfinite(error):
        farthest = _FARTHEST * abs(value) or math.inf
        reach = max(reach, min(_ERRORS * error, farthest))
    reach = reach or 1.0
    return Slider(name, value, value - reach, value + reach)


def constants_with(
    constants: tuple[float, ...], places: Sequence[int], values: Mapping[str, float]
) -> list[float]:
    """Constants of which those at `places`, called c0, c1, ..., may have other values."""
    moved = list(constants)
    for number, place in enumerate(places):
        moved[place] = values.get(f"c{number}", moved[place])
    return moved


NO_SOLUTION = "With these constants there is no solution over the observed times."
