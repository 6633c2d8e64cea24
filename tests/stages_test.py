"""Fits in segments that are joined."""

import numpy as np
import pytest
from observing import observed

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.stages import fit_in_stages
from nsode_jax.fitting.trajectory_fitting import FULL, ROUGH


def test_chaos_is_fitted_in_stages():
    system = System(("x", "y", "z"))
    equations = ("10*y - 10*x", "28*x - x*z - y", "x*y - 2.667*z")
    data, _ = observed(system, equations, (2.3, 8.1, 12.4), noise=0.3)
    near = ("9.5*y - 9.5*x", "27*x - 1.01*x*z - 1.1*y", "1.01*x*y - 2.6*z")
    start = [Expression.from_infix(text, system.variables) for text in near]
    origins = (Origin("test"),) * 3
    single = fit_system(data, start, origins, stopping=FULL)
    staged = fit_in_stages(data, start, origins, stopping=FULL)
    assert single.residuals[0] > 10 * staged.residuals[0]
    assert staged.laws[1].constants[0] == pytest.approx(28.0, rel=0.02)


def test_few_points_between_two_turns_are_enough():
    """Three or four points a turn: curves through them are nowhere near, the values are."""
    system = System(("x", "y", "z"))
    equations = ("10*y - 10*x", "99.96*x - x*z - y", "x*y - 2.667*z")
    data, _ = observed(system, equations, (3.7, -14.0, 20.0), t=np.linspace(0.0, 6.0, 90))
    near = ("13*y - 13*x", "110*x - 1.1*x*z - 1.2*y", "1.2*x*y - 3*z")
    start = [Expression.from_infix(text, system.variables) for text in near]
    staged = fit_in_stages(data, start, (Origin("test"),) * 3, stopping=ROUGH)
    assert (staged.residuals < 0.02 * data.spread).all()
    assert staged.laws[1].constants[0] == pytest.approx(99.96, rel=0.01)
