"""The command line `python -m nsode_jax.train`: refusals without a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["--config.training.data_dir={folder}/none"], "no data set nsode/smoke in"),
        (["--config.training.schedule=never"], "schedule must be 'constant' or 'cosine'"),
        (["--config.model.patch_size=7"], "patch_size 7 does not divide"),
    ],
)
def test_refusals_are_one_line(overrides, message, tmp_path):
    arguments = [o.format(folder=tmp_path) for o in overrides]
    run = subprocess.run(
        [sys.executable, "-m", "nsode_jax.train", "--config", "configs/smoke.py"]
        + ["--workdir", str(tmp_path / "run"), *arguments],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr
