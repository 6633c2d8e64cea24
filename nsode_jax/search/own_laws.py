"""Laws that the user wants tried."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from nsode_jax.dynamics.vectors import count
from nsode_jax.expressions.constants import exponent_constants, linear_constants, structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import VARIABLES
from nsode_jax.fitting.fit import USER, Origin
from nsode_jax.fitting.guesses import InitialGuess, initial_guesses
from nsode_jax.fitting.progress import Progress
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.scaling import AffineView
from nsode_jax.search.population import Draft, fitted_laws
from nsode_jax.search.sources import Proposal, Proposals
from nsode_jax.search.variants import canonical_or_none
from nsode_jax.selection.named_formula import NamedFormula

_FACTORS = (0.1, 1.0, 10.0)
"""Of the size of the data: where thresholds begin that were not given."""

_MOST_STARTS = 4
_ANY = 1.1
"""Where a constant begins that is solved for; 1 may be no constant."""


@dataclasses.dataclass(frozen=True)
class OwnLaw:
    """A right-hand side with constants to begin from.

    Attributes:
      law: the right-hand side; where a constant had a name, any number.
      named: whether there are such constants.
      origin: where the law came from.
    """

    law: Expression
    named: bool = False
    origin: Origin = Origin(USER)

    @classmethod
    def parse(cls, text: str, variables: tuple[str, ...] = VARIABLES) -> OwnLaw:
        """Reads a formula.

        Whatever is neither a variable nor a function is a constant's name; one that stands in
        several places is fitted in each.

        Raises:
          ExpressionError: if it cannot be read.
        """
        formula = NamedFormula.of_user(text, variables)
        law = formula.with_values([_ANY + 0.1 * i for i in range(len(formula.names))])
        return cls(law, bool(formula.names))

    def in_units(self, units: AffineView) -> OwnLaw:
        """The law of data as a view of them shows it.

        Raises:
          ExpressionError: if it cannot be written so.
        """
        return dataclasses.replace(self, law=units.inverse().restore(self.law))

    def drafts(self, form: Regression) -> list[Draft]:
        """The law with its constants, if they are given, and as fitted to a regression."""
        fitted: dict[tuple[str, ...], Draft] = {}
        for found, error in fitted_laws(form, guesses(form, self.law, self.named)):
            draft = self._draft(found, error)
            alike = tuple(f"{constant:.2g}" for constant in draft.expression.constants)
            fitted.setdefault(alike, draft)
        best = sorted(fitted.values(), key=lambda draft: draft.error)[:_MOST_STARTS]
        given = [] if self.named and best else [self._draft(self.law, math.nan)]
        return [*given, *best]

    def starts(self, form: Regression) -> list[Expression]:
        """The law with the constants that it was given; with named ones as they fit best.

        A named exponent stays one, however near to a whole number it is.
        """
        if not self.named:
            return [self.law]
        drafts = [draft.expression for draft in self.drafts(form)]
        asked = structure(canonical_or_none(self.law) or self.law)
        return [law for law in drafts if structure(law) == asked] or drafts

    def _draft(self, law: Expression, error: float) -> Draft:
        return Draft(canonical_or_none(law) or law, error, math.nan, self.origin)


def guesses(form: Regression, law: Expression, named: bool) -> Iterator[InitialGuess]:
    """Constants to begin from: those given, or some of the size of the data."""
    if not named:
        yield from initial_guesses(law)
        return
    nonlinear = ~linear_constants(law.skeleton) & ~exponent_constants(law.skeleton)
    size = float(np.median(np.abs(form.nodes))) or 1.0
    for magnitude in (*(factor * size for factor in _FACTORS), 1.1):
        start = np.where(nonlinear, magnitude, law.constants)
        yield from initial_guesses(law.skeleton.with_constants(start))


@dataclasses.dataclass(frozen=True)
class OwnLawSource:
    """Laws of the user's own.

    Attributes:
      starts: of each law with the constants that it was given, or named ones as they fit best.
    """

    starts: tuple[tuple[Proposal, ...], ...]
    name: str = USER

    @classmethod
    def of(cls, laws: Sequence[OwnLaw], form: Regression) -> OwnLawSource:
        """From laws in the units of the data that are searched."""
        starts = (tuple(Proposal(law, own.origin) for law in own.starts(form)) for own in laws)
        return cls(tuple(starts))

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """All starts; what the search makes of them is no longer what was asked for."""
        starts = itertools.chain(*self.starts)
        return tuple(Proposal(start.expression, start.origin.of_search) for start in starts)

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> Proposals:
        """These, whatever the data."""
        return Proposals(self.proposals, f"{count(len(self.starts), 'law')} of your own")
