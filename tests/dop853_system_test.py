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
