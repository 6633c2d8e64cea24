"""Neighbouring solutions are derivatives by the constants and the initial values."""

import numpy as np

from nsode_jax.dynamics import dop853_system
from nsode_jax.dynamics.dop853 import FAILED, SUCCESS, TOO_MANY_STEPS
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.expression import Expression


def solve(text, start, t, constant_steps=(0.0,), start_steps=(0.0,), **options):
    program = Program.from_expression(Expression.from_infix(text))
    memories = np.repeat(program.memory[None], len(constant_steps), axis=0)
    memories[:, program.variables] += constant_steps
    starts = np.full((len(start_steps), 1), start) + np.array(start_steps)[:, None]
    chosen = {"rtol": 1e-8, "atol": np.array([1e-8]), "limit": np.array([np.inf])}
    chosen |= {"max_steps": 1000} | options
    return dop853_system.integrate(program, memories, starts, t, **chosen)


def test_differences_of_neighbours_are_derivatives():
    t, step = np.linspace(0.0, 2.0, 9), 1e-6
    found = solve("-0.7*y", 2.0, t, (0.0, step, 0.0), (0.0, 0.0, step))
    assert found.status == SUCCESS
    decay = np.exp(-0.7 * t)
    np.testing.assert_allclose(found.y[0, :, 0], 2 * decay, rtol=1e-7)
    np.testing.assert_allclose((found.y[1] - found.y[0])[:, 0] / step, 2 * t * decay, atol=1e-5)
    np.testing.assert_allclose((found.y[2] - found.y[0])[:, 0] / step, decay, atol=1e-5)


def test_failures_have_a_status_and_no_numbers():
    t = np.linspace(0.0, 2.0, 5)
    blown = solve("1.0*y**2", 1.0, t)
    assert blown.status == FAILED and np.isnan(blown.y).all()
    far = solve("0.9*y", 1.0, t, limit=np.array([2.0]))
    assert far.status == FAILED
    assert solve("-0.7*y", 1.0, t, max_steps=2).status == TOO_MANY_STEPS


def two(first, second, start, t):
    laws = [Expression.from_infix(law, variables=("y1", "y2")) for law in (first, second)]
    program = Program.from_expressions(laws)
    return dop853_system.integrate(
        program, program.memory[None], np.array([start]), t, rtol=1e-9, atol=np.full(2, 1e-9),
        limit=np.full(2, np.inf), max_steps=1000,
    )  # fmt: skip


def test_a_tank_that_is_empty_stays_empty_while_the_next_one_empties():
    t = np.linspace(0.0, 12.0, 49)
    found = two("-0.5*sqrt(y1)", "0.5*sqrt(y1) - 0.3*sqrt(y2)", [1.0, 1.0], t)
    assert found.status == SUCCESS
    upper, lower = found.y[0].T
    np.testing.assert_allclose(upper, np.clip(1.0 - t / 4.0, 0.0, None) ** 2, atol=1e-7)
    at_4 = lower[t == 4.0]
    after = np.clip(np.sqrt(at_4) - 0.15 * (t - 4.0), 0.0, None) ** 2
    np.testing.assert_allclose(lower[t >= 4.0], after[t >= 4.0], atol=1e-6)
    # What is below 0 and may be there is not taken for 0.
    beside = two("-sqrt(y1)", "-y2", [1.0, -1.0], t)
    np.testing.assert_allclose(beside.y[0, :, 1], -np.exp(-t), atol=1e-7)


def test_a_solution_ends_where_f_is_undefined_and_leads_on():
    t = np.linspace(0.0, 12.0, 49)
    assert two("-0.5*sqrt(y1) - 0.1", "-y2", [1.0, 1.0], t).status == FAILED
    assert two("-sqrt(y1)", "-y2", [-1.0, 1.0], t).status == FAILED  # Starts outside.
    assert two("log(y1) - 1", "-y2", [1.0, 1.0], t).status == FAILED
