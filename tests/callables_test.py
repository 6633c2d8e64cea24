"""Laws as functions: the same numbers everywhere."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from observing import candidate_of

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.results.callables import to_callable, vector_field

FORMULAS = (
    "0.53*y - 0.0008*y**2",
    "1.2*sin(0.7*y + 0.1) - cos(y)/(2 + y**2)",
    "exp(-0.3*y)*sqrt(y) + log(y)",
    "y**1.7/(1 + y**1.7) - (-y)",
    "1/y - 1/(y**-3)",
    "y**y + 2**y - sin(3)",
    "(y - 4)**3 + (-1.5)**2*y",
    "2.5",
    "sqrt(2 - y) + 1/(y - 1)",  # Undefined on a part.
)
Y = np.array([0.1, 0.5, 1.0, 1.7, 3.0, 8.25])


class TestFunctions:
    @pytest.mark.parametrize("formula", FORMULAS)
    def test_backends_agree_with_the_expression(self, formula, x64):
        expression = Expression.from_infix(formula)
        expected = expression.evaluate(Y)
        assert_array_equal(to_callable(expression)(Y), expected)
        f = jax.jit(to_callable(expression, "jax"))
        assert_allclose(f(Y), expected, rtol=1e-12, atol=1e-12)
        assert_allclose(f(Y.reshape(2, 3)), expected.reshape(2, 3), rtol=1e-12, atol=1e-12)
        assert f(Y[0]).shape == () and f(Y).dtype == np.float64
        constants = jnp.array(expression.constants)
        field = vector_field(expression)
        assert_allclose(field(0.0, Y, constants), expected, rtol=1e-12, atol=1e-12)
        assert_allclose(field(0.0, Y, None), expected, rtol=1e-12, atol=1e-12)

    def test_every_operator_is_exported(self, x64):
        for token, operator in OPERATORS.items():
            expression = Expression((token, *["y", 1.5][: operator.arity]))
            assert_allclose(
                to_callable(expression, "jax")(Y), expression.evaluate(Y), rtol=1e-14, err_msg=token
            )

    def test_type_is_that_of_the_argument(self):
        f = to_callable(Expression.from_infix("1.5*sin(3)*y**2"), "jax")
        assert f(jnp.ones(3)).dtype == jnp.float32
        assert f(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16
        assert f(jnp.arange(3)).dtype == jnp.float32
        assert f(2).shape == ()

    def test_differentiable_also_at_negative_values(self, x64):
        f = to_callable(Expression.from_infix("0.5*y - 2*y**3"), "jax")
        slopes = jax.vmap(jax.grad(f))(jnp.array([-2.0, 0.0, 1.0]))
        assert_allclose(slopes, [0.5 - 24, 0.5, 0.5 - 6], rtol=1e-12)
        assert jax.grad(jax.grad(f))(-1.0) == pytest.approx(12.0)

    def test_numpy_gives_nan_without_a_warning(self):
        with np.errstate(all="raise"):
            values = to_callable(Expression.from_infix("log(y) + sqrt(-y)"))([-1.0, 1.0])
        assert np.isnan(values).all()

    def test_unknown_backend(self):
        with pytest.raises(ValueError, match="backend must be numpy or jax, got 'torch'"):
            to_callable(Expression.from_infix("y"), "torch")

    def test_wrong_number_of_constants(self):
        field = vector_field(Expression.from_infix("0.5*y - 2"))
        with pytest.raises(ValueError, match=r"shape \(2,\), got args of shape \(3,\)"):
            field(0.0, 1.0, jnp.ones(3))


def solve(field, t, y0, args=None):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t[0],
        t[-1],
        None,
        y0,
        args=args,
        saveat=diffrax.SaveAt(ts=t),
        stepsize_controller=diffrax.PIDController(rtol=1e-10, atol=1e-12),
    ).ys


class TestDiffrax:
    LAW = candidate_of("1.1*y - 0.4*y**2", y0s=(0.2,))

    def test_solution_is_the_predicted_one(self, x64):
        t = np.linspace(0.0, 5.0, 11)
        y = solve(self.LAW.vector_field(), t, jnp.array([0.2, 2.0]))
        assert_allclose(y[:, 0], self.LAW.predict(t), rtol=1e-7)
        assert_allclose(y[:, 1], self.LAW.predict(t, y0=2.0), rtol=1e-7)

    def test_other_constants_and_their_gradient(self, x64):
        """dy/dt = a y + b y^2 is solved by a y0 e^(at) / (a + b y0 (1 - e^(at)))."""
        t, y0 = np.linspace(0.0, 2.0, 5), 0.2

        def last(constants):
            return solve(self.LAW.vector_field(), t, y0, constants)[-1]

        def exact(constants):
            a, b, growth = constants[0], constants[1], jnp.exp(constants[0] * t[-1])
            return a * y0 * growth / (a + b * y0 * (1 - growth))

        constants = jnp.array([0.9, -0.3, 2.0])
        assert self.LAW.expression.constants == (1.1, -0.4, 2.0)
        value, gradient = jax.value_and_grad(last)(constants)
        assert value == pytest.approx(float(exact(constants)), rel=1e-8)
        assert_allclose(gradient[:2], jax.grad(exact)(constants)[:2], rtol=1e-6)
        assert jnp.isfinite(gradient[2])
