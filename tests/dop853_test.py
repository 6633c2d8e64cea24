"""Our DOP853: closed forms, clean failures, and agreement with LSODA."""

import concurrent.futures

import numpy as np
import pytest
from solved import CLOSED_FORMS

from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.dop853 import FAILED, SUCCESS, TOO_MANY_STEPS
from nsode_jax.dynamics.solve import SolverConfig, solve, trusted_solutions
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.sampling import EquationPrior, sample_expression

T = np.linspace(0.0, 4.0, 1024)


def integrate(text, *initial_values, t=T, tolerance=1e-9, max_steps=1000):
    program = Program.from_expression(Expression.from_infix(text))
    return dop853.integrate(
        program, np.array(initial_values), t, rtol=tolerance, atol=tolerance, max_steps=max_steps
    )


@pytest.mark.parametrize(
    ("text", "y0", "solution"),
    [
        *CLOSED_FORMS,
        ("5 - y", 5.0, lambda t: 5.0 + 0.0 * t),  # Starts at rest.
        ("-y*log(y)", 2.0, lambda t: 2.0 ** np.exp(-t)),
    ],
)
@pytest.mark.parametrize("t", [T, T**2 / 4, T[:1], T[::500]], ids=["even", "uneven", "one", "few"])
def test_closed_forms(text, y0, solution, t):
    found = integrate(text, y0, t=t)
    assert found.status[0] == SUCCESS
    np.testing.assert_allclose(found.y[0], solution(t), rtol=2e-8, atol=2e-9)


def test_the_error_follows_the_tolerance():
    exact = 4 / (1 + 7 * np.exp(-2.4 * T))
    errors = [
        np.abs(integrate("2.4*y - 0.6*y**2", 0.5, tolerance=10.0**-digits).y[0] - exact).max()
        for digits in (5, 8, 11)
    ]
    assert errors[0] < 1e-4 and errors[1] < 1e-7 and errors[2] < 1e-10


@pytest.mark.parametrize(
    ("text", "y0"),
    [
        ("y**2", 1.0),  # Blows up at t = 1.
        ("-y**2", -1.0),
        ("y**1.5 + 1", 2.0),
        ("exp(y)", 0.0),
        ("exp(exp(y))", 4.0),
        ("sqrt(y) - 3", 1.0),  # Leaves the domain.
        ("-1/log(y)", 3.0),
        ("log(y)", -1.0),  # Starts outside it.
        ("1/y", 0.0),
        ("-1/y", 2.0),  # Poles: the solution ends there.
        ("1/(y - 1)**2", 0.0),
        ("1/(1 - y)", 0.0),
        ("-sqrt(y) - 0.01", 1.0),  # Reaches the edge of the domain, and f is not 0 there.
        ("-0.1 - y**0.3", 1.0),
        ("y", np.nan),
        ("y", np.inf),
    ],
)
def test_failures_are_clean_and_cheap(text, y0):
    found = integrate(text, y0)
    assert found.status[0] == FAILED
    assert np.isnan(found.y).all()
    assert found.steps[0] < 250


@pytest.mark.parametrize(
    ("text", "y0", "edge", "solution"),
    [
        ("-sqrt(y)", 1.0, 0.0, lambda t: np.clip(1 - t / 2, 0, None) ** 2),  # A tank empties.
        ("-3*y**(1/3)", 1.0, 0.0, lambda t: np.clip(1 - 2 * t, 0, None) ** 1.5),
        ("-2*y**0.1", 1.0, 0.0, lambda t: np.clip(1 - 1.8 * t, 0, None) ** (1 / 0.9)),
        ("2*sqrt(2 - y)", 1.0, 2.0, lambda t: 2 - np.clip(1 - t, 0, None) ** 2),
        ("-sqrt(y - 0.5)", 0.75, 0.5, lambda t: 0.5 + np.clip(0.5 - t / 2, 0, None) ** 2),
        ("y*log(y)", 0.5, 0.0, lambda t: 0.5 ** np.exp(t)),  # Only nearly 0, and soon.
    ],
)
def test_a_solution_rests_at_the_edge_of_the_domain_where_f_is_0(text, y0, edge, solution):
    times = np.linspace(0.0, 6.0, 61)
    found = integrate(text, y0, t=times)
    assert found.status[0] == SUCCESS and found.steps[0] < 250
    np.testing.assert_allclose(found.y[0], solution(times), rtol=1e-6, atol=1e-8)
    assert found.y[0, -1] == pytest.approx(edge, abs=1e-9)
    at_rest = integrate(text, edge, t=times) if text != "y*log(y)" else found
    np.testing.assert_allclose(at_rest.y[0, -1], edge, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "y0"), [("y**2*(1 + cos(y))", 1.0), ("y*exp(sin(y))", 0.3), ("y**2*sin(y)", 3.5)]
)
def test_fast_growth_is_not_taken_for_a_blow_up(text, y0):
    found = integrate(text, y0)
    assert found.status[0] == SUCCESS
    np.testing.assert_allclose(found.y[0], solve(Expression.from_infix(text), y0, T), rtol=1e-6)


def test_stiff_rest_points_take_few_steps():
    found = integrate("-1000*(y - cos(y))", 0.0, 1.0, 3.0)
    assert (found.status == SUCCESS).all()
    assert (found.steps < 60).all()
    np.testing.assert_allclose(found.y[:, 10:], 0.7390851332151607, rtol=1e-9)
    expected = solve(Expression.from_infix("-1000*(y - cos(y))"), 3.0, T)
    np.testing.assert_allclose(found.y[2], expected, rtol=1e-7)


def test_unstable_rest_points_are_left():
    y0, growth = 1e-5, np.exp(3.0 * T)
    exact = y0 * growth / np.sqrt(1.0 + y0**2 * (growth**2 - 1.0) / 3.0)
    y = integrate("3*y - y**3", y0).y[0]
    np.testing.assert_allclose(y, exact, atol=1e-6)  # LSODA is off by 5e-5.


def test_the_number_of_steps_is_limited():
    found = integrate("2 + cos(40*y)", 0.0, 1.0, max_steps=20)
    assert (found.status == TOO_MANY_STEPS).all()
    assert (found.steps == 20).all()
    assert np.isnan(found.y).all()
    needed = integrate("2 + cos(40*y)", 0.0).steps[0]
    assert integrate("2 + cos(40*y)", 0.0, max_steps=needed).status[0] == SUCCESS
    assert integrate("2 + cos(40*y)", 0.0, max_steps=needed - 1).status[0] == TOO_MANY_STEPS


def test_many_initial_values_are_as_each_alone():
    initial_values = np.linspace(-5.0, 5.0, 25)
    text = "sin(y)*y/(y + 3) - 0.4*y**2 + 1"
    together = integrate(text, *initial_values)
    assert {SUCCESS, FAILED} <= set(together.status.tolist())
    for y0, row in zip(initial_values, together.y):
        np.testing.assert_array_equal(integrate(text, y0).y[0], row)


def test_programs_stay_as_they_are_and_threads_do_not_meet():
    programs = [Program.from_expression(Expression((op, "y"))) for op in ("sin", "cos")] * 4
    before = [program.memory.copy() for program in programs]
    initial_values = np.linspace(-3.0, 3.0, 200)

    def work(program):
        return dop853.integrate(program, initial_values, T, rtol=1e-9, atol=1e-9, max_steps=1000).y

    expected = [work(program) for program in programs]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for y, alone in zip(threads.map(work, programs), expected):
            np.testing.assert_array_equal(y, alone)
    for program, memory in zip(programs, before):
        np.testing.assert_array_equal(program.memory, memory)


def test_the_gil_is_released():
    assert dop853._integrate_all.targetoptions["nogil"]


def test_agrees_with_lsoda_on_random_equations():
    rng = np.random.default_rng(5)
    fast, reference = SolverConfig(method="dop853"), SolverConfig()
    both, one = 0, 0
    for _ in range(60):
        expression = sample_expression(EquationPrior(), rng)
        initial_values = rng.uniform(-5.0, 5.0, 2)
        for a, b in zip(
            trusted_solutions(expression, initial_values, fast),
            trusted_solutions(expression, initial_values, reference),
        ):
            if a is not None and b is not None:
                both += 1
                assert (np.abs(a - b) / (1.0 + np.abs(b))).max() < 1e-6, expression
            one += (a is None) != (b is None)
    assert both > 30 and one <= 4
