"""Laws in other forms: the same numbers everywhere, tables and texts that say what they should."""

import html
import math

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.reporting import export
from nsode_jax.reporting.export import to_callable, vector_field
from nsode_jax.reporting.result import Candidate, Discovery

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


def candidate(formula, covariance=None, **fields):
    fit = {"y0s": (1.0,), "start_times": (0.0,), "r2": 0.99, "residual_rms": 0.1, "score": 1.0}
    return Candidate(Expression.from_infix(formula), covariance=covariance, **fit | fields)


LAWS = (
    candidate(
        "0.53214*y - 0.00081234*y**2",
        np.diag([0.0034, 0.0000021, 0.0]) ** 2,
        residual_rms=0.1,
        weight=0.9,
        log_probability=-3.5,
        converged=True,
    ),
    candidate("0.3*y", residual_rms=0.5, weight=0.1, r2=0.91),
    candidate("exp(y)", residual_rms=math.inf, r2=-math.inf, score=math.inf),
    candidate("0.31*y + 0.1*y**3", residual_rms=0.2),
)
FOUND = Discovery(LAWS, (Trajectory([0, 1, 2], [1, 2, 4]),), ("Beware of <b> & |.",), 2.5)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


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
    LAW = candidate("1.1*y - 0.4*y**2", y0s=(0.2,))

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


class TestTables:
    def test_constants(self):
        table = LAWS[0].constants_table()
        assert list(table.index) == ["c0", "c1", "c2"]
        assert_array_equal(table["value"], [0.53214, -0.00081234, 2.0])
        assert_allclose(table["standard_error"], [0.0034, 0.0000021, 0.0])
        assert_allclose(table.loc["c0", ["low", "high"]].tolist(), [0.525476, 0.538804])
        assert list(table["fixed"]) == [False, False, True]
        unknown = LAWS[1].constants_table()
        assert unknown["standard_error"].isna().all() and not unknown["fixed"].any()
        assert candidate("y").constants_table().shape == (0, 5)

    def test_candidates(self):
        table = FOUND.table()
        assert list(table["rank"]) == [1, 2, 3, 4]
        assert table["formula"][0] == "0.5321*y - 0.0008123*y**2"
        assert list(table["complexity"]) == [9, 3, 2, 9]
        assert list(table["converged"]) == [True, False, False, False]
        assert list(table["on_pareto_front"]) == [True, True, False, False]
        assert table["r2"][2] == -math.inf and math.isnan(table["log_probability"][1])
        assert table["weight"][0] == 0.9 and table["score"][1] == 1.0
        assert len(FOUND.table(limit=2)) == 2
        assert list(FOUND.table(limit=2).columns) == list(table.columns)
        assert len(FOUND.table(limit=0).columns) == len(table.columns)


class TestText:
    def test_terminal(self):
        lines = str(FOUND).splitlines()
        assert lines[0] == "dy/dt = 0.5321*y - 0.0008123*y**2"
        assert lines[1] == "with y = 1 at t = 0, R² = 0.99000, residual 0.1"
        assert lines[2:4] == ["  c0 = 0.5321 ± 0.0034", "  c1 = -0.0008123 ± 2.1e-06"]
        assert lines[5].split() == ["rank", "R²", "complexity", "weight", "dy/dt", "="]
        assert lines[6] == "   1   0.99000           9   90.0%  0.5321*y - 0.0008123*y**2"
        assert lines[8] == "   3  diverges           2          exp(y)"
        assert lines[-1] == "note: Beware of <b> & |."
        assert repr(FOUND) == "<Discovery: dy/dt = 0.5321*y - 0.0008123*y**2, best of 4>"

    def test_many_candidates_are_cut(self):
        many = Discovery(LAWS * 2, FOUND.trajectories, (), 1.0)
        assert "(3 more candidates in `table()`)" in str(many)
        assert "3 more candidates" in many._repr_html_() and "3 more" in many._repr_markdown_()

    def test_notebook(self):
        page = FOUND._repr_html_()
        assert "Beware of <b>" not in page and html.escape("Beware of <b> & |.") in page
        assert page.count("<tr>") == 5 and page.count("<code>") == 4
        markdown = FOUND._repr_markdown_().splitlines()
        assert markdown[0] == r"$$\frac{dy}{dt} = 0.5321 y - 0.0008123 y^{2}$$"
        rows = [line for line in markdown if line.startswith("|")]
        assert len(rows) == 6 and {row.count("|") for row in rows} == {6}

    def test_several_trajectories_are_counted(self):
        law = candidate("y", y0s=(1.0, 2.0, 3.0), start_times=(0.0, 0.0, 1.0))
        assert "(and 2 more trajectories)" in export.as_text(
            Discovery((law,), FOUND.trajectories, (), 1.0)
        )
