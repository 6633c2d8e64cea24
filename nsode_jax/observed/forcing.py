"""The measured inputs of a system's runs: in order, known to be held or not, and thinned."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from nsode_jax.dynamics.measured_inputs import changes_in_steps
from nsode_jax.dynamics.trajectory import in_time, require_computable
from nsode_jax.dynamics.vectors import as_times
from nsode_jax.observed.thinning import evenly_spread

MAX_ROWS = 3000
"""Of one run; those of longer ones are thinned."""


@dataclasses.dataclass(frozen=True, eq=False)
class Forcing:
    """The inputs of one run, in all rows that have them.

    They count where a quantity is thinned or missing: it adds up what they did in between.

    Attributes:
      t: increasing times; of a step that was logged as two rows of one time there are both.
      u: values.
      occasion: of each row, its number among the different times.
    """

    t: Float[np.ndarray, " rows"]
    u: Float[np.ndarray, "rows inputs"]
    occasion: Int[np.ndarray, " rows"]

    @classmethod
    def of(cls, t: Any, u: Float[np.ndarray, "rows inputs"]) -> Forcing:
        """The inputs of a run as it was given.

        Raises:
          TrajectoryError: if times or values cannot be computed with.
        """
        times = as_times(t)[0]
        known = np.isfinite(u).all(axis=1) & np.isfinite(times)
        for column in u[known].T if known.any() else ():
            require_computable(column, "inputs")
        order, occasion, _ = in_time(times[known])
        return cls(times[known][order], u[known][order], occasion)

    def kept(
        self, holds: Sequence[bool], last: float
    ) -> tuple[Float[np.ndarray, " kept"], Float[np.ndarray, "kept inputs"], list[str]]:
        """When they were measured up to the last time, their values, and notes.

        Of the values of one time the last is held; of curves it is their mean. Of what is held
        all steps are kept.
        """
        ends = np.flatnonzero(np.diff(self.occasion, append=-1))
        first = np.flatnonzero(np.diff(self.occasion, prepend=-1))
        t = self.t[first]
        size = int(np.searchsorted(t, last, side="right"))
        means = np.add.reduceat(self.u, first) / (ends - first + 1)[:, None]
        u = np.where(holds, self.u[ends], means)[:size]
        chosen, notes = evenly_spread(size, MAX_ROWS), []
        if size > MAX_ROWS:
            for column in u.T[list(holds)]:
                chosen = np.union1d(chosen, 1 + np.flatnonzero(np.diff(column)))
            if not all(holds):
                notes.append(
                    f"{size} rows of inputs thinned to {chosen.size}: what changes faster is not "
                    "seen."
                )
        return t[chosen], u[chosen], notes


def held(names: Sequence[str], runs: Sequence[Forcing]) -> tuple[str, ...]:
    """The names of those inputs that change in steps, by all rows of all runs."""
    columns = zip(names, zip(*(run.u.T for run in runs), strict=True), strict=True)
    return tuple(name for name, values in columns if changes_in_steps(values))
