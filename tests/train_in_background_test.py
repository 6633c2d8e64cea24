"""`launch/train_in_background.sh`: killed, it goes on as if undisturbed; branches; one line."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from nsode_jax.configs import small

from nsode_jax.config import from_config_dict
from nsode_jax.modeling.checkpoints import TrainingCheckpoints
from nsode_jax.modeling.pretrained import load_pretrained
from nsode_jax.modeling.transformer import Model
from nsode_jax.training import loop
from nsode_jax.training.step import init_state

pytestmark = pytest.mark.devices

ROOT = Path(__file__).parent.parent
SETTINGS = {
    "optimizer": "muon",
    "length_multiple": 8,
    "log_every": 1,
    "validate_every": 5,
    "learning_rate": 1e-3,
}


class Background:
    """The script, with the smoke config."""

    def __init__(self, run: Path, smoke_config, init_from: Path):
        self.run, settings = run, {**SETTINGS, "data_dir": smoke_config.training.data_dir}
        self._environment = {
            **os.environ,
            "PYTHON": sys.executable,
            "RUN": str(run),
            "CONFIG": "configs/smoke.py",
            "INIT_FROM": str(init_from),
            "SAVE_EVERY": "4",
            "NICE": "0",  # Or other tests would starve it.
            "OVERRIDES": " ".join(f"--config.training.{k}={v}" for k, v in settings.items()),
        }

    def __call__(self, *arguments: str, code: int = 0, **settings: str) -> str:
        """What it says."""
        run = subprocess.run(
            ["bash", "launch/train_in_background.sh", *arguments],
            cwd=ROOT,
            env=self._environment | settings,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert run.returncode == code, run.stderr
        return run.stderr if code else run.stdout

    def process(self) -> int:
        return int((self.run / "pid").read_text())

    def wait_for(self, step: int, folder: str = ".") -> None:
        end = time.monotonic() + 300
        while max(losses(self.run / folder), default=0) < step:
            assert time.monotonic() < end, (self.run / folder / "train.log").read_text()
            time.sleep(0.02)

    def wait_for_checkpoint(self) -> None:
        """One that is written to its end has its number as its name."""
        end = time.monotonic() + 60
        while not any(path.name.isdigit() for path in self.run.glob("checkpoints/*")):
            assert time.monotonic() < end
            time.sleep(0.05)

    def wait_for_end(self, folder: str = ".") -> None:
        end = time.monotonic() + 60
        lock = str(self.run / folder / "lock")
        while subprocess.run(["flock", "-n", lock, "true"]).returncode:
            assert time.monotonic() < end
            time.sleep(0.05)


def rows(workdir: Path, kind: str = "train") -> dict[int, dict]:
    file = workdir / "metrics.jsonl"
    found = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:  # Half a line, of a killed run.
            continue
        if row["kind"] == kind:
            found[row["step"]] = row
    return found


def losses(workdir: Path) -> dict[int, float]:
    return {step: row["loss"] for step, row in rows(workdir).items()}


@pytest.fixture
def background(smoke_config, smoke_run, tmp_path):
    script = Background(tmp_path / "trunk", smoke_config, smoke_run[0] / "weights")
    yield script
    for file in tmp_path.glob("**/pid"):
        try:
            os.killpg(int(file.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_a_trunk_is_killed_goes_on_and_is_branched_off(
    background, smoke_config, smoke_run, tmp_path
):
    # Started: a second start finds it running.
    says = background()
    first = background.process()
    assert f"runs as process {first}" in says and says.count("\n") == 1
    assert f"runs as process {first}" in background()
    background.wait_for(10)
    background.wait_for_checkpoint()
    assert re.search(r"step \d+, [\d,]+ samples seen", background("status"))
    os.kill(first, signal.SIGKILL)
    background.wait_for_end()
    assert ": not running, step" in background("status")

    # Killed: it goes on from a checkpoint. Told to stop, it saves.
    killed = max(losses(background.run))
    assert f"runs as process {first}" not in background()
    background.wait_for(max(14, killed + 1))
    assert ": not running, step" in background("stop")
    assert "resumed from step" in (background.run / "train.log").read_text()
    found = losses(background.run)
    stopped = max(found)
    assert (background.run / "checkpoints" / str(stopped)).is_dir()

    # All steps are those of a run that nothing has disturbed.
    c, changes = smoke_config, {**SETTINGS, "steps": 14, "save_every": 100}
    training = dataclasses.replace(c.training, init_from=str(smoke_run[0] / "weights"), **changes)
    loop.train(dataclasses.replace(c, training=training), tmp_path / "undisturbed")
    undisturbed = losses(tmp_path / "undisturbed")
    assert len(undisturbed) == 14
    assert {step: found[step] for step in undisturbed} == undisturbed

    # A branch: the rate falls to 0, and there are weights to ship.
    assert "decay needs a number of steps" in background("decay", "some", code=2)
    assert background("decay", "4").startswith(f"decay in {background.run}/decay: runs as")
    background.wait_for(stopped + 4, "decay")
    background.wait_for_end("decay")
    branch = background.run / "decay"
    assert f"resumed from step {stopped}\n" in (branch / "train.log").read_text()
    # The rate of a step is that before it.
    rates = [row["learning_rate"] for _, row in sorted(rows(branch).items())]
    np.testing.assert_allclose(rates, [1e-3, 7.5e-4, 5e-4, 2.5e-4], rtol=1e-5)
    seen = rows(branch)[stopped + 4]["samples_seen"]
    assert seen == load_pretrained(smoke_run[0] / "weights")[3]["samples_seen"] + 8 * (stopped + 4)
    assert load_pretrained(branch / "weights")[3]["validation"]["loss"] > 0
    assert f"decay in {branch}: not running, step {stopped + 4}" in background("status")

    # What is kept is the newest, not the best, and as it is: a run that starts there and one
    # that goes on from the checkpoint have the same parameters.
    assert f"the weights of step {stopped:,} of" in background("keep", str(tmp_path / "kept"))
    _, kept, _, card = load_pretrained(tmp_path / "kept")
    assert card["samples_seen"] == seen - 8 * 4
    newest = TrainingCheckpoints(background.run / "checkpoints", read_only=True)
    state = newest.state(init_state(Model(c.model), training))
    jax.tree.map(np.testing.assert_array_equal, kept, state.inference_params)


def test_a_branch_that_has_not_saved_begins_anew_where_the_trunk_is(background):
    """Its trunk may have gone on beyond the step at which the branch was to end."""

    def steps(*arguments: str) -> int:
        said = background("decay", *arguments, DRY_RUN="1")
        return int(re.search(r"--config.training.steps=(\d+)", said).group(1))

    (background.run / "checkpoints" / "100").mkdir(parents=True)
    assert steps("5") == 105
    (background.run / "checkpoints" / "3000").mkdir()
    assert steps("7") == 3007
    # With a checkpoint of its own it goes on to the end that it has begun for.
    branch = background.run / "decay"
    (branch / "checkpoints" / "3002").mkdir(parents=True)
    (branch / "flags").write_text("--config.training.steps=3007\n")
    (background.run / "checkpoints" / "4000").mkdir()
    assert steps() == steps("7") == 3007


def test_a_dry_run_only_prints(background):
    """The trunk runs on, and nothing is written."""
    (background.run / "checkpoints" / "100").mkdir(parents=True)
    # It need not be one that trains.
    trunk = subprocess.Popen(
        ["flock", background.run / "lock", "sleep", "100"], start_new_session=True
    )
    (background.run / "pid").write_text(f"{trunk.pid}\n")
    end = time.monotonic() + 20
    while "runs as process" not in background("status"):
        assert time.monotonic() < end
        time.sleep(0.05)

    def said(*arguments: str) -> list[str]:
        return [line.strip() for line in background(*arguments, DRY_RUN="1").splitlines()]

    before = sorted(background.run.rglob("*"))
    kill = f"kill -TERM {trunk.pid}"
    assert said("stop") == [kill]
    first, command = said("decay", "5")
    assert first == kill and "-m nsode_jax.train " in command
    assert f"--config.training.branch_from={background.run}" in command
    assert "--config.training.steps=105" in command
    (command,) = said("keep", str(background.run / "kept"))
    assert command.endswith(f"-m nsode_jax.training.keep {background.run} {background.run}/kept")
    # What is wrong is said before anything is stopped.
    assert "decay needs a number of steps" in background("decay", "some", code=2)
    assert trunk.poll() is None and sorted(background.run.rglob("*")) == before


def test_why_it_ended_is_in_the_line(background, tmp_path):
    background(INIT_FROM=str(tmp_path / "nowhere"))
    background.wait_for_end()
    says = background("status")
    assert "not running, no steps yet, nsode_jax.train: error: no weights" in says
    assert says.count("\n") == 1


def test_the_trunk_that_is_kept_fits_the_config():
    model, _, _, card = load_pretrained(ROOT / "weights" / "small-trunk")
    assert model.config == from_config_dict(small.get_config()).model
    assert card["samples_seen"] > 1_000_000


def test_its_command_has_the_lowest_priority(background):
    words = background(DRY_RUN="1", NICE="19").split()
    assert words[:3] == ["nice", "-n", "19"]
    assert {"--config.training.decay_steps=0", "--config.training.save_every=4"} <= set(words)
    assert not background.run.exists()


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (["grow"], {}, "unknown argument grow"),
        (["decay", "5"], {}, "there is no checkpoint in"),
        (["keep"], {}, "keep needs a folder"),
        (["keep", "somewhere"], {}, "there is no checkpoint in"),
        ([], {"PYTHON": "/no/such/python"}, "there is no /no/such/python"),
    ],
)
def test_what_is_wrong_is_said_at_once(background, arguments, settings, message):
    assert message in background(*arguments, code=2, **settings)
