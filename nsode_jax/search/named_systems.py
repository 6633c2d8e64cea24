"""The equations of systems that science knows by name, as candidates.

In noise the right equation need not be among the best by its regression; with the others of a
system that has a name it is no surprise.
"""

from __future__ import annotations

import functools
import itertools

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.prefix import substituted
from nsode_jax.fitting.fit import NAMED, Origin
from nsode_jax.observed.regression import Regression
from nsode_jax.search.own_laws import guesses
from nsode_jax.search.population import Draft, fitted_laws
from nsode_jax.search.sources import Restriction
from nsode_jax.search.variants import canonical_or_none
from nsode_jax.selection.system_score import equation_score
from nsode_jax.selection.term_prior import TIME, known_systems


def named_equations(form: Regression, system: System, restriction: Restriction) -> list[Draft]:
    """All that the table has for one equation, as far as it can be fitted.

    Args:
      form: the regression of the equation.
      system: what its variables are.
      restriction: which laws are to be considered.
    """
    laws = [law for law in _equations(system, form.own) if restriction.admits(law)]
    starts = (guess for law in laws for guess in guesses(form, law, named=True))
    best: dict[str, Draft] = {}
    for law, error in fitted_laws(form, starts):
        draft = Draft(law, error, equation_score(law, error, form), Origin(NAMED))
        if draft.score < best.setdefault(structure(law), draft).score:
            best[structure(law)] = draft
    return list(best.values())


@functools.lru_cache(maxsize=64)
def _equations(system: System, own: str) -> tuple[Expression, ...]:
    """The equations that a state has in any system of the table as large as this one."""
    states, found = system.states, {}
    velocities = [Expression((velocity,), system.variables) for velocity in system.velocities]
    for _, laws in known_systems():
        if len(laws) != len(states):
            continue
        for order in itertools.permutations(range(len(states))):
            called = {f"x{i}": states[place] for i, place in enumerate(order)}
            renamed = [
                _renamed(laws[order.index(place)], called, system) for place in range(len(states))
            ]
            law = renamed[states.index(own)]
            if law is not None and renamed[: len(velocities)] == velocities:
                found[structure(law)] = law
    return tuple(found.values())


def _renamed(law: Expression, called: dict[str, str], system: System) -> Expression | None:
    """The equation in the variables of a system; None if it has none for the time."""
    if TIME in law.prefix and not system.explicit_time:
        return None
    prefix = substituted(law.prefix, {old: (new,) for old, new in called.items()})
    return canonical_or_none(Expression(prefix, system.variables))
