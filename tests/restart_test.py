"""Runs that are killed or told to stop, as real processes: they go on bit-identically."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workdirs import losses

pytestmark = pytest.mark.devices

ROOT = Path(__file__).parent.parent


class Run:
    """`python -m nsode_jax.train` on the smoke config, in a process of its own."""

    def __init__(self, smoke_config, workdir: Path, *overrides: str):
        self.workdir, self.output = workdir, workdir.with_suffix(".txt")
        flags = {
            "data_dir": smoke_config.training.data_dir,
            "log_every": 1,
            "save_every": 4,
        }
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nsode_jax.train", "--config", "configs/smoke.py"]
                + ["--workdir", str(workdir)]
                + [f"--config.training.{name}={value}" for name, value in flags.items()]
                + [f"--config.training.{override}" for override in overrides],
                cwd=ROOT,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def wait_for(self, text: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while text not in self.output.read_text():
            assert time.monotonic() < end, self.output.read_text()
            assert self.process.poll() is None, self.output.read_text()
            time.sleep(0.002)

    def ended(self, seconds: float = 60) -> int:
        return self.process.wait(seconds)


def test_killed_and_told_to_stop_a_run_ends_as_if_undisturbed(smoke_config, smoke_run, tmp_path):
    workdir = tmp_path / "run"
    with Run(smoke_config, workdir) as run:
        run.wait_for("step 10/")
        run.process.send_signal(signal.SIGKILL)
        assert run.ended() == -signal.SIGKILL
    # Steps that it could not take in no time: it must be told to stop.
    with Run(smoke_config, workdir, "steps=1000000") as run:
        run.wait_for("step 13/")
        run.process.send_signal(signal.SIGTERM)
        assert run.ended() == 0
        said = run.output.read_text()
        assert "resumed from step" in said
        assert "changed since then: training.steps 30 -> 1000000" in said
        stopped = int(said.split("SIGTERM: saved step ")[1].split(";")[0])
        assert stopped == max(losses(workdir))
        assert (workdir / "checkpoints" / str(stopped)).is_dir()
    undisturbed = losses(smoke_run[0])
    if stopped < 30:
        with Run(smoke_config, workdir) as run:
            assert run.ended(120) == 0
            assert f"resumed from step {stopped}\n" in run.output.read_text()
    found = losses(workdir)
    assert len(found) >= 30
    for step, loss in undisturbed.items():
        assert found[step] == loss, step
    assert (workdir / "weights" / "model.json").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_requests_once(number):
    from nsode_jax.training.interrupt import Interrupt

    before = signal.getsignal(number)
    with Interrupt() as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), number)
        assert interrupt.asked == number.name
        if number is signal.SIGINT:
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before
