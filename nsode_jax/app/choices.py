"""A table on the page, one row of which is looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nsode_jax.system.extras import extra

with extra("app", "the page"):
    from nicegui import events, ui

_SHOWN = 8  # Rows at a time.


class Choices:
    """The table. Its last column holds formulas, equations that belong together with "; "."""

    def __init__(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        look_at: Callable[[int], Awaitable[None]],
        words: Sequence[str] = (),
    ):
        """
        Args:
          header: names of the columns.
          rows: what the cells say.
          look_at: called with the place of a row that is clicked, from 0.
          words: columns of text, beside the last one; the others hold numbers.
        """
        self._look_at = look_at
        columns = [
            {"name": name, "label": name, "field": name,
             "align": "left" if name in (*words, header[-1]) else "right"}
            for name in header
        ]  # fmt: skip
        # An equation on each line.
        cells = [
            dict(zip(header, (*row[:-1], row[-1].replace("; ", "\n")), strict=True)) for row in rows
        ]
        places = [{"place": place, **row} for place, row in enumerate(cells)]
        self._table = (
            ui.table(columns=columns, rows=places, row_key="place", selection="single",
                     pagination=_SHOWN)
            .classes("w-full candidates")
            .props(f"dense flat hide-selected-banner :rows-per-page-options=[{_SHOWN}]")
        )  # fmt: skip
        self._table.on("rowClick", self._clicked)
        self._table.on_select(self._selected)

    def mark(self, place: int) -> None:
        """Shows which row is looked at."""
        self._table.selected = [self._table.rows[place]]

    async def _clicked(self, event: events.GenericEventArguments) -> None:
        await self._look_at(int(event.args[1]["place"]))

    async def _selected(self, event: events.TableSelectionEventArguments) -> None:
        if event.selection:
            await self._look_at(int(event.selection[0]["place"]))
