"""Initial guesses spread over what constants may be find laws with several local optima."""

import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.fitting.guesses import batches_of
from nsode_jax.fitting.least_squares import fit_batches
from nsode_jax.fitting.starts import STARTS, spread_guesses
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.observed.integral import integral_form


def _form(law: Expression, y0: float):
    t = np.linspace(0.0, 1.0, 200)
    data = Dataset.of([Trajectory(t, solve(law, y0, t, rtol=1e-10, atol=1e-10))])
    return derivative_form(data) or integral_form(data)


@pytest.mark.parametrize(
    ("text", "y0"),
    [
        ("-sin(5*y)", 0.4),
        ("log(y + 9)*y + 4", -0.7),
        ("1 - y + y*exp(-6*y)", 2.2),
        ("-sqrt(y)/(y - 5)", 1.2),
        ("3.3*y**1.4*exp(-2.1*y)", 0.3),
        ("0.4*y - 0.3*y**3", 0.5),
    ],
)
def test_constants_are_found_without_a_hint(text, y0):
    law = Expression.from_infix(text)
    guesses = list(spread_guesses(Skeleton.from_key(law.skeleton.unsigned_key)))
    form = _form(law, y0)
    best = min(
        (residual, tuple(constants))
        for fitted in fit_batches(form, batches_of(guesses), 8)
        for residual, constants in zip(fitted.residuals, fitted.laws(guesses), strict=True)
    )
    found = guesses[0].expression.skeleton.with_constants(best[1])
    places = np.linspace(form.nodes.min(), form.nodes.max(), 50)
    np.testing.assert_allclose(found.evaluate(places), law.evaluate(places), rtol=1e-4, atol=1e-6)


def test_whole_exponents_stay_and_several_starts_are_only_where_they_can_help():
    linear, *others = spread_guesses(Skeleton.from_key("add mul c y c"))
    assert linear.starts.shape == (1, 2) and not others
    free, whole = spread_guesses(Skeleton.from_key("mul c pow y c"))
    assert free.free.all() and free.starts.shape == (STARTS, 2)
    assert whole.free.tolist() == [True, False]
    assert set(whole.starts[:, 1]) <= {2.0, 3.0, 4.0, -1.0, -2.0, 0.5}
    assert (free.starts[:, 1] < 0).any() and len(set(free.starts[:, 1])) == STARTS


def test_the_best_start_is_told():
    (guess,) = spread_guesses(Skeleton.from_key("sin mul c y"))
    law = Expression.from_infix("sin(5*y)")
    (fitted,) = fit_batches(_form(law, 0.1), batches_of([guess]), 0, tried=0)
    ((constant,),) = fitted.laws([guess])
    assert constant == guess.starts[fitted.starts[0], 0]
    assert abs(constant - 5.0) == np.abs(guess.starts[:, 0] - 5.0).min()
