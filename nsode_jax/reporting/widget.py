"""A result in a notebook, with a list of laws and sliders for their constants."""

from __future__ import annotations

from typing import Any

from nsode_jax.dynamics.vectors import count
from nsode_jax.reporting.documents import Code, blocks_to_html
from nsode_jax.reporting.exploration import Exploration, Slider
from nsode_jax.results.formatting import probability_text
from nsode_jax.system.extras import extra

with extra("notebook", "explore()"):
    import ipywidgets

_STEPS = 200
_FIT = "<style>.laws img {{ flex: 1 1 {width}; min-width: 0; max-width: 100%; }}</style>"
_WIDE = {"description_width": "3rem"}


class LawWidget(ipywidgets.VBox):
    """Which law is looked at, sliders for its constants, its pictures and its details.

    Attributes:
      seen: the law that is looked at, and where its constants are.
      chooser: the list of laws.
      sliders: one for each constant, by its name.
    """

    def __init__(self, seen: Exploration):
        self.seen = seen
        self.sliders: dict[str, ipywidgets.FloatSlider] = {}
        *_, formulas = zip(*seen.table.rows, strict=True)
        shares = [c.probability for c in seen.found.candidates[: len(formulas)]]
        options = [
            (f"{place + 1}. {formula} ({probability_text(share)})", place)
            for place, (formula, share) in enumerate(zip(formulas, shares, strict=True))
        ]
        self.chooser = ipywidgets.Dropdown(
            options=options, description="law", style=_WIDE, layout={"width": "100%"}
        )
        if len(options) == 1:  # A given form has no rivals.
            self.chooser.layout.display = "none"
        self._reset = ipywidgets.Button(description="As fitted", layout={"width": "7rem"})
        self._names, self._law = ipywidgets.HTML(), ipywidgets.HTML()
        self._pictures, self._details = ipywidgets.HTML(), ipywidgets.HTML()
        self._box = ipywidgets.VBox()
        self.chooser.observe(lambda change: self._choose(change["new"]), names="value")
        self._reset.on_click(lambda _: self._choose(self.seen.place))
        details = ipywidgets.Accordion([self._details], titles=["constants and remarks"])
        shown = [self.chooser, self._law, self._pictures, self._names, self._box]
        super().__init__([*shown, self._reset, details])
        self._choose(0)

    def __repr__(self) -> str:
        laws = count(len(self.chooser.options), "law")
        return f"<LawWidget: {laws}, shown where the notebook runs>"

    def _choose(self, place: int) -> None:
        self.seen.choose(place)
        self._details.value = self.seen.details_html()
        self._names.value = blocks_to_html([Code(self.seen.names)]) if self.seen.sliders else ""
        self.sliders = {slider.name: _slider(slider) for slider in self.seen.sliders}
        for name, slider in self.sliders.items():
            slider.observe(lambda change, name=name: self._move(name, change["new"]), names="value")
        self._box.children = tuple(self.sliders.values())
        self._reset.layout.display = None if self.sliders else "none"
        self._draw()

    def _move(self, name: str, value: float) -> None:
        self.seen.move(**{name: value})
        self._draw()

    def _draw(self) -> None:
        self._law.value = self.seen.law_html()
        pictures = "".join(self.seen.pictures_html())
        # Side by side where there is room.
        style = "display: flex; flex-wrap: wrap; align-items: flex-start; max-width: 72rem"
        width = "24rem" if self.seen.side_by_side else "100%"
        shown = f'<div class="laws" style="{style}">{pictures}</div>{_FIT.format(width=width)}'
        self._pictures.value = shown


def _slider(slider: Slider) -> Any:
    return ipywidgets.FloatSlider(
        value=slider.value,
        min=slider.low,
        max=slider.high,
        step=(slider.high - slider.low) / _STEPS,
        description=slider.name,
        readout_format=".4g",
        style=_WIDE,
        layout={"width": "30rem"},
    )
