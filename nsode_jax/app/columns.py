"""The page's card on a table: what its columns hold, and what laws may depend on."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

from nsode_jax.app.asking import CONTROLS, Asked, Table, in_words_of_the_page
from nsode_jax.search.effort import EFFORTS
from nsode_jax.system.extras import extra
from nsode_jax.tables.runs import RESTART

with extra("app", "the page"):
    from nicegui import ui

Changed = Callable[[Asked, bool], Awaitable[None]]

_FEW = 6
"""More columns than these are chosen, and shown, by their number."""

_MORE = "inputs, errors, time, second order"


def say_what_is_wrong(message: str) -> None:
    """A line in red, with the page's names for options of the command."""
    with ui.row().classes("items-start no-wrap gap-2 text-red-800"):
        ui.icon("error_outline").classes("text-xl")
        ui.label(in_words_of_the_page(message)).classes("problem").props("role=alert")


class ColumnsCard:
    """The controls of one table; what is rarely needed is folded away.

    Attributes:
      asked: what is chosen.
    """

    def __init__(self, table: Table, asked: Asked, changed: Changed, start: Callable[[], None]):
        """
        Args:
          table: the file.
          asked: what is chosen at first.
          changed: told what is chosen now, and whether data are to be read anew.
          start: starts the search.
        """
        self._table, self.asked, self._changed = table, asked, changed
        ui.label(str(table.contents)).classes("font-semibold break-all")
        self._select("--time", table.columns, "time", several=False)
        self._values = self._select("--value", table.columns, "values")
        self._all = ui.button("All columns", on_click=self._take_all).classes("-mt-3")
        self._all.props("flat dense no-caps size=sm")
        self._several = self._radio(
            "replicates", "--replicates", "coupled quantities, a law for each"
        )
        series = {"": "one series", **table.columns, RESTART: "starts again with the clock"}
        self._series = self._select("--series", series, "series", several=False)
        self._constants = self._radio(
            "own_constants", "--constants own", "the same constants in all series"
        )
        self._fold()
        ui.toggle(
            list(EFFORTS), value=asked.effort, on_change=lambda e: self._choose(effort=e.value)
        ).props("no-caps padding='2px 12px'")
        self._problem = ui.column().classes("w-full empty:hidden")
        self._run = ui.button("Find the law", on_click=start).props("no-caps unelevated")
        self._run.classes("w-full")
        self._show()

    def allow(self, can_run: bool) -> None:
        """What is chosen can be read; whether a search can start now."""
        self._problem.clear()
        self._run.set_enabled(can_run)

    def refuse(self, message: str) -> None:
        """Says above the button why nothing can be run."""
        self.allow(False)
        with self._problem:
            say_what_is_wrong(message)

    def _select(
        self,
        option: str,
        columns: dict[str, str],
        field: str,
        several: bool = True,
        hint: str = "",
    ) -> ui.select:
        value = getattr(self.asked, field)

        async def choose(chosen: str | list[str] | None) -> None:
            await self._choose(**{field: tuple(chosen or ()) if several else chosen or None})

        select = ui.select(
            columns,
            label=CONTROLS[option],
            value=list(value) if several else value or ("" if "" in columns else None),
            multiple=several,
            on_change=lambda e: choose(e.value),
        )
        select.props("use-chips" if several else "").props(f'hint="{hint}"' if hint else "")
        return select.classes(f"w-full {field}")

    def _radio(self, field: str, option: str, otherwise: str) -> ui.radio:
        return ui.radio(
            {False: otherwise, True: CONTROLS[option]},
            value=getattr(self.asked, field),
            on_change=lambda e: self._choose(**{field: e.value}),
        ).props("dense")

    def _switch(self, field: str, option: str, meaning: str = "") -> None:
        ui.checkbox(
            CONTROLS[option] + meaning,
            value=getattr(self.asked, field),
            on_change=lambda e: self._choose(**{field: e.value}),
        ).props("dense").classes(field)

    def _fold(self) -> None:
        is_used = bool(self._used())
        self._more = ui.expansion("More", caption=_MORE, value=is_used).classes("w-full more")
        self._more.props("dense header-class=q-px-none")
        with self._more, ui.column().classes("w-full gap-3"):
            columns, hint = self._table.columns, "what was applied, such as a stimulus"
            self._select("--input", columns, "inputs", hint=hint)
            columns, hint = self._table.error_columns, "standard deviations of the values"
            self._errors = self._select("--sigma", columns, "errors", hint=hint)
            self._switch("explicit_time", "--explicit-time")
            self._switch("second_order", "--order 2", ": the law is of accelerations")

    async def _choose(self, **changes: object) -> None:
        before = self.asked
        self.asked = dataclasses.replace(before, **changes)  # pyright: ignore[reportArgumentType]
        if self.asked == before:
            return
        if "values" in changes or "replicates" in changes:
            errors = self._table.errors_of(self.asked)
            self.asked = dataclasses.replace(self.asked, errors=errors)
            self._errors.set_value(list(errors))
        self._show()
        await self._changed(self.asked, set(changes) != {"effort"})

    def _take_all(self) -> None:
        self._values.set_value(list(self._table.all_values(self.asked)))

    def _show(self) -> None:
        """Asks what there is to be asked, and says what is chosen in the fold."""
        asked, number = self.asked, len(self.asked.values)
        all_values = self._table.all_values(asked)
        self._all.set_visibility(len(all_values) > max(_FEW, number))
        if number > _FEW:
            self._values.props(remove="use-chips", add=f'display-value="{number} columns"')
        else:
            self._values.props(remove="display-value", add="use-chips")
        self._several.set_visibility(asked.has_several_columns)
        # Columns that are series are seldom labelled by another one.
        self._series.set_visibility(asked.series is not None or not asked.has_columns_of_series)
        self._constants.set_visibility(asked.has_several_series)
        self._more.props["caption"] = ", ".join(self._used()) or _MORE
        self._more.update()

    def _used(self) -> list[str]:
        asked = self.asked
        return [
            *(f"input {self._table.columns[key]}" for key in asked.inputs),
            *(f"errors {self._table.columns[key]}" for key in asked.errors),
            *(["depends on the time"] if asked.explicit_time else []),
            *(["second order"] if asked.second_order else []),
        ]
