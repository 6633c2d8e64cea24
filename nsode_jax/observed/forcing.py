"""The measured inputs of a system's runs: in order, known to be held or not, and thinned."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.interpolate import PchipInterpolator

from nsode_jax.dynamics.measured_inputs import changes_in_steps
from nsode_jax.dynamics.trajectory import firsts, in_time, require_computable
from nsode_jax.observed.thinning import evenly_spread

MAX_ROWS = 3000
"""Of one run; those of longer ones are thinned."""

_SAME = 4 * np.finfo(float).eps


@dataclasses.dataclass(frozen=True, eq=False)
class MeasuredInput:
    """One input of one run, in all rows that have it.

    They count where a quantity is thinned or missing: it adds up what the input did in between.

    Attributes:
      t: increasing times; of a step that was logged as two rows of one time there are both.
      values: at these.
      occasion: of each row, its number among the different times.
    """

    t: Float[np.ndarray, " rows"]
    values: Float[np.ndarray, " rows"]
    occasion: Int[np.ndarray, " rows"]

    @classmethod
    def of(cls, t: Float[np.ndarray, " all"], values: Float[np.ndarray, " all"]) -> MeasuredInput:
        """An input as it was given; what is missing is NaN.

        Raises:
          TrajectoryError: if the values cannot be computed with.
        """
        known = np.isfinite(values) & np.isfinite(t)
        t, values = t[known], values[known]
        if values.size:
            require_computable(values, "inputs")
        order, occasion, _ = in_time(t)
        return cls(t[order], values[order], occasion)

    @property
    def once(self) -> Float[np.ndarray, " _"]:
        """The values without those that a time has again, as measurements that are repeated."""
        new = np.diff(self.occasion, prepend=-1) != 0
        return self.values[new | (np.diff(self.values, prepend=np.nan) != 0.0)]

    def at_own_times(self, held: bool) -> tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]:
        """The different times and a value at each: the last one if it is held, else the mean."""
        first = firsts(self.occasion)
        last = np.append(first[1:], self.t.size) - 1
        means = np.add.reduceat(self.values, first) / (last - first + 1)
        return self.t[first], self.values[last] if held else means

    def at(self, times: Float[np.ndarray, " times"], held: bool) -> Float[np.ndarray, " times"]:
        """The values at any times: of the row before if it is held, else of a curve."""
        t, values = self.at_own_times(held)
        if np.array_equal(t, times):
            return values
        if held or t.size == 1:
            before = np.searchsorted(t, times + _SAME * np.abs(times), side="right") - 1
            return values[np.maximum(before, 0)]
        return PchipInterpolator(t, values)(np.clip(times, t[0], t[-1]))


def held(names: Sequence[str], runs: Sequence[Sequence[MeasuredInput]]) -> tuple[str, ...]:
    """The names of those inputs that change in steps, by all rows of all runs."""
    columns = zip(names, zip(*runs, strict=True), strict=True)
    return tuple(name for name, of in columns if changes_in_steps([one.once for one in of]))


def thinned(
    inputs: Sequence[MeasuredInput], holds: Sequence[bool], last: float
) -> tuple[Float[np.ndarray, " kept"], Float[np.ndarray, "kept inputs"], list[str]]:
    """The inputs of a run up to the last time, together, and notes.

    Of what is held all steps are kept.

    Args:
      inputs: each with a row at least.
      holds: whether they are held.
      last: the last time of the quantities.

    Returns:
      Times at which any of them was measured, the values of all, and notes.
    """
    times = np.sort(np.concatenate([one.t for one in inputs]))
    times = times[firsts(in_time(times)[1])]
    times = times[: np.searchsorted(times, last, side="right")]
    u = np.stack([one.at(times, hold) for one, hold in zip(inputs, holds, strict=True)], axis=1)
    chosen, notes = evenly_spread(times.size, MAX_ROWS), []
    if times.size > MAX_ROWS:
        for column in u.T[list(holds)]:
            chosen = np.union1d(chosen, 1 + np.flatnonzero(np.diff(column)))
        if not all(holds):
            notes.append(
                f"{times.size} rows of inputs thinned to {chosen.size}: what changes faster is "
                "not seen."
            )
    return times[chosen], u[chosen], notes
