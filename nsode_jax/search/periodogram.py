"""Waves in time that drive a law: their frequencies, and oscillators that they drive.

What is driven for long moves as the wave does. Then the variables explain what the wave would,
and beside them it is not seen; beside a constant it is.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.system import TIME, System
from nsode_jax.expressions.prefix import Prefix
from nsode_jax.fitting.fit import Origin
from nsode_jax.observed.regression import Regression
from nsode_jax.search.population import Draft
from nsode_jax.search.terms import sum_of
from nsode_jax.search.variants import canonical_or_none

_PEAKS = 2
_FREQUENCIES = 400

_STIFFNESSES, _DAMPING = (0.5, 2.0), 0.3
"""Constants that an oscillator begins with, by the frequency of the wave."""


def frequencies(form: Regression, span: float) -> list[float]:
    """Angular frequencies of the waves in time that explain most, beside the variables or not.

    Args:
      form: the regression of an equation that may depend on the time.
      span: of the times.
    """
    found = _peaks(form, span, np.atleast_2d(form.nodes)[:-1])[:_PEAKS]
    alone = _peaks(form, span, np.empty((0, form.nodes.shape[-1])))[:1]
    return found + [w for w in alone if all(abs(w - one) > math.pi / span for one in found)]


def driven_oscillators(form: Regression, system: System, span: float) -> list[Draft]:
    """Damped linear oscillators that a wave drives, to begin fits to the solutions from.

    Once only the wave is left, regressions do not tell its force from that of the spring. But a
    spring that is stiffer than the wave asks for follows it, and a softer one moves against it:
    from one of either kind the right constants are near.
    """
    found = []
    nodes = np.atleast_2d(form.nodes)
    restoring = [(system.observed[system.sought.index(form.own)],), (form.own,)]
    for frequency in _peaks(form, span, np.empty((0, nodes.shape[1])))[:1]:
        waves: list[Prefix] = [(wave, "mul", frequency, TIME) for wave in ("cos", "sin")]
        turning = np.array([np.cos(frequency * nodes[-1]), np.sin(frequency * nodes[-1])])
        for stiffness in _STIFFNESSES:
            constants = [-stiffness * frequency**2, -_DAMPING * frequency]
            own = sum_of(restoring, constants, system.variables).evaluate(*nodes)
            left = form.target - form.operator @ own
            force, *_ = np.linalg.lstsq(form.operator @ turning.T, left, rcond=1e-9)
            law = sum_of([*restoring, *waves], [*constants, *force], system.variables)
            law = canonical_or_none(law) or law
            found.append(Draft(law, form.residual(law), math.nan, Origin("waves")))
    return found


def _peaks(form: Regression, span: float, beside: Float[np.ndarray, "terms nodes"]) -> list[float]:
    """The peaks of a periodogram of the regression, highest first.

    What a wave of each frequency explains of the target that these terms and a constant do not.
    """
    time = np.atleast_2d(form.nodes)[-1]
    base, _ = np.linalg.qr(form.operator @ np.array([np.ones_like(time), *beside]).T)
    left = form.target - base @ (base.T @ form.target)
    grid = np.linspace(0.5, min(form.count, _FREQUENCIES) / 2, 2 * _FREQUENCIES) * np.pi / span
    explained = np.array([_explained(form, base, left, time, w) for w in grid])
    inner = np.r_[False, (explained[1:-1] >= np.maximum(explained[:-2], explained[2:])), False]
    order = sorted(np.flatnonzero(inner), key=lambda i: -explained[i])
    return [_climbed(form, base, left, time, grid[i], grid[1] - grid[0]) for i in order[:_PEAKS]]


def _explained(
    form: Regression,
    base: Float[np.ndarray, "rows terms"],
    left: Float[np.ndarray, " rows"],
    time: Float[np.ndarray, " nodes"],
    frequency: float,
) -> float:
    pair = form.operator @ np.array([np.cos(frequency * time), np.sin(frequency * time)]).T
    pair = pair - base @ (base.T @ pair)
    found, *_ = np.linalg.lstsq(pair, left, rcond=1e-9)
    return float((pair @ found) @ left)


def _climbed(
    form: Regression,
    base: np.ndarray,
    left: np.ndarray,
    time: np.ndarray,
    start: float,
    step: float,
) -> float:
    """The frequency of the peak, to a hundredth of the step."""
    best = start
    while step > 0.005 * start / form.count and step > 1e-6 * start:
        options = (best - step / 2, best, best + step / 2)
        best = max(options, key=lambda w: _explained(form, base, left, time, w))
        step /= 2
    return float(best)
