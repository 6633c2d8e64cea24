"""The folder of `discover_each`: a file for the law of each series, and what they are of."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from nsode_jax.expressions.expression import Expression
from nsode_jax.results.json_fields import DiscoveryFileError
from nsode_jax.selection.belief import own_laws
from nsode_jax.system.files import write_atomically

if TYPE_CHECKING:
    from nsode_jax.reporting.discovery import Discovery

OPTIONS, TABLE = "options.json", "laws.csv"

_LONGEST_NAME = 180
"""Characters of a file's name; systems allow 255 bytes with all that is added to it."""

Given = tuple[Any, ...] | str
"""Of a series: times, values and what else is known; or in a line why it cannot be used."""


class EachError(ValueError):
    """The folder or the series cannot be used; the message is one line."""


class OtherOptions(EachError):
    """The folder holds results of other options.

    Attributes:
      folder: as it was given.
      names: of the options that differ.
    """

    def __init__(self, folder: Path, names: Sequence[str]):
        self.folder, self.names = folder, tuple(names)
        super().__init__(
            f"{folder} holds results of other options ({', '.join(names)} differ"
            f"{'s' if len(names) == 1 else ''}): choose another folder"
        )


def result_file(folder: str | Path, label: str) -> Path:
    """Where the discovery of a series is kept; labels that no file can have are changed."""
    name = quote(label, safe=" ")
    if name.lower() == Path(OPTIONS).stem:
        name = f"%{ord(name[0]):X}{name[1:]}"
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"
    return Path(folder) / f"{name}.json"


class Known(NamedTuple):
    """What a folder holds beside what is done: how many series have changed, how many are others.

    Results of what has changed are dropped; those of others stay.
    """

    changed: int
    others: int

    def in_words(self, number: int, done: int) -> str:
        """A line on it and on how many of all series are done; empty if there is nothing."""
        parts = []
        if done:
            parts.append(f"{done} of {number} series done already")
        if self.changed:
            parts.append(f"data of {self.changed} changed: done anew")
        if self.others:
            parts.append(f"results of {self.others} others stay, which are not in {TABLE}")
        return "; ".join(parts)


def prepare(
    folder: Path,
    series: Mapping[str, Given],
    usable: Mapping[str, tuple[Any, ...]],
    options: Mapping[str, Any],
) -> Known:
    """Makes the folder, or checks that it is of the same search; drops results of other data.

    Args:
      folder: where results go.
      series: by label as they were given.
      usable: those that can be used, their times in one unit.
      options: of `discover`.

    Raises:
      OtherOptions: if there are results of other options.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / OPTIONS
    asked = json.loads(json.dumps(_contents(options), default=_as_json))
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if not any(path != file for path in folder.glob("*.json")):
        before = {}
    if before and (differing := _differing(before.get("options", {}), asked)):
        raise OtherOptions(folder, differing)
    known = before.get("series", {})
    data = {label: _fingerprint(usable.get(label, given)) for label, given in series.items()}
    changed = [
        result_file(folder, label)
        for label in data.keys() & known.keys()
        if data[label] != known[label] and result_file(folder, label).exists()
    ]
    for path in changed:
        path.unlink(missing_ok=True)
    others = sum(result_file(folder, label).exists() for label in known.keys() - data.keys())
    content = {"options": asked, "series": known | data}
    write_atomically(file, json.dumps(content, sort_keys=True, indent=1).encode())
    return Known(len(changed), others)


def _differing(before: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Names of the options that are not what they were."""
    names = sorted(before.keys() | asked.keys())
    return [n for n in names if (n in before) != (n in asked) or before.get(n) != asked.get(n)]


def _fingerprint(given: Given) -> str:
    """Of all that is given of a series: another one where anything differs."""
    text = json.dumps([part for part in given if part is not None], default=_as_json)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _as_json(value: Any) -> Any:
    """Values of options and data, with all that counts of them, as JSON knows them."""
    if hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    if isinstance(value, Expression):
        return value.infix
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, Path | datetime.date | datetime.timedelta) or not hasattr(
        value, "__dict__"
    ):
        return str(value)
    return {"": type(value).__qualname__, **getattr(value, "__dict__", {"is": str(value)})}


def _contents(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with what files say that they name."""
    found = dict(options)
    if (laws := own_laws(found.get("named_laws"))).laws:
        found["named_laws"] = [law.to_entry() for law in laws.laws]
    weights = found.get("weights")
    if weights and (about := Path(weights) / "model.json").is_file():
        found["weights"] = about.read_text(encoding="utf-8")
    return found


def is_done(folder: Path, label: str) -> bool:
    """Whether there is a result that can be read: what is damaged is done again."""
    return result_file(folder, label).exists() and not isinstance(loaded(folder, label), str)


def loaded(folder: Path, label: str) -> Discovery | str:
    """The result of a series, or in a line why it cannot be read."""
    from nsode_jax.reporting.discovery import Discovery

    try:
        return Discovery.load(result_file(folder, label))
    except (OSError, DiscoveryFileError) as error:
        return str(error)
