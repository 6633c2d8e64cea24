"""Checkpoints of a training run; the only file that touches Orbax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp


class TrainingCheckpoints:
    """The checkpoints of a run: training state and position in the data."""

    def __init__(self, folder: str | Path, keep: int = 2):
        """
        Args:
          folder: where checkpoints are kept; made when missing.
          keep: how many of the latest are kept.
        """
        self._manager = ocp.CheckpointManager(
            Path(folder).absolute(),
            options=ocp.CheckpointManagerOptions(
                preservation_policy=ocp.checkpoint_managers.LatestN(keep),
                enable_async_checkpointing=True,
            ),
        )

    def latest_step(self) -> int | None:
        """Step of the newest complete checkpoint, None if there is none."""
        return self._manager.latest_step()

    def save(self, step: int, state: Any, position: dict[str, Any]) -> None:
        """Saves a pytree of arrays and the position in the data, in the background.

        Args:
          step: of the run; a step that has been saved is not saved again.
          state: a pytree of arrays.
          position: plain JSON.
        """
        if step == self.latest_step():
            return
        self._manager.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state), data=ocp.args.JsonSave(position)
            ),
        )

    def restore(self, state: Any) -> tuple[int, Any, dict[str, Any]]:
        """The newest checkpoint.

        Args:
          state: a pytree with the shapes, dtypes and shardings to restore to.

        Returns:
          The step, the state and the position in the data.
        """
        step = self._manager.latest_step()
        # Without a target Orbax returns optimizer states as plain lists.
        target = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        restored = self._manager.restore(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardRestore(target), data=ocp.args.JsonRestore()
            ),
        )
        return step, restored.state, restored.data

    def close(self) -> None:
        """Waits for saves in the background."""
        self._manager.wait_until_finished()
        self._manager.close()
