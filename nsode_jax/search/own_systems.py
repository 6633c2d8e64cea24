"""Systems that the user wants tried."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from nsode_jax.dynamics.system import System
from nsode_jax.dynamics.vectors import count
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.observed.regression import Regression
from nsode_jax.search.own_laws import OwnLaw
from nsode_jax.search.population import Draft


@dataclasses.dataclass(frozen=True)
class OwnSystem:
    """One law for each quantity.

    Attributes:
      text: as it was written.
      parts: the laws.
    """

    text: str
    parts: tuple[OwnLaw, ...]

    @classmethod
    def of(cls, laws: Sequence[Expression], origins: Sequence[Origin]) -> OwnSystem:
        """A system that was found before."""
        text = "; ".join(law.infix for law in laws)
        parts = zip(laws, origins, strict=True)
        return cls(text, tuple(OwnLaw(law, origin=origin) for law, origin in parts))

    @classmethod
    def parse(cls, text: str, system: System) -> OwnSystem:
        """Reads equations with semicolons between them, each as `OwnLaw.parse` does.

        Raises:
          ValueError: if they cannot be read, or are not as many as quantities.
        """
        parts = [part.strip() for part in text.split(";")]
        if len(parts) != len(system.observed):
            raise ValueError(
                f"{text!r} has {count(len(parts), 'equation')} for {', '.join(system.observed)}; "
                "put ; between them"
            )
        return cls(text, tuple(OwnLaw.parse(part, system.variables) for part in parts))

    @property
    def laws(self) -> tuple[Expression, ...]:
        """The right-hand sides."""
        return tuple(part.law for part in self.parts)

    def drafts(self, forms: Sequence[Regression]) -> list[list[Draft]]:
        """Constants to begin from, for each equation: the given ones, and those of its regression.

        Args:
          forms: of the equations.
        """
        return [part.drafts(form) for part, form in zip(self.parts, forms, strict=True)]
