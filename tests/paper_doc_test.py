"""docs/paper.md: every name that it cites is there."""

import dataclasses
import functools
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_NAME = re.compile(r"`([a-z_]+(?:\.\w+)+)`")
_OUTSIDE = ("configs",)


def cited_names(text: str) -> list[str]:
    """The dotted names in the middle column of all tables, the heads left out."""
    rows = [row for row in _ROW.findall(text) if row[1] != "where"]
    return [name for _, where, _ in rows for name in _NAME.findall(where)]


def find(name: str) -> object:
    """What a dotted name means.

    Raises:
      ImportError, AttributeError: if there is no such thing.
    """
    full = name if name.split(".")[0] in _OUTSIDE else f"nsode_jax.{name}"
    parts = full.split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if end > 1 and ".".join(parts[:end]).startswith(str(error.name)):
                continue
            raise
        return functools.reduce(_member, parts[end:], module)


def _member(owner: object, name: str) -> object:
    if dataclasses.is_dataclass(owner) and name in {f.name for f in dataclasses.fields(owner)}:
        return name
    return getattr(owner, name)


def test_every_name_is_there():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    names = cited_names(text)
    assert len(set(names)) > 60
    for name in names:
        find(name)


def test_every_statement_says_where_and_whether():
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = _ROW.findall(text)
    assert len(rows) == len(lines)
    assert all(_NAME.search(where) for _, where, _ in rows if where != "where")


@pytest.mark.parametrize(
    "name",
    [
        "data.bits.no_such_function",
        "no_such_room.file.name",
        "dynamics.solve.SolverConfig.no_such_field",
    ],
)
def test_a_name_that_is_gone_is_noticed(name):
    with pytest.raises((ImportError, AttributeError)):
        find(name)
