"""The named laws of the catalogue as candidates, at the scale of the data.

Science's own laws must not be missed by chance. Each is proposed with the sizes that its
parameters have in the units of the data, several times where a fit may depend on where it
begins.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np

from nsode_jax.expressions.constants import exponent_constants, is_plain, linear_constants
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import NAMED, Origin
from nsode_jax.fitting.progress import Progress
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.search.sources import Proposal, Proposals
from nsode_jax.search.variants import canonical_or_none
from nsode_jax.selection.belief import in_force
from nsode_jax.selection.catalogue import Catalogue, NamedLaw
from nsode_jax.selection.form import Form, form_of

_MOST_STARTS = 6
"""Per form."""

_NOT_PLAIN = 1.07
_MARGIN = 0.2
_PLACES = 16


@dataclasses.dataclass(frozen=True)
class NamedLawSource:
    """The laws of `named_laws`, for the scales of the data.

    Attributes:
      catalogue: where the laws come from; by default that of the prior in force.
    """

    catalogue: Catalogue | None = None
    name: str = NAMED

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> Proposals:
        """All of them."""
        rates = [np.ptp(s.y) / np.ptp(s.t) for s in data if np.ptp(s.t) > 0]
        rate = float(max(rates, default=0.0)) or 1.0
        catalogue = self.catalogue or in_force().catalogue or Catalogue(())
        laws = named_laws(data.low, data.high, rate, catalogue)
        number = len(catalogue.laws)
        return Proposals(
            tuple(Proposal(law, Origin(self.name)) for law in laws),
            f"{number} named law{'s' * (number != 1)}",
        )


def named_laws(
    low: float, high: float, rate: float, catalogue: Catalogue | None = None
) -> list[Expression]:
    """Every form of the catalogue with constants to start from, in canonical form.

    A law in whose constants f is linear is there once, the others with a few starts:
    thresholds and saturations below, within and above the data.

    Args:
      low, high: range of y in the data.
      rate: a typical size of dy/dt, positive.
      catalogue: by default the one of the package.

    Returns:
      Laws that are defined over the range, each once.
    """
    catalogue = catalogue or Catalogue.load()
    places = np.linspace(low, high, _PLACES)
    found: dict[Form, dict[Expression, None]] = {}
    for law in catalogue.laws:
        for values in _starts(law, low, high, rate):
            expression = canonical_or_none(law.formula.with_values(values))
            if expression is None or not np.isfinite(expression.evaluate(places)).all():
                continue
            starts = found.setdefault(form_of(expression), {})
            enough = 1 if _is_linear(expression) else _MOST_STARTS
            if len(starts) < enough:
                starts[expression] = None
    return [expression for starts in found.values() for expression in starts]


def _is_linear(expression: Expression) -> bool:
    """Whether f is linear in its constants, but for exponents that are plain numbers."""
    skeleton = expression.skeleton
    plain = np.array([is_plain(constant) for constant in expression.constants], bool)
    return bool((linear_constants(skeleton) | (exponent_constants(skeleton) & plain)).all())


def _starts(law: NamedLaw, low: float, high: float, rate: float) -> Iterator[list[float]]:
    """Parameters of a law: those with a rate from the scales, the others in several ways."""
    span = (high - low) or abs(high) or 1.0
    size = max(abs(low), abs(high)) or 1.0
    places = [high + _MARGIN * span, low - _MARGIN * span, (low + high) / 2, size / 5, 3 * size]
    options = []
    typical = law.typical(size, rate)
    for parameter, usual in zip(law.parameters, typical):
        of_value, of_time = parameter.dimension(dict.fromkeys(law.formula.names, 1.0))
        if parameter.starts:
            # A plain exponent would be another form.
            options.append([s * _NOT_PLAIN if is_plain(s) else s for s in parameter.starts])
        elif of_time or not of_value:
            options.append([usual])
        else:
            kept = [p for p in places if p > 0 or (not parameter.positive and of_value == 1)]
            options.append([math.copysign(abs(p) ** of_value, p) for p in kept])
    for values in itertools.islice(itertools.product(*options), 64):
        if law.admits(values):
            yield list(values)
