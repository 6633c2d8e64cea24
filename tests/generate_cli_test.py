"""The command line `python -m nsode_jax.generate`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.progress import StageProgress, clock

ROOT = Path(__file__).parent.parent


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "nsode_jax.generate", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config=configs/nothing.py"], "configs/nothing.py"),
        (["--config=configs/smoke.py", "--config.generation.nothing=1"], "no field nothing"),
        (["--config=configs/smoke.py", "--config.prior.max_operators=0"], "max_operators must"),
        (["--config=configs/smoke.py", "--data_dir=README.md"], "README.md"),
        (
            ["--config=configs/paper.py", "--config.generation.num_skeletons=1000000000"],
            "GB free, but the data set needs at least",
        ),
    ],
)
def test_refusals_are_one_line_before_any_work(arguments, message, tmp_path):
    if not any(argument.startswith("--data_dir") for argument in arguments):
        arguments = [*arguments, f"--data_dir={tmp_path}"]
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]


def test_a_bank_is_drawn_into_a_file_with_a_report_and_a_picture(tmp_path):
    path = tmp_path / "bank.gz"
    result = run("--config=configs/smoke.py", f"--bank={path}", "--processes=0")
    assert result.returncode == 0, result.stderr
    assert "40 skeletons" in result.stdout
    assert "complexity of the skeletons" in result.stdout
    assert len(SkeletonBank.load(path).keys) == 40
    assert (tmp_path / "bank.gz.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bank.gz", "bank.gz.png"]
    before = path.stat().st_mtime_ns
    assert "is complete and intact" in run("--config=configs/smoke.py", f"--bank={path}").stdout
    other = run("--config=configs/smoke.py", f"--bank={path}", "--config.generation.seed=1")
    assert other.returncode == 2
    assert "is a bank of other settings" in other.stderr
    assert path.stat().st_mtime_ns == before


def test_quantities_of_a_shipped_config_are_overridden(tmp_path):
    settings = "system.num_states=2", "solver.method=dop853", "generation.num_skeletons=20"
    overrides = [f"--config.{setting}" for setting in settings]
    result = run("--config=smoke", *overrides, f"--data_dir={tmp_path}", "--processes=0")
    assert result.returncode == 0, result.stderr
    (stored,) = tmp_path.glob("nsode/smoke/*/features.json")
    shape = json.loads(stored.read_text())["featuresDict"]["features"]["y"]["tensor"]["shape"]
    assert shape["dimensions"] == ["-1", "2"]


def test_a_config_file_of_ones_own(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from nsode_jax.configs import smoke\n\n\ndef get_config():\n"
        "    config = smoke.get_config()\n"
        "    config.generation.num_skeletons = 30\n"
        "    return config\n"
    )
    result = run(f"--config={mine}", f"--data_dir={tmp_path}", "--processes=0")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "nsode" / "mine").is_dir()
    again = run(f"--config={mine}", f"--data_dir={tmp_path}", "--processes=0")
    assert "is complete and intact" in again.stdout


def test_progress_tells_rate_and_time_left(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = StageProgress()
    progress("shards", 10, 100)
    now[0] = 40.0
    progress("shards", 30, 100)
    now[0] = 41.0
    progress("shards", 31, 100)  # Too soon for another line.
    now[0] = 180.0
    progress("shards", 100, 100)
    # 20 in 40 seconds: what was there at the start does not count.
    assert capsys.readouterr().err.splitlines() == [
        "shards: 30/100 (30%), 0.5/s, 0:02:20 left",
        "shards: 100/100 (100%), 0.5/s, 0:00:00 left",
    ]
    assert clock(3723.9) == "1:02:03"
