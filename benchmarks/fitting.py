"""Starts per second of the batched fit, beside SciPy's least squares one law at a time.

    python -m benchmarks.fitting [--symbols 6] [--laws 200] [--turns 3] [--nodes 24]

The laws are all skeletons of up to so many symbols, with the initial guesses of the
enumeration; the data are those of one simulated law. SciPy fits a random sample of them,
from the first start of each, with the same nodes and the same targets; its Jacobian is by
differences, its residuals are evaluated by NumPy. Both take turns, so other load on the
machine slows both alike; ratios are of one turn. `found` is the share of laws of the sample
whose residual is within 1% of the smaller one of both, in the other words how often a
method ends in the better optimum.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from jaxtyping import Float
from scipy.optimize import least_squares

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, ExpressionError, Skeleton
from nsode_jax.expressions.skeleton_catalogue import shipped_catalogue
from nsode_jax.fitting.guesses import InitialGuess, batches_of
from nsode_jax.fitting.least_squares import fit_batches
from nsode_jax.fitting.programs import SMALL
from nsode_jax.fitting.starts import spread_guesses
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.observed.regression import Regression

LAW, Y0 = "0.8*y*(1 - y/3.1) - 0.3*y/(0.4 + y)", 0.4
ITERATIONS = 8


def data_form(nodes: int) -> Regression:
    """Clean data of the law, prepared for fitting at so many nodes."""
    t = np.linspace(0.0, 10.0, 200)
    y = solve(Expression.from_infix(LAW), Y0, t, rtol=1e-10, atol=1e-10)
    assert y is not None
    return integral_form(Dataset.of([Trajectory(t, y)])).coarsened(nodes)


def fit_one(form: Regression, guess: InitialGuess) -> float:
    """SciPy's fit of one law: root mean square residual, inf where it is undefined."""
    skeleton = guess.expression.skeleton
    values = np.array(guess.expression.constants)

    def residual(free: Float[np.ndarray, " free"]) -> Float[np.ndarray, " rows"]:
        values[guess.free] = free
        try:
            rates = skeleton.with_constants(values).evaluate(form.nodes)
        except ExpressionError:
            return np.full(form.target.shape, 1e6)
        with np.errstate(all="ignore"):
            return np.nan_to_num(form.target - form.operator @ rates, nan=1e6, posinf=1e6)

    start = values[guess.free].copy()
    method = "lm" if start.size <= form.target.size else "trf"
    cost = (
        2 * least_squares(residual, start, method=method).cost
        if start.size
        else np.sum(residual(start) ** 2)
    )
    error = float(np.sqrt((cost + form.remainder) / form.count))
    return error if error < 1e3 else float("inf")


def main() -> None:
    """Prints a line for each turn, and how often either ends in the better optimum."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--symbols", type=int, default=6)
    parser.add_argument("--laws", type=int, default=200)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=24)
    options = parser.parse_args()
    keys = shipped_catalogue().skeletons_up_to(options.symbols)
    guesses = [guess for key in keys for guess in spread_guesses(Skeleton.from_key(key))]
    starts = sum(1 if guess.starts is None else len(guess.starts) for guess in guesses)
    form = data_form(options.nodes)
    began = time.perf_counter()
    batches = list(batches_of(guesses, (SMALL,)))
    packed = time.perf_counter() - began
    print(f"{len(keys):,} skeletons, {len(guesses):,} guesses, {starts:,} starts; packed once")
    list(fit_batches(form, batches, ITERATIONS))  # Compiles.
    rng = np.random.default_rng(0)
    fitting = np.concatenate([batch.guesses for batch in batches])
    sample = rng.choice(fitting, min(options.laws, fitting.size), replace=False)
    ours = np.full(len(guesses), np.inf)
    theirs = np.full(sample.size, np.inf)
    for turn in range(options.turns):
        began = time.perf_counter()
        for fitted in fit_batches(form, batches, ITERATIONS):
            ours[fitted.guesses] = fitted.residuals
        batched = starts / (time.perf_counter() - began)
        began = time.perf_counter()
        theirs = np.array([fit_one(form, guesses[i]) for i in sample])
        single = sample.size / (time.perf_counter() - began)
        print(
            f"turn {turn + 1}: {batched:,.0f} starts/s batched, {single:,.0f} one by one, "
            f"ratio {batched / single:,.0f}; packing takes {packed * batched / starts:.1f} fits"
        )
    best = np.minimum(ours[sample], theirs)
    defined = np.isfinite(best)
    for name, errors in (("batched", ours[sample]), ("SciPy", theirs)):
        found = (errors[defined] <= 1.01 * best[defined]).mean()
        print(f"{name}: {found:.0%} of {defined.sum()} laws within 1% of the better optimum")


if __name__ == "__main__":
    main()
