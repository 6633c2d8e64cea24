"""Metrics on disk and on the screen."""

import json
import math
import sys

from nsode_jax.training.logging import ProgressLine, RunLogger


def test_without_tensorboardx_metrics_are_json_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)  # As if it were not installed.
    logger = RunLogger(tmp_path)
    logger.write(1, "train", {"loss": 2.0, "gradient_norm": math.nan})
    logger.write(2, "train", {"loss": 1.0})
    logger.close()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == [
        {"step": 1, "kind": "train", "loss": 2.0, "gradient_norm": None},
        {"step": 2, "kind": "train", "loss": 1.0},
    ]
    assert not (tmp_path / "tensorboard").exists()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no TensorBoard files" in said and "tensorboardX" in said and "nsode_jax[train]" in said


def test_progress_line(capsys):
    line = ProgressLine(steps=100, batch_size=10, max_seconds=0)
    line.show(1, {"loss": 2.0, "skipped": 1.0})
    rates = {"samples_per_second": 5.0, "flops_utilization": 0.3, "input_wait": 0.01}
    line.show(50, {"loss": 1.5, "skipped": 0.0, **rates})
    assert capsys.readouterr().err.splitlines() == [
        "step 1/100  loss 2.0000  1 skipped",
        "step 50/100  loss 1.5000  5 samples/s  30% of peak  input wait 1%  0:01:40 left",
    ]


def test_a_run_without_an_end_tells_no_time_left(capsys):
    rates = {"samples_per_second": 5.0, "flops_utilization": 0.3, "input_wait": 0.01}
    trunk = ProgressLine(steps=10**9, batch_size=10, max_seconds=0)
    trunk.show(50, {"loss": 1.5, "skipped": 0.0, **rates})
    assert capsys.readouterr().err.endswith("input wait 1%\n")
    ends_by_time = ProgressLine(steps=10**9, batch_size=10, max_seconds=3600)
    ends_by_time.show(50, {"loss": 1.5, "skipped": 0.0, **rates})
    assert capsys.readouterr().err.endswith(" left\n")
