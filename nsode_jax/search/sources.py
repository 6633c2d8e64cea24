"""Where candidate laws come from: one protocol for the network, the library and others."""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol, runtime_checkable

import numpy as np

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import ARITHMETIC, OPERATORS
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.progress import Progress
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression

_NEAR_ZERO = np.array([1e-280, 1e-9, 1e-6, 1e-3])
"""Values that no data reach: whether f vanishes must not depend on where these are."""

_NOTHING = 1e-9


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A law to be tried, with the constants to start from, in the units of the data.

    Those are working units (`working_units`), which a user's need not be.
    """

    expression: Expression
    origin: Origin


@dataclasses.dataclass(frozen=True)
class Proposals:
    """What a source proposes.

    Attributes:
      laws: those worth a thorough fit.
      tried: what they were chosen from, in words: "all 8,712 laws of up to 6 symbols".
    """

    laws: tuple[Proposal, ...]
    tried: str


@dataclasses.dataclass(frozen=True)
class Restriction:
    """Which laws are to be considered at all.

    Attributes:
      operators: that laws may use beside arithmetic; None for all.
      max_symbols: most operators, variables and constants of a law; None for no limit.
      zero_at_zero: whether f(0) must be 0, as a limit from above at least.
    """

    operators: frozenset[str] | None = None
    max_symbols: int | None = None
    zero_at_zero: bool = False

    def __post_init__(self):
        unknown = (self.operators or frozenset()) - set(OPERATORS)
        if unknown:
            raise ValueError(
                f"there is no operator {', '.join(sorted(unknown))}; there are "
                f"{', '.join(sorted(set(OPERATORS) - ARITHMETIC))} beside arithmetic"
            )
        if self.max_symbols is not None and self.max_symbols < 1:
            raise ValueError(f"max_symbols must be at least 1, got {self.max_symbols}")

    @property
    def allowed(self) -> frozenset[str]:
        """All operators that laws may use."""
        return frozenset(OPERATORS) if self.operators is None else ARITHMETIC | self.operators

    def admits(self, law: Expression) -> bool:
        """Whether a law is to be considered."""
        if self.max_symbols is not None and law.complexity > self.max_symbols:
            return False
        if self.zero_at_zero and not _is_zero_at_zero(law):
            return False
        return self.operators is None or all(
            token in self.allowed for token in law.prefix if token in OPERATORS
        )


def _is_zero_at_zero(law: Expression) -> bool:
    """Whether f vanishes as y falls to 0, as that of y*log(y) does."""
    with np.errstate(all="ignore"):
        near, *others = np.abs(law.evaluate(_NEAR_ZERO))
    size = max((rate for rate in others if math.isfinite(rate)), default=0.0)
    return bool(near <= _NOTHING * size)


UNRESTRICTED = Restriction()


@runtime_checkable
class CandidateSource(Protocol):
    """Something that proposes laws for data.

    Attributes:
      name: what the source is called in a result, such as "network".
    """

    @property
    def name(self) -> str: ...

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> Proposals:
        """Laws for the data, in their units.

        Args:
          data: the series.
          form: the same, prepared for fitting: for sources that choose by fit.
          seed: of what is drawn at random.
          progress: told how far it is.
        """
        ...
