"""How well clean data tell their own precision: the constant FLOOR of the derivative form.

    python benchmarks/precision.py [--laws 1500] [--seed 1]

Random laws of the shipped bank are solved by LSODA at several tolerances and sampled at
several densities. For each the residual of dy/dt that the true law leaves in the
derivative form is compared with the error that the form estimates from the data alone.
A law's residual below FLOOR times the estimate counts as no worse than the truth's.
"""

from __future__ import annotations

import argparse
import collections
import warnings

import numpy as np
from scipy.integrate import ODEintWarning, odeint

from nsode_jax.data.bank import SkeletonBank
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import FLOOR, derivative_form

SETTINGS = (
    # (time span, points, relative and absolute tolerance of LSODA)
    (4.0, 300, 1e-9, 1e-9),
    (4.0, 100, 1e-9, 1e-9),
    (4.0, 300, 1e-7, 1e-7),
    (4.0, 300, 1e-6, 1e-6),
    (10.0, 150, 1e-5, 1e-7),
)
_LARGEST = 1e3
_SMALLEST_RANGE = 1e-3


def simulate(
    law: Expression, y0: float, setting: tuple[float, int, float, float]
) -> Trajectory | None:
    """The law's solution as a solver of limited precision gives it, if there is one."""
    span, points, rtol, atol = setting
    t = np.linspace(0.0, span, points)

    def rate(y: np.ndarray, _: float) -> np.ndarray:
        return np.atleast_1d(law.evaluate(y))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ODEintWarning)
        y, info = odeint(rate, [y0], t, rtol=rtol, atol=atol, full_output=True)
    y = y[:, 0]
    if info["message"] != "Integration successful." or not np.isfinite(y).all():
        return None
    if np.ptp(y) < _SMALLEST_RANGE or np.abs(y).max() > _LARGEST:
        return None
    return Trajectory(t, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--laws", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    rng = np.random.default_rng(arguments.seed)
    keys = SkeletonBank.load("base").keys
    found: dict[tuple, list[tuple[float, float]]] = collections.defaultdict(list)
    solved: collections.Counter[tuple] = collections.Counter()
    for place in rng.permutation(len(keys))[: arguments.laws]:
        skeleton = Skeleton.from_key(keys[place])
        law = skeleton.with_constants(
            np.array(skeleton.signs) * np.exp(rng.standard_normal(skeleton.num_constants))
        )
        y0 = rng.uniform(-5.0, 5.0)
        for setting in SETTINGS:
            series = simulate(law, y0, setting)
            if series is None:
                continue
            solved[setting] += 1
            form = derivative_form(Dataset.of([series]))
            if form is not None:
                found[setting].append((form.residual(law), form.floor / FLOOR))

    print("points  tolerance  series  with a form  true residual  true / estimated error")
    print(" " * 39 + "median         10%   50%   90%   97%")
    for setting in SETTINGS:
        residuals, estimates = np.array(found[setting]).reshape(-1, 2).T
        if not residuals.size:
            continue
        shares = np.quantile(residuals / estimates, [0.1, 0.5, 0.9, 0.97])
        print(
            f"{setting[1]:6d}  {setting[2]:9.0e}  {solved[setting]:6d}  "
            f"{residuals.size / solved[setting]:11.0%}  {np.median(residuals):13.1e}  "
            + "  ".join(f"{share:4.1f}" for share in shares)
        )


if __name__ == "__main__":
    main()
