"""Systems of equations and their solutions."""

import numpy as np
import pytest
from solved import laws

from nsode_jax.dynamics.solve import solve_system
from nsode_jax.dynamics.system import System, integrate, measured_inputs


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
