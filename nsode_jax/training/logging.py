"""Metrics of a run: a progress line, TensorBoard files and JSON lines."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from nsode_jax.data.progress import clock
from nsode_jax.system.extras import MissingExtra, extra
from nsode_jax.system.files import write_atomically


class RunLogger:
    """Writes metrics to `metrics.jsonl` and TensorBoard files in the workdir.

    Without tensorboardX there are no TensorBoard files, which is said once.
    """

    def __init__(self, workdir: Path, first_step: int = 0):
        """
        Args:
          workdir: of the run.
          first_step: step that the run goes on from. What was logged after it, by a
            run that was killed, is dropped: those steps will be taken again.
        """
        _drop_lines_after(workdir / "metrics.jsonl", first_step)
        try:
            with extra("train", "writing TensorBoard files"):
                from tensorboardX import SummaryWriter
        except MissingExtra as error:
            print(f"no TensorBoard files: {error}", file=sys.stderr)
            self._writer = None
        else:
            self._writer = SummaryWriter(str(workdir / "tensorboard"), purge_step=first_step + 1)
        self._lines = (workdir / "metrics.jsonl").open("a", buffering=1)

    def write(self, step: int, kind: str, metrics: Mapping[str, float]) -> None:
        """Logs metrics of a kind (`train`, `validation`) at a step; null if not finite."""
        values = {name: float(value) for name, value in metrics.items()}
        if self._writer:
            for name, value in values.items():
                self._writer.add_scalar(f"{kind}/{name}", value, step)
        strict = {name: v if math.isfinite(v) else None for name, v in values.items()}
        self._lines.write(json.dumps({"step": step, "kind": kind, **strict}) + "\n")

    def close(self) -> None:
        """Flushes both files."""
        if self._writer:
            self._writer.close()
        self._lines.close()


def _drop_lines_after(path: Path, step: int) -> None:
    if not path.is_file():
        return
    kept = []
    for line in path.read_text().splitlines(keepends=True):
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError):
            continue  # A line that a killed run did not finish.
    write_atomically(path, "".join(kept).encode())


_NO_END = 366 * 86400.0
"""Seconds. A run that would take longer, as a trunk does, is one that somebody stops."""


class ProgressLine:
    """Step, loss, rates and, where there is an end, the time left, on standard error."""

    def __init__(self, steps: int, batch_size: int, max_seconds: float):
        self._steps, self._batch = steps, batch_size
        self._end = time.monotonic() + (max_seconds or math.inf)

    def show(self, step: int, metrics: Mapping[str, float]) -> None:
        """Prints the line for metrics of a step."""
        parts = [f"step {step}/{self._steps}", f"loss {metrics['loss']:.4f}"]
        if metrics["skipped"]:
            parts.append(f"{metrics['skipped']:.0f} skipped")
        if "samples_per_second" in metrics:  # Not at the first step.
            rate = metrics["samples_per_second"]
            left = min((self._steps - step) * self._batch / rate, self._end - time.monotonic())
            parts += [
                f"{rate:.0f} samples/s",
                f"{metrics['flops_utilization']:.0%} of peak",
                f"input wait {metrics['input_wait']:.0%}",
            ]
            if left < _NO_END:
                parts.append(f"{clock(max(left, 0.0))} left")
        print("  ".join(parts), file=sys.stderr, flush=True)
