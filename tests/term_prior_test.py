"""The prior of terms: kinds whatever the names are, and their order of cost."""

import math

import pytest

from nsode_jax.expressions.expression import Expression
from nsode_jax.selection.term_prior import (
    TermPrior,
    coefficients_cost,
    has_plain_coefficient,
    kind_of,
    known_kinds,
    term_cost,
)

VARIABLES = ("x", "y", "z", "t")


def term(text):
    return Expression.from_infix(text, VARIABLES)


def cost(text):
    return term_cost(term(text), "x")


@pytest.mark.parametrize(
    "one, other",
    [
        ("0.5*x*y", "-2.25*z*x"),
        ("0.3*y/(0.7 + y)", "1.7*z/(0.2 + z)"),
        ("y**2*z", "0.4*z**2*y"),
        ("0.7", "-3.2"),
        ("sin(y - z)", "0.6*sin(z - y)"),
    ],
)
def test_names_and_constants_do_not_matter(one, other):
    kinds = [kind_of(term(text).prefix, VARIABLES, "x")[0] for text in (one, other)]
    assert kinds[0] == kinds[1]


def test_terms_that_differ_are_of_different_kinds():
    texts = ("0.5*x", "0.5*x**2", "0.5*x*y", "0.5/x", "0.5*x**2*y", "0.5*sin(x)", "0.5*sin(x*y)")
    texts += ("0.5*y", "0.5*y*z")
    assert len({kind_of(term(text).prefix, VARIABLES, "x")[0] for text in texts}) == len(texts)


def test_what_the_sciences_use_costs_less():
    order = ("0.5*x", "0.5*y", "0.5*x*y", "0.5/x", "0.5*exp(x)", "0.5*exp(x + y)")
    costs = [cost(text) for text in order]
    assert costs == sorted(costs)
    # A saturating exchange is dearer than a product, and cheaper than what is unheard of.
    assert cost("0.5*x*y") < cost("0.5*x*y/(0.7 + x)") < cost("0.5*x*y/(x**2 + 0.7)")


def test_the_quantity_itself_is_expected_in_its_equation():
    """What grows or is lost mostly does so by a share of itself."""
    assert cost("0.5*x") < cost("0.5*y") and cost("0.5*x**2") < cost("0.5*y**2")
    assert cost("0.5*x*y") < cost("0.5*y*z") + 2 * math.log(2)
    assert term_cost(term("0.5*y"), "y") == cost("0.5*x")


def test_probabilities_of_terms_do_not_exceed_one():
    prior = TermPrior.load()
    total = 0.0
    for kind in prior.counts:
        known = tuple(0.7 if token == "c" else token for token in kind)
        renamed = {"S": "x", "A": "y", "B": "z"}
        prefix = tuple(renamed.get(str(token), token) for token in known)
        number, ways = 2, kind_of(prefix, ("x", "y", "z"), "x")[1]
        present = len({token for token in kind if str(token) in "AB"})
        choices = ways * math.comb(number, present)
        price = prior.cost(prefix, ("x", "y", "z"), "x") - 2 * math.log(1.5)
        total += choices * math.exp(-price / 2)
    assert 0.7 < total < 1.2


def test_a_sum_costs_what_its_terms_cost():
    assert cost("0.5*x - 0.3*x*y + 0.2") == pytest.approx(
        cost("0.5*x") + cost("0.3*x*y") + cost("0.2")
    )


def test_the_table_is_read_whole():
    kinds = known_kinds()
    assert len(kinds) > 300 and len(set(kinds)) > 20
    assert max(TermPrior.load().counts.values()) == kinds.count(kind_of(("x",), ("x",), "x")[0])


@pytest.mark.parametrize(
    "plain, with_its_own",
    [
        ("-x", "-0.3*x"),
        ("2*x", "2.1*x"),
        ("1", "0.37"),
        ("x**2.23", "0.4*x**2.23"),
        ("x*y/(0.33 + y)", "0.7*x*y/(0.33 + y)"),
        ("exp(-0.3*t)*x", "exp(0.2 - 0.3*t)*x"),
        ("cos(0.77*t)", "0.3*cos(0.77*t + 0.2)"),
    ],
)
def test_a_coefficient_of_one_is_no_gift(plain, with_its_own):
    for text, expected in ((plain, True), (with_its_own, False)):
        assert has_plain_coefficient(term(text).prefix, VARIABLES) == expected
    # Few terms of the table have none, so that it is improbable, not free.
    assert coefficients_cost(term(plain)) > 3.0 > 1.0 > coefficients_cost(term(with_its_own)) > 0.0


def test_coefficients_are_counted_in_the_table():
    assert 0.05 < TermPrior.load().plain < 0.3
    both = coefficients_cost(term("y - 0.3*x"))
    assert both == coefficients_cost(term("y")) + coefficients_cost(term("-0.3*x"))
