"""The bank: unique skeletons, drawn once, in one small file.

    {"format": "nsode_jax skeleton bank 2", "skeletons": 300000, ...}
    add mul c y c
    ...

compressed by gzip, one key a line, in the order in which they were drawn: so a
smaller bank is the beginning of a larger one.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib.resources
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

from nsode_jax.data.generate import GenerationConfig, settings, split_of
from nsode_jax.data.progress import CountedProgress, uncounted
from nsode_jax.data.reserved_skeletons import is_held_out, known_keys
from nsode_jax.data.skeletons import draw_skeletons
from nsode_jax.system.files import write_atomically
from nsode_jax.system.packed import checksum, unpack, write_packed
from nsode_jax.system.workers import Workers

_FORMAT = "nsode_jax skeleton bank 2"
"""The number changes with the canonical form: skeletons of another one get no constants."""

_BATCHES_PER_PART = 40
_MAX_EMPTY_BATCHES = 20
_DRAWING = (
    "prior",
    "simplify",
    "seconds_per_tree",
    "max_complexity",
    "known_test_skeletons",
    "seed",
    "system",
)
"""Fields of a `GenerationConfig` that decide which skeletons are drawn."""


@dataclasses.dataclass(frozen=True, eq=False)
class SkeletonBank:
    """Unique skeletons.

    Attributes:
      keys: of the skeletons, in the order in which they were first drawn.
      settings: the fields of the config that they were drawn with.
      counts: trees drawn, and how many were dropped for what reason.
    """

    keys: tuple[str, ...]
    settings: dict
    counts: collections.Counter[str]

    @classmethod
    def draw(
        cls,
        config: GenerationConfig,
        workers: Workers,
        *,
        folder: Path | None = None,
        progress: CountedProgress = uncounted,
    ) -> SkeletonBank:
        """Draws `num_skeletons` skeletons; those known from the test sets come first.

        Args:
          config: what to draw.
          workers: who draws. Their number does not change the result, unless SymPy's
            `simplify` comes close to its time limit.
          folder: for parts of the work, so that a killed run goes on where it was.
          progress: called with the stage, the amount done and the total.

        Raises:
          RuntimeError: if the prior holds fewer.
        """
        target, found = config.num_skeletons, dict.fromkeys(_known(config))
        counts = collections.Counter({"known from the test sets": len(found)})
        empty = 0
        for keys, new_counts in _batches(config, workers, folder):
            before = len(found)
            found.update(dict.fromkeys(keys))
            counts += new_counts
            counts["duplicate skeleton"] += len(keys) - (len(found) - before)
            progress("skeletons", min(len(found), target), target)
            empty = 0 if len(found) > before else empty + 1
            if len(found) >= target:
                break
            if empty >= _MAX_EMPTY_BATCHES:
                raise RuntimeError(
                    f"the prior holds no more than about {len(found)} skeletons; "
                    f"lower num_skeletons from {target}"
                )
        return cls(tuple(itertools.islice(found, target)), drawing_settings(config), +counts)

    @functools.cached_property
    def sha256(self) -> str:
        """Of the keys."""
        return checksum(self.keys)

    def save(self, path: str | Path) -> None:
        """Writes the file; the same bank gives the same bytes."""
        header = {
            "skeletons": len(self.keys),
            "settings": self.settings,
            "counts": dict(sorted(self.counts.items())),
        }
        write_packed(path, _FORMAT, header, self.keys)

    @classmethod
    def load(cls, path: str | Path) -> SkeletonBank:
        """Reads a file, or the bank of that name which ships with the package (`base`).

        Raises:
          FileNotFoundError: if there is none.
          ValueError: if the file is damaged or no bank.
        """
        try:
            header, keys = unpack(_resolve(path), _FORMAT)
        except ValueError as error:
            raise ValueError(f"{path} {error}; draw it anew") from error
        return cls(tuple(keys), header["settings"], collections.Counter(header["counts"]))

    def first(self, count: int) -> SkeletonBank:
        """The bank of the skeletons that were drawn first; all if it has no more."""
        return dataclasses.replace(self, keys=self.keys[:count])

    def constant_sets(self, config: GenerationConfig) -> tuple[int, ...]:
        """How many sets of constants each skeleton gets."""
        lengths = [key.count(" ") + 1 for key in self.keys]
        sharing = collections.Counter(lengths)
        most = max(sharing.values())
        usual, limit = config.constants_per_skeleton, config.max_constants_per_skeleton
        sets = {n: min(limit, round(usual * most / sharing[n])) for n in sharing}
        return tuple(sets[n] for n in lengths)

    def work(self, config: GenerationConfig, split: str) -> list[tuple[str, int]]:
        """(key, number of sets of constants) of each skeleton of a split."""
        return [
            (key, sets)
            for key, sets in zip(self.keys, self.constant_sets(config), strict=True)
            if split_of(key, config.validation_share) == split
            # An older bank may hold what has been held out since.
            and not is_held_out(key)
        ]


def _known(config: GenerationConfig) -> Iterator[str]:
    """Keys that come first: those of the test sets that fit, and are not held out."""
    of_one = config.system.num_states == 1
    for key in known_keys() if config.known_test_skeletons and of_one else ():
        if key.count(" ") < config.max_complexity and not is_held_out(key):
            yield key


def drawing_settings(config: GenerationConfig) -> dict:
    """The fields of a config that decide which skeletons are drawn, as plain JSON."""
    fields = settings(config)
    return {name: fields[name] for name in _DRAWING if name in fields}


def _batches(
    config: GenerationConfig, workers: Workers, folder: Path | None
) -> Iterator[tuple[list[str], collections.Counter[str]]]:
    """Batches in order; from the folder those which an earlier run has left there."""
    draw = functools.partial(draw_skeletons, config)
    if folder is None:
        yield from workers.map(draw, itertools.count())
        return
    folder.mkdir(parents=True, exist_ok=True)
    settings, start = drawing_settings(config), 0
    for part in itertools.count():
        path = folder / f"part-{part:05d}.json"
        if not path.exists():
            break
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # Damaged: this one is drawn again.
            break
        if content["settings"] != settings:
            raise ValueError(f"{folder} was begun with other settings; delete it to start anew")
        for keys, counts in content["batches"]:
            yield keys, collections.Counter(counts)
        start += len(content["batches"])
    unsaved: list = []
    for keys, counts in workers.map(draw, itertools.count(start)):
        unsaved.append((keys, counts))
        if len(unsaved) == _BATCHES_PER_PART:
            path = folder / f"part-{start // _BATCHES_PER_PART:05d}.json"
            content = {"settings": settings, "batches": unsaved}
            write_atomically(path, json.dumps(content).encode())
            start, unsaved = start + len(unsaved), []
        yield keys, counts


def _resolve(path: str | Path) -> bytes:
    shipped = importlib.resources.files("nsode_jax.data") / "banks" / f"{path}.gz"
    if os.sep not in str(path) and shipped.is_file():
        return shipped.read_bytes()
    if not Path(path).is_file():
        raise FileNotFoundError(f"no skeleton bank {path}")
    return Path(path).read_bytes()
