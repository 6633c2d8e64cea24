"""Solutions of systems from any initial values."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import PREY, PREY_LAWS, discovered, prey_discovery, system_candidate_of

from nsode_jax.dynamics.measured_inputs import measured_inputs
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.observations import Run
from nsode_jax.reporting.system_discovery import SystemDiscovery


def test_any_initial_values_will_do():
    t = np.linspace(3.0, 9.0, 40)
    truth = [Expression.from_infix(text, PREY.variables) for text in PREY_LAWS]
    for y0 in ((1.0, 1.3), (0.2, 3.0)):
        predicted = system_candidate_of(PREY, *PREY_LAWS).predict(t, y0)
        assert_allclose(predicted, integrate(truth, y0, t), rtol=1e-6)
        assert predicted.shape == (40, 2) and tuple(predicted[0]) == y0


def test_small_quantities_beside_large_ones_are_solved_as_exactly():
    """A virus of 1e8 decays slowly beside a fast oscillation of 1e-6, which nothing disturbs."""
    system = System(("virus", "a", "b"))
    law = system_candidate_of(system, "-0.3*virus", "30.5*b", "-30.5*a")
    law = dataclasses.replace(law, states=np.array([[1e8, 1e-6, 0.0]]))
    t = np.linspace(0.0, 6.0, 25)
    assert_allclose(law.predict(t, [1e8, 1e-6, 0.0])[:, 1], 1e-6 * np.cos(30.5 * t), atol=1e-11)


def test_velocities_are_initial_values_too():
    oscillator = system_candidate_of(System(("y",), order=2), "-4*y")
    t = np.linspace(0.0, 3.0, 20)
    expected = np.stack([np.sin(2 * t), 2 * np.cos(2 * t)], axis=1)
    assert_allclose(oscillator.predict(t, [0.0, 2.0]), expected, atol=1e-7)
    assert_allclose(oscillator.predict(t, {"v": 2.0, "y": 0.0}), expected, atol=1e-7)
    for wrong in ({"y": 0.0}, {"y": 0.0, "w": 2.0}, {"y": 0.0, "v": "fast"}, 1.0):
        with pytest.raises(ValueError, match="y0 needs 2 values: y, v"):
            oscillator.predict(t, wrong)
    decay = system_candidate_of(System(("y",), explicit_time=True), "-y")
    assert_allclose(decay.predict(t, 2.0)[:, 0], 2 * np.exp(-t), atol=1e-7)
    with pytest.raises(ValueError, match="y0 needs 2 values: y, v"):
        oscillator.predict(t, [0.0])


def test_other_inputs_give_other_solutions():
    forced = system_candidate_of(System(("y",), ("u",)), "u - y")
    t = np.linspace(0.0, 3.0, 30)
    constant = forced.predict(t, [0.0], inputs=np.full(30, 2.0))
    assert_allclose(constant[:, 0], 2 * (1 - np.exp(-t)), atol=1e-7)
    curve = measured_inputs(t, np.full((30, 1), 2.0))
    assert_allclose(forced.predict(t, [0.0], inputs=curve), constant)
    with pytest.raises(ValueError, match=r"inputs u at the same times, an array of shape \("):
        forced.predict(t, [0.0])


def test_a_solution_is_given_up_to_where_it_ceases():
    """y' = y^2 from 1 is 1/(1 - t)."""
    law = system_candidate_of(System(("y",), explicit_time=True), "y**2")
    t = np.array([0.0, 0.5, 0.9, 1.1, 2.0])
    assert_allclose(law.predict(t, [1.0])[:, 0], [1.0, 2.0, 10.0, np.nan, np.nan], rtol=1e-6)


@pytest.mark.parametrize("t", [[1.0, 0.0], [0.0, 0.0], [0.0, np.nan]])
def test_times_must_increase(t):
    with pytest.raises(ValueError, match="strictly increasing"):
        system_candidate_of(PREY, *PREY_LAWS).predict(t, [1.0, 1.0])


def test_fitted_solutions_come_in_the_pieces_they_were_fitted_in():
    found = prey_discovery(segments=3, runs=2)
    best = found.best
    assert best.states.shape == (6, 2) and best.starts.shape == (2, 2)
    pieces = best.solutions(found.runs[1], 1)
    assert_allclose(np.concatenate([t for t, _ in pieces]), found.runs[1].t)
    for (_, y), y0 in zip(pieces, best.states[3:], strict=True):
        assert_allclose(y[0], y0)


def test_the_laws_as_text_have_no_needless_signs():
    found = discovered(System(("x", "y", "z")), ("y - x", "-x*z - y", "x*y - z"), (1.0, 2.0, 0.5))
    assert "(-" not in str(found.best)


def test_inputs_must_be_known_from_the_beginning_of_a_run():
    law = system_candidate_of(System(("y",), ("u",)), "0.8*u - 0.5*y")
    t = np.linspace(0.0, 5.0, 30)
    whole = law.predict(t, inputs=np.sin(t))
    with pytest.raises(ValueError, match="not known from the first time of the run on, 0"):
        law.predict(t[10:], inputs=np.sin(t[10:]))
    later = law.predict(t[10:], whole[10], inputs=np.sin(t[10:]))
    assert_allclose(later, whole[10:], atol=1e-3)  # Curves through 20 and 30 points differ.


def test_inputs_are_not_invented_beyond_the_data():
    law = system_candidate_of(System(("y",), ("u",)), "0.8*u - 0.5*y")
    t = np.linspace(0.0, 5.0, 30)
    found = SystemDiscovery((law,), (Run(t, np.sin(t)[:, None], np.cos(t)[:, None]),), (), 0.0)
    assert_allclose(found.predict(t[10:]), law.predict(t, inputs=np.cos(t))[10:])
    beyond = np.linspace(4.0, 9.0, 5)
    with pytest.raises(ValueError, match="inputs of the run are known up to 5; give inputs"):
        found.predict(beyond)
    assert np.isfinite(found.predict(beyond, [1.0], inputs=np.cos(beyond))).all()


def test_a_run_has_to_be_one_of_them():
    found = prey_discovery(runs=2)
    assert np.isfinite(found.predict([1.0, 2.0], run=1)).all()
    for run in (2, -1):
        with pytest.raises(ValueError, match=f"one of 2, counted from 0; got {run}"):
            found.predict([1.0, 2.0], run=run)


def test_both_sides_of_an_equation_spell_names_alike():
    found = discovered(System(("light_level", "y1")), ("-2*light_level", "-y1"), (1.0, 2.0))
    for name in (r"\mathrm{light\_level}", "y_{1}"):
        assert found.best.latex().count(name) == 2


def test_inputs_are_held_as_they_were_in_the_data_whatever_the_rows_look_like():
    ends, dose = np.array([0.0, 10.0]), system_candidate_of(System(("x",), ("u",)), "u")
    assert_allclose(dose.predict(ends, [0.0], inputs=ends)[-1], 50.0)  # A ramp, by its ends.
    held = system_candidate_of(System(("x",), ("u",), held=("u",)), "u")
    assert_allclose(held.predict(ends, [0.0], inputs=ends)[-1], 0.0, atol=1e-9)
    times, levels = np.array([0.0, 5.0, 8.0, 10.0]), np.array([0.5, 2.0, 1.2, 1.2])
    assert_allclose(held.predict(times, [0.0], inputs=levels)[-1], 2.5 + 6.0 + 2.4)
    assert_allclose(held.predict([0.0, 1.0], [0.0], inputs=np.array([1.0, 3.0]))[-1], 1.0)


def test_a_candidate_has_its_functions_its_name_and_a_table_of_its_constants(x64):
    found = prey_discovery()
    best, y = found.best, np.array([1.5, 0.7])
    expected = [law.evaluate(*y) for law in best.laws]
    assert_allclose(best.to_callable()(y), expected)
    assert_allclose(best.vector_field()(0.0, y, None), expected)
    assert best.to_source() == found.to_source()
    assert best.name and best.name.startswith("predator and prey (Lotka 1925")
    assert system_candidate_of(System(("x",), ("u",)), "u - x").name is None
    table = best.constants_table()
    assert list(table["equation"]) == ["dprey/dt"] * 2 + ["dhunters/dt"] * 2
    shown = dict(zip(best.constants, best.standard_errors, strict=True))
    assert dict(zip(table["value"], table["standard_error"], strict=True)) == shown
    assert set(zip(table["low"], table["high"])) == set(best.confidence_intervals)


def test_one_row_of_inputs_is_the_start():
    driven = system_candidate_of(System(("x",), ("u",)), "u")
    assert_allclose(driven.predict([3.0], [0.5], inputs=np.array([2.0])), [[0.5]])
    held = measured_inputs(np.array([3.0]), np.array([[2.0]]))
    assert_allclose(held(np.array([1.0, 3.0, 9.0])), [[2.0, 2.0, 2.0]])
    assert not held.jumps.size
