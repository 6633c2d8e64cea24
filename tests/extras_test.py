"""Discovery works without extras, and messages name them."""

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


PACKAGES = {
    "train": ["array_record", "grain", "orbax", "tensorboardX", "tensorflow_datasets"],
    "app": ["nicegui"],
    "notebook": ["ipywidgets"],
}
WHO_NEEDS_THEM = {
    "train": {
        "data.pipeline",
        "data.records",
        "data.shards",
        "modeling.checkpoints",
        "training.keep",
        "training.loop",
        "training.run",
    },
    "app": {"app.choices", "app.columns", "app.each", "app.inputs", "app.law", "app.page"},
    "notebook": {"reporting.widget"},
}


@pytest.fixture(scope="module")
def without_the_extras():
    code = IMPORT_ALL.format(packages=[name for names in PACKAGES.values() for name in names])
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_importing_the_package_imports_nothing_large(without_the_extras):
    seconds, light, _ = without_the_extras
    assert light and seconds < 1.0


def test_each_extra_is_needed_where_it_should_be(without_the_extras):
    _, _, messages = without_the_extras
    needed = {f"nsode_jax.{m}": name for name, modules in WHO_NEEDS_THEM.items() for m in modules}
    assert set(messages) == set(needed)
    for module, message in messages.items():
        install = f"pip install 'nsode_jax[{needed[module]}]'"
        assert message.endswith(f"which is not installed: {install}")


@pytest.mark.parametrize("command", ["train", "generate"])
def test_commands_say_what_to_install(command, tmp_path):
    code = (
        "import sys\n"
        f"for name in {PACKAGES['train']}: sys.modules[name] = None\n"
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
