"""The prior is a distribution, does not depend on units, and expects laws it has not seen."""

import itertools
import math

import numpy as np
import pytest

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import arity
from nsode_jax.selection.belief import log_prior, written_log_prior
from nsode_jax.selection.catalogue import Catalogue
from nsode_jax.selection.form import form_of
from nsode_jax.selection.prior import (
    OperatorModel,
    Prior,
    corpus,
    tokens_in_context,
)

FLAT = 1.5
"""Nats for each token."""


def _log_prior(text: str, prior: Prior | None = None) -> float:
    return (prior or Prior.load()).log_prior(Expression.from_infix(text))


def test_tokens_have_the_context_of_their_place():
    form = tuple("add mul c sin mul c y pow y 2".split())
    contexts = dict(enumerate(tokens_in_context(form)))
    assert contexts[0] == (("", 0, False), "add")
    assert contexts[2] == (("mul", 0, False), "c")
    assert contexts[4] == (("sin", 0, False), "mul")
    assert contexts[6] == (("mul", 1, True), "y")
    assert contexts[9] == (("pow", 1, False), "2")
    assert len(contexts) == len(form)


@pytest.mark.parametrize("parent", ["", "add", "mul", "div", "pow", "exp", "sin", "neg"])
def test_tokens_of_a_context_are_certain_together(parent):
    model = Prior.load().operators
    exponents = [str(n) for n in range(2, 11)] + ["1.5", "2.5"]
    tokens = "add sub mul div pow sin cos exp sqrt log neg y 1 c -c".split() + exponents
    for place, inside in itertools.product(range(max(arity(parent), 1)), (False, True)):
        total = sum(model.probability((parent, place, inside), token) for token in tokens)
        assert total == pytest.approx(1.0, abs=1e-12)


def test_the_named_laws_are_certain_together():
    prior = Prior.load()
    only_named = Prior(prior.catalogue, prior.operators, 1.0)
    forms = prior.catalogue.by_form
    assert sum(math.exp(only_named.log_prior_of_form(form)) for form in forms) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y - y**2", "0.3*y - 0.017*y**2"),
        ("exp(y)", "3*exp(0.2*y)"),
        ("sqrt(y)", "0.2*sqrt(3*y)"),
        ("3*y/(2 + y)", "y/(1 + y)"),
    ],
)
def test_units_do_not_count(one, other):
    assert _log_prior(one) == _log_prior(other)


@pytest.mark.parametrize(
    ("likelier", "less_likely"),
    [
        ("0.5*y - 0.02*y**2", "0.47*1.78**y - 0.59"),
        ("3*(2 - y)", "3 - 2*y**6"),
        ("3 - 2*y**2", "3 - 2*y**9"),
        ("3 - 2*y**3", "3 - 2*y**9"),
        ("0.4*y*log(5/y)", "log(3*y)**8"),
        ("2*exp(-y) - y", "2*exp(-sin(y)) - y"),
        ("sin(y)", "sin(exp(y))"),
        ("exp(-3*y)", "exp(-3*exp(-y))"),
        ("0.3*y*(1 - y/5) - 2*y/(1 + y)", "0.3*sqrt(1 - y/5) - 2*cos(y)/(1 + y)"),
    ],
)
def test_what_is_natural_is_likelier(likelier, less_likely):
    assert _log_prior(likelier) > _log_prior(less_likely) + 1.0


def test_the_catalogue_can_be_left_out():
    without = Prior.load(catalogue=False)
    assert without.catalogue is None
    assert not without.is_named(Expression.from_infix("y - y**2"))
    assert _log_prior("y - y**2", without) < _log_prior("y - y**2") - 1.0
    with pytest.raises(ValueError, match="catalogue"):
        without.without_fields("heat")


def test_a_field_left_out_is_not_known():
    law = Expression.from_infix("2*y*(1 - y/9) - 3*y**2/(1 + y**2)")
    assert Prior.load().is_named(law)
    without = Prior.load().without_fields("ecology")
    assert not without.is_named(law)
    assert without.log_prior(law) < Prior.load().log_prior(law) - 1.0
    assert without.is_named(Expression.from_infix("2*y"))


def test_skeletons_and_the_function_of_the_module():
    law = Expression.from_infix("2*y - 3*sqrt(y)")
    assert log_prior(law) == log_prior(law.skeleton) == Prior.load().log_prior(law) < 0
    assert log_prior(Expression.from_infix("y + log(-1)")) == -math.inf
    assert not Prior.load().is_named(Expression.from_infix("y + log(-1)"))


def test_formulas_of_physics_are_read():
    assert 60 <= len(corpus())
    assert form_of(Expression.from_infix("5/y**2")) in corpus()


def test_laws_of_a_field_left_out_cost_less_than_a_flat_price_per_token():
    catalogue, nats, tokens = Catalogue.load(), 0.0, 0
    for field in catalogue.fields:
        prior = Prior.load().without_fields(field)
        for law in catalogue.laws:
            if law.field == field:
                form = min(law.forms)
                nats -= prior.operators.log_probability(form)
                tokens += len(form)
    assert nats / tokens < 0.8 * FLAT


def test_draws_follow_the_model():
    """Of its own draws a model expects its own cross-entropy, and none is too long."""
    model, rng = Prior.load().operators, np.random.default_rng(0)
    drawn = [form for form in (model.draw(rng, 9) for _ in range(2000)) if form is not None]
    assert max(map(len, drawn)) <= 9
    share = drawn.count(("y",)) / 2000
    assert share == pytest.approx(math.exp(model.log_probability(("y",))), abs=0.02)


def test_a_law_is_priced_as_it_is_written():
    model = Prior.load().operators
    for text, form in (
        ("-2.5*y**3", "mul -c pow y 3"),
        ("y**1.7 - sqrt(y)", "add mul c pow y c mul c sqrt y"),
    ):
        law = Expression.from_infix(text)
        assert written_log_prior(law) == model.log_probability(tuple(form.split()))


def test_what_was_seen_is_likelier():
    form = tuple("mul c sin y".split())
    few, many = (OperatorModel.estimate([form] * n) for n in (1, 50))
    assert few.log_probability(form) < many.log_probability(form) < 0.0
