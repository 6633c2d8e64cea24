"""The page's cards on what was found: candidates, one law with its sliders, exports."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import PurePath
from typing import NamedTuple

from nsode_jax.app.asking import in_words_of_the_page
from nsode_jax.app.choices import Choices
from nsode_jax.app.preview import report
from nsode_jax.app.search import Task
from nsode_jax.console.commands import command_of
from nsode_jax.dynamics.vectors import count
from nsode_jax.reporting.exploration import Exploration, Slider
from nsode_jax.results.formatting import value_within
from nsode_jax.results.own_constants import FormResult
from nsode_jax.system.extras import extra

with extra("app", "the page"):
    from nicegui import run, ui

_STEPS = 200
_REPORTS = {".html": "Report (HTML)", ".zip": "Report, pictures and numbers (ZIP)"}


class _Drawn(NamedTuple):
    """What is shown of a law with its constants where they are."""

    law: str
    pictures: tuple[str, ...]
    latex: str
    python: str


class LawCards:
    """Cards on the laws that were found, one of which is looked at."""

    def __init__(
        self,
        seen: Exploration,
        task: Task,
        drawing: threading.Lock,
        file: str = "",
        series: str = "",
    ):
        """
        Args:
          seen: what was found.
          task: what was asked for.
          drawing: held while pictures are drawn.
          file: how files that are handed over are called, if not like that of the data.
          series: which of many it is.
        """
        self._seen, self._task, self._drawing = seen, task, drawing
        self._file = file or PurePath(task.options.file).stem
        self._series = f"{series}: " if series else ""
        self._values: dict[str, float] = {}
        self._busy = self._again = False
        self._labels: dict[str, ui.label] = {}
        self._shown_pictures: list[ui.html] = []
        with ui.card().classes("w-full") as candidates:
            self._candidates()
        candidates.set_visibility(len(seen.table.rows) > 1)  # A given form has no rivals.
        with ui.card().classes("w-full"):
            self._law = ui.html("", sanitize=False).classes("blocks law")
            self._pictures = ui.element("div")
            beside = "md:grid-cols-2" if seen.side_by_side else ""
            self._pictures.classes(f"w-full grid grid-cols-1 {beside} gap-2 pictures")
            self._sliders = ui.column().classes("w-full gap-1")
            self._details = ui.html("", sanitize=False).classes("blocks w-full details")
        with ui.card().classes("w-full"):
            self._exports()
        ui.timer(0.0, lambda: self._choose(0), once=True)

    # --- what is there -------------------------------------------------------

    def _candidates(self) -> None:
        table = self._seen.table
        shown, number = len(table.rows), len(self._seen.found.candidates)
        some = f"{shown} of " if shown < number else ""
        words = f"{self._series}{some}{count(number, 'candidate')}; choose one"
        ui.label(words).classes("font-semibold")
        self._table = Choices(table.header, table.rows, self._choose, words=("name",))

    def _exports(self) -> None:
        tabs = ui.tabs().props("dense no-caps align=left active-color=primary")
        with tabs.classes("w-full"):
            ui.tab("latex", "LaTeX")
            ui.tab("python", "Python")
            ui.tab("report", "Report")
        with ui.tab_panels(tabs, value="latex").classes("w-full"):
            with ui.tab_panel("latex").classes("p-0"):
                self._latex = ui.code("", language="latex").classes("w-full latex")
            with ui.tab_panel("python").classes("p-0"):
                self._python = ui.code("", language="python").classes("w-full python")
            with ui.tab_panel("report").classes("p-2"):
                with ui.row():
                    for kind, words in _REPORTS.items():
                        button = ui.button(words, on_click=partial(self._report, kind))
                        button.props("no-caps outline")
                    if isinstance(self._seen.found, FormResult):
                        button = ui.button("Constants (CSV)", on_click=self._constants)
                        button.props("no-caps outline")
                if PurePath(self._task.options.file).suffix:  # What was pasted is no file.
                    ui.label("The same on the command line").classes("text-sm mt-3")
                    ui.code(self._task.command, language="bash").classes("w-full command")

    # --- what happens --------------------------------------------------------

    async def _choose(self, place: int) -> None:
        """Looks at another law."""
        self._table.mark(place)
        self._values = {}
        details = await run.io_bound(self._look_at, place)
        if details is None:  # The server is shutting down.
            return
        self._details.set_content(in_words_of_the_page(details))
        self._show_sliders()
        await self._draw()

    def _show_sliders(self) -> None:
        self._sliders.clear()
        self._labels = {}
        if not self._seen.sliders:
            return
        with self._sliders:
            with ui.row().classes("items-center w-full no-wrap"):
                ui.label(self._seen.names).classes(
                    "font-mono text-sm whitespace-pre-line grow names"
                )
                reset = ui.button("As fitted", on_click=self._reset)
                reset.props("no-caps flat dense no-wrap").classes("shrink-0")
            with ui.element("div").classes("w-full grid grid-cols-1 md:grid-cols-2 gap-x-6"):
                for slider in self._seen.sliders:
                    self._slider(slider)

    def _slider(self, slider: Slider) -> None:
        with ui.row().classes("items-center w-full no-wrap gap-3"):
            ui.label(slider.name).classes("font-mono text-sm w-8")
            bar = ui.slider(
                min=slider.low,
                max=slider.high,
                step=(slider.high - slider.low) / _STEPS,
                value=slider.value,
                on_change=lambda event: self._move(slider, event.value),
            )
            bar.classes(f"grow slider-{slider.name}").props(f"aria-label={slider.name}")
            label = ui.label(_number(slider, slider.value)).classes("font-mono text-sm w-24")
        self._labels[slider.name] = label

    async def _move(self, slider: Slider, value: float | None) -> None:
        if value is None:
            return
        self._labels[slider.name].set_text(_number(slider, value))
        self._values[slider.name] = value
        await self._draw()

    async def _reset(self) -> None:
        await self._choose(self._seen.place)

    async def _draw(self) -> None:
        """Draws the law where its constants are; moves meanwhile are drawn afterwards, once."""
        self._again = True
        if self._busy:
            return
        self._busy = True
        try:
            while self._again:
                self._again = False
                drawn = await run.io_bound(self._drawn, dict(self._values))
                if drawn is not None:
                    self._show(drawn)
        finally:
            self._busy = False

    def _show(self, drawn: _Drawn) -> None:
        self._law.set_content(drawn.law)
        if not self._shown_pictures:
            with self._pictures:
                self._shown_pictures = [
                    ui.html("", sanitize=False).classes("blocks") for _ in drawn.pictures
                ]
        for shown, picture in zip(self._shown_pictures, drawn.pictures, strict=True):
            shown.set_content(picture)
        self._latex.set_content(drawn.latex)
        self._python.set_content(drawn.python)

    async def _report(self, kind: str) -> None:
        made = await run.io_bound(self._made_report)
        if made is not None:
            ui.download.content(dict(zip(_REPORTS, made))[kind], f"{self._file}_law{kind}")

    def _constants(self) -> None:
        found = self._seen.shown
        assert isinstance(found, FormResult)
        ui.download.content(found.constants().to_csv(), f"{self._file}_constants.csv")

    # --- beside the page, one at a time --------------------------------------

    def _look_at(self, place: int) -> str:
        with self._drawing:
            self._seen.choose(place)
            return self._seen.details_html()

    def _drawn(self, values: dict[str, float]) -> _Drawn:
        with self._drawing:
            seen = self._seen
            seen.move(**{s.name: values[s.name] for s in seen.sliders if s.name in values})
            return _Drawn(seen.law_html(), seen.pictures_html(), seen.latex(), seen.python())

    def _made_report(self) -> tuple[bytes, bytes]:
        with self._drawing:
            options = self._task.options
            return report(self._seen, options.file, command_of(options).chosen(options))


def _number(slider: Slider, value: float) -> str:
    """A value in as many digits as the steps of its slider need."""
    return value_within(value, (slider.high - slider.low) / _STEPS / 2)
