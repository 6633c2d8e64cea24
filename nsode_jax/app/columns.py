"""The page's card on a table: what its columns hold, and what laws may depend on."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from nsode_jax.app.asking import CONTROLS, Asked, Table, in_words_of_the_page
from nsode_jax.expressions.coupled import MOST_STATES
from nsode_jax.search.effort import EFFORTS
from nsode_jax.system.extras import extra
from nsode_jax.tables.dates import ORDERS
from nsode_jax.tables.runs import RESTART

with extra("app", "the page"):
    from nicegui import ui

Changed = Callable[[Asked, bool], Awaitable[None]]

_FEW = 6
"""More columns than these are chosen, and shown, by their number."""

_MORE = "errors, inputs, window, what is known of the law"

_ALWAYS_SHOWN = ("--time", "--value", "--series", "--replicates", "--constants own", "--each")

_AS_FOUND = "as found"
_MARKS = {".": "point .", ",": "comma ,", "'": "apostrophe '", " ": "space"}


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

    def __init__(
        self, table: Table, asked: Asked, changed: Changed, start: Callable[[], Awaitable[None]]
    ):
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
        coupled = "coupled quantities, a law for each"
        self._several = self._radio("replicates", {False: coupled, True: "--replicates"})
        series = {"": "one series", **table.columns, RESTART: "starts again with the clock"}
        self._series = self._select("--series", series, "series", several=False)
        common = "the same law and constants in all series"
        ways = {"": common, "constants": "--constants own", "law": "--each"}
        self._own = self._radio("own", ways)
        self._fold()
        self._effort = ui.toggle(
            list(EFFORTS), value=asked.effort, on_change=lambda e: self._choose(effort=e.value)
        ).props("no-caps padding='2px 12px'")
        self._problem = ui.column().classes("w-full empty:hidden")
        self._run = ui.button("Find the law", on_click=start).props("no-caps unelevated")
        self._run.classes("w-full").set_enabled(False)  # Until the table is read.
        self._show()

    def allow(self, can_run: bool) -> None:
        """What is chosen can be read; whether a search can start now."""
        self._problem.clear()
        self._run.set_enabled(can_run)

    def refuse(self, message: str) -> None:
        """Says above the button why nothing can be run, and shows the controls it names."""
        self.allow(False)
        if any(option in message for option in CONTROLS if option not in _ALWAYS_SHOWN):
            self._more.open()
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

    def _radio(self, field: str, ways: dict[Any, str]) -> ui.radio:
        return ui.radio(
            {value: CONTROLS.get(way, way) for value, way in ways.items()},
            value=getattr(self.asked, field),
            on_change=lambda e: self._choose(**{field: e.value}),
        ).props("dense")

    def _switch(self, field: str, option: str, meaning: str = "") -> None:
        ui.checkbox(
            CONTROLS[option] + meaning,
            value=getattr(self.asked, field),
            on_change=lambda e: self._choose(**{field: e.value}),
        ).props("dense").classes(field)

    def _text(self, field: str, option: str, example: str = "") -> ui.input:
        """A line to write in; what is written counts once there is a pause."""
        line = ui.input(
            CONTROLS.get(option, option),
            value=getattr(self.asked, field),
            placeholder=example,
            on_change=lambda e: self._choose(**{field: (e.value or "").strip()}),
        )
        line.props("stack-label debounce=600 autocomplete=off spellcheck=false")
        return line.classes(f"w-full {field}")

    def _way(self, field: str, option: str, ways: Iterable[str]) -> None:
        """How cells are read that can be read in several ways."""
        ui.select(
            {"": _AS_FOUND, **{way: _MARKS.get(way, way) for way in ways}},
            label=CONTROLS[option],
            value=getattr(self.asked, field),
            on_change=lambda e: self._choose(**{field: e.value}),
        ).classes(f"w-full {field}")

    def _fold(self) -> None:
        is_used = bool(self._used())
        self._more = ui.expansion("More", caption=_MORE, value=is_used).classes("w-full more")
        self._more.props("dense header-class=q-px-none")
        with self._more, ui.column().classes("w-full gap-1"):
            with _side_by_side("grid-cols-[2fr_1fr]"):
                self._errors = self._select("--sigma", self._table.error_columns, "errors")
                self._sigma = self._text("sigma", "or one for all", "0.05")
            self._select("--input", self._table.columns, "inputs", hint="such as a stimulus")
            with _side_by_side():
                self._ends = [self._text("start", "--from"), self._text("end", "--to")]
            with _side_by_side():
                self._way("decimal", "--decimal", ".,")
                self._way("thousands", "--thousands", ",.' ")
            self._way("dates", "--dates", ORDERS)
            self._switch("robust", "--robust")
            ui.label("The law").classes("text-sm text-gray-600 mt-3")
            self._text("known", "--known", "-0.1*y, or with a gap: 0.5*y*(1 - ?)")
            self._text("form", "--form", "r*y*(1 - y/K)")
            self._bounds = self._text("bounds", "--bounds", "K > 0, 0 < r < 5")
            self._shared = self._text("shared", "--shared", "K")
            self._tried = self._text("tried", "--try")
            self._switch("zero_at_zero", "--zero-at-zero", ": f(0) = 0")
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
        asked, table, number = self.asked, self._table, len(self.asked.values)
        all_values = table.all_values(asked)
        self._all.set_visibility(len(all_values) > max(_FEW, number))
        if number > _FEW:
            self._values.props(remove="use-chips", add=f'display-value="{number} columns"')
        else:
            self._values.props(remove="display-value", add="use-chips")
        left = [table.columns[key] for key in all_values if key not in asked.values]
        few = bool(left) and number == 1 and len(left) < MOST_STATES
        hint = f"numbers too: {', '.join(left)}; add what acts on each other" if few else ""
        self._values.props["hint"] = hint
        self._values.update()
        self._several.set_visibility(asked.has_several_columns)
        # Columns that are series are seldom labelled by another one.
        self._series.set_visibility(asked.series is not None or not asked.has_columns_of_series)
        self._own.set_visibility(asked.has_several_series)
        self._sigma.set_enabled(not asked.errors)
        self._bounds.set_visibility(bool(asked.form))
        self._shared.set_visibility(asked.has_own_constants)
        coupled = asked.has_several_columns and not asked.replicates
        law = "a*x - b*x*y; c*x*y - d*y" if coupled else "0.5*y*(1 - y/600)"
        examples = (*self._table.ends(asked), law)
        for line, example in zip((*self._ends, self._tried), examples, strict=True):
            if line.props.get("placeholder") != example:  # What is being written stays.
                line.props["placeholder"] = example
                line.update()
        # Of a form that is known there is nothing to search.
        self._effort.set_visibility(not asked.form)
        self._run.set_text("Fit the form" if asked.form else "Find the law")
        self._more.props["caption"] = ", ".join(self._used()) or _MORE
        self._more.update()

    def _used(self) -> list[str]:
        asked, columns = self.asked, self._table.columns
        written = {
            "errors": ", ".join(columns[key] for key in asked.errors) or asked.sigma,
            "input": ", ".join(columns[key] for key in asked.inputs),
            "from": asked.start,
            "to": asked.end,
            CONTROLS["--decimal"]: asked.decimal,
            CONTROLS["--thousands"]: asked.thousands,
            CONTROLS["--dates"]: asked.dates,
            "known": asked.known,
            "form": asked.form,
            "shared": asked.shared if asked.has_own_constants else "",
            "tried": asked.tried,
        }
        switches = {
            CONTROLS["--robust"]: asked.robust,
            CONTROLS["--zero-at-zero"]: asked.zero_at_zero,
            "depends on the time": asked.explicit_time,
            "second order": asked.second_order,
        }
        said = [f"{name} {value}" for name, value in written.items() if value]
        return [*said, *(name for name, is_on in switches.items() if is_on)]


def _side_by_side(columns: str = "grid-cols-2") -> ui.element:
    return ui.element("div").classes(f"w-full grid {columns} gap-x-4")
