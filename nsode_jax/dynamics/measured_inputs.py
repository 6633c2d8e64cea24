"""Measured inputs between the rows: held, or curves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator

from nsode_jax.dynamics.dop853_system import NO_INPUTS, Inputs

_FEW_STEPS, _LARGE_STEP, _ONWARD = 1 / 3, 1 / 20, 1 / 4
"""Of an input that holds: most changes, by the rows; the least typical one, by the range; and
most of them that go on in the same direction at the next row."""


def changes_in_steps(series: Sequence[Float[np.ndarray, " _"]]) -> bool:
    """Whether an input is constant but for steps, as a switch, a valve or a controller is.

    It is if it has two values; or if few rows differ from the one before, by much of the range,
    and do not go on in the same direction at the next row, as ramps and measured curves do.

    Args:
      series: its values in each run, in the order of the times. All are judged as one.
    """
    changes = [np.diff(values) for values in series]
    steps = np.concatenate([change[change != 0.0] for change in changes])
    levels = np.unique(np.concatenate(series))
    if not steps.size or levels.size == 2:
        return bool(steps.size)
    rows = sum(change.size for change in changes)
    onward = sum(
        np.count_nonzero(np.sign(change[1:]) * np.sign(change[:-1]) > 0) for change in changes
    )
    few = steps.size <= _FEW_STEPS * rows and onward <= _ONWARD * steps.size
    return bool(few and np.median(np.abs(steps)) >= _LARGE_STEP * np.ptp(levels))


def measured_inputs(
    t: Float[np.ndarray, " time"], u: Float[np.ndarray, "time inputs"], holds: Sequence[bool] = ()
) -> Inputs:
    """What measured inputs are between the rows.

    Those that are held keep each value until the next row (zero-order hold). The others are
    curves through the values that do not overshoot (monotone cubics). One row holds for ever.

    Args:
      t: increasing times.
      u: values.
      holds: whether each of the inputs is held; without, none is.
    """
    if not u.shape[1]:
        return NO_INPUTS
    if len(t) == 1:
        ends = np.array([t[0], np.nextafter(t[0], math.inf)])
        return Inputs(ends, np.concatenate([np.zeros((3, 1, u.shape[1])), u[None]]))
    curve = PchipInterpolator(t, u)
    breaks, coefficients = np.asarray(curve.x), np.array(curve.c, order="C")
    if not any(holds):
        return Inputs(breaks, coefficients)
    held = np.array(holds)
    # The last value holds too: an own piece, of no length, is where it begins.
    breaks = np.append(breaks, np.nextafter(breaks[-1], math.inf))
    last = np.zeros((len(coefficients), 1, u.shape[1]))
    last[-1] = u[-1]
    coefficients = np.concatenate([coefficients, last], axis=1)
    coefficients[:-1, :, held], coefficients[-1, :, held] = 0.0, u[:, held].T
    return Inputs(breaks, coefficients)
