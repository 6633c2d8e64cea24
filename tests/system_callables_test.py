"""Systems as functions and as text: the same numbers everywhere."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import system_candidate_of
from scipy.integrate import solve_ivp

from nsode_jax.dynamics.system import System

CASES = {
    "polynomials": (System(("x", "y")), ("1.1*x - 0.8*x*y**2", "-0.6*x/(1.5 + x) - (-0.9)**3*y")),
    "functions": (System(("a", "b")), ("exp(-0.3*a)*sin(b)", "sqrt(a) + log(b)/cos(a) - 2**b")),
    "second order": (System(("y",), order=2), ("-4.1*y - 0.4*v**3",)),
    "time": (System(("y",), explicit_time=True), ("1.3*cos(2.1*t) - 0.7*y",)),
    "input": (System(("y", "z"), ("u",)), ("0.8*u - 0.5*y*z", "2.5")),
    "words of Python": (System(("args", "np"), ("inputs",)), ("0.3*np*inputs", "-args")),
    "everything": (System(("y", "lambda_"), ("u",), True, 2), ("u - v_y*t", "1/y - lambda_**1.7")),
}


def case(name):
    system, texts = CASES[name]
    return system_candidate_of(system, *texts)


@pytest.fixture(params=CASES)
def candidate(request):
    return case(request.param)


def at(candidate):
    """Random states, inputs, a time, and the derivatives there."""
    random, system = np.random.default_rng(0), candidate.system
    y = random.uniform(0.2, 1.0, (5, len(system.states)))
    u = random.uniform(0.2, 1.0, (5, len(system.inputs)))
    t = random.uniform(0.2, 1.0, 5)
    values = [*y.T, *u.T, *([t] if system.explicit_time else [])]
    return y, u, t, np.stack([law.evaluate(*values) for law in candidate.equations], axis=1)


def test_all_give_the_same(candidate, x64):
    y, u, t, expected = at(candidate)
    given = u if candidate.system.inputs else None
    for backend in ("numpy", "jax"):
        f = candidate.to_callable(backend)
        assert_allclose(f(y, given, t), expected, rtol=1e-12)
        assert_allclose(f(y[0], None if given is None else u[0], t[0]), expected[0], rtol=1e-12)
    for i in range(5):
        inputs = (lambda _, i=i: u[i]) if candidate.system.inputs else None
        field = candidate.vector_field(inputs)
        assert_allclose(field(t[i], y[i], None), expected[i], rtol=1e-12)
        assert_allclose(
            jax.jit(field)(t[i], y[i], jnp.array(candidate.constants)), expected[i], rtol=1e-12
        )


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_the_text_is_a_program(candidate, backend, x64):
    y, u, t, expected = at(candidate)
    program = {}
    exec(candidate.to_source(backend), program)  # noqa: S102
    for i in range(5):
        options = {"inputs": lambda _, i=i: u[i]} if candidate.system.inputs else {}
        found = program["vector_field"](t[i], y[i], **options)
        assert_allclose(found, expected[i], rtol=1e-12)
        again = program["vector_field"](t[i], y[i], program["CONSTANTS"], **options)
        assert_allclose(again, found)


def test_the_text_is_worth_reading():
    text = case("polynomials").to_source()
    assert "        x, y = y" not in text and "    x, y = y\n" in text
    assert "c0*x + c1*x*y**2,  # dx/dt" in text
    assert text.startswith('"""The laws of x, y, found by nsode_jax."""\n\nimport numpy as np')


def test_solvers_take_it(x64):
    candidate = system_candidate_of(System(("x", "y")), "1.1*x - 0.8*x*y", "0.6*x*y - 0.9*y")
    t = np.linspace(0.0, 5.0, 11)
    expected = candidate.predict(t, [1.0, 1.3])
    program = {}
    exec(candidate.to_source(), program)  # noqa: S102
    by_scipy = solve_ivp(
        program["vector_field"], (0.0, 5.0), [1.0, 1.3], t_eval=t, rtol=1e-9, atol=1e-9
    )
    assert_allclose(by_scipy.y.T, expected, rtol=1e-6)
    by_diffrax = diffrax.diffeqsolve(
        diffrax.ODETerm(candidate.vector_field()), diffrax.Tsit5(), 0.0, 5.0, 0.01,
        jnp.array([1.0, 1.3]), saveat=diffrax.SaveAt(ts=t),
        stepsize_controller=diffrax.PIDController(1e-9, 1e-9),
    )  # fmt: skip
    assert_allclose(by_diffrax.ys, expected, rtol=1e-6)


def test_what_is_missing_is_named():
    forced = case("input")
    with pytest.raises(ValueError, match="u needs 1 inputs: u"):
        forced.to_callable()([1.0, 1.0])
    with pytest.raises(ValueError, match="needs inputs, a function of t"):
        forced.vector_field()
    with pytest.raises(ValueError, match="give t"):
        case("time").to_callable()([1.0])
    with pytest.raises(ValueError, match="y needs 2 states last: y, z"):
        forced.to_callable()([1.0])
    with pytest.raises(ValueError, match="args of shape"):
        forced.vector_field(lambda t: 1.0)(0.0, jnp.ones(2), jnp.ones(1))
    for make in (forced.to_callable, forced.to_source):
        with pytest.raises(ValueError, match="numpy or jax"):
            make("torch")
