"""The score of a system of laws: the sum of the scores of its equations, shared terms once.

What leaves one compartment enters another: a term that stands in two equations with
opposite signs and one constant is told once.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import UNIT
from nsode_jax.expressions.prefix import Prefix, subtree_end
from nsode_jax.expressions.summands import summands
from nsode_jax.fitting.observations import Observations
from nsode_jax.fitting.shooting import SystemFit, Tie
from nsode_jax.selection.score import NUMBER_COST, misfit
from nsode_jax.selection.term_prior import TermPrior, term_cost

FLOOR = 1e-4
"""Residuals below this share of the spread count as equally small: coupled equations amplify
the tolerance of a solver, and the precision of a sensor."""

_REFERENCE_COST = 2 * math.log(8)
"""What is left of the cost of a term that stands in another equation already: which one."""

_PRIOR_WIDTH = 3.0
"""Standard deviation of the logarithm of a term's size beside its equation, as in `score`."""

_ALIKE = 0.25
"""Coefficients whose magnitudes differ by less than this share may be one."""


@dataclasses.dataclass(frozen=True)
class SharedTerm:
    """A term of two equations with opposite signs.

    Attributes:
      tie: the coefficient of the second, and that of the first.
      cost: of the term (`term_prior`).
      likeness: share by which the magnitudes of the coefficients differ.
    """

    tie: Tie
    cost: float
    likeness: float


def equation_score(law: Expression, relative_rms: float, count: int, floor: float) -> float:
    """Twice the description length of one equation and of its quantity given it.

    Args:
      law: the equation, of any variables.
      relative_rms: residual relative to the spread of the quantity.
      count: number of observations.
      floor: smallest residual that counts.
    """
    return float(misfit(relative_rms, count, floor)) + equation_cost(law, count)


@functools.lru_cache(maxsize=65_536)
def equation_cost(law: Expression, count: int) -> float:
    """The part of the score that is complexity: what its numbers and its terms cost."""
    numbers = sum(not is_plain(c) for c in law.constants)
    return numbers * (math.log(count) + NUMBER_COST) + term_cost(law)


def system_score(data: Observations, fit: SystemFit) -> float:
    """Twice the description length of a fitted system; inf if it diverges."""
    if fit.diverged:
        return math.inf
    floors = np.where(data.noise < 1e-3 * data.spread, data.noise / data.spread, 0.0)
    # The initial values of the runs are parameters of all systems alike.
    counted = max(data.count - len(data.runs), 1) / data.count
    total = 0.0
    for law, left, spread, floor in zip(
        fit.laws, fit.residuals, data.spread, np.maximum(floors, FLOOR), strict=True
    ):
        total += counted * float(misfit(left / spread, data.count, float(floor)))
        total += equation_cost(law, data.count) + smallness(data, law)
    costs = {shared.tie: shared.cost for shared in shared_terms(fit.laws)}
    for tie in fit.ties:
        total -= math.log(data.count) + NUMBER_COST
        total -= max(costs.get(tie, 0.0) - _REFERENCE_COST, 0.0)
    starts = (fit.segments - 1) * len(data.runs) * len(data.system.states)
    return total + starts * math.log(data.count)


def smallness(data: Observations, law: Expression) -> float:
    """What terms cost that are small beside their equation.

    A constant is expected within a factor of e^3 of what makes its term as large as the
    equation; one of a millionth of that is hardly meant.
    """
    points = np.concatenate([data.points(run, run.t) for run in data.runs], axis=1)
    size = _rms(law, points)
    total = 0.0
    for part in summands(law):
        share = _rms(Expression(part, law.variables), points) / size if size else 1.0
        if 0.0 < share < 1.0:
            total += (math.log(share) / _PRIOR_WIDTH) ** 2
    return total


def _rms(law: Expression, points: Float[np.ndarray, "variables points"]) -> float:
    with np.errstate(all="ignore"):
        value = float(np.sqrt(np.mean(law.evaluate(*points) ** 2)))
    return value if math.isfinite(value) else 0.0


def shared_terms(laws: Sequence[Expression]) -> list[SharedTerm]:
    """Terms that two equations have with opposite signs and similar coefficients."""
    seen: dict[Prefix, list[tuple[int, float, int]]] = {}
    found, first = [], 0
    for number, law in enumerate(laws):
        for shape, place, coefficient in _terms(law):
            for other, its_coefficient, its_place in seen.get(shape, []):
                largest = max(abs(coefficient), abs(its_coefficient))
                likeness = abs(coefficient + its_coefficient) / largest if largest else 1.0
                if other != number and likeness < _ALIKE:
                    tie = Tie(first + place, its_place)
                    cost = TermPrior.load().cost(_with_number(shape), law.variables)
                    found.append(SharedTerm(tie, cost, likeness))
                    break
            seen.setdefault(shape, []).append((number, coefficient, first + place))
        first += len(law.constants)
    taken, kept = set(), []
    for shared in sorted(found, key=lambda shared: shared.likeness):
        if not {shared.tie.place, shared.tie.partner} & taken:
            taken |= {shared.tie.place, shared.tie.partner}
            kept.append(shared)
    return kept


def _with_number(shape: Prefix) -> Prefix:
    """The term with some coefficient in its place."""
    return tuple(0.7 if token == "c" else token for token in shape)


def _terms(law: Expression) -> list[tuple[Prefix, int, float]]:
    """(term without its coefficient, place of that among the constants, its value).

    Only terms whose coefficient is their one constant can be shared.
    """
    found: list[tuple[Prefix, int, float]] = []
    tokens, constants = law.skeleton.tokens, law.constants

    def walk(start: int, end: int, place: int, sign: float) -> None:
        if tokens[start] in ("add", "sub"):
            middle = subtree_end(tokens, start + 1)
            walk(start + 1, middle, place, sign)
            later = sign if tokens[start] == "add" else -sign
            walk(middle, end, place + _count(start + 1, middle), later)
            return
        numbers = [
            i for i in range(start, end) if not isinstance(law.prefix[i], str) and tokens[i] != UNIT
        ]
        exponents = {subtree_end(tokens, i + 1) for i in range(start, end) if tokens[i] == "pow"}
        fitted = [i for i in numbers if i not in exponents]
        if len(fitted) == 1 and sign > 0:
            shape = tuple("c" if i == fitted[0] else law.prefix[i] for i in range(start, end))
            at = place + numbers.index(fitted[0])
            found.append((shape, at, constants[at]))

    def _count(start: int, end: int) -> int:
        return sum(
            not isinstance(law.prefix[i], str) and tokens[i] != UNIT for i in range(start, end)
        )

    walk(0, len(tokens), 0, 1.0)
    return found
