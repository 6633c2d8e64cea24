"""Which term an equation of a fitted system lacks, without fitting any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.prefix import Prefix, joined, times
from nsode_jax.fitting.shooting import SystemFit
from nsode_jax.fitting.system_problem import Problem
from nsode_jax.observed.observations import Observations
from nsode_jax.residuals.noise import directions

_TRACE = 1e-4
"""Of the rate of an equation: a term of which the effect is looked for."""

_SEEN = 1e-9
"""Share of a term's effect that constants and initial values must leave."""


def gains(
    data: Observations, fit: SystemFit, equation: int, terms: Sequence[Prefix]
) -> Float[np.ndarray, " terms"]:
    """What single terms more would explain, in squares of the noise, to first order.

    The score test: solutions are followed with a trace of each term, and what constants and
    initial values cannot make of it is compared with the residuals (Rao 1948, Math. Proc.
    Cambridge Philos. Soc. 44).

    Args:
      data, fit: a fitted system.
      equation: to which of its laws a term is added.
      terms: without coefficients; the empty one is a constant.

    Returns:
      How much the sum of squares of the residuals, each quantity in units of its noise, would
      fall; 0 where a term is not finite.
    """
    law = fit.laws[equation]
    rate, prefix, places = data.rms(law), law.prefix, []
    place = sum(len(one.constants) for one in fit.laws[:equation]) + len(law.constants)
    usable = np.zeros(len(terms), bool)
    for i, term in enumerate(terms):
        alone = Expression(times(1.0, term), law.variables)
        size = data.rms(alone)
        usable[i] = size > 0.0
        if usable[i]:
            coefficient = _TRACE * (rate or 1.0) / size
            prefix = joined("add", [prefix, times(coefficient, term)])
            places.append(place)
            place += len(alone.constants)
    laws = [*fit.laws]
    laws[equation] = Expression(prefix, law.variables)
    problem = Problem(data, laws, (), fit.segments, fit.states, fit.residuals)
    linear, found = problem.linearized(), np.zeros(len(terms))
    if linear is None:
        return found
    added = np.isin(problem.free, places)
    columns = np.zeros(linear.jacobian.shape[1], bool)
    columns[: added.size] = added
    known = directions(linear.jacobian[:, ~columns])
    new, left = linear.jacobian[:, columns], linear.residual
    new, left = new - known @ (known.T @ new), left - known @ (known.T @ left)
    squares = (new**2).sum(axis=0)
    seen = squares > _SEEN * (linear.jacobian[:, columns] ** 2).sum(axis=0)
    found[usable] = np.where(seen, (left @ new) ** 2 / np.where(seen, squares, 1.0), 0.0)
    return found
