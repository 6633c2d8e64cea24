"""Checkpoints of a training run; the only file that touches Orbax."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nsode_jax.system.extras import extra

with extra("train", "saving checkpoints"):
    import orbax.checkpoint as ocp


class _KeepBest:
    """Orbax policy that keeps one step. (Its own BestN forgets scores when a run goes on.)"""

    def __init__(self):
        self.step: int | None = None

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        return [checkpoint.step == self.step for checkpoint in checkpoints]


class TrainingCheckpoints:
    """The checkpoints of a run: the training state, and a record of the run in JSON.

    The latest few are kept, and the best one. One that was not written to its end,
    because the run was killed, does not count.
    """

    def __init__(self, folder: str | Path, keep: int = 2, *, read_only: bool = False):
        """
        Args:
          folder: where checkpoints are kept; made when missing, unless it is only read.
          keep: how many of the latest are kept.
          read_only: they are another run's, which may be going on.
        """
        policies, self._best = ocp.checkpoint_managers, _KeepBest()
        self._manager = ocp.CheckpointManager(
            Path(folder).absolute(),
            options=ocp.CheckpointManagerOptions(
                preservation_policy=policies.AnyPreservationPolicy(
                    [policies.LatestN(n=keep), self._best]
                ),
                enable_async_checkpointing=True,
                create=not read_only,
                read_only=read_only,
            ),
        )

    def steps(self) -> list[int]:
        """Steps of all complete checkpoints."""
        return sorted(self._manager.all_steps())

    def latest_step(self) -> int | None:
        """Step of the newest complete checkpoint, None if there is none."""
        return self._manager.latest_step()

    def save(
        self, step: int, state: Any, record: dict[str, Any], best_step: int | None = None
    ) -> None:
        """Saves in the background.

        Args:
          step: of the run; a step that has been saved is not saved again.
          state: a pytree of NumPy arrays, the same in every process.
          record: plain JSON, the same in every process.
          best_step: step of the checkpoint, this one or an earlier, to keep as the best.
        """
        self._best.step = best_step
        if step == self.latest_step():
            return
        self._manager.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(state), data=ocp.args.JsonSave(record)
            ),
        )

    def record(self) -> dict[str, Any]:
        """The record of the newest checkpoint."""
        args = ocp.args.Composite(data=ocp.args.JsonRestore())
        return self._manager.restore(self.latest_step(), args=args)["data"]

    def state(self, like: Any) -> Any:
        """The state of the newest checkpoint.

        Args:
          like: a pytree of NumPy arrays to take structure, shapes and types from.
            (Without one Orbax returns optimizer states as plain lists.)
        """
        args = ocp.args.Composite(state=ocp.args.StandardRestore(like))
        return self._manager.restore(self.latest_step(), args=args)["state"]

    def close(self) -> None:
        """Waits for saves in the background."""
        self._manager.wait_until_finished()
        self._manager.close()
