"""Systems of equations and their solutions."""

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator
from solved import laws

from nsode_jax.dynamics import dop853_system
from nsode_jax.dynamics.dop853 import SUCCESS
from nsode_jax.dynamics.dop853_system import Inputs
from nsode_jax.dynamics.measured_inputs import changes_in_steps, measured_inputs
from nsode_jax.dynamics.solve import solve_system
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.dynamics.stiff import solve_stiff
from nsode_jax.dynamics.system import System, integrate


def test_a_rotation_is_a_circle():
    t = np.linspace(0.0, 7.0, 40)
    y = integrate(laws(("x", "y"), "-y", "x"), [1.0, 0.0], t)
    np.testing.assert_allclose(y, np.stack([np.cos(t), np.sin(t)], axis=1), atol=1e-8)


def test_a_forced_law_has_its_closed_form_by_time_and_by_input():
    t = np.linspace(0.0, 6.0, 400)
    exact = np.exp(-t) + (np.sin(t) - np.cos(t) + np.exp(-t)) / 2
    by_time = integrate(laws(("y", "t"), "sin(t) - y"), [1.0], t)
    np.testing.assert_allclose(by_time[:, 0], exact, atol=1e-8)
    inputs = measured_inputs(t, np.sin(t)[:, None])
    by_input = integrate(laws(("y", "u"), "u - y"), [1.0], t, inputs)
    np.testing.assert_allclose(by_input[:, 0], exact, atol=1e-5)


def test_inputs_do_not_overshoot_and_stay_beyond_their_ends():
    t = np.array([0.0, 1.0, 2.0, 3.0])
    inputs = measured_inputs(t, np.array([[0.0], [0.0], [1.0], [1.0]]))
    values = inputs(np.linspace(-1.0, 4.0, 101))[0]
    assert values.min() == 0.0 and values.max() == 1.0
    assert values[-1] == 1.0


ROWS = np.arange(240)
HEATER = np.where((ROWS % 80 < 40) & (ROWS > 10), 80.0, 0.0)
LEVELS = np.repeat(np.random.default_rng(0).uniform(0.0, 80.0, 60), 4)


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        (HEATER, True),
        (LEVELS, True),
        (np.repeat(np.arange(6.0), 40), True),  # A staircase.
        (np.where(np.isin(ROWS, [20, 90, 130]), 1.0 + ROWS, 0.0), True),  # Three doses.
        (np.random.default_rng(0).integers(0, 2, 240), True),
        (np.full(240, 20.0), False),
        (np.sin(ROWS / 20), False),
        (np.round(np.tanh(8 * np.sin(ROWS / 10)), 2), False),  # Steep, but seen on its way.
        (np.clip(ROWS / 40, 1.0, 2.0), False),  # A ramp between two levels.
        (np.round(np.cumsum(np.sin(ROWS / 40)), 0), False),  # As coarse as its instrument.
        (np.round(np.random.default_rng(0).normal(20.0, 1.0, 240), 1), False),
    ],
)
def test_which_inputs_change_in_steps(values, steps):
    assert changes_in_steps([np.asarray(values, float)]) is steps


def test_runs_of_one_input_are_judged_as_one():
    """Of the rows of one run alone too many change."""
    slow, fast = np.repeat([0.0, 3.0, 1.0, 2.0], 30), np.repeat([0.0, 2.0, 1.0, 3.0, 1.0], 2)
    assert not changes_in_steps([fast]) and changes_in_steps([slow, fast])
    # What differs between runs only is no step.
    assert not changes_in_steps([np.zeros(9), np.ones(9)])


def test_what_changes_in_steps_is_held_until_the_next_row():
    t = ROWS / 2
    u = np.stack([HEATER, np.sin(t), LEVELS], axis=1)
    u[-1, 0] = 80.0
    inputs = measured_inputs(t, u, (True, False, True))
    np.testing.assert_array_equal(inputs(t), np.where([[1], [0], [1]], u.T, inputs(t)))
    for share in (0.01, 0.99):
        between = inputs(t[:-1] + 0.5 * share)
        np.testing.assert_array_equal(between[[0, 2]], u[:-1, [0, 2]].T)
    np.testing.assert_array_equal(inputs(np.array([500.0]))[[0, 2], 0], u[-1, [0, 2]])
    changed = np.diff(u[:, [0, 2]], axis=0).any(axis=1)
    np.testing.assert_array_equal(inputs.jumps, t[1:][changed])


def test_what_is_smooth_is_the_same_curve_as_ever():
    t = np.sort(np.random.default_rng(0).uniform(0.0, 9.0, 80))
    u = np.stack([np.sin(t), np.exp(-t)], axis=1)
    curve, inputs = PchipInterpolator(t, u), measured_inputs(t, u)
    np.testing.assert_array_equal(inputs.breaks, curve.x)
    np.testing.assert_array_equal(inputs.coefficients, curve.c)
    beside = measured_inputs(t, np.stack([u[:, 0], t > 4.0], axis=1), (False, True))
    np.testing.assert_array_equal(beside.coefficients[:, :-1, 0], curve.c[..., 0])
    assert not inputs.jumps.size and beside.jumps.tolist() == [t[t > 4.0][0]]


def heated(u):
    """The closed form of T' = 0.09 u - 0.12 T + 2.4 every half minute from 22 on."""
    found = [22.0]
    for value in u[:-1]:
        rest = 20.0 + 0.09 * value / 0.12
        found.append(rest + (found[-1] - rest) * np.exp(-0.06))
    return np.array(found)


HEATING = "0.09*u - 0.12*T + 2.4"


@pytest.mark.parametrize("u", [HEATER, LEVELS])
def test_a_held_input_has_its_closed_form(u):
    t, law = ROWS / 2, laws(("T", "u"), HEATING)
    inputs, exact = measured_inputs(t, u[:, None], (True,)), heated(u)
    np.testing.assert_allclose(integrate(law, [22.0], t, inputs)[:, 0], exact, atol=1e-6)
    # From a jump, between rows, and to just before or after a jump.
    for start, times in ((11, t[11:]), (13, t[13:21]), (9, np.r_[t[9], np.nextafter(20, [9, 99])])):
        part = integrate(law, [exact[start]], times, inputs)[:, 0]
        np.testing.assert_allclose(part, np.interp(times, t, exact), atol=1e-6)
    program = Program.from_expressions(law)
    start, tight = np.array([22.0]), {"rtol": 1e-10, "atol": 1e-10}
    stiff = solve_stiff(program, program.memory, start, t, inputs, **tight)
    np.testing.assert_allclose(stiff[:, 0], exact, atol=1e-6)


def test_steps_end_at_jumps_and_so_are_few():
    t, program = ROWS / 2, Program.from_expressions(laws(("T", "u"), HEATING))
    held = measured_inputs(t, LEVELS[:, None], (True,))
    curve = PchipInterpolator(t, LEVELS[:, None])
    steps = []
    for inputs in (held, Inputs(curve.x, np.ascontiguousarray(curve.c))):
        solved = dop853_system.integrate(
            program, program.memory[None], np.array([[22.0]]), t, inputs, rtol=1e-7,
            atol=np.array([1e-7]), limit=np.array([np.inf]), max_steps=3000,
        )  # fmt: skip
        assert solved.status == SUCCESS
        steps.append(solved.steps)
    assert held.jumps.size == 59 and steps[0] < 80 < steps[1]


def test_lorenz_agrees_with_lsoda():
    names, t = ("x", "y", "z"), np.linspace(0.0, 3.0, 50)
    equations = laws(names, "10*(y - x)", "x*(28 - z) - y", "x*y - 8/3*z")
    start = [2.3, 8.1, 12.4]
    ours = integrate(equations, start, t, rtol=1e-11, atol=1e-11)
    theirs = solve_system(equations, start, t, rtol=1e-12, atol=1e-12, max_steps=5000)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_stiff_equations_are_handed_on():
    y = integrate(laws(("x",), "1e7*(1 - x)"), [0.0], np.linspace(0.0, 1.0, 5), max_steps=500)
    np.testing.assert_allclose(y[1:, 0], 1.0, rtol=1e-6)


def test_so_they_are_with_inputs():
    t = np.linspace(0.0, 2.0, 9)
    inputs = measured_inputs(t, np.linspace(1.0, 3.0, 9)[:, None])
    y = integrate(laws(("x", "u"), "1e7*(u - x)"), [0.0], t, inputs, max_steps=500)
    np.testing.assert_allclose(y[1:, 0], 1.0 + t[1:], rtol=1e-5)


def test_what_blows_up_has_a_solution_up_to_there():
    t = np.array([0.0, 0.5, 0.9, 1.5, 2.0])
    y = integrate(laws(("x", "y"), "x**2", "y"), [1.0, 1.0], t)
    np.testing.assert_allclose(y[:3], np.stack([1 / (1 - t[:3]), np.exp(t[:3])], axis=1), rtol=1e-6)
    assert np.isnan(y[3:]).all()


def test_velocities_are_states_of_second_order():
    system = System(("x", "y"), inputs=("u",), explicit_time=True, order=2)
    assert system.states == ("x", "y", "v_x", "v_y")
    assert system.variables == ("x", "y", "v_x", "v_y", "u", "t")
    assert System(("y",), order=2).states == ("y", "v")
    assert System(("x", "v_x"), order=2).states == ("x", "v_x", "v_x_", "v_v_x")
    assert System(("x",), ("v", "v_x"), order=2).variables == ("x", "v_x_", "v", "v_x")
    found = System(("y",), order=2).equations(laws(("y", "v"), "-y"))
    assert [law.infix for law in found] == ["v", "-y"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observed": tuple("abcde")}, "1 to 4 quantities, got 5"),
        ({"observed": ("y",), "order": 3}, "order must be 1 or 2"),
        ({"observed": ("y", "y")}, "must differ"),
        ({"observed": ("sin",)}, "has a meaning"),
    ],
)
def test_what_is_no_system_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        System(**options)
