"""Discovery works without the extra `train`, and messages name it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nsode_jax.system.extras import MissingExtra, extra

ROOT = Path(__file__).parent.parent

# Imports every module of the package where the packages of the extra are not to be found.
IMPORT_ALL = """
import importlib, json, sys, time
from pathlib import Path

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
start = time.process_time()
import nsode_jax
seconds = time.process_time() - start
light = "jax" not in sys.modules and "numpy" not in sys.modules

messages = {{}}
folder = Path(nsode_jax.__file__).parent
for path in sorted(folder.rglob("*.py")):
    name = ".".join(("nsode_jax", *path.relative_to(folder).with_suffix("").parts))
    try:
        importlib.import_module(name.removesuffix(".__init__"))
    except ModuleNotFoundError as error:
        messages[name] = str(error)

from nsode_jax.modeling.pretrained import load_pretrained
load_pretrained("small")
print(json.dumps([seconds, light, messages]))
"""


def packages_of_the_extra():
    return ["array_record", "grain", "orbax", "tensorboardX", "tensorflow_datasets"]


@pytest.fixture(scope="module")
def without_the_extra():
    code = IMPORT_ALL.format(packages=packages_of_the_extra())
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_importing_the_package_imports_nothing_large(without_the_extra):
    seconds, light, _ = without_the_extra
    assert light and seconds < 1.0


def test_only_training_and_data_sets_need_the_extra(without_the_extra):
    _, _, messages = without_the_extra
    assert set(messages) == {
        "nsode_jax.data.pipeline",
        "nsode_jax.data.records",
        "nsode_jax.data.shards",
        "nsode_jax.modeling.checkpoints",
        "nsode_jax.training.loop",
    }
    for message in messages.values():
        assert message.endswith("which is not installed: pip install 'nsode_jax[train]'")


@pytest.mark.parametrize("command", ["train", "generate"])
def test_commands_say_what_to_install(command, tmp_path):
    code = (
        "import sys\n"
        f"for name in {packages_of_the_extra()}: sys.modules[name] = None\n"
        f"from nsode_jax.{command} import run\n"
        f"sys.argv[0] = 'nsode-{command}'\n"
        "run()"
    )
    options = {"train": "--workdir", "generate": "--data_dir"}
    result = subprocess.run(
        [sys.executable, "-c", code, "--config=smoke", f"{options[command]}={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert result.stderr.startswith(f"nsode_jax.{command}: error: ")
    assert result.stderr.endswith("pip install 'nsode_jax[train]'\n")
    assert result.stderr.count("\n") == 1


def test_a_missing_package_is_named():
    with pytest.raises(MissingExtra, match=r"flying needs wings, .* 'nsode_jax\[air\]'") as raised:
        with extra("air", "flying"):
            raise ModuleNotFoundError("No module named 'wings'", name="wings")
    assert raised.value.name == "wings"


def test_other_errors_pass():
    with pytest.raises(ValueError, match="^its own$"), extra("air", "flying"):
        raise ValueError("its own")
