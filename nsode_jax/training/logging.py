"""Metrics of a run: a progress line, TensorBoard files and JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX import SummaryWriter

from nsode_jax.data.progress import clock


class RunLogger:
    """Writes metrics to `metrics.jsonl` and TensorBoard files in the workdir."""

    def __init__(self, workdir: Path):
        self._writer = SummaryWriter(str(workdir / "tensorboard"))
        self._lines = (workdir / "metrics.jsonl").open("a", buffering=1)

    def write(self, step: int, kind: str, metrics: Mapping[str, float]) -> None:
        """Logs metrics of a kind (`train`, `validation`) at a step."""
        values = {name: float(value) for name, value in metrics.items()}
        for name, value in values.items():
            self._writer.add_scalar(f"{kind}/{name}", value, step)
        self._lines.write(json.dumps({"step": step, "kind": kind, **values}) + "\n")

    def close(self) -> None:
        """Flushes both files."""
        self._writer.close()
        self._lines.close()


class ProgressLine:
    """Step, loss, samples per second and time left, on standard error."""

    def __init__(self, first_step: int, steps: int, batch_size: int, max_seconds: float):
        self._first, self._steps, self._batch = first_step, steps, batch_size
        self._limit = max_seconds or float("inf")
        self._start = time.monotonic()
        self._last_time, self._last_step = self._start, first_step

    def show(self, step: int, loss: float) -> float:
        """Prints the line. Returns samples per second since the last one."""
        now = time.monotonic()
        rate = (step - self._last_step) * self._batch / max(now - self._last_time, 1e-9)
        self._last_time, self._last_step = now, step
        left = min(
            (self._steps - step) * self._batch / max(rate, 1e-9),
            self._limit - (now - self._start),
        )
        print(
            f"step {step}/{self._steps}  loss {loss:.4f}  {rate:.0f} samples/s  "
            f"{clock(max(left, 0.0))} left",
            file=sys.stderr,
            flush=True,
        )
        return rate
