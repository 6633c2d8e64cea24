"""Skeleton recovery: hand-made pairs."""

import time

import numpy as np
import pytest

from nsode_jax.evaluation import equating, structure
from nsode_jax.evaluation.structure import skeleton_recovered
from nsode_jax.expressions.canonical import NotRepresentable, canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.sampling import EquationPrior, sample_expression

# (truth, prediction): only constants separate them.
RECOVERED = [
    # Equal, or equal up to constants, in other orders.
    ("0.1*y", "0.1*y"),
    ("2*y + 1", "0.3 + 5*y"),
    ("2*y**2.2 - 1.3*y", "-0.9*y + 3*y**1.9"),
    ("y**3 - y", "y**2.9 - 1.1*y"),
    ("3*sin(2*y)*exp(-y)", "exp(-y*1.2)*sin(y*1.9)*2"),
    ("-9.81 - 0.9*y/8.2", "-0.1*(98 + y)"),
    ("0.21 - sin(y)", "-1.3*sin(y) + 0.2"),
    # Coefficients and exponents of 1 in the truth, free in the prediction.
    ("y", "2*y"),
    ("y**2", "1.05*y**2"),
    ("1/(1 + y**2)", "2/(3*y**2 + 1)"),
    ("y**2/(y**2 + 1) - 0.55*y", "0.9*y**2/(y**2 + 1.1) - 0.5*y"),
    ("sqrt(y)", "y**0.7"),
    ("sqrt(y)", "2*y**0.45"),
    ("-0.67/y**1.5", "-0.5*y**(-1.2)"),
    # Factored against expanded.
    ("0.23*y*(1 - y)", "0.3*y - 0.4*y**2"),
    ("0.3*y - 0.4*y**2", "0.23*y*(1 - y)"),
    ("2*y*(1 - y/3) - 0.5", "1.9*y - 0.6*y**2 - 0.4"),
    ("-0.1*(y - 3)", "0.3 - 0.1*y"),
    ("(y + 1)**3", "y**3 + 3*y**2 + 2.9*y + 1"),
    ("0.14*y*(1 - y/130)*(y/4.4 - 1)", "-0.0003*y**3 + 0.03*y**2 - 0.1*y"),
    ("y**0.5*(7.2 - 5.5*y**0.5)", "7*sqrt(y) - 5*y"),
    # The same function by an identity.
    ("3*exp(2*y)", "exp(1.9*y + 1)"),
    ("exp(1.9*y + 1)", "2*exp(0.3*y)"),
    ("2**y", "exp(0.5*y)"),
    ("exp(0.5*y)", "3**y"),
    ("sin(exp(2.5*y))", "sin(exp(y)**1.7)"),
    ("sin(exp(y)**1.7)", "sin(3**y)"),
    ("y**2*sin(sqrt(exp(y)))", "y*log(exp(y))*sin(2*exp(0.7*y))"),
    ("y - log(exp(y)*y)", "-log(y)"),
    ("3*log(2*y)", "2*log(y) + 1.5"),
    ("2*log(y) + 2", "2*log(3*y)"),
    ("3 + 2.13*log(sqrt(y**2))", "3 + 1.1*log(y**2)"),
    ("2*cos(y)", "1.7*sin(y + 1.3)"),
    ("sin(y)**2", "0.5 - 0.5*cos(2.1*y)"),
    ("0.0981*sin(y)*(9.7*cos(y) - 1)", "0.5*sin(2*y) - 0.1*sin(y)"),
    ("(y + 1)*sin(y)", "2*y*sin(y) + 3*sin(y)"),
    ("1 - 1/(y + 2)", "(y + 1)/(y + 2)"),
    # Constants far from 1, and in many places.
    ("9.81 - 0.0021175*y**2", "8 - 0.004*y**2"),
    ("1.4 + 0.4*y**5/(123 + y**5) - 0.89*y", "1 + 0.5*y**4/(100 + y**4) - 0.7*y"),
    ("213.8*(1 - exp(-0.547*y))", "200 - 210*exp(-0.5*y)"),
]

# (truth, prediction): more than constants separates them.
NOT_RECOVERED = [
    # Signs.
    ("y", "-2*y"),
    ("2*y", "-2*y"),
    ("0.3*y - 0.4*y**2", "0.3*y + 0.4*y**2"),
    ("exp(-y)", "exp(1.2*y)"),
    ("y**1.5", "y**(-1.5)"),
    # Constants that the prediction lacks.
    ("2*y", "y"),
    ("-1.1*y**3 + 1.31*y", "y - 1.1*y**3"),
    ("sin(2*y)", "sin(y)"),
    ("sin(2*y + 1)", "3*sin(y + 0.5)"),
    ("y**0.6", "sqrt(y)"),
    # Terms that the prediction lacks.
    ("2*y + 1", "2*y"),
    ("0.3*y - 0.4*y**2", "0.3*y"),
    ("2*y*(1 - y/3) - 0.5", "2*y*(1 - y/3)"),
    # Terms too many, which would have to vanish.
    ("2*y", "2*y + 1"),
    ("2*y*(1 - y/3)", "2*y*(1 - y/3) - 0.5"),
    ("0.3*y", "0.3*y - 0.001*y**2"),
    ("sqrt(y)", "sqrt(y) + 0.01"),
    ("cos(y)", "cos(y) + 0.01*y"),
    ("y", "y + 0.001*sin(y)"),
    ("1/y", "1/(y + 0.01)"),
    # Terms too many, which would have to merge with others.
    ("2*y", "3*y + 0.1*y**2"),
    ("2*y**2 + 3*y", "y + y**2 + y**3"),
    ("3*y**2.2", "2*y**1.5 + y**3"),
    ("2*y", "0.5*y**1.1 + 1.5*y**0.9"),
    ("3*sin(2*y) + 1", "2*sin(1.9*y) + sin(2.1*y) + 1"),
    ("7**exp(y)", "exp(exp(0.47*4**y + y))"),
    # Other functions, some of them close in value.
    ("y**2", "y"),
    ("y", "sin(y)"),
    ("y", "50*sin(0.02*y)"),
    ("y", "2*exp(0.02*y) - 2"),
    ("sin(y)", "y - 0.1666*y**3"),
    ("exp(y)", "1 + y + 0.5*y**2"),
    ("1/(1 + y**2)", "exp(-y**2)"),
    ("log(y)", "1/y"),
    ("sin(2*y)", "sin(2*y + 0.1*y**2)"),
    # Equal for positive y only.
    ("log(y**2)", "2*log(y)"),
    ("3 + 2.13*log(sqrt(y**2))", "3 + 2*log(y)"),
]


@pytest.mark.parametrize(("truth", "prediction"), RECOVERED)
def test_only_constants_separate(truth, prediction):
    assert skeleton_recovered(Expression.from_infix(truth), Expression.from_infix(prediction))


@pytest.mark.parametrize("constant", [3.0, 10.0, 30.0])
@pytest.mark.parametrize("text", ["0.3*y/(1 + 4.1*y)", "1.4 - 3/(2 + y)", "3/(2/y + 1)"])
def test_saturation_is_saturation_whatever_its_constants(constant, text):
    truth = Expression.from_infix(f"{constant / 3!r}*y/({constant} + y)")
    assert skeleton_recovered(truth, Expression.from_infix(text))


@pytest.mark.parametrize(("truth", "prediction"), NOT_RECOVERED)
def test_more_than_constants_separates(truth, prediction):
    assert not skeleton_recovered(Expression.from_infix(truth), Expression.from_infix(prediction))


def test_a_hard_pair_ends_in_time():
    truth = Expression.from_infix("sin(y*exp(cos(y) + 2)/(y + 3))**3 + log(y + 5)")
    prediction = Expression.from_infix(
        "(1.1*y + 2*sin(y))**2.5/(cos(3*y) + 2*y)**1.5 - exp(0.1*y)*y"
    )
    start = time.perf_counter()
    assert not skeleton_recovered(truth, prediction)
    assert time.perf_counter() - start < 10.0


def test_a_truth_defined_nowhere_is_not_recovered():
    nowhere = Expression.from_infix("log(-y**2)")
    assert not skeleton_recovered(nowhere, Expression.from_infix("2*y"))


def test_constants_are_found_from_any_others():
    """Without the shortcut for equal skeletons: the search must find the truth's constants."""
    random, prior, found, tried = np.random.default_rng(0), EquationPrior(), 0, 0
    while tried < 100:
        try:
            truth = canonicalize(sample_expression(prior, random))
        except NotRepresentable:
            continue
        target, skeleton = equating.Target(truth), truth.skeleton
        if not truth.constants or not target.finite.any():
            continue
        tried += 1
        changed = np.array(skeleton.signs) * np.exp(random.normal(0.0, 1.0, len(skeleton.signs)))
        prediction = skeleton.with_constants(changed)
        assert structure._may_share_functions(truth, prediction)
        proposals = equating.proposals(target, prediction)
        found += structure._may_share_domain(target, skeleton) and any(
            structure._makes_equal(skeleton, constants, target) for constants in proposals
        )
    assert found >= 97
