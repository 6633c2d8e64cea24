"""Names stand for constants, signs stay, and nothing else is let in."""

import numpy as np
import pytest

from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.selection.named_formula import NamedFormula


@pytest.mark.parametrize(
    ("text", "values", "same"),
    [
        ("r*y*(1 - y/K)", {"r": 0.5, "K": 8.0}, "0.5*y*(1 - y/8)"),
        ("-k*y", {"k": 2.0}, "-2*y"),
        ("-k*y", {"k": -2.0}, "2*y"),
        ("a - -b**2", {"a": 1.0, "b": 3.0}, "1 + 3**2"),
        ("exp(-E/y) + exponent", {"E": 2.0, "exponent": 5.0}, "exp(-2/y) + 5"),
        ("pi*ln(y) + _x1", {"_x1": 0.5}, "pi*log(y) + 0.5"),
        ("y + 1e3", {}, "y + 1000"),
    ],
)
def test_values_take_the_place_of_names(text, values, same):
    formula = NamedFormula.parse(text)
    assert set(formula.names) == set(values)
    y = np.linspace(0.5, 3.0, 7)
    expected = Expression.from_infix(same).evaluate(y)
    np.testing.assert_allclose(formula.with_values(values).evaluate(y), expected, rtol=1e-14)


def test_values_come_in_the_order_of_the_names():
    formula = NamedFormula.parse("b*y + a/b")
    assert formula.names == ("b", "a")
    assert formula.with_values([2.0, 3.0]) == formula.with_values({"a": 3.0, "b": 2.0})
    with pytest.raises(ValueError, match="2 constants, got 1"):
        formula.with_values([1.0])


@pytest.mark.parametrize("text", ["a.b", "f(y)", "__import__('os')", "a b", "tanh(y)", "y[0]", ""])
def test_other_text_is_refused(text):
    with pytest.raises(ExpressionError):
        NamedFormula.parse(text)


def test_too_many_names_are_refused():
    with pytest.raises(ValueError, match="names"):
        NamedFormula.parse("+".join(f"a{i}*y" for i in range(65)))


def test_a_formula_of_several_variables():
    formula = NamedFormula.parse("c*x*y - d*y", ("x", "y"))
    assert formula.names == ("c", "d")
    law = formula.with_values({"c": 2.0, "d": 0.5})
    assert law.infix == Expression.from_infix("2*x*y - (0.5*y)", ("x", "y")).infix


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("c*y - lambda", r"c y - \lambda"),
        ("-in*y**None + 0.12345678", r"-\mathrm{in} y^{\mathrm{None}} + 0.123457"),
        ("r*y*(1 - y/K1)", r"r y \left(1 - \frac{y}{K_{1}}\right)"),
    ],
)
def test_names_of_constants_are_drawn_that_no_variable_may_have(text, latex):
    assert NamedFormula.parse(text).latex() == latex
