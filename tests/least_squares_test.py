"""Constants of many laws at once: least squares, what may not vary, initial guesses."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.integral import integral_form
from nsode_jax.fitting.least_squares import (
    InitialGuess,
    batches_of,
    fit_batches,
    fit_laws,
    initial_guesses,
)
from nsode_jax.fitting.regression import Regression

# Laws with their initial value and the end of the observation.
LAWS = {
    "logistic": ("1.3*y - 0.7*y**2", 0.1, 4.0),
    "linear": ("2.5 - 0.8*y", 0.1, 5.0),
    "sqrt": ("1.7*sqrt(y) - 0.6*y", 0.3, 6.0),
    "sin": ("1.3*sin(1.7*y)", 0.1, 4.0),
    "gompertz": ("-0.37*y*log(0.21*y)", 0.1, 6.0),
    "decay": ("-0.7*y", -2.0, 4.0),
}


def _law(text: str) -> Expression:
    return canonicalize(Expression.from_infix(text))


def _data(name: str, points: int = 60, y0: float | None = None) -> Trajectory:
    text, first, end = LAWS[name]
    t = np.linspace(0.0, end, points)
    return Trajectory(t, solve(_law(text), first if y0 is None else y0, t, rtol=1e-11, atol=1e-11))


def _integral_form(series: list[Trajectory]) -> Regression:
    return integral_form(Dataset.of(series))


def _fit(form: Regression, *texts: str):
    guesses = [initial_guesses(_law(text))[0] for text in texts]
    constants, errors = fit_laws(form, guesses)
    return [
        (guess.expression.skeleton.with_constants(values), error)
        for guess, values, error in zip(guesses, constants, errors, strict=True)
    ]


def test_all_at_once_from_afar():
    form = _integral_form([_data("gompertz")])
    fits = _fit(form, "-2*y*log(0.5*y)", "0.5*y", "1e3 - 1e3*y", "log(-y)", "sin(y)**9")
    expected = np.array(_law(LAWS["gompertz"][0]).constants)
    np.testing.assert_allclose(np.abs(fits[0][0].constants), np.abs(expected), rtol=1e-3)
    errors = [error for _, error in fits]
    assert errors[0] < 1e-5 < min(errors[1:])
    assert np.isinf(errors[3])


def test_a_fit_agrees_with_least_squares():
    """A law that is linear in its constants has a closed form."""
    data = _data("gompertz")
    form = _integral_form([data])
    ((fitted, error),) = _fit(form, "0.1 + 0.2*y + 0.3*y**3")
    columns = np.stack([np.ones(form.nodes.size), form.nodes, form.nodes**3], axis=1)
    design = form.operator @ columns
    best, *_ = np.linalg.lstsq(design, form.target, rcond=None)
    by_term = _law("{} + {}*y + {}*y**3".format(*best))
    np.testing.assert_allclose(fitted.constants, by_term.constants, rtol=1e-6)
    squares = np.sum((design @ best - form.target) ** 2) + form.remainder
    assert error == pytest.approx(np.sqrt(squares / len(data)), rel=1e-6)


def test_what_may_not_vary_stays():
    form = _integral_form([_data("logistic")])
    law = _law("0.9*y - 0.4*y**2")
    fixed = np.array([abs(c) == 0.4 for c in law.constants])
    constants, _ = fit_laws(form, [InitialGuess(law, ~fixed)])
    assert constants[0][fixed] == np.array(law.constants)[fixed]
    assert (constants[0][~fixed] != np.array(law.constants)[~fixed]).any()


def test_whole_exponents_stay_and_others_are_tried_both_ways():
    (only,) = initial_guesses(_law("0.3*y**3"))
    assert sorted(only.free) == [False, True]
    rounded, free = initial_guesses(_law("0.3*y**2.8"))
    assert 3.0 in rounded.expression.constants and free.free.all()
    (free,) = initial_guesses(_law("0.3*y**1.3"))  # 1 would be no power.
    assert free.free.all()


@pytest.mark.parametrize("start", ["0.7*y**1.4", "-0.7*y**0.4", "-0.2*y**3.3"])
def test_a_power_is_found_from_afar(start):
    """c and p of c*y**p pull at each other over a narrow range; c is solved for exactly."""
    t = np.linspace(0.0, 4.0, 100)
    y = solve(_law("-0.67*y**(-1.5)"), 3.0, t, rtol=1e-11, atol=1e-11)
    form = _integral_form([Trajectory(t, y)])
    law = _law(start)
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
    form = _integral_form([_data("decay")])
    (fitted,) = fit_batches(form, batches)
    assert fitted.guesses is batches[0].guesses and len(fitted.constants) == 2
    assert np.isfinite(fitted.residuals).all()
    _, alone = fit_laws(form, guesses)
    np.testing.assert_array_equal(alone[[2, 0]], fitted.residuals)
    assert np.isinf(alone[1])
