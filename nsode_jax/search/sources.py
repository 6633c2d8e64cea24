"""Where candidate laws come from: one protocol for the network, the library and others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.progress import Progress
from nsode_jax.fitting.regression import Regression


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A law to be tried, with the constants to start from, in the units of the data."""

    expression: Expression
    origin: Origin


class CandidateSource(Protocol):
    """Something that proposes laws for data.

    Attributes:
      name: what the source is called in a result, such as "network".
    """

    @property
    def name(self) -> str: ...

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> Sequence[Proposal]:
        """Laws for the data, in their units.

        Args:
          data: the series.
          form: the same, prepared for fitting: for sources that choose by fit.
          seed: of what is drawn at random.
          progress: told how far it is.
        """
        ...


@dataclasses.dataclass(frozen=True)
class GivenLaws:
    """Laws that somebody wants to have tried."""

    laws: tuple[Expression, ...]
    name: str = "user"

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> list[Proposal]:
        """The laws as they are."""
        return [Proposal(law, Origin(self.name)) for law in self.laws]
