"""Constants of many laws at once: least squares, what may not vary, initial guesses."""

import numpy as np
import pytest
from observing import observed
from solved import LAWS, canonical_law, fitted_laws, form_of, solved_law

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.system import System
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting import least_squares
from nsode_jax.fitting.components import component_forms
from nsode_jax.fitting.guesses import InitialGuess, batches_of, initial_guesses
from nsode_jax.fitting.least_squares import fit_batches, fit_laws


def test_all_at_once_from_afar():
    form = form_of(solved_law("gompertz"))
    fits = fitted_laws(form, "-2*y*log(0.5*y)", "0.5*y", "1e3 - 1e3*y", "log(-y)", "sin(y)**9")
    expected = np.array(canonical_law(LAWS["gompertz"][0]).constants)
    np.testing.assert_allclose(np.abs(fits[0][0].constants), np.abs(expected), rtol=1e-3)
    errors = [error for _, error in fits]
    assert errors[0] < 1e-5 < min(errors[1:])
    assert np.isinf(errors[3])


def test_a_fit_agrees_with_least_squares():
    """A law that is linear in its constants has a closed form."""
    data = solved_law("gompertz")
    form = form_of(data)
    ((fitted, error),) = fitted_laws(form, "0.1 + 0.2*y + 0.3*y**3")
    columns = np.stack([np.ones(form.nodes.size), form.nodes, form.nodes**3], axis=1)
    design = form.operator @ columns
    best, *_ = np.linalg.lstsq(design, form.target, rcond=None)
    by_term = canonical_law("{} + {}*y + {}*y**3".format(*best))
    np.testing.assert_allclose(fitted.constants, by_term.constants, rtol=1e-6)
    squares = np.sum((design @ best - form.target) ** 2) + form.remainder
    assert error == pytest.approx(np.sqrt(squares / len(data)), rel=1e-6)


def test_what_may_not_vary_stays():
    form = form_of(solved_law("logistic"))
    law = canonical_law("0.9*y - 0.4*y**2")
    fixed = np.array([abs(c) == 0.4 for c in law.constants])
    constants, _ = fit_laws(form, [InitialGuess(law, ~fixed)])
    assert constants[0][fixed] == np.array(law.constants)[fixed]
    assert (constants[0][~fixed] != np.array(law.constants)[~fixed]).any()


def test_whole_exponents_stay_and_others_are_tried_both_ways():
    (only,) = initial_guesses(canonical_law("0.3*y**3"))
    assert sorted(only.free) == [False, True]
    rounded, free = initial_guesses(canonical_law("0.3*y**2.8"))
    assert 3.0 in rounded.expression.constants and free.free.all()
    (free,) = initial_guesses(canonical_law("0.3*y**1.3"))  # 1 would be no power.
    assert free.free.all()


@pytest.mark.parametrize("start", ["0.7*y**1.4", "-0.7*y**0.4", "-0.2*y**3.3"])
def test_a_power_is_found_from_afar(start):
    """c and p of c*y**p pull at each other over a narrow range; c is solved for exactly."""
    t = np.linspace(0.0, 4.0, 100)
    y = solve(canonical_law("-0.67*y**(-1.5)"), 3.0, t, rtol=1e-11, atol=1e-11)
    form = form_of(Trajectory(t, y))
    law = canonical_law(start)
    constants, errors = fit_laws(form, [InitialGuess(law, np.ones(2, bool))])
    np.testing.assert_allclose(constants[0], (-0.67, -1.5), rtol=1e-5)
    assert errors[0] < 1e-6


def test_batches_come_in_order_and_leave_out_what_is_too_large():
    huge = " + ".join("1.5*y" for _ in range(9))
    guesses = [
        initial_guesses(Expression.from_infix(text))[0] for text in ("sin(0.3*y)", huge, "y")
    ]
    batches = list(batches_of(guesses))
    assert np.concatenate([batch.guesses for batch in batches]).tolist() == [2, 0]
    form = form_of(solved_law("decay"))
    (fitted,) = fit_batches(form, batches)
    assert fitted.guesses is batches[0].guesses and len(fitted.constants) == 2
    assert np.isfinite(fitted.residuals).all()
    _, alone = fit_laws(form, guesses)
    np.testing.assert_array_equal(alone[[2, 0]], fitted.residuals)
    assert np.isinf(alone[1])


@pytest.mark.parametrize("offset", [0.0, 290.0, 1290.0])
def test_constants_that_are_linear_are_exact_also_of_values_far_from_zero(offset):
    """Such as pressures and temperatures, where y and y**2 are nearly alike."""
    t = np.linspace(0.0, 8.0, 60)
    y = offset + 20.0 / (1.0 + 4.0 * np.exp(-t)) + 0.05 * np.random.default_rng(0).normal(size=60)
    form = form_of(Trajectory(t, y))
    columns = form.operator @ np.stack([form.nodes**k for k in range(3)], axis=1)
    sizes = np.linalg.norm(columns, axis=0)
    solved = np.linalg.lstsq(columns / sizes, form.target, rcond=None)[0] / sizes
    left = np.sum((form.target - columns @ solved) ** 2) + form.remainder
    law = Expression.from_infix("0.72 + 0.71*y + 0.7*y**2")
    _, errors = fit_laws(form, [InitialGuess(law, np.array([True, True, True, False]))])
    assert errors[0] == pytest.approx(np.sqrt(left / form.count), rel=1e-4)


def test_few_shapes_serve_runs_of_all_lengths():
    """Systems are fitted at as many rows as were observed; most lengths need no compilation."""
    system, start = System(("x", "y")), "0.9*x - 0.3*x*y"
    true = ("1.1*x - 0.4*x*y", "0.1*x*y - 0.4*y")
    compiled = set()
    for points in range(100, 129, 4):
        data, (law, _) = observed(system, true, (5.0, 3.0), t=np.linspace(0.0, 8.0, points))
        (constants,), (residual,) = fit_laws(
            component_forms(data)[0], initial_guesses(Expression.from_infix(start, ("x", "y")))
        )
        np.testing.assert_allclose(np.abs(constants), np.abs(law.constants), rtol=1e-4)
        assert residual < 1e-4
        compiled.add(least_squares._fit._cache_size())
    assert len(compiled) == 1


@pytest.mark.parametrize("points", [40, 64, 97])
def test_what_fills_a_shape_up_changes_nothing(points):
    data, laws = observed(
        System(("x", "y")), ("1.1*x - 0.4*x*y", "0.1*x*y - 0.4*y"), (5.0, 3.0), noise=0.1,
        t=np.linspace(0.0, 8.0, points),
    )  # fmt: skip
    form = component_forms(data)[0]
    (constants,), (residual,) = fit_laws(form, initial_guesses(laws[0]))
    columns = np.stack([form.nodes[0], form.nodes[0] * form.nodes[1]], axis=1)
    best, *_ = np.linalg.lstsq(form.operator @ columns, form.target, rcond=None)
    np.testing.assert_allclose(np.abs(constants), np.abs(best), rtol=1e-6)
    left = form.operator @ columns @ best - form.target
    assert residual == pytest.approx(np.sqrt(np.mean(left**2)), rel=1e-6)
