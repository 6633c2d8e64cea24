"""What an installed package holds, and that it works away from the repository."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import nsode_jax
from nsode_jax import config

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this tree, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    result = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return folder / result.stdout.split()[-1]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the unpacked wheel, and an environment in which it is found first."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder, {**os.environ, "PYTHONPATH": str(folder)}


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0].split("-")[0] for name in names} == {"nsode_jax"}
    wanted = {path for path, _ in files_to_ship()}
    there = {name for name in names if ".dist-info/" not in name}
    assert there == wanted, f"{sorted(there ^ wanted)} are in one of wheel and tree only"
    for name in ("weights/small/weights.npz", "data/banks/base.gz", "data/keys/held_out.txt"):
        assert f"nsode_jax/{name}" in there


def files_to_ship():
    """Place in the wheel and file of all that belongs there."""
    for top, place in (
        ("nsode_jax", ""),
        ("configs", "nsode_jax/"),
        ("data_builders", "nsode_jax/"),
        ("examples", "nsode_jax/"),
    ):
        for path in (ROOT / top).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield place + path.relative_to(ROOT).as_posix(), path


def test_the_wheel_works_away_from_the_repository(installed, tmp_path):
    folder, environment = installed
    code = (
        "from nsode_jax import config\n"
        "from nsode_jax.data_builders.nsode.nsode_dataset_builder import Builder\n"
        "from nsode_jax.modeling.pretrained import SHIPPED_WEIGHTS\n"
        "import nsode_jax.data_builders.nsode_testsets.nsode_testsets_dataset_builder as testsets\n"
        "print(*config.shipped(), config.load('small').model.width, *Builder.builder_configs)\n"
        "print(config.find('base'), SHIPPED_WEIGHTS, testsets.__file__, sep='\\n')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    first, *paths = result.stdout.splitlines()
    assert first == "base paper small smoke systems 128 paper base small smoke systems"
    assert [Path(path).relative_to(folder).parts[1] for path in paths] == [
        "configs", "weights", "data_builders",
    ]  # fmt: skip


def test_every_console_script_is_a_command():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    commands = ("app", "discover", "evaluate", "generate", "train")
    assert set(scripts) == {f"nsode-{command}" for command in commands}
    for script, target in scripts.items():
        module, function = target.split(":")
        # A room is a command by its `__main__`.
        assert module.removesuffix(".__main__") == f"nsode_jax.{script.removeprefix('nsode-')}"
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"\ndef {function}(" in source


def test_make_installs_what_is_pinned():
    """requirements.txt pins what the package and its extra `train` name, and nothing else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = project["dependencies"] + project["optional-dependencies"]["train"]
    bare = {entry.split(">")[0].split(";")[0].strip() for entry in named}
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pinned = {line.split("==")[0] for line in lines if line and not line.startswith("#")}
    assert pinned == bare


def test_a_config_is_found_by_name_and_by_path():
    assert list(config.shipped()) == ["base", "paper", "small", "smoke", "systems"]
    assert config.find("small") == config.shipped()["small"]
    assert config.find(ROOT / "configs" / "small.py") == ROOT / "configs" / "small.py"
    assert config.load("small") == config.load(ROOT / "configs" / "small.py")
    with pytest.raises(
        FileNotFoundError, match="no config 'huge'.*base, paper, small, smoke, systems"
    ):
        config.find("huge")


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert nsode_jax.__version__ == project["version"] == citation["version"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert citation["cff-version"] == "1.2.0" and citation["preferred-citation"]["year"] == 2022
