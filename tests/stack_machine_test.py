"""The compiled machine against NumPy, operator by operator and on random equations."""

import numpy as np
import pytest
from conditioning import assert_equal_as_far_as_known

from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.sampling import EquationPrior, sample_expression

VALUES = np.array(
    [-np.inf, -750.0, -2.5, -1.0, -0.3, -0.0, 0.0, 1e-200, 0.3, 1.0, 3.0, 750.0, np.inf, np.nan]
)


def assert_same(expression: Expression, y: np.ndarray = VALUES):
    computed = Program.from_expression(expression).evaluate(y)
    assert_equal_as_far_as_known(computed, expression.prefix, y)


# A new row of the operator table fails here until the machine knows it.
@pytest.mark.parametrize("token", OPERATORS)
def test_every_operator_of_the_table_is_known(token):
    if OPERATORS[token].arity == 1:
        assert_same(Expression((token, "y")))
        assert_same(Expression((token, -1.7)))
    else:
        for arguments in (("y", 1.7), (-1.7, "y"), ("y", "y"), (2.5, -1.7)):
            assert_same(Expression((token, *arguments)))


@pytest.mark.parametrize("exponent", [-17, -16, -3, -1, 0, 1, 2, 3, 8, 15, 16, 17, 0.7, 1e300])
def test_powers(exponent):
    assert_same(Expression(("pow", "y", float(exponent))))


@pytest.mark.parametrize("text", ["y", "-3", "2 - (3 - y)", "(y - 1)/(y + (2 - (y - 3)*y))", "-y"])
def test_arguments_keep_their_order(text):
    assert_same(Expression.from_infix(text))


def test_the_stack_is_as_deep_as_the_tree():
    text = "y"
    for i in range(40):
        text = f"(y + {i})*({text})"
    assert_same(Expression.from_infix(text), np.linspace(-2.0, 2.0, 9))


def test_random_equations():
    rng = np.random.default_rng(0)
    y = rng.uniform(-5.0, 5.0, (40, 5))
    known = []
    for _ in range(500):
        expression = sample_expression(EquationPrior(), rng)
        computed = Program.from_expression(expression).evaluate(y)
        assert computed.shape == y.shape
        known.append(assert_equal_as_far_as_known(computed, expression.prefix, y))
    # The rest cannot be told: the sine of a huge number, the root of a difference near 0.
    assert np.mean(known) > 0.9


def test_several_variables_and_expressions_in_one_program():
    names = ("y1", "y2", "t")
    texts = ["y1*y2 - 3*t", "t", "2.5", "sin(y2)**3/(1 + y1**2.5)", "y2 - (y1 - (t - y2)*4)"]
    system = [Expression.from_infix(text, names) for text in texts]
    points = np.random.default_rng(0).uniform(0.1, 3.0, (3, 4, 5))
    computed = Program.from_expressions(system).evaluate(*points)
    assert computed.shape == (5, 4, 5)
    for values, expression in zip(computed, system, strict=True):
        np.testing.assert_allclose(values, expression.evaluate(*points), rtol=1e-13)
    with pytest.raises(TypeError, match="3 variables, got 2"):
        Program.from_expressions(system).evaluate(1.0, 2.0)
