"""`SystemDiscovery`: what was found in several quantities, with all one can do with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics.dop853_system import Inputs
from nsode_jax.reporting import system_text
from nsode_jax.reporting.system_result import SystemResult


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SystemDiscovery(SystemResult):
    """What `discover` finds; `SystemResult` says what it holds."""

    def predict(
        self,
        t: Float[np.ndarray, " time"] | Sequence[float],
        y0: Sequence[float] | None = None,
        *,
        inputs: Float[np.ndarray, "time inputs"] | Inputs | None = None,
        run: int = 0,
    ) -> Float[np.ndarray, "time states"]:
        """The solution of the best system; see `SystemCandidate.predict`."""
        if inputs is None and y0 is None and self.system.inputs:
            inputs = self.runs[run].inputs
        return self.best.predict(t, y0, inputs=inputs, run=run)

    def __str__(self) -> str:
        return system_text.as_text(self)

    def __repr__(self) -> str:
        laws = "; ".join(str(self.best).splitlines())
        return f"<SystemDiscovery: {laws}, best of {len(self.candidates)}>"
