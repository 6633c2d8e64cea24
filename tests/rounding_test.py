"""The printed law, read back, is the fitted one."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import least_squares
from solved import laws

from nsode_jax.discovery.systems import as_candidates
from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.trajectory_fitting import FULL
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.results import rounding
from nsode_jax.results.prediction import predict
from nsode_jax.results.result import Candidate
from nsode_jax.results.rounding import digits_together, rounded_constants

X = np.arange(1.0, 11.0)
Y = np.array([2950, 2452, 2333, 2274, 2244, 2222, 2207, 2195, 2184, 2176.0])


def fitted(formula, t, y):
    """The law with constants and first value by least squares, and their covariance."""
    skeleton = Expression.from_infix(formula)
    fixed = {i for i, c in enumerate(skeleton.constants) if c == 2.0}
    free = [i for i in range(len(skeleton.constants)) if i not in fixed]
    start = np.array([*(skeleton.constants[i] for i in free), y[0]])

    def law(scaled):
        constants = np.array(skeleton.constants)
        constants[free] = scaled[:-1] * start[:-1]
        return skeleton.skeleton.with_constants(constants)

    def residual(scaled):
        left = predict(law(scaled), scaled[-1] * start[-1], t) - y
        return np.nan_to_num(left, nan=1e3 * np.std(y))

    best = least_squares(residual, np.ones(start.size), method="lm", xtol=1e-12, ftol=1e-12)
    freedom = t.size - start.size
    inverse = np.linalg.inv(best.jac.T @ best.jac)[:-1, :-1] * (best.fun @ best.fun) / freedom
    covariance = np.zeros((len(skeleton.constants),) * 2)
    covariance[np.ix_(free, free)] = inverse * np.outer(start[:-1], start[:-1])
    rms = float(np.sqrt(np.mean(best.fun**2)))
    return Candidate(
        law(best.x),
        (float(best.x[-1] * start[-1]),),
        (t[0],),
        1 - rms**2 / y.var(),
        rms,
        0.0,
        covariance=covariance,
        end_times=(t[-1],),
    )


def misses(law, t):
    """Largest distance of the printed law's solution from the fitted one."""
    printed = Expression.from_infix(law.rounded().infix)
    return np.abs(predict(printed, law.y0, t) - law.predict(t)).max()


@pytest.mark.parametrize(
    "formula", ["8.38*y - 0.001955*y**2 - 8980", "-0.002*(y - 2150)*(y - 1700)", "2000 - 0.9*y"]
)
def test_constants_that_cancel(formula):
    law = fitted(formula, X, Y)
    assert misses(law, X) <= 0.1 * law.residual_rms


def test_one_by_one_they_would_not_do():
    law = fitted("8.38*y - 0.001955*y**2 - 8980", X, Y)
    # Where the terms cancel f itself is the fitted one.
    printed = Expression.from_infix(law.rounded().infix)
    assert printed.evaluate(2176.0) == pytest.approx(law.expression.evaluate(2176.0), rel=0.03)
    alone = rounded_constants(law.expression, law.standard_errors, law.y0s, (), law.residual_rms)
    printed = law.expression.skeleton.with_constants(alone)
    assert np.abs(predict(printed, law.y0, X) - law.predict(X)).max() > law.residual_rms
    assert len(law.rounded().infix) <= len(printed.infix) + 12


LAWS = ("0.5*y - 0.0008*y**2", "3.3 - 0.12*y", "-0.02*(y - 8)*(y - 300)", "1.1*y/(35 + y)",
        "-0.4*sqrt(y) + 7", "9*y - 2.1*y*log(y) + 0.3", "60*exp(-0.03*y)")  # fmt: skip


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("formula", LAWS)
def test_read_back_it_gives_the_data(formula, noise):
    rng = np.random.default_rng(len(formula))
    law = Expression.from_infix(formula)
    awkward = law.skeleton.with_constants(
        c if c == 2.0 else c * rng.uniform(0.9, 1.1) for c in law.constants
    )
    t = np.linspace(1.7e9, 1.7e9 + 6, 25)
    y = predict(awkward, 20.0, t)
    spread = y.std()
    y = y + noise * spread * rng.normal(size=t.size)
    found = fitted(awkward.infix, t, y)
    assert found.residual_rms <= 1.2 * noise * spread + 1e-6 * spread
    printed = predict(Expression.from_infix(found.rounded().infix), found.y0, t)
    rms = float(np.sqrt(np.mean((printed - y) ** 2)))
    assert rms <= 1.1 * found.residual_rms + 1e-6 * spread
    assert max(len(f"{abs(c):.12g}") for c in found.rounded_constants) <= 14


def test_several_series_are_all_kept():
    law = Expression.from_infix("8.3798*y - 0.0019553*y**2 - 8979.6")
    errors = [1.0, 2e-4, 0.0, 1e3]
    y0s, spans = (2951.0, 2300.0), (9.0, 5.0)
    rounded = rounded_constants(law, errors, y0s, spans, 4.0)
    printed = law.skeleton.with_constants(rounded)
    for y0, span in zip(y0s, spans, strict=True):
        t = np.linspace(0.0, span, 20)
        assert np.abs(predict(printed, y0, t) - predict(law, y0, t)).max() <= 0.4


def test_what_is_enough_stays_short():
    law = Expression.from_infix("0.5321456*y - 0.00081234*y**2")
    assert rounded_constants(law, [0.0034, 7e-6, 0.0], [10.0], [18.0], 5.0) == (
        0.5321,
        -0.0008123,
        2.0,
    )


@pytest.mark.parametrize("formula", ["1e-9*y", "0*y", "y**2 - 3.123456*y", "exp(10.123456*y)"])
def test_laws_that_rest_or_run_away(formula):
    law = Expression.from_infix(formula)
    rounded = rounded_constants(law, [math.nan] * len(law.constants), [1.0], [100.0], 0.0)
    assert len(rounded) == len(law.constants) and np.isfinite(rounded).all()


def test_a_law_without_a_solution_is_rounded_by_its_errors():
    law = Expression.from_infix("log(y) + 0.123456789")
    assert rounded_constants(law, [math.nan], [-1.0], [1.0], math.inf) == (0.1235,)
    assert rounded_constants(law, [0.001], [-1.0], [1.0], 1.0) == (0.1235,)


def test_is_solved_once_per_candidate(monkeypatch):
    law = fitted("2000 - 0.9*y", X, Y)
    first = law.rounded_constants
    monkeypatch.setattr(rounding, "rounded_constants", None)
    assert law.rounded_constants is first and law.rounded().infix == law.rounded().infix


def of_a_system(noise):
    """The series beside one that decays, fitted together."""
    system, t = System(("a", "b")), X - 1.0
    other = 3.0 * np.exp(-0.3 * t) + noise * np.sin(37.0 * X)
    data = Observations(system, (Run(t, np.stack([Y, other], axis=1), np.empty((X.size, 0))),))
    texts = ("8.38*a - 0.001955*a**2 - 8980", "-0.3*b")
    fit = fit_system(data, laws("ab", *texts), (Origin("test"),) * 2, stopping=FULL)
    ((candidate),) = as_candidates(data, [(fit, 0.0)])
    return candidate


@pytest.mark.parametrize("noise", [1e-3, 0.05])
def test_the_printed_laws_of_a_system_read_back_give_the_data(noise):
    found, t = of_a_system(noise), np.linspace(0.0, 9.0, 40)

    def miss(texts):
        printed = dataclasses.replace(found, laws=tuple(laws("ab", *texts)))
        return np.abs(printed.predict(t) - found.predict(t)).max(axis=0) / found.residuals

    printed = [line.partition(" = ")[2] for line in str(found).splitlines()]
    assert printed == [law.infix for law in found.rounded()]
    assert (miss(printed) <= 1 / 3).all()
    # The same digits in LaTeX; with fewer of them they are other laws.
    shown = [f"{abs(c):.12g}" for law in found.rounded() for c in law.constants]
    assert all(number in found.latex() for number in shown)
    assert miss([law.infix for law in found.rounded(found.digits - 1)]).max() > 1.0


def test_digits_of_a_system_without_errors_to_go_by():
    assert digits_together((1.1, 0.8), None, 0.1) == 4
    assert digits_together((1.1, 0.8), np.diag([np.inf, 1.0]), 0.1) == 4
    assert digits_together((1.1, 0.8), np.zeros((2, 2)), 0.0) == 4
    # A constant that was not fitted, and errors far below what anybody sees.
    assert digits_together((1 / 3, 2.0), np.diag([1e-20, 0.0]), 1e-9) == 4
    assert digits_together((1 / 3, 2.0), np.diag([1e-14, 0.0]), 1e-3) == 7
    # R2 is 1 to the last digit of a double: the errors tell, though not what noise is left.
    assert digits_together((1 / 3, 2.0), np.diag([1e-24, 0.0]), 0.0) > 6
