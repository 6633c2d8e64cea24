"""Many expressions at once agree with SymPy, one by one; so do their derivatives."""

import math

import jax
import numpy as np
import pytest
import sympy
from conditioning import assert_equal_as_far_as_known

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import OPERATORS, VARIABLE
from nsode_jax.expressions.sampling import EquationPrior, sample_expression
from nsode_jax.fitting import programs, tile_machine
from nsode_jax.fitting.programs import LARGE, SMALL, ProgramError, pack

Y = np.array([-2.3, -0.7, 0.31, 1.9, 3.7])

# Every operator, leaves as roots, exponents of all kinds, a plain reciprocal.
LAWS = [
    "y",
    "0.7",
    "1/y",
    "y*y - y",
    "2.5 - 0.3*y",
    "-(y + 0.3)",
    "1.3*y**2",
    "y**3",
    "y**(-2)",
    "y**1.7",
    "(y**2 + 0.4)**0.3",
    "0.3**y",
    "sqrt(y)",
    "log(1.2*y)",
    "exp(-0.4*y)",
    "sin(2.1*y) + cos(0.3*y)",
    "exp(sin(0.5*y))/(1 + y**2)",
    "y*(1 - y/3.1)*(y/0.4 - 1)",
    "1/(0.3 + 1/y)",
]


def _expressions() -> list[Expression]:
    return [Expression.from_infix(text) for text in LAWS]


def _run(expressions, function=tile_machine.evaluate_with_gradient, y=Y):
    results = []
    with jax.enable_x64(True):
        for packed, count in pack(expressions):
            parts = jax.jit(function)(packed, packed.constants, y)
            results.append([np.asarray(part)[:count] for part in parts])
    return [np.concatenate(parts) for parts in zip(*results, strict=True)]


def _by_sympy(expression: sympy.Expr, symbol: sympy.Symbol) -> np.ndarray:
    """Real values in 30 digits, NaN where there are none."""
    values = []
    for value in Y:
        exact = expression.subs(symbol, sympy.Float(float(value), 40)).evalf(30)
        is_real = exact.is_number and exact.is_finite and not exact.has(sympy.I)
        values.append(float(exact) if is_real else math.nan)
    return np.array(values)


def test_values_agree_with_sympy():
    values, defined = _run(_expressions(), tile_machine.evaluate)
    symbol = sympy.Symbol("y")
    for row, (law, value) in enumerate(zip(_expressions(), values, strict=True)):
        truth = _by_sympy(law.to_sympy(), symbol)
        assert np.array_equal(defined[row], np.isfinite(truth)), law
        np.testing.assert_allclose(value[defined[row]], truth[defined[row]], rtol=1e-12)


def test_derivative_agrees_with_sympy():
    _, slopes, _ = _run(_expressions())
    symbol = sympy.Symbol("y")
    for law, slope in zip(_expressions(), slopes, strict=True):
        truth = _by_sympy(sympy.diff(law.to_sympy(), symbol), symbol)
        defined = np.isfinite(truth) & np.isfinite(law.evaluate(Y))
        assert np.isfinite(slope[defined]).all(), law
        np.testing.assert_allclose(slope[defined], truth[defined], rtol=1e-11, atol=1e-14)


def test_derivatives_by_the_constants_agree_with_differences():
    laws = [law for law in _expressions() if law.constants]
    _, _, gradients = _run(laws)
    for law, gradient in zip(laws, gradients, strict=True):
        constants = np.array(law.constants)
        for i, constant in enumerate(constants):
            step = 1e-6 * abs(constant)
            above, below = constants.copy(), constants.copy()
            above[i] += step
            below[i] -= step
            difference = law.skeleton.with_constants(above).evaluate(Y)
            difference -= law.skeleton.with_constants(below).evaluate(Y)
            defined = np.isfinite(difference)
            np.testing.assert_allclose(
                gradient[i][defined], difference[defined] / (2 * step), rtol=1e-7, atol=1e-8
            )
        assert (gradient[constants.size :] == 0).all()


def test_constants_that_stay_are_not_among_those_that_vary():
    law = Expression.from_infix("1.3*y**2 + 0.4*y**3")
    positive = np.array([0.4, 2.0])
    varied = np.array([1.3, 2.0, 0.4, 3.0])
    np.testing.assert_array_equal(law.constants, varied)
    with jax.enable_x64(True):
        ((packed, _),) = pack([law], [np.array([True, False, False, True])])
        assert packed.constants[0, :3].tolist() == [1.3, 3.0, 0.0]
        values, _, gradient = tile_machine.evaluate_with_gradient(
            packed, packed.constants, jax.numpy.asarray(positive)
        )
    np.testing.assert_allclose(values[0], law.evaluate(positive), rtol=1e-14)
    np.testing.assert_allclose(gradient[0, 0], positive**2, rtol=1e-12)
    by_exponent = 0.4 * positive**3 * np.log(positive)
    np.testing.assert_allclose(gradient[0, 1], by_exponent, rtol=1e-12)


def test_other_constants_than_those_packed():
    with jax.enable_x64(True):
        ((packed, _),) = pack([Expression.from_infix("0.5*sin(2*y)")])
        constants = np.zeros((LARGE.capacity, LARGE.constants))
        constants[0, :2] = 3.0, 0.7
        values, _ = tile_machine.evaluate(
            packed, jax.numpy.asarray(constants), jax.numpy.asarray(Y)
        )
    np.testing.assert_allclose(values[0], 3.0 * np.sin(0.7 * Y), rtol=1e-14)


def test_random_laws_in_more_than_one_batch_agree_one_by_one():
    rng = np.random.default_rng(1)
    laws = []
    while len(laws) < LARGE.capacity + 40:
        try:
            law = canonicalize(sample_expression(EquationPrior(), rng))
        except ExpressionError:
            continue
        if programs.fits(law):
            laws.append(law)
    values, defined = _run(laws, tile_machine.evaluate)
    assert np.array_equal(defined, np.isfinite(values))
    known = [
        assert_equal_as_far_as_known(row, law.prefix, Y)
        for law, row in zip(laws, values, strict=True)
    ]
    assert np.mean(known) > 0.9


def test_many_different_operations_are_split_into_batches():
    """One instruction per level and operator fills the tiles before the places."""
    deep = Expression((*(["sin", "exp"] * 30), VARIABLE))
    shallow = [Expression((token, VARIABLE)) for token, o in OPERATORS.items() if o.arity == 1]
    laws = [deep, *shallow] * 150
    with jax.enable_x64(True):
        counts = [count for _, count in pack(laws)]
    assert sum(counts) == len(laws)
    assert len(counts) > len(laws) / LARGE.capacity - 1
    values, _ = _run(laws[-len(shallow) :], tile_machine.evaluate)
    np.testing.assert_allclose(values[0][2:], shallow[0].evaluate(Y)[2:], rtol=1e-14)


def test_what_is_too_large_is_refused():
    too_many = " + ".join(f"{i}.5*y" for i in range(LARGE.constants + 1))
    with jax.enable_x64(True), pytest.raises(ProgramError, match="too large"):
        list(pack([Expression.from_infix(too_many)]))


def test_small_programs_give_the_same_and_hold_less():
    laws = [law for law in _expressions() if programs.fits(law, layout=SMALL)]
    assert len(laws) > 15
    with jax.enable_x64(True):
        ((packed, count),) = pack(laws, layout=SMALL)
        assert packed.layout == SMALL and count == len(laws)
        small, slopes, _ = tile_machine.evaluate_with_gradient(
            packed, packed.constants, jax.numpy.asarray(Y)
        )
    values, expected, _ = _run(laws)
    np.testing.assert_array_equal(small[:count], values)
    np.testing.assert_array_equal(slopes[:count], expected)
    many = Expression.from_infix(" + ".join("1.5*y" for _ in range(SMALL.constants + 1)))
    assert programs.fits(many) and not programs.fits(many, layout=SMALL)


def test_single_precision_is_refused():
    with pytest.raises(RuntimeError, match="enable_x64"):
        list(pack(_expressions()))


def test_several_variables():
    names = ("y1", "y2", "t")
    texts = ["y1*y2 - 3.5*t*y1", "t", "2.5", "sin(1.3*y2)*exp(-0.4*t)/(1 + y1**2.5)"]
    laws = [Expression.from_infix(text, names) for text in texts]
    points = np.random.default_rng(0).uniform(0.2, 3.0, (3, 6))
    with jax.enable_x64(True):
        (packed, count), *_ = pack(laws)
        values, slope, gradient = tile_machine.evaluate_with_gradient(
            packed, packed.constants, jax.numpy.asarray(points)
        )
        again, defined = tile_machine.evaluate(packed, packed.constants, jax.numpy.asarray(points))
    assert slope.shape == (LARGE.capacity, 3, 6)
    np.testing.assert_array_equal(values, again)
    assert count == 4 and defined[:4].all()
    for row, law in enumerate(laws):
        np.testing.assert_allclose(values[row], law.evaluate(*points), rtol=1e-12)
        for place, name in enumerate(names):
            derivative = sympy.diff(law.to_sympy(), sympy.Symbol(name))
            expected = sympy.lambdify([sympy.Symbol(n) for n in names], derivative)(*points)
            np.testing.assert_allclose(
                slope[row, place], np.broadcast_to(expected, 6), rtol=1e-11, atol=1e-14
            )
    np.testing.assert_allclose(gradient[0, 0], points[2] * points[0], rtol=1e-12)


def test_expressions_of_other_variables_are_not_packed_together():
    mixed = [Expression.from_infix("2*y"), Expression.from_infix("2*t", ("t",))]
    many = tuple(f"y{i}" for i in range(programs.MAX_VARIABLES + 1))
    with jax.enable_x64(True):
        with pytest.raises(ProgramError, match="same variables"):
            next(pack(mixed))
        with pytest.raises(ProgramError, match="more than 8 variables"):
            next(pack([Expression.from_infix("2*y1", many)]))
