"""`launch/pretrain_gpu.sh`: its dry run on a CPU, its pieces, and what a kill leaves."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from nsode_jax.configs import base, small

from nsode_jax.config import from_config_dict
from nsode_jax.decoding.propose import Proposer
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.modeling.pretrained import load_pretrained
from nsode_jax.modeling.transformer import Model

ROOT = Path(__file__).parent.parent
SCRIPT = "launch/pretrain_gpu.sh"
SHIPPED = ROOT / "nsode_jax" / "weights" / "small"


def environment(folder: Path, **settings: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHON": sys.executable,
        "XLA_FLAGS": "",  # One device, as on the machine it is for.
        "DRY_RUN": "1",
        "RUNS": str(folder / "runs"),
        "OUT": str(folder / "out"),
        "WORKERS": "1",
        "TIME_LIMIT": "300",  # Not used up.
        **settings,
    }


def pieces(action: str, source: Path, target: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "launch/weight_pieces.py", action, str(source), str(target)]
    return subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def dry_run(tmp_path_factory):
    """The folder OUT of a dry run."""
    folder = tmp_path_factory.mktemp("pretrain")
    run = subprocess.run(
        ["bash", SCRIPT],
        cwd=ROOT,
        env=environment(folder, PIECE_BYTES="50000"),
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "out"


def test_the_result_is_one_line(dry_run):
    text = (dry_run / "result.json").read_text()
    assert text.count("\n") == 1
    result = json.loads(text)
    assert result["steps"] == result["planned_steps"] == 20
    assert result["samples"] == result["samples_seen_by_weights"] == 20 * result["batch_size"]
    assert result["model"]["dtype"] == "bfloat16"
    assert 0 < result["validation"]["loss"] < 10
    for name in ("samples_per_second", "utilization", "input_wait", "seconds"):
        assert result[name] >= 0
    scores = result["scores"]["textbook"]
    assert 0 <= scores["beams"] <= scores["beams_and_samples"] <= scores["problems"] == 8
    assert text in (dry_run / "pretrain.log").read_text()


def test_results_fit_through_the_door(dry_run):
    parts = list(dry_run.glob("weights.npz.*"))
    others = {path.name for path in dry_run.iterdir()} - {part.name for part in parts}
    assert others == {"pieces.json", "result.json", "metrics.jsonl", "pretrain.log"}
    assert len(parts) > 1 and all(part.stat().st_size <= 50000 for part in parts)


def test_joined_pieces_decode(dry_run, tmp_path):
    joined = pieces("join", dry_run, tmp_path / "weights")
    assert joined.returncode == 0, joined.stderr
    proposer = Proposer.from_pretrained(tmp_path / "weights")
    assert proposer.model.config.dtype == "float32"
    t = np.linspace(0.0, 4.0, 40)
    (candidates,) = proposer.propose([Trajectory(t, np.exp(-t))], beams=4)
    assert candidates and all(np.isfinite(log_p) for _, log_p in candidates)


@pytest.mark.parametrize("damage", ["missing", "cut off", "changed"])
def test_damaged_pieces_are_refused_by_name(dry_run, tmp_path, damage):
    copy = tmp_path / "out"
    shutil.copytree(dry_run, copy)
    part = copy / "weights.npz.1"
    data = part.read_bytes()
    if damage == "missing":
        part.unlink()
    else:
        part.write_bytes(data[:-1] if damage == "cut off" else bytes([data[0] ^ 1]) + data[1:])
    refused = pieces("join", copy, tmp_path / "weights")
    assert refused.returncode == 2
    assert "weights.npz.1" in refused.stderr and "Traceback" not in refused.stderr
    assert not (tmp_path / "weights").exists()


def test_half_written_weights_leave_the_last_pieces(tmp_path):
    weights, out = tmp_path / "weights", tmp_path / "out"
    shutil.copytree(SHIPPED, weights)
    assert pieces("split", weights, out, "--bytes", "1000000").returncode == 0
    with (weights / "weights.npz").open("r+b") as file:
        file.truncate(1000)
    assert pieces("split", weights, out).returncode == 2
    assert pieces("join", out, tmp_path / "joined").returncode == 0
    assert (tmp_path / "joined/weights.npz").read_bytes() == (SHIPPED / "weights.npz").read_bytes()


# Stands in for Python: plans at once, exports the shipped weights, and trains until it is
# told to stop or, deaf, for ever.
_FAKE_PYTHON = """#!/usr/bin/env bash
while [ $# -gt 0 ]; do
  case $1 in
  launch/pretrain_plan.py) what=plan ;;
  nsode_jax.train) what=train ;;
  --workdir) workdir=$2 ;;
  -|-c|launch/*) exec {python} "$@" ;;
  esac
  shift
done
if [ "$what" = plan ]; then
  echo --config.training.steps=5 > "$workdir/plan.flags"
  echo '{{"situation": {{"device": "fake", "jax": "0", "model": {{}}}}, "rates": {{}},
    "settings": {{"batch_size": 8, "steps": 5}}}}' > "$workdir/plan.json"
else
  cp -r {weights} "$workdir/weights"
  echo '{{"step": 3, "kind": "train", "loss": 1.5}}' > "$workdir/metrics.jsonl"
  exec sleep 60
fi
"""


@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL])
def test_a_kill_leaves_the_last_weights(tmp_path, kill):
    fake = tmp_path / "python"
    fake.write_text(_FAKE_PYTHON.format(python=sys.executable, weights=SHIPPED))
    fake.chmod(0o755)
    out = tmp_path / "out"
    run = subprocess.Popen(
        ["bash", SCRIPT],
        cwd=ROOT,
        env=environment(tmp_path, PYTHON=str(fake)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while not (out / "metrics.jsonl").is_file() or not (out / "pieces.json").is_file():
            assert time.monotonic() < end and run.poll() is None
            time.sleep(0.1)
        run.send_signal(kill)
        code = run.wait(timeout=60)
    finally:
        try:
            os.killpg(run.pid, signal.SIGKILL)  # What a killed script leaves behind.
        except ProcessLookupError:
            pass
    assert pieces("join", out, tmp_path / "joined").returncode == 0
    _, _, _, card = load_pretrained(tmp_path / "joined")
    assert card["samples_seen"] > 0
    if kill == signal.SIGTERM:
        assert code == 143
        result = json.loads((out / "result.json").read_text())
        assert (result["steps"], result["samples"], result["scores"]) == (3, 24, {})


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (["--no-such"], {}, "unknown argument --no-such"),
        ([], {"PYTHON": "/no/such/python"}, "/no/such/python does not run"),
        ([], {"DRY_RUN": "0", "JAX_PLATFORMS": "cpu"}, "JAX sees no GPU"),
    ],
)
def test_what_is_wrong_is_said_at_once(tmp_path, arguments, settings, message):
    run = subprocess.run(
        ["bash", SCRIPT, *arguments],
        cwd=ROOT,
        env=environment(tmp_path, **settings),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 2
    assert message in run.stdout + run.stderr


def test_the_schedule_of_a_config_keeps_its_shares():
    spec = importlib.util.spec_from_file_location("plan", ROOT / "launch" / "pretrain_plan.py")
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    config = from_config_dict(small.get_config())
    training = config.training
    best = {"batch_size": 256, "samples_per_second": 3000, "compile_seconds": 10}
    settings = plan.schedule(config, best, drawn=2560.0, seconds=310.0, max_steps=0)
    assert settings["steps"] == 3000
    assert settings["decay_steps"] == 3000 * training.decay_steps / training.steps
    assert settings["warmup_steps"] == 3000 // 20
    cosine = from_config_dict(base.get_config())
    assert plan.schedule(cosine, best, 2560.0, 310.0, max_steps=0)["decay_steps"] == 0


def test_base_is_sized_for_it():
    model = Model(from_config_dict(base.get_config()).model)
    counts = model.num_parameters()
    assert counts == {"encoder": 7_895_360, "decoder": 9_900_836, "total": 17_796_196}
    # In float16 three pieces, with the four other files seven: eight may come back at once.
    assert counts["total"] * 2 < 3 * 15 * 2**20
