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

from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import UNIT
from nsode_jax.expressions.prefix import Prefix, exponent_places, subtree_end
from nsode_jax.expressions.summands import summands
from nsode_jax.fitting.linearized import autocorrelation
from nsode_jax.fitting.shooting import SystemFit, linearized
from nsode_jax.fitting.system_problem import Tie
from nsode_jax.observed.observations import Observations
from nsode_jax.observed.regression import Regression
from nsode_jax.selection.named_systems import named_system, system_cost
from nsode_jax.selection.probabilities import UNSEEN_CONTRADICTED
from nsode_jax.selection.score import NUMBER_COST, SYSTEMATIC, misfit, share_of
from nsode_jax.selection.term_prior import TermPrior, coefficients_cost, term_cost

FLOOR = 1e-4
"""Residuals below this share of the spread count as equally small: coupled equations amplify
the tolerance of a solver, and the precision of a sensor."""

_REFERENCE_COST = 2 * math.log(8)
"""What is left of the cost of a term that stands in another equation already: which one."""

_PRIOR_WIDTH = 3.0
"""Standard deviation of the logarithm of a term's size beside its equation, as in `score`."""

_ALIKE = 0.25
"""Coefficients whose magnitudes differ by less than this share may be one."""


_UNSEEN, _HIDING = 0.1, 0.03
"""How probable it is in much noise that the right law of a quantity is not among its candidates,
and the share of the spread from which on noise is much. On textbook systems first laws are then
right about as often as is stated (`evaluation.system_calibration`)."""


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


def equation_score(law: Expression, relative_rms: float, form: Regression) -> float:
    """Twice the description length of one equation and of its quantity given it.

    Args:
      law: the equation, of any variables.
      relative_rms: residual relative to the spread of the quantity.
      form: what the equation is to explain.
    """
    cost = equation_cost(law, form.own, form.count)
    return float(misfit(relative_rms, form.count, form.floor)) + cost


@functools.lru_cache(maxsize=65_536)
def equation_cost(law: Expression, own: str, count: int) -> float:
    """The part of the score that is complexity: what its numbers and its terms cost.

    Args:
      law: the equation, of any variables.
      own: that whose rate of change it is.
      count: number of observations.
    """
    return numbers_cost(law, count) + term_cost(law, own)


def numbers_cost(law: Expression, count: int) -> float:
    """What the numbers of an equation cost that are fitted, and the coefficients that are not."""
    fitted = sum(not is_plain(c) for c in law.constants)
    return fitted * (math.log(count) + NUMBER_COST) + coefficients_cost(law)


def system_score(data: Observations, fit: SystemFit) -> float:
    """Twice the description length of a fitted system; inf if it diverges."""
    if fit.diverged:
        return math.inf
    floors = np.maximum(data.precision, FLOOR)
    system, total, terms = data.system, 0.0, 0.0
    relative, runs = fit.residuals / data.spread, data.changing.sum(axis=0)
    for k, (law, own) in enumerate(zip(fit.laws, system.sought, strict=True)):
        count = int(data.counts[k])
        # The initial values of the runs are parameters of all systems alike.
        counted = max(count - int(runs[k]), 1) / count
        total += counted * float(misfit(relative[k], count, float(floors[k])))
        total += numbers_cost(law, count) + smallness(data, law)
        terms += term_cost(law, own)
    costs = {shared.tie: shared.cost for shared in shared_terms(fit.laws, system.sought)}
    for tie in fit.ties:
        total -= math.log(data.count) + NUMBER_COST
        terms -= max(costs.get(tie, 0.0) - _REFERENCE_COST, 0.0)
    name = named_system(system.equations(fit.laws), system.states)
    total += system_cost(terms, name, len(system.states))
    starts = (fit.segments - 1) * len(data.runs) * len(data.system.states)
    return total + starts * math.log(data.count)


def unseen_probability(data: Observations, fits: Sequence[SystemFit]) -> float:
    """Probability that the right system was not found, from what the best leave over.

    Where even these leave residuals of a quantity that are alike from one observation to the
    next it is what it is of one quantity whose data contradict its laws.

    Args:
      data: the runs.
      fits: the best systems, the first one first.
    """
    squares = [float(left) ** 2 for left in fits[0].residuals / data.spread]
    found = math.prod(1 - _UNSEEN * square / (square + _HIDING**2) for square in squares)
    contradicted = all(_leaves_a_pattern(data, fit) for fit in fits)
    return max(1 - found, UNSEEN_CONTRADICTED) if contradicted else 1 - found


def _leaves_a_pattern(data: Observations, fit: SystemFit) -> bool:
    """Whether residuals of a quantity are more than systematic, and alike beyond chance."""
    ends = np.cumsum([len(run) for run in data.runs])[:-1]
    return any(
        one.rms > SYSTEMATIC
        and share_of(autocorrelation(np.split(one.residual, ends)), data.count) < 1.0
        for one in linearized(data, fit) or ()
    )


def smallness(data: Observations, law: Expression) -> float:
    """What terms cost that are small beside their equation.

    A constant is expected within a factor of e^3 of what makes its term as large as the
    equation; one of a millionth of that is hardly meant.
    """
    size = data.rms(law)
    total = 0.0
    for part in summands(law):
        share = data.rms(Expression(part, law.variables)) / size if size else 1.0
        if 0.0 < share < 1.0:
            total += (math.log(share) / _PRIOR_WIDTH) ** 2
    return total


def shared_terms(laws: Sequence[Expression], owns: Sequence[str]) -> list[SharedTerm]:
    """Terms that two equations have with opposite signs and similar coefficients.

    Args:
      laws: the equations.
      owns: the variables whose rates of change they are.
    """
    seen: dict[Prefix, list[tuple[int, float, int]]] = {}
    found, first = [], 0
    for number, (law, own) in enumerate(zip(laws, owns, strict=True)):
        for shape, place, coefficient in _terms(law):
            for other, its_coefficient, its_place in seen.get(shape, []):
                largest = max(abs(coefficient), abs(its_coefficient))
                likeness = abs(coefficient + its_coefficient) / largest if largest else 1.0
                if other != number and likeness < _ALIKE:
                    tie = Tie(first + place, its_place)
                    cost = TermPrior.load().cost(_with_number(shape), law.variables, own)
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
    exponents = exponent_places(tokens)

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
