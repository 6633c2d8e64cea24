"""Two real processes on this machine train one model, as one process would."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def start(workdir: Path, data_dir: str, *overrides: str) -> list[subprocess.Popen]:
    """Two processes, one device each, as two tasks of a SLURM job."""
    port = free_port()
    environments = [
        {
            **{k: v for k, v in os.environ.items() if "proxy" not in k.lower()},
            "XLA_FLAGS": "--xla_backend_optimization_level=0",  # Compiles faster.
            "SLURM_JOB_ID": "1",
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_NTASKS": "2",
            "SLURM_PROCID": str(task),
            "SLURM_LOCALID": "0",
            "JAX_COORDINATOR_PORT": str(port),
        }
        for task in range(2)
    ]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "nsode_jax.train", "--config", "configs/smoke.py"]
            + ["--distributed", "--workdir", str(workdir)]
            + [f"--config.training.data_dir={data_dir}", "--config.training.log_every=1"]
            + [f"--config.training.{override}" for override in overrides],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for environment in environments
    ]


def finish(processes: list[subprocess.Popen], seconds: float = 180) -> list[str]:
    try:
        outputs = [p.communicate(timeout=seconds) for p in processes]
    finally:
        for p in processes:
            p.kill()
    for p, (_, errors) in zip(processes, outputs, strict=True):
        assert p.returncode == 0, errors
    return [output for output, _ in outputs]


def losses(workdir: Path, kind: str) -> dict[int, float]:
    rows = [json.loads(row) for row in (workdir / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: row["loss"] for row in rows if row["kind"] == kind}


def test_two_processes_agree_with_one(smoke_config, smoke_run, tmp_path):
    data_dir = smoke_config.training.data_dir
    finish(start(tmp_path, data_dir, "steps=6", "save_every=3", "validate_every=5"))
    # They resume, and one of them being told to stop stops both, at the same step.
    processes = start(tmp_path, data_dir, "steps=1000000", "save_every=3", "validate_every=15")
    end = time.monotonic() + 120
    while max(losses(tmp_path, "train")) < 20:
        assert time.monotonic() < end
        assert processes[0].poll() is None, processes[0].communicate()
        time.sleep(0.02)
    processes[1].send_signal(signal.SIGTERM)
    outputs = finish(processes)
    assert "2 devices in 2 processes" in outputs[0]
    assert "resumed from step 6" in outputs[0]
    assert "signal: saved step" in outputs[0]
    for words in ("parameters", "resumed", "validation", "saved"):
        assert words not in outputs[1]  # Process 0 speaks for all.
    one, two = losses(smoke_run[0], "train"), losses(tmp_path, "train")
    np.testing.assert_allclose(
        [two[s] for s in range(1, 11)], [one[s] for s in range(1, 11)], rtol=1e-5
    )
    one, two = losses(smoke_run[0], "validation"), losses(tmp_path, "validation")
    np.testing.assert_allclose(two[15], one[15], rtol=1e-4)


def test_without_a_job_to_join_it_fails_loudly(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    run = subprocess.run(
        [sys.executable, "-m", "nsode_jax.train", "--config", "configs/smoke.py"]
        + ["--distributed", "--workdir", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 2
    assert "no job of several processes to join" in run.stderr
    assert "Traceback" not in run.stderr
