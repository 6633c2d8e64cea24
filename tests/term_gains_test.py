"""What a term more would explain, without fitting it."""

import numpy as np
import pytest
from observing import observed

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import fit_system, refitted
from nsode_jax.fitting.trajectory_fitting import FULL
from nsode_jax.residuals.term_gains import gains
from nsode_jax.search.terms import monomials

SYSTEM = System(("x", "y"))
TERMS = monomials(SYSTEM.variables, 2)


@pytest.fixture(scope="module")
def data():
    equations = ("y", "-1.3*x - 0.3*y + 0.06*x**2")
    return observed(SYSTEM, equations, (1.0, 0.5), noise=0.02, runs=2)[0]


def fitted(data, *texts):
    laws = [Expression.from_infix(text, SYSTEM.states) for text in texts]
    fit = fit_system(data, laws, (Origin("test"),) * 2, stopping=FULL)
    return refitted(data, fit, FULL)


def test_the_missing_term_would_explain_most_and_as_much_as_it_does(data):
    short = fitted(data, "0.9*y", "-1.2*x - 0.25*y")
    found = gains(data, short, 1, TERMS)
    assert TERMS[int(np.argmax(found))] == ("pow", "x", 2.0)
    whole = fitted(data, "0.9*y", "-1.2*x - 0.25*y + 0.05*x**2")
    fallen = data.count * (1 - (whole.residuals / short.residuals) ** 2).sum()
    assert found.max() == pytest.approx(fallen, rel=0.3)


def test_terms_that_are_there_would_explain_nothing_more(data):
    whole = fitted(data, "0.9*y", "-1.2*x - 0.25*y + 0.05*x**2")
    found = dict(zip(TERMS, gains(data, whole, 1, TERMS), strict=True))
    for term in (("x",), ("y",), ("pow", "x", 2.0)):
        assert found[term] < 0.01
    assert max(found.values()) < 12.0  # Six chances at 0.05%.


def test_terms_that_have_no_value_along_the_data_explain_nothing(data):
    short = fitted(data, "0.9*y", "-1.2*x - 0.25*y")
    found = gains(data, short, 1, [("log", "x"), ("x",), ("pow", "x", 2.0)])
    assert found[0] == 0.0 and found[2] > 10.0
