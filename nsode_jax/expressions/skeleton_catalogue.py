"""The catalogue of laws: all skeletons up to a size, and the commonest beyond, in one file.

    {"format": "nsode_jax skeleton catalogue 1", "complete_to": 7, ...}
    mul c y 20393
    ...

compressed by gzip, one skeleton a line with how often it was drawn: by size and, of one
size, by frequency. Those beyond the complete sizes follow by frequency alone. The drawn
trees are half random ones of the paper's prior and half laws (`EquationPrior`); no test
set has a part in it. Drawn anew by: python -m nsode_jax.expressions.skeleton_catalogue FILE.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import importlib.resources
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nsode_jax.expressions.canonical import canonicalize, is_trivial
from nsode_jax.expressions.enumeration import enumerate_skeletons, is_redundant
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.prefix import NotRepresentable
from nsode_jax.expressions.sampling import EquationPrior, sample_expression
from nsode_jax.system.packed import unpack, write_packed
from nsode_jax.system.workers import Workers, WorkersLost

_FORMAT = "nsode_jax skeleton catalogue 1"
PRIORS = (EquationPrior(), EquationPrior(law_share=1.0))
_TREES_PER_TASK = 20_000
_MAX_SYMBOLS = 23
"""Longer skeletons are not kept: no data tell their constants apart."""


@dataclasses.dataclass(frozen=True, eq=False)
class Catalogue:
    """Skeletons without the signs of their constants, simple and common ones first.

    Attributes:
      keys: of the skeletons; constants may have either sign.
      frequencies: how often each was drawn from the priors.
      complete_to: up to so many symbols no skeleton is missing.
      trees: how many were drawn.
    """

    keys: tuple[str, ...]
    frequencies: tuple[int, ...]
    complete_to: int
    trees: int

    def skeletons_up_to(self, symbols: int) -> tuple[str, ...]:
        """Keys of all skeletons of at most so many symbols, the simplest first.

        Raises:
          ValueError: if the catalogue is not complete up to there.
        """
        if symbols > self.complete_to:
            raise ValueError(
                f"the catalogue is complete up to {self.complete_to} symbols, not {symbols}"
            )
        return tuple(itertools.takewhile(lambda key: _symbols(key) <= symbols, self.keys))

    def commonest_beyond(self, symbols: int, count: int) -> tuple[str, ...]:
        """Keys of so many skeletons of more symbols, the commonest first."""
        beyond = [i for i, key in enumerate(self.keys) if _symbols(key) > symbols]
        beyond.sort(key=lambda i: -self.frequencies[i])  # Stable: ties stay in order.
        return tuple(self.keys[i] for i in beyond[:count])

    def with_operators(self, operators: Sequence[str]) -> Catalogue:
        """Those skeletons that need no other operators."""
        others = set(OPERATORS) - set(operators)
        kept = [i for i, key in enumerate(self.keys) if others.isdisjoint(key.split())]
        return dataclasses.replace(
            self,
            keys=tuple(self.keys[i] for i in kept),
            frequencies=tuple(self.frequencies[i] for i in kept),
        )

    def save(self, path: str | Path) -> None:
        """Writes the file; the same catalogue gives the same bytes."""
        lines = [f"{key} {n}" for key, n in zip(self.keys, self.frequencies, strict=True)]
        sizes = collections.Counter(map(_symbols, self.keys))
        header = {
            "complete_to": self.complete_to,
            "trees": self.trees,
            "skeletons": len(self.keys),
            "by_symbols": {str(n): sizes[n] for n in sorted(sizes)},
        }
        write_packed(path, _FORMAT, header, lines)

    @classmethod
    def load(cls, path: str | Path | None = None) -> Catalogue:
        """Reads a file; by default that which ships with the package.

        Raises:
          ValueError: if the file is damaged or no catalogue.
        """
        shipped = importlib.resources.files("nsode_jax.expressions") / "data" / "skeletons.gz"
        data = shipped.read_bytes() if path is None else Path(path).read_bytes()
        try:
            header, packed = unpack(data, _FORMAT)
        except ValueError as error:
            raise ValueError(f"{path or shipped} {error}; draw it anew") from error
        lines = [line.rpartition(" ") for line in packed]
        return cls(
            tuple(key for key, _, _ in lines),
            tuple(int(number) for _, _, number in lines),
            header["complete_to"],
            header["trees"],
        )


@functools.cache
def shipped_catalogue() -> Catalogue:
    """The catalogue that ships with the package, read once."""
    return Catalogue.load()


def _symbols(key: str) -> int:
    return key.count(" ") + 1


def count_skeletons(seed: int, trees: int = _TREES_PER_TASK) -> collections.Counter[str]:
    """How often skeletons come up among random trees, as many from each prior."""
    counts: collections.Counter[str] = collections.Counter()
    random = np.random.default_rng([20222, seed])
    for number in range(trees):
        tree = sample_expression(PRIORS[number % len(PRIORS)], random)
        try:
            skeleton = canonicalize(tree).skeleton
        except NotRepresentable:
            continue
        if not is_trivial(skeleton) and len(skeleton.tokens) <= _MAX_SYMBOLS:
            counts[skeleton.unsigned_key] += 1
    return counts


def compose(
    levels: Sequence[Sequence[str]],
    counts: collections.Counter[str],
    *,
    beyond: int,
    trees: int,
) -> Catalogue:
    """All skeletons of the levels, and the commonest of more symbols.

    Args:
      levels: keys by their number of symbols, of `enumerate_skeletons`.
      counts: how often skeletons were drawn.
      beyond: how many skeletons of more symbols.
      trees: how many were drawn.
    """
    ordered = [key for level in levels for key in sorted(level, key=lambda k: (-counts[k], k))]
    larger = sorted(
        ((-n, key) for key, n in counts.items() if _symbols(key) > len(levels)),
    )
    useful = (key for _, key in larger if not is_redundant(tuple(key.split())))
    keys = [*ordered, *itertools.islice(useful, beyond)]
    return Catalogue(tuple(keys), tuple(counts[key] for key in keys), len(levels), trees)


def main(argv: Sequence[str] | None = None) -> int:
    """Draws a catalogue and writes it. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="nsode_jax.expressions.skeleton_catalogue",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--symbols", type=int, default=7, help="complete up to so many")
    parser.add_argument("--beyond", type=int, default=100_000, help="skeletons of more symbols")
    parser.add_argument("--trees", type=int, default=4_000_000)
    parser.add_argument("--processes", type=int, default=None)
    arguments = parser.parse_args(argv)
    levels = enumerate_skeletons(arguments.symbols, report=print)
    counts: collections.Counter[str] = collections.Counter()
    tasks = -(-arguments.trees // _TREES_PER_TASK)
    try:
        with Workers(arguments.processes) as workers:
            for some in workers.map(count_skeletons, range(tasks), in_order=False):
                counts.update(some)
    except WorkersLost as error:
        parser.exit(1, f"error: {error}\n")
    trees = tasks * _TREES_PER_TASK
    catalogue = compose(levels, counts, beyond=arguments.beyond, trees=trees)
    catalogue.save(arguments.file)
    sizes = ", ".join(f"{len(level):,} of {n}" for n, level in enumerate(levels, start=1))
    print(f"{arguments.file}: {len(catalogue.keys):,} skeletons; all {sizes} symbols")
    return 0


if __name__ == "__main__":
    sys.exit(main())
