"""The page's card where data come in: a file, pasted cells, or points drawn by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import nsode_jax
from nsode_jax.app.asking import LARGEST, MOST_TEXT
from nsode_jax.app.sketch import HEIGHT, WIDTH, Sketch
from nsode_jax.system.extras import extra
from nsode_jax.tables.files import Contents

with extra("app", "the page"):
    from nicegui import events, ui

EXAMPLES = {
    "Yeast": ("yeast_growth.csv", ("yeast_amount",)),
    "Hares and lynxes": ("lynx_hare.csv", ("hare", "lynx")),
}
"""Tables that ship with the package, and their columns of values."""


class Take(Protocol):
    """Takes a table; `values` are its columns of values, if they are known."""

    async def __call__(self, contents: Contents, values: tuple[str, ...] = ()) -> None: ...


def input_card(take: Take, refuse: Callable[[str], None]) -> None:
    """Builds the card.

    Args:
      take: what is done with a table.
      refuse: says why there is none.
    """
    with ui.card().classes("w-full"):
        with ui.tabs().classes("w-full").props("dense no-caps active-color=primary") as tabs:
            ui.tab("file", "File")
            ui.tab("paste", "Paste")
            ui.tab("draw", "Draw")
        with ui.tab_panels(tabs, value="file").classes("w-full"):
            with ui.tab_panel("file").classes("p-0"):
                _file_panel(take, refuse)
            with ui.tab_panel("paste").classes("p-0"):
                _paste_panel(take)
            with ui.tab_panel("draw").classes("p-0"):
                _DrawPanel(take)


def example(file: str) -> Contents:
    """A table that ships with the package."""
    folders = (Path(folder) / "examples" for folder in nsode_jax.__path__)
    path = next(folder / file for folder in folders if folder.is_dir())
    return Contents(file, path.read_bytes())


async def _take_example(take: Take, file: str, values: tuple[str, ...]) -> None:
    await take(example(file), values)


def _file_panel(take: Take, refuse: Callable[[str], None]) -> None:
    megabytes = LARGEST // 2**20

    async def uploaded(event: events.UploadEventArguments) -> None:
        raw = await event.file.read()
        upload.reset()
        await take(Contents(event.file.name, raw))

    upload = ui.upload(
        label="Drop a table here, or choose it with +",
        max_file_size=LARGEST,
        auto_upload=True,
        on_upload=uploaded,
        on_rejected=lambda: refuse(
            f"The file has more than {megabytes} MB; leave out what is not needed."
        ),
    )
    upload.classes("w-full").props("flat bordered")
    kinds = f"Text, Excel, OpenDocument, Parquet, Feather or HDF5, up to {megabytes} MB."
    ui.label(kinds).classes("text-xs text-gray-600")
    with ui.row().classes("items-center gap-2"):
        ui.label("Or try").classes("text-sm")
        for name, (file, values) in EXAMPLES.items():
            button = ui.button(name, on_click=partial(_take_example, take, file, values))
            button.props("outline dense no-caps padding='2px 10px'")


def _paste_panel(take: Take) -> None:
    text = ui.textarea(placeholder="time\tvalue\n0\t9.6\n1\t18.3\n…").classes("w-full font-mono")
    text.props(f"outlined maxlength={MOST_TEXT} input-style='height: 11rem' aria-label='Cells'")
    read = ui.button(
        "Read", on_click=lambda: take(Contents("pasted cells", (text.value or "").encode()))
    )
    read.props("no-caps unelevated")


class _DrawPanel:
    """A canvas, its axes, and what is done with the points."""

    def __init__(self, take: Take):
        self._sketch = sketch = Sketch()
        self._canvas = ui.interactive_image(
            size=(WIDTH, HEIGHT),
            content=sketch.svg(),
            on_mouse=self._handle,
            events=["mousedown", "mousemove", "mouseup", "mouseleave"],
            sanitize=False,
        ).classes("w-full cursor-crosshair canvas")
        words = "Click or drag to add points; click on a point to take it away."
        ui.label(words).classes("text-xs text-gray-600")
        with ui.row().classes("items-center gap-2 no-wrap"):
            for name, label in (("t_end", "last time"), ("y_end", "largest value")):
                ui.number(
                    label,
                    value=getattr(sketch, name),
                    on_change=lambda event, name=name: self._scale(name, event.value),
                ).props("dense").classes("w-24")
            self._use = ui.button("Use", on_click=lambda: take(sketch.contents()))
            self._use.props("no-caps unelevated").set_enabled(False)
            ui.button("Clear", on_click=self._clear).props("no-caps flat")

    def _handle(self, event: events.MouseEventArguments) -> None:
        place = event.image_x, event.image_y
        if event.type == "mousedown":
            self._sketch.press(*place)
        elif event.type == "mousemove" and event.buttons & 1:
            if not self._sketch.drag(*place):
                return
        else:
            self._sketch.release()
            return
        self._show()

    def _clear(self) -> None:
        self._sketch.clear()
        self._show()

    def _scale(self, name: str, end: float | None) -> None:
        if end is not None and end > 0.0:
            setattr(self._sketch, name, end)
            self._show()

    def _show(self) -> None:
        self._canvas.set_content(self._sketch.svg())
        self._use.set_enabled(self._sketch.is_enough)
