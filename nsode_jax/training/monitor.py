"""What a run tells of itself: its rates and metrics, on the terminal and in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jax

from nsode_jax.modeling.config import ModelConfig
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.logging import ProgressLine, RunLogger
from nsode_jax.training.speed import Speed, peak_flops, peak_memory


class Monitor:
    """Of several processes the first one tells; the others measure and write nothing."""

    def __init__(
        self, workdir: Path, config: TrainingConfig, model: ModelConfig, step: int, before: int
    ):
        """
        Args:
          workdir: where the metrics go.
          config: of the training.
          model: of the model.
          step: that the run goes on from.
          before: samples that the weights it started from had seen.
        """
        self._tells, self._config, self._before = jax.process_index() == 0, config, before
        if self._tells:
            self._logger = RunLogger(workdir, step)
            self._line = ProgressLine(config.steps, config.batch_size, config.max_seconds)
            peak = peak_flops(model.dtype) * jax.process_count()
            self._speed = Speed(model, config.batch_size, peak)

    def close(self) -> None:
        """Ends the files."""
        if self._tells:
            self._logger.close()

    def stepped(self, step: int, metrics: Mapping[str, float], length: int) -> None:
        """Counts a step that has ended, with targets of so many positions; tells some of them."""
        if not self._tells:
            return
        self._speed.stepped(length)
        if step % self._config.log_every == 0:
            values = {name: float(value) for name, value in metrics.items() if name != "wish"}
            values["samples_seen"] = self._before + step * self._config.batch_size
            values |= self._speed.report() | peak_memory()
            self._line.show(step, values)
            self._logger.write(step, "train", values)

    def waited(self, seconds: float) -> None:
        """Counts time, just over, for which devices that had nothing to do had no batch."""
        if self._tells:
            self._speed.waited(seconds)

    def paused(self, seconds: float) -> None:
        """Leaves out time, just over, in which no step ran."""
        if self._tells:
            self._speed.paused(seconds)

    def validated(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tells what a validation gave."""
        if self._tells:
            self._logger.write(step, "validation", metrics)
            loss_first = sorted(metrics, key=lambda name: (name != "loss", name))
            told = ", ".join(f"{name} {metrics[name]:.4f}" for name in loss_first)
            print(f"validation at {step}: {told}", flush=True)
