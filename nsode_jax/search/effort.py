"""How much work a search is, and the names of where it looks; quick to import."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class RefineConfig:
    """How much work goes into refinement.

    Attributes:
      generations: of the evolutionary search; 0 for none.
      children: new laws per generation.
      matched: most laws whose solution is fitted to the data, roughly.
      polished: how many of them are then fitted until nothing changes.
      returned: how many laws are integrated and returned at all.
    """

    generations: int = 5
    children: int = 160
    matched: int = 60
    polished: int = 10
    returned: int = 100


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much work a discovery takes.

    Attributes:
      beams: width of the beam search, per view of the data.
      samples: laws drawn from the network beside it, per view.
      symbols: up to so many symbols every law is fitted.
      beyond: so many skeletons of more symbols are fitted too, the commonest.
      refine: what happens to them.
    """

    beams: int
    samples: int
    symbols: int
    beyond: int
    refine: RefineConfig


EFFORTS: dict[str, Effort] = {
    "fast": Effort(
        beams=16,
        samples=16,
        symbols=5,
        beyond=0,
        refine=RefineConfig(generations=3, children=128, matched=20, polished=10, returned=50),
    ),
    "default": Effort(beams=64, samples=64, symbols=6, beyond=6_000, refine=RefineConfig()),
    "thorough": Effort(
        beams=256,
        samples=256,
        symbols=7,
        beyond=60_000,
        refine=RefineConfig(generations=40, children=512, matched=120, polished=30, returned=200),
    ),
}
"""By name; "thorough" takes minutes."""

SOURCES = ("network", "named laws", "enumeration", "library")
"""Names of the sources of candidates, in the order in which they are asked."""
