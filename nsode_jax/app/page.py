"""The page: where data come in, what was read of them, and the search."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import nsode_jax
from nsode_jax.app.asking import (
    LARGEST,
    Asked,
    Table,
    in_words_of_the_page,
    time_and_value,
    what_was_read,
)
from nsode_jax.app.columns import ColumnsCard, say_what_is_wrong
from nsode_jax.app.each import EachCards
from nsode_jax.app.guard import Guard
from nsode_jax.app.inputs import input_card
from nsode_jax.app.jobs import Job, Queue, QueueFull, in_a_line
from nsode_jax.app.law import LawCards
from nsode_jax.app.preview import data_html, explore, head_html, notes_html
from nsode_jax.app.search import Task, search
from nsode_jax.reporting.pictures import BEST
from nsode_jax.system.extras import extra
from nsode_jax.tables.files import Contents
from nsode_jax.tables.quantities import Quantities
from nsode_jax.tables.table import Measurements

with extra("app", "the page"):
    from nicegui import app, run, ui
    from starlette.formparsers import MultiPartParser

DRAWING = threading.Lock()
"""Matplotlib draws one picture at a time."""

_OVERHEAD = 2**16  # Bytes of an upload beside the file.
_SECONDS = 0.25  # Between looks at the job.
_STYLE = """
body { background: #f4f6f8; }
.q-card { box-shadow: 0 1px 3px rgba(0,0,0,.12); border-radius: 10px; }
.blocks img { max-width: 100%; height: auto; }
.blocks table { border-collapse: collapse; font-size: .85rem; }
.blocks th, .blocks td { padding: .15rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #e3e6ea; }
.blocks h2 { font-size: 1rem; font-weight: 600; margin: .9rem 0 .3rem; line-height: 1.3; }
.blocks .wide { overflow-x: auto; }
.blocks p { margin: .3rem 0; } .blocks ul { padding-left: 1.2rem; list-style: disc; }
.blocks .formula { margin: 0; } .blocks .formula img { max-height: 7rem; }
.candidates td.text-left { white-space: normal; }
.candidates td:last-child { font-family: monospace; white-space: pre-line; min-width: 12rem; }
@media (max-width: 640px) {
  .candidates :is(th, td) { padding: 4px; }
  .candidates :is(th, td):is(:nth-child(4), :nth-child(5)) { display: none; }
}
.nicegui-code { min-height: 3rem; }
.nicegui-code pre { padding-right: 3rem; }
.command pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.q-uploader__subtitle { display: none; } .q-uploader__list { min-height: 3rem; }
.more .nicegui-expansion-content { padding: .25rem 0 .75rem; }
"""


def serve(
    host: str, port: int, hosts: Sequence[str], show: bool, ready: Callable[[], None]
) -> None:
    """Serves the page until it is interrupted.

    Args:
      host, port: where.
      hosts: names under which it may be asked for; none: any.
      show: whether to open it in a browser.
      ready: called once it can be asked for.
    """
    queue: Queue = Queue(search)
    app.on_startup(ready)
    app.on_shutdown(queue.close)
    app.add_middleware(Guard, hosts=hosts, largest=LARGEST + _OVERHEAD)
    MultiPartParser.spool_max_size = LARGEST + _OVERHEAD  # What is uploaded stays in memory.

    @ui.page("/")
    def page() -> None:
        Visit(queue)

    ui.run(
        host=host,
        port=port,
        title="nsode_jax",
        favicon="📈",
        show=show,
        reload=False,
        show_welcome_message=False,
    )


class Visit:
    """What one visitor sees and has asked for."""

    def __init__(self, queue: Queue):
        self._queue = queue
        self._table: Table | None = None
        self._asked = Asked()
        self._read: Measurements | Quantities | None = None
        self._task: Task | None = None
        self._job: Job | None = None
        self._reading = asyncio.Lock()
        ui.add_css(_STYLE)
        ui.colors(primary=BEST)
        self._header()
        with ui.element("div").classes(
            "w-full max-w-screen-xl mx-auto grid grid-cols-1 lg:grid-cols-[25rem_minmax(0,1fr)] "
            "gap-4 items-start"
        ):
            with ui.column().classes("w-full gap-4"):
                input_card(self._take, self._refuse)
                self._columns = ui.card().classes("w-full")
            with ui.column().classes("w-full gap-4 min-w-0"):
                self._progress_card()
                self._laws = ui.column().classes("w-full gap-4 empty:hidden")
                self._preview = ui.card().classes("w-full")
        self._columns.set_visibility(False)
        self._preview.set_visibility(False)
        self._timer = ui.timer(_SECONDS, self._look, active=False)
        ui.context.client.on_delete(self._leave)

    def _header(self) -> None:
        with ui.element("div").classes("w-full max-w-screen-xl mx-auto"):
            ui.label("From a time series to its law").classes("text-2xl font-semibold")
            ui.label(
                "Data stay on this machine; nothing is kept or sent. "
                f"nsode_jax {nsode_jax.__version__}"
            ).classes("text-sm text-gray-600")

    # --- what was read -------------------------------------------------------

    async def _take(self, contents: Contents, values: tuple[str, ...] = ()) -> None:
        """Takes a table and guesses its columns, those of the values if they are not known."""
        async with self._reading:  # A search that is asked for meanwhile is of this table.
            await self._open(contents, values)

    async def _open(self, contents: Contents, values: tuple[str, ...]) -> None:
        self._stop()
        self._laws.clear()
        self._table = self._read = None
        try:
            opened = await run.io_bound(_open, contents)
        except Exception as error:  # Files hold anything.
            self._refuse(in_a_line(error))
            return
        if opened is None:  # The server is shutting down.
            return
        table, guess = opened
        self._table = table
        values = values or guess.values
        self._asked = dataclasses.replace(guess, values=values, effort=self._asked.effort)
        self._show_columns(table)
        await self._reread()

    def _refuse(self, message: str) -> None:
        """Says in place what is wrong; nothing can be run."""
        self._read = None
        self._preview.set_visibility(True)
        self._preview.clear()
        if self._table is None:
            self._columns.set_visibility(False)
            with self._preview:
                say_what_is_wrong(message)
        else:
            self._controls.refuse(message)
            with self._preview:
                self._head(self._table, is_open=True)

    def _head(self, table: Table, is_open: bool) -> None:
        rows = ui.expansion("First rows of the file", value=is_open)
        with rows.classes("w-full").props("dense header-class=q-px-none"):
            head = head_html(table.header, table.rows)
            ui.html(head, sanitize=False).classes("blocks w-full overflow-x-auto")

    def _show_columns(self, table: Table) -> None:
        self._columns.set_visibility(True)
        self._columns.clear()
        with self._columns:
            self._controls = ColumnsCard(table, self._asked, self._ask, self._start)

    async def _ask(self, asked: Asked, anew: bool) -> None:
        self._asked = asked
        if anew:
            async with self._reading:
                await self._reread()

    async def _reread(self) -> None:
        """Reads the columns that are chosen, and shows what they hold."""
        table, asked = self._table, self._asked
        assert table is not None
        try:
            shown = await run.io_bound(_read_and_draw, table, asked)
        except Exception as error:
            if asked is self._asked:
                self._refuse(in_a_line(error))
            return
        if shown is None or asked is not self._asked:  # A later choice is being read.
            return
        self._read = read = shown.read
        self._controls.allow(self._job is None)
        self._preview.set_visibility(True)
        self._preview.clear()
        with self._preview:
            ui.label(what_was_read(read)).classes("font-semibold read")
            ui.html(shown.picture, sanitize=False).classes("blocks w-full max-w-2xl")
            notes = tuple(map(in_words_of_the_page, read.notes))
            ui.html(notes_html(notes), sanitize=False).classes("blocks text-sm")
            self._head(table, is_open=False)

    # --- the search ----------------------------------------------------------

    def _progress_card(self) -> None:
        self._progress = ui.card().classes("w-full")
        with self._progress:
            with ui.row().classes("items-center w-full no-wrap"):
                ui.spinner(size="1.5em")
                self._stage = ui.label().classes("grow stage")
                ui.button("Stop", on_click=self._stop).props("no-caps flat dense")
            self._bar = ui.linear_progress(0.0, show_value=False)
        self._progress.set_visibility(False)

    async def _start(self) -> None:
        async with self._reading:  # What was just written is read first.
            self._submit()

    def _submit(self) -> None:
        if self._read is None or self._table is None or self._job is not None:
            return
        name = str(self._table.contents)
        self._task = Task(self._read, self._asked.options(name), self._asked.command(name))
        try:
            self._job = self._queue.submit(self._task)
        except QueueFull as error:
            ui.notify(str(error), type="warning")
            return
        self._laws.clear()
        self._controls.allow(False)
        self._progress.set_visibility(True)
        self._timer.activate()
        self._look()

    def _look(self) -> None:
        """How far the job is."""
        job = self._job
        if job is None:
            return
        if before := self._queue.before(job):
            self._stage.set_text(f"waiting for {before} other search{'es' * (before > 1)}")
        else:
            self._stage.set_text(job.stage or "starting")
        self._bar.set_value(job.share)
        if job.is_over:
            self._end(job)

    def _end(self, job: Job) -> None:
        self._job = None
        self._timer.deactivate()
        self._progress.set_visibility(False)
        if self._read is not None:
            self._controls.allow(True)
        if job.state == "failed":
            with self._laws, ui.card().classes("w-full"):
                say_what_is_wrong(job.message)
        elif job.result is not None and self._task is not None:
            names = time_and_value(self._task.read)
            with self._laws:
                if isinstance(job.result, dict):
                    EachCards(job.result, names, self._task, DRAWING)
                else:
                    LawCards(explore(job.result, *names), self._task, DRAWING)

    def _stop(self) -> None:
        if self._job is not None:
            self._queue.stop(self._job)
            self._end(self._job)

    def _leave(self) -> None:
        if self._job is not None:
            self._queue.stop(self._job)


def _open(contents: Contents) -> tuple[Table, Asked]:
    table = Table(contents)
    return table, table.guess()


class _Shown(NamedTuple):
    read: Measurements | Quantities
    picture: str


def _read_and_draw(table: Table, asked: Asked) -> _Shown:
    read = table.read(asked)
    with DRAWING:
        return _Shown(read, data_html(read))
