"""Systems that the user wants tried."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from nsode_jax.dynamics.system import System
from nsode_jax.dynamics.vectors import count
from nsode_jax.expressions.constants import exponent_constants, linear_constants
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import USER, Origin
from nsode_jax.fitting.guesses import InitialGuess, initial_guesses
from nsode_jax.observed.regression import Regression
from nsode_jax.search.population import Draft, fitted_laws
from nsode_jax.search.variants import canonical_or_none
from nsode_jax.selection.named_formula import NamedFormula

_ORIGIN = Origin(USER)
_FACTORS = (0.1, 1.0, 10.0)
"""Of the size of the data: where thresholds begin that were not given."""

_MOST_STARTS = 4
_ANY = 1.1
"""Where a constant begins that is solved for; 1 may be no constant."""


@dataclasses.dataclass(frozen=True)
class OwnSystem:
    """One law for each quantity, with constants to begin from.

    Attributes:
      text: as it was written.
      laws: the right-hand sides; where a constant had a name, any number.
      named: whether there are such constants in each.
      origins: where the laws came from.
    """

    text: str
    laws: tuple[Expression, ...]
    named: tuple[bool, ...]
    origins: tuple[Origin, ...] = ()

    @classmethod
    def of(cls, laws: Sequence[Expression], origins: Sequence[Origin]) -> OwnSystem:
        """A system that was found before."""
        text = "; ".join(law.infix for law in laws)
        return cls(text, tuple(laws), (False,) * len(laws), tuple(origins))

    @classmethod
    def parse(cls, text: str, system: System) -> OwnSystem:
        """Reads equations with semicolons between them.

        Whatever is neither a variable nor a function is a constant's name; one that stands in
        several places is fitted in each.

        Raises:
          ValueError: if they cannot be read, or are not as many as quantities.
        """
        parts = [part.strip() for part in text.split(";")]
        if len(parts) != len(system.observed):
            raise ValueError(
                f"{text!r} has {count(len(parts), 'equation')} for {', '.join(system.observed)}; "
                "put ; between them"
            )
        laws, named = [], []
        for part in parts:
            law, with_names = _read(part, system.variables)
            laws.append(law)
            named.append(with_names)
        return cls(text, tuple(laws), tuple(named))

    def drafts(self, forms: Sequence[Regression]) -> list[list[Draft]]:
        """Constants to begin from, for each equation: the given ones, and those of its regression.

        Args:
          forms: of the equations.
        """
        return [
            _drafts(form, law, named, origin)
            for form, law, named, origin in zip(
                forms, self.laws, self.named, self.origins or (_ORIGIN,) * len(forms), strict=True
            )
        ]


def _drafts(form: Regression, law: Expression, named: bool, origin: Origin) -> list[Draft]:
    """The law with its constants, if they are given, and as fitted to the regression."""
    fitted: dict[tuple[str, ...], Draft] = {}
    for found, error in fitted_laws(form, guesses(form, law, named)):
        draft = _draft(found, error, origin)
        alike = tuple(f"{constant:.2g}" for constant in draft.expression.constants)
        fitted.setdefault(alike, draft)
    best = sorted(fitted.values(), key=lambda draft: draft.error)[:_MOST_STARTS]
    given = [] if named and best else [_draft(law, math.nan, origin)]
    return [*given, *best]


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


def _draft(law: Expression, error: float, origin: Origin) -> Draft:
    return Draft(canonical_or_none(law) or law, error, math.nan, origin)


def _read(text: str, variables: tuple[str, ...]) -> tuple[Expression, bool]:
    """A law with numbers in place of its named constants, and whether there are any."""
    formula = NamedFormula.parse(text, variables)
    law = formula.with_values([_ANY + 0.1 * i for i in range(len(formula.names))])
    return law, bool(formula.names)
