"""SINDy and Operon on several quantities."""

import numpy as np
import pytest

from nsode_jax.baselines import systems as system_baselines
from nsode_jax.dynamics.system import integrate
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression

NAMES = ("x", "y")
T = np.linspace(0.0, 6.0, 120)


def laws(*texts):
    return tuple(canonicalize(Expression.from_infix(text, NAMES)) for text in texts)


PREY = laws("1.1*x - 0.4*x*y", "0.1*x*y - 0.4*y")
SEEN = integrate(PREY, [6.0, 3.0], T)


def test_the_system_whose_solution_fits_is_taken():
    smooth, slopes = system_baselines.smoothed(T, SEEN)
    candidates = [laws("0.2*x", "1.1*x - 0.4*x*y", "sqrt(-x)"), laws("0.1*x*y - 0.4*y", "0.3*y")]
    assert system_baselines.best_system(candidates, T, SEEN, smooth, slopes) == PREY


def test_a_constant_that_does_not_help_costs():
    smooth, slopes = system_baselines.smoothed(T, SEEN)
    longer = laws("1.1*x - 0.4*x*y + 1e-9*y**2")
    candidates = [[*longer, PREY[0]], [PREY[1]]]
    assert system_baselines.best_system(candidates, T, SEEN, smooth, slopes) == PREY


def test_a_system_without_a_solution_is_the_last_resort():
    smooth, slopes = system_baselines.smoothed(T, SEEN)
    candidates = [laws("x**2*y**2", "0.5*x"), [PREY[1]]]
    found = system_baselines.best_system(candidates, T, SEEN, smooth, slopes)
    assert found == (*laws("0.5*x"), PREY[1])


@pytest.mark.parametrize("method, library", [("sindy", "pysindy"), ("operon", "pyoperon")])
def test_predator_and_prey(method, library):
    pytest.importorskip(library)
    found = getattr(system_baselines, method)(T, SEEN, NAMES)
    for law, truth in zip(found, PREY, strict=True):
        rates = truth.evaluate(*SEEN.T)
        np.testing.assert_allclose(law.evaluate(*SEEN.T), rates, atol=0.02 * np.abs(rates).max())
