"""A law fitted to data, and where it came from."""

from __future__ import annotations

import dataclasses
import math

from nsode_jax.expressions.expression import Expression

USER = "user"
"""Source of the laws that somebody asked to have tried."""

NAMED = "named laws"
"""Source of the laws that science has a name for."""


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a law came from.

    Attributes:
      source: name of the source that proposed it, or that its ancestor came from.
      log_probability: that the source gave the law or its ancestor, in nats; NaN if
        the source does not weigh its laws.
      evolved: whether it was changed since, by the search around the best laws.
    """

    source: str
    log_probability: float = math.nan
    evolved: bool = False

    def descendant(self) -> Origin:
        """The origin of a law made of this one."""
        return dataclasses.replace(self, evolved=True)

    @property
    def asked_for(self) -> bool:
        """Whether somebody wants to see how this very law does."""
        return self.source == USER and not self.evolved

    @property
    def of_search(self) -> Origin:
        """The origin of what a search makes of a law again: not what was asked for."""
        return self.descendant() if self.asked_for else self

    def __str__(self) -> str:
        return f"{self.source}, evolved" if self.evolved else self.source


@dataclasses.dataclass(frozen=True)
class Fit:
    """A law whose constants and initial values were fitted to the data.

    Attributes:
      expression: the law f, in the units of the data.
      y0s: fitted value at the first time, per trajectory.
      residual_rms: root mean square of solution minus data, in units of y, each value
        weighted by its precision; inf if the law has no solution over the observed
        times.
      r2: share of the data's variance that the solution explains, weighted likewise,
        at most 1; -inf without a solution.
      converged: whether the last least-squares fit of the solution met its
        tolerance; False for laws that were never fitted that far.
      origin: where the law came from.
    """

    expression: Expression
    y0s: tuple[float, ...]
    residual_rms: float
    r2: float
    converged: bool
    origin: Origin

    @property
    def diverged(self) -> bool:
        """Whether the law has no solution over the observed times."""
        return not math.isfinite(self.residual_rms)
