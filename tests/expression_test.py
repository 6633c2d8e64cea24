"""Prefix, infix, LaTeX, evaluation and skeletons of expressions."""

import math

import numpy as np
import pytest
import sympy

from nsode_jax.expressions.expression import Expression, ExpressionError, Skeleton
from nsode_jax.expressions.notation import unknown_names
from nsode_jax.expressions.operators import OPERATORS

UNARY = [token for token, operator in OPERATORS.items() if operator.arity == 1]
BINARY = [token for token, operator in OPERATORS.items() if operator.arity == 2]
_CONSTANTS = (2.0, -2.0, 1.0, -0.5, 3.25e-9, -1e22, 1.201e14, 0.0, -0.0)


def random_prefix(rng, depth):
    """Any tree of the language, canonical or not."""
    if depth == 0 or rng.random() < 0.1:
        return ["y"] if rng.random() < 0.3 else [_CONSTANTS[rng.integers(len(_CONSTANTS))]]
    if rng.random() < 0.4:
        return [rng.choice(UNARY), *random_prefix(rng, depth - 1)]
    operator = rng.choice(BINARY)
    return [operator, *random_prefix(rng, depth - 1), *random_prefix(rng, rng.integers(depth))]


def test_infix_reads_back_as_the_same_prefix():
    rng = np.random.default_rng(0)
    for _ in range(5000):
        expression = Expression(tuple(random_prefix(rng, int(rng.integers(7)))))
        assert Expression.from_infix(expression.infix) == expression, expression.infix


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("-1.3*y + 2.1*y**2.2", ("add", "mul", -1.3, "y", "mul", 2.1, "pow", "y", 2.2)),
        ("y - 2", ("add", "y", -2.0)),
        ("y - 2*y", ("add", "y", "mul", -2.0, "y")),
        ("y - (2)", ("sub", "y", 2.0)),
        ("y - 2**y", ("sub", "y", "pow", 2.0, "y")),
        ("-2**y", ("neg", "pow", 2.0, "y")),
        ("(-2)**y", ("pow", -2.0, "y")),
        ("y**2**y", ("pow", "y", "pow", 2.0, "y")),
        ("y^-2", ("pow", "y", -2.0)),
        ("2 - -y", ("sub", 2.0, "neg", "y")),
        ("ln(y)/pi", ("div", "log", "y", math.pi)),
        ("1e-3 * .5", ("mul", 1e-3, 0.5)),
        ("+y", ("y",)),
    ],
)
def test_infix_grammar(text, prefix):
    assert Expression.from_infix(text).prefix == prefix


@pytest.mark.parametrize(
    "text",
    [
        "", "y y", "(y", "y)", "y +", "* y", "abs(y)", "sin y", "1e999", "y.real", "y[0]", "x",
        "__import__('os')", "lambda: y", "exec(y)", "y; y", "neg(y)", "add(y, y)", "(" * 10_000,
        "-" * 10_000 + "y", "y**" * 10_000 + "y",
    ],
)  # fmt: skip
def test_other_text_is_refused(text):
    with pytest.raises(ExpressionError, match="cannot read the formula"):
        Expression.from_infix(text)


def test_names_that_are_not_known():
    assert unknown_names("r*y*(1 - y/K_1) + 1e5*r*sin(pi*t) - 2.5e-3", ("y",)) == ("r", "K_1", "t")
    assert unknown_names("ln(y) + 1.e3", ("y",)) == ()


def test_an_error_names_the_position():
    with pytest.raises(ExpressionError, match=r"unknown name 'foo' at 5"):
        Expression.from_infix("y + foo(y)")


@pytest.mark.parametrize(
    "prefix", [(), ("add", "y"), ("y", "y"), ("what",), ("sin", math.nan), (math.inf,)]
)
def test_malformed_prefix_is_refused(prefix):
    with pytest.raises(ExpressionError):
        Expression(prefix)


def test_numpy_python_and_sympy_agree_on_every_operator():
    sympy = pytest.importorskip("sympy")
    for operator in OPERATORS.values():
        prefix = (operator.token, "y") if operator.arity == 1 else (operator.token, "y", 1.7)
        expression = Expression(prefix)
        values = {
            float(expression.evaluate(0.6)),
            expression.compile()(0.6),
            float(expression.to_sympy().subs(sympy.Symbol("y"), 0.6)),
        }
        assert max(values) - min(values) < 1e-14, operator.token


def test_evaluate_is_nan_or_infinite_outside_the_domain():
    values = Expression.from_infix("log(y) + 1/y").evaluate(np.array([-1.0, 0.0, 1.0]))
    assert not np.isfinite(values[:2]).any()
    assert values[2] == 1.0


def test_compile_takes_other_constants():
    f = Expression.from_infix("2*y + 3").compile()
    assert f(5.0) == 13.0
    assert f(5.0, 10.0, 1.0) == 51.0


def test_skeleton_keeps_structure_and_signs():
    expression = Expression.from_infix("-1.3*y + 2.1*y**2.2")
    skeleton = expression.skeleton
    assert skeleton.key == "add mul -c y mul c pow y c"
    assert skeleton.unsigned_key == "add mul c y mul c pow y c"
    assert skeleton.signs == (-1, 1, 1)
    assert expression.constants == (-1.3, 2.1, 2.2)
    assert skeleton.with_constants(expression.constants) == expression
    assert Skeleton.from_key(skeleton.key) == skeleton
    assert expression.complexity == 9


def test_numerator_of_a_reciprocal_is_no_constant():
    expression = Expression.from_infix("1/y + 1")
    assert expression.constants == (1.0,)
    assert expression.skeleton.key == "add div 1 y c"
    assert expression.skeleton.with_constants((4.0,)).infix == "1/y + 4"


def test_wrong_number_of_constants_is_refused():
    with pytest.raises(ExpressionError, match="has 1 constants, got 2"):
        Skeleton(("mul", "c", "y")).with_constants((1.0, 2.0))


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("-1.3*y + 2.1*y**2.2", r"-1.3 y + 2.1 y^{2.2}"),
        ("y - 2", "y - 2"),
        ("0.5*y - 3*y**2", r"0.5 y - 3 y^{2}"),
        ("-y**3", "-y^{3}"),
        ("exp(-y)/(1 + y)", r"\frac{e^{-y}}{1 + y}"),
        ("2*sin(3*y)*(y - 1)", r"2 \sin\left(3 y\right) \left(y - 1\right)"),
        ("(y + 1)**2", r"\left(y + 1\right)^{2}"),
        ("sin(y)**2", r"\sin\left(y\right)^{2}"),
        ("exp(y)**2", r"\left(e^{y}\right)^{2}"),
        ("2**y", "2^{y}"),
        ("(-2)**y", r"\left(-2\right)^{y}"),
        ("y*2", r"y \cdot 2"),
        ("3*2**y", r"3 \cdot 2^{y}"),
        ("1e-9*y", r"10^{-9} y"),
        ("120100000000000*y", r"1.201 \cdot 10^{14} y"),
        ("1.5e-9*y", r"1.5 \cdot 10^{-9} y"),
        ("y*(-2)", r"y \left(-2\right)"),
        ("sqrt(y) - (-y)", r"\sqrt{y} - \left(-y\right)"),
        ("-0.67/y**1.5", r"-\frac{0.67}{y^{1.5}}"),
        ("y - 0.67/y", r"y - \frac{0.67}{y}"),
    ],
)
def test_latex(text, latex):
    assert Expression.from_infix(text).latex() == latex


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.123456789*y", "0.123*y"),
        ("-0.000825123*y**2 + 0.547*y", "0.547*y - 0.000825*y**2"),
        ("-y**2 - 3*y + 2", "2 - y**2 - 3*y"),
        ("-y - 2", "-y - 2"),
        ("-2*y/(1 + y) - y + sin(y) + 4", "sin(y) - 2*y/(1 + y) - y + 4"),
        ("3 - y", "3 - y"),
        ("120123456789012*y**2 - 1234567*y", "1.2e+14*y**2 - 1230000*y"),
    ],
)
def test_rounded_is_for_display(text, shown):
    expression = Expression.from_infix(text)
    assert expression.rounded(3).infix == shown
    y = np.array([0.3, 1.7])
    np.testing.assert_allclose(expression.rounded(9).evaluate(y), expression.evaluate(y), rtol=1e-8)


class TestVariables:
    NAMES = ("y1", "y2", "t")

    @pytest.mark.parametrize(
        ("text", "latex"),
        [
            ("2*y1*y2 - sin(t)", r"2 y_{1} y_{2} - \sin\left(t\right)"),
            ("y2**2/(y1 + 3)", r"\frac{y_{2}^{2}}{y_{1} + 3}"),
        ],
    )
    def test_text_latex_and_sympy(self, text, latex):
        expression = Expression.from_infix(text, self.NAMES)
        assert expression.infix == text
        assert expression.latex() == latex
        symbols = [sympy.Symbol(name) for name in self.NAMES]
        values = (0.3, 1.7, 2.9)
        expected = sympy.lambdify(symbols, expression.to_sympy())(*values)
        assert expression.evaluate(*values) == pytest.approx(expected, rel=1e-12)
        assert expression.compile()(*values) == pytest.approx(expected, rel=1e-12)

    def test_skeletons_and_constants(self):
        expression = Expression.from_infix("2*y1*y2 - 3*t", self.NAMES)
        skeleton = expression.skeleton
        assert skeleton.key == "add mul mul c y1 y2 mul -c t"
        assert Skeleton.from_key(skeleton.key, self.NAMES) == skeleton
        assert skeleton.with_constants([2.0, -3.0]) == expression
        assert expression.rounded(3).variables == self.NAMES

    def test_values_broadcast_in_the_order_of_the_variables(self):
        expression = Expression.from_infix("y1 - 10*y2", self.NAMES)
        y1, y2 = np.arange(3.0)[:, None], np.arange(4.0)
        np.testing.assert_array_equal(expression.evaluate(y1, y2, 0.0), y1 - 10 * y2)
        assert Expression.from_infix("3", self.NAMES).evaluate(y1, y2, 0.0).shape == (3, 4)
        with pytest.raises(TypeError, match=r"f\(y1, y2, t\) was given 1 values"):
            expression.evaluate(y1)

    @pytest.mark.parametrize("name", ["sin", "c", "-c", "pi", "1", "2y", "", "lambda", "y z", "ÿ"])
    def test_names_that_mean_something_else(self, name):
        with pytest.raises(ExpressionError, match="variable"):
            Expression((1.0,), (name,))

    def test_names_differ_and_are_known(self):
        with pytest.raises(ExpressionError, match="must differ"):
            Expression((1.0,), ("y", "y"))
        with pytest.raises(ExpressionError, match="unknown name 'y'"):
            Expression.from_infix("y", self.NAMES)
        with pytest.raises(ExpressionError, match="unknown token"):
            Skeleton(("y",), self.NAMES)

    @pytest.mark.parametrize(
        ("name", "latex"),
        [("theta", r"\theta"), ("x_12", "x_{12}"), ("prey", r"\mathrm{prey}")]
        + [("dose_in", r"\mathrm{dose\_in}"), ("T", "T"), ("rho2", r"\rho_{2}")],
    )
    def test_names_in_latex(self, name, latex):
        assert Expression((name,), (name,)).latex() == latex


def test_factors_that_are_rounded_to_one_are_not_written():
    law = Expression.from_infix("1.00000001*exp(-0.99999999*y) + 1.00000002*y**3 - y**0.99999999")
    assert law.rounded(4).infix == "exp(-y) + y**3 - y"


def test_signs_of_printed_formulas_are_read():
    printed = "0.5·y − 2×y**2\N{NO-BREAK SPACE}+ 3⋅y"
    assert Expression.from_infix(printed) == Expression.from_infix("0.5*y - 2*y**2 + 3*y")


def test_a_number_too_small_to_be_told_from_zero_is_refused():
    with pytest.raises(ExpressionError, match="the number 1e-400 is too small at 1"):
        Expression.from_infix("1e-400*y")
    assert Expression.from_infix("0e5 + y").constants == (0.0,)
