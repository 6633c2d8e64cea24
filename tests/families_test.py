"""Tests for terms with constants that only a fit can tell."""

import numpy as np
import pytest
from observing import observed

from nsode_jax.dynamics.system import System
from nsode_jax.evaluation.driven_systems import same_structure
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.components import component_forms
from nsode_jax.search.equations import draft_equations
from nsode_jax.search.families import decays, families, telling
from nsode_jax.search.sources import Restriction
from nsode_jax.search.sparse import SparseConfig

PAIR = System(("x", "y"))


def test_no_member_has_a_pole_among_the_values():
    values = np.array([np.linspace(-2.0, 3.0, 301), np.linspace(0.5, 4.0, 301)])
    found = families(("x", "y"), values)
    for family in found:
        for constants in zip(*(np.quantile(grid, (0.0, 0.4, 1.0)) for grid in family.grids)):
            member = Expression(family.member(np.array(constants)), ("x", "y"))
            assert np.abs(member.evaluate(*values)).max() < 1e7, member.infix
    shapes = {family.term for family in found}
    # Beyond the values there may be one: where y is positive a threshold saturates.
    assert ("div", "y", "add", "_0", "y") in shapes
    assert ("div", "x", "add", "_0", "x") not in shapes
    assert not any("pow" in term and term[term.index("pow") + 1] == "x" and "_0" in term
                   and term[term.index("pow") + 2] != 2.0 for term in shapes)  # fmt: skip


def test_numbers_are_computed_and_not_fitted_twice():
    (hill,) = [f for f in families(("x",), np.linspace(0.5, 4.0, 9)[None])
               if f.term == ("div", 1.0, "add", "pow", "_0", "_1", "pow", "x", "_1")]  # fmt: skip
    assert hill.member(np.array([2.0, 3.0])) == ("div", 1.0, "add", 8.0, "pow", "x", 3.0)


def test_what_fades_does_so_within_the_times():
    found = decays(10.0, ("x",), "t")
    assert {family.term for family in found} == {
        ("exp", "mul", "_0", "t"), ("mul", "x", "exp", "mul", "_0", "t"),
    }  # fmt: skip
    for family in found:
        (rates,) = family.grids
        assert (np.diff(rates) > 0).all() and rates[0] == -1.0 and rates[-1] == -0.03


@pytest.mark.parametrize(
    "text, member, other",
    [
        ("0.9*x**0.7 - 0.3*x*y", "x**0.7", ("mul", "x", "y")),
        ("1.2*x*exp(-0.4*y) - 0.3*x", "x*exp(-0.4*y)", ("x",)),
        ("0.8*x - 0.9*x*y/(x + 1.5*y)", "x*y/(x + 1.5*y)", ("x",)),
    ],
)
def test_constants_are_found_beside_what_else_is_in_an_equation(text, member, other):
    data, _ = observed(PAIR, (text, "0.5*x - 0.7*y"), (0.5, 0.3))
    form = component_forms(data)[0]
    nodes = np.atleast_2d(form.nodes)
    told = telling(families(PAIR.variables, nodes), form, [[], [other]], PAIR.variables)
    right = Expression.from_infix(member, PAIR.variables).evaluate(*nodes)
    wrong = min(
        np.abs(Expression(term, PAIR.variables).evaluate(*nodes) / right - 1.0).max()
        for term, *others in told
        if others
    )
    assert wrong < 0.01


@pytest.mark.parametrize(
    "equations, start",
    [
        (("0.9*x**0.7 - 0.3*x*y", "0.2*x*y - 0.4*y"), (1.0, 0.8)),
        (("1.2*x*exp(-0.4*y) - 0.3*x", "0.5*x - 0.7*y"), (0.5, 0.3)),
        (("2/(1 + y**3) - 0.8*x", "1.1*x - 0.6*y"), (0.3, 0.2)),
        (("1 - x - 40*x*exp(-6/y)", "0.6 + 25*x*exp(-6/y) - 0.9*y"), (1.0, 0.9)),
    ],
)
def test_equations_with_such_terms_are_found(equations, start):
    data, laws = observed(PAIR, equations, start)
    for form, law in zip(component_forms(data), laws, strict=True):
        drafts = draft_equations(form, PAIR, data.span, 20, SparseConfig())
        best = min(drafts, key=lambda draft: draft.score)
        assert same_structure([best.expression], [law]), best.expression.infix


def test_restrictions_hold_for_families_too():
    data, _ = observed(PAIR, ("1.2*x*exp(-0.4*y) - 0.3*x", "0.5*x - 0.7*y"), (0.5, 0.3))
    form = component_forms(data)[0]
    only = Restriction(frozenset({"pow"}))
    drafts = draft_equations(form, PAIR, data.span, 5, SparseConfig(), only)
    assert drafts and not any("exp" in draft.expression.prefix for draft in drafts)
