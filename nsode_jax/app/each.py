"""The page's cards on many series, each with a law of its own."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import PurePath

from nsode_jax.app.asking import in_words_of_the_page
from nsode_jax.app.choices import Choices
from nsode_jax.app.law import LawCards
from nsode_jax.app.preview import explore, laws_csv
from nsode_jax.app.search import Task
from nsode_jax.reporting.certainty import first_form_probability, is_believable
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results.formatting import probability_text, r2_text
from nsode_jax.system.extras import extra
from nsode_jax.tables.units import unit_of

with extra("app", "the page"):
    from nicegui import ui

_HEADER = ("series", "probability", "R²", "this is", "dy/dt =")


class EachCards:
    """A table of all series with their laws, and the cards on the law of one of them."""

    def __init__(
        self,
        found: Mapping[str, Discovery | str],
        names: tuple[str, str],
        task: Task,
        drawing: threading.Lock,
    ):
        """
        Args:
          found: by label what was found, or in a line why nothing was.
          names: what time and value are called.
          task, drawing: as of `LawCards`.
        """
        self._found, self._names, self._task, self._drawing = found, names, task, drawing
        self._labels = list(found)
        self._stem = PurePath(task.options.file).stem
        with_law = [n for n, one in enumerate(found.values()) if not isinstance(one, str)]
        believed = sum(not isinstance(one, str) and is_believable(one) for one in found.values())
        with ui.card().classes("w-full each"):
            number = f"Laws to be believed for {believed} of {len(found)} series"
            ui.label(f"{number}; choose one" if with_law else number).classes("font-semibold")
            rows = [self._row(label) for label in self._labels]
            self._table = Choices(_HEADER, rows, self._choose, words=("series", "this is"))
            ui.button("Table (CSV)", on_click=self._hand_over).props("no-caps outline")
        self._law = ui.column().classes("w-full gap-4 empty:hidden")
        if with_law:
            self._show(with_law[0])

    def _row(self, label: str) -> tuple[str, ...]:
        one = self._found[label]
        if isinstance(one, str):
            return label, "", "", in_words_of_the_page(one), ""
        best, (time, value) = one.best, self._names
        name = best.named(unit_of(value), unit_of(time, is_time=True))
        called = str(name) if name else ""
        fit = probability_text(first_form_probability(one)), r2_text(best.r2)
        return label, *fit, called, best.rounded().infix

    async def _choose(self, place: int) -> None:
        self._show(place)

    def _show(self, place: int) -> None:
        """The law of another series, if it has one."""
        label = self._labels[place]
        one = self._found[label]
        self._table.mark(place)
        self._law.clear()
        if isinstance(one, str):
            return
        file = re.sub(r"[^\w.-]+", "_", f"{self._stem}_{label}")
        with self._law:
            LawCards(explore(one, *self._names), self._task, self._drawing, file, label)

    def _hand_over(self) -> None:
        ui.download.content(laws_csv(self._found), f"{self._stem}_laws.csv")
