"""What is shown of data before the search, and handed over after it."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory, clean
from nsode_jax.reporting import report as law_report
from nsode_jax.reporting import report_own_constants, system_report
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.documents import Block, Bullets, Table, blocks_to_html, image
from nsode_jax.reporting.exploration import Exploration
from nsode_jax.reporting.form_discovery import FormDiscovery
from nsode_jax.reporting.form_exploration import FormExploration
from nsode_jax.reporting.law_exploration import LawExploration
from nsode_jax.reporting.pictures import as_label, draw_points, finish, new_figure, save
from nsode_jax.reporting.report_parts import HTML
from nsode_jax.reporting.system_discovery import SystemDiscovery
from nsode_jax.reporting.system_exploration import SystemExploration
from nsode_jax.reporting.tables import laws_table
from nsode_jax.results.own_constants import FormResult
from nsode_jax.results.system_result import SystemResult
from nsode_jax.tables.quantities import Quantities
from nsode_jax.tables.table import Measurements

_WIDTH, _PANEL, _LOWEST = 6.4, 1.6, 2.8  # Inches.


def data_html(read: Measurements | Quantities) -> str:
    """The data as they were read, as a picture."""
    panels = _panels(read)
    figure = new_figure(_WIDTH, max(_LOWEST, 0.6 + _PANEL * len(panels)))
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, series) in zip(all_axes, panels, strict=True):
        draw_points(axes, series, np.concatenate([each.y for each in series]), "data")
        finish(axes, "", as_label(name))
        axes.get_legend().remove()
    time = read.time_name if isinstance(read, Quantities) else read.names[0]
    all_axes[-1].set_xlabel(as_label(time), fontsize=12)
    buffer = io.BytesIO()
    save(figure, buffer, "svg")
    return image(buffer.getvalue(), "svg+xml", "The data as they were read")


def notes_html(notes: tuple[str, ...]) -> str:
    """What was done to the file."""
    blocks: list[Block] = [Bullets(notes)] if notes else []
    return blocks_to_html(blocks)


def head_html(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """The first rows of a table."""
    return blocks_to_html([Table(columns, tuple(rows))])


def explore(
    found: Discovery | SystemDiscovery | FormDiscovery, time_name: str, value_name: str
) -> Exploration:
    """What there is to see and to move of a result."""
    if isinstance(found, FormDiscovery):
        return FormExploration(found, time_name, value_name)
    if isinstance(found, SystemDiscovery):
        return SystemExploration(found, time_name)
    return LawExploration(found, time_name, value_name)


def laws_csv(found: Mapping[str, Discovery | str]) -> str:
    """The laws of many series as the table that the command writes."""
    return laws_table(found.items()).to_csv()


def report(seen: Exploration, source: str, options: Mapping[str, object]) -> tuple[bytes, bytes]:
    """The report of a result: as one page, and as an archive of all files.

    Nothing of it stays on the disk.
    """
    found, names = seen.found, (seen.time_name, seen.value_name)
    with tempfile.TemporaryDirectory(prefix="nsode_jax_report_") as folder:
        if isinstance(found, FormResult):
            files = report_own_constants.write_report(found, folder, *names, source, options)
        elif isinstance(found, SystemResult):
            files = system_report.write_report(found, folder, seen.time_name, source, options)
        else:
            assert isinstance(found, Discovery)
            files = law_report.write_report(found, folder, *names, source, options)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.name)
        return (Path(folder) / HTML).read_bytes(), buffer.getvalue()


def _panels(read: Measurements | Quantities) -> list[tuple[str, list[Trajectory]]]:
    """Name and series of each quantity."""
    if not isinstance(read, Quantities):
        return [(read.names[1], list(read.trajectories))]
    panels = []
    tables = [np.hstack(parts) for parts in zip(read.values, read.inputs, strict=True)]
    for column, name in enumerate((*read.names, *read.input_names)):
        runs = [(t, values[:, column]) for t, values in zip(read.times, tables, strict=True)]
        panels.append((name, [clean(t, y, fewest=1, constant=True)[0] for t, y in runs]))
    return panels
