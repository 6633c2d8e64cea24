"""Curves through all values serve exact data that change as fast as they are measured."""

from typing import Any

import numpy as np
import pytest

from nsode_jax.dynamics.system import integrate
from nsode_jax.evaluation.coupled_systems import CASES
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.observations import Observations
from nsode_jax.observed.runs import read_runs
from nsode_jax.search.curves import with_serving_curves

CHAOTIC = {case.name: case for case in CASES if case.name in ("Lorenz 1984", "Nose-Hoover")}


def _read(names: tuple[str, ...], timed: bool = False) -> dict[str, Any]:
    return {"names": names, "input_names": None, "explicit_time": timed, "order": 1}


def _observed(name: str, times: float, noise: float) -> tuple[Observations, np.ndarray, np.ndarray]:
    """A system over some times its duration; the truth between its observations too."""
    case = CHAOTIC[name]
    fine = np.linspace(0.0, times * case.duration, 149 * 8 + 1)
    laws = [Expression.from_infix(law, case.system.variables) for law in case.laws]
    states = integrate(laws, np.array(case.starts[0]), fine, rtol=1e-9, atol=1e-9)
    y = states[::8]
    y = y + noise * y.std(axis=0) * np.random.default_rng(0).standard_normal(y.shape)
    data, _ = read_runs(fine[::8], y, None, **_read(case.system.states))
    return data, fine, states.T


def _error(data: Observations, t: np.ndarray, states: np.ndarray) -> float:
    left = data.points(data.runs[0], t) - states
    return float(np.sqrt(np.mean(left**2, axis=1) / states.var(axis=1)).max())


@pytest.mark.parametrize("noise", [0.0, 0.005])
@pytest.mark.parametrize("name", CHAOTIC)
def test_what_changes_fast_is_not_smoothed_away(name, noise):
    data, t, states = _observed(name, 4.0, noise)
    chosen = with_serving_curves(data)
    assert chosen.runs[0].exact
    assert _error(chosen, t, states) < 0.3 * _error(data, t, states)
    np.testing.assert_allclose(chosen.along, data.y.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CHAOTIC)
def test_noise_is_smoothed(name):
    data, t, states = _observed(name, 1.0, 0.1)
    assert with_serving_curves(data) is data
    assert _error(data.through_values, t, states) > 1.3 * _error(data, t, states)


def test_inputs_and_the_time_may_be_in_an_equation():
    t = np.linspace(0.0, 10.0, 60)
    u = (t > 4.0).astype(float)
    y = np.cos(t) + 0.1 * np.random.default_rng(1).standard_normal(t.size)
    data, _ = read_runs(t, y[:, None], u[:, None], **_read(("y",), True))
    assert with_serving_curves(data) is data
