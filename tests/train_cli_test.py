"""The command line `python -m nsode_jax.train`: where a run lives, refusals without traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OWN = """
from nsode_jax.configs import smoke

def get_config(patch_size):
    config = smoke.get_config()
    config.model.patch_size = int(patch_size)
    return config
"""


def train(*arguments, cwd=ROOT):
    return subprocess.run(
        [sys.executable, "-m", "nsode_jax.train", *arguments],
        cwd=cwd,
        env={**os.environ, "XLA_FLAGS": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["--config.training.data_dir={folder}/none"], "no data set nsode/smoke in"),
        (["--config.training.schedule=never"], "schedule must be 'constant' or 'cosine'"),
        (["--config.model.patch_size=7"], "patch_size 7 does not divide"),
        (
            ["--config.training.batchsize=7"],
            "no field batchsize there; did you mean training.batch_size?",
        ),
        (["--config.trainin.batch_size=7"], "no field trainin there; did you mean training?"),
        (["--config.batch_size=7"], "no field batch_size there; did you mean training.batch_size?"),
        (["--config.training.batch_size=many"], "batch_size=many: this is no number"),
        (["--workdir={folder}/file"], "(it is a file); choose another folder with --workdir"),
        (["--config", "README.md"], "the file of --config is no Python"),
        (["--config", "{folder}/file"], "the file of --config has no function get_config()"),
        (["--config", "{folder}/own.py:7"], "patch_size 7 does not divide"),
        (["--config={folder}/own.py:7"], "patch_size 7 does not divide"),
        (["--config={folder}/none.py:7"], "no config '{folder}/none.py': neither a file"),
        (["--config={folder}/own.py:x"], "invalid literal for int() with base 10: 'x'"),
        (["--config=smoke:7"], "get_config() takes 0 positional arguments but 1 was given"),
        (["more"], "nsode_jax.train: error: unexpected argument 'more'"),
        (["--bogus"], "Unknown command line flag 'bogus' (--help lists the flags)"),
    ],
)
def test_refusals_are_one_line(overrides, message, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "own.py").write_text(OWN)
    arguments = [o.format(folder=tmp_path) for o in overrides]
    workdir = ["--workdir", str(tmp_path / "run")]
    own = any(argument.startswith("--config=") or argument == "--config" for argument in arguments)
    config = [] if own else ["--config", "configs/smoke.py"]
    run = train(*config, *workdir, *arguments)
    assert run.returncode == 2
    assert message.format(folder=tmp_path) in run.stderr
    assert "Traceback" not in run.stderr


def test_help_is_that_of_the_command_also_where_it_is_a_script():
    script = "import sys; sys.argv = ['x', '--help']; from nsode_jax import train as t; t.run()"
    for arguments in (["-m", "nsode_jax.train", "--help"], ["-c", script]):
        run = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert run.returncode == 0 and run.stdout.startswith("Trains a model")
        assert "--workdir: " in run.stdout


def test_without_a_config_those_that_ship_are_named():
    run = train()
    assert run.returncode == 2 and run.stderr.count("\n") == 1
    assert "give --config, a file or one of base, paper, small, smoke, systems" in run.stderr


def test_a_run_lives_in_a_folder_named_after_its_config(smoke_config, tmp_path):
    data = f"--config.training.data_dir={smoke_config.training.data_dir}"
    run = train(
        "--config",
        str(ROOT / "configs" / "smoke.py"),
        data,
        "--config.training.steps=1",
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0] == "the run lives in runs/smoke"
    assert (tmp_path / "runs" / "smoke" / "weights" / "model.json").is_file()


def test_the_papers_config_says_how_to_make_its_data(tmp_path):
    data = f"--config.training.data_dir={tmp_path}"
    run = train("--config", str(ROOT / "configs" / "paper.py"), data, cwd=tmp_path)
    assert run.returncode == 2 and run.stderr.count("\n") == 1
    assert "python -m nsode_jax.generate --config paper --data_dir" in run.stderr
