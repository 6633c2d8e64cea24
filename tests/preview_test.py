"""What the page shows of data, and hands over."""

import io
import zipfile

import numpy as np
import pytest
from observing import logistic_discovery, plate_discovery, prey_discovery

from nsode_jax.app.asking import Asked, Table
from nsode_jax.app.preview import data_html, explore, head_html, notes_html, report
from nsode_jax.tables.files import Contents

TEXT = "\n".join(["<t>,$a$,b", *(f"{t},{np.cos(t)},{'' if t == 3 else t}" for t in range(12))])


@pytest.mark.parametrize(
    "asked",
    [
        Asked("<t>", ("$a$",)),
        Asked("<t>", ("$a$", "b")),
        Asked("<t>", ("$a$",), inputs=("b",)),
    ],
)
def test_data_are_a_picture(asked):
    html = data_html(Table(Contents("data.csv", TEXT.encode())).read(asked))
    assert html.startswith('<img src="data:image/svg+xml;base64,')


def test_names_cannot_be_tags():
    table = Table(Contents("data.csv", TEXT.encode()))
    head = head_html(table.header, table.rows)
    assert "&lt;t&gt;" in head and "<t>" not in head
    assert notes_html(()) == "" and notes_html(("<b>",)) == "<ul><li>&lt;b&gt;</li></ul>"


@pytest.mark.parametrize("found", [logistic_discovery, prey_discovery])
def test_the_report_is_a_page_and_an_archive(found):
    seen = explore(found(), "hours", "OD")
    page, archive = report(seen, "data.csv", {"effort": "fast"})
    assert page.startswith(b"<!DOCTYPE html>") and b"effort = fast" in page
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        names = files.namelist()
        assert {"report.html", "report.md", "discovery.json", "fit.png"} <= set(names)
        assert all("/" not in name for name in names)


def test_the_report_of_many_series_has_their_constants():
    seen = explore(plate_discovery(), "hours", "OD")
    page, archive = report(seen, "data.csv", {"constants": "own"})
    assert b"constants = own" in page
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        assert {"report.html", "constants.csv", "series.png"} <= set(files.namelist())
