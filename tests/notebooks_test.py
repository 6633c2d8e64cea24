"""The notebooks as they are kept: whole, run in order, small. `make notebooks` runs them."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "colabs").glob("*.ipynb"))


def runner():
    spec = importlib.util.spec_from_file_location("colabs_run", ROOT / "colabs" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_two():
    assert [path.name for path in NOTEBOOKS] == ["demo.ipynb", "train.ipynb"]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.name)
def notebook(request):
    text = request.param.read_text(encoding="utf-8")
    assert len(text.encode()) <= runner().LARGEST
    content = json.loads(text)
    for cell in content["cells"]:
        cell["source"] = "".join(cell["source"])
    return content


def code_of(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_every_cell_was_run_in_order_without_an_error(notebook):
    cells = code_of(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert "error" not in kinds and len(kinds) >= 4


def test_outputs_are_those_of_the_code_as_it_stands(notebook):
    assert notebook["metadata"]["code"] == runner().fingerprint(notebook["cells"])


def test_pictures_are_shown(notebook):
    data = [o.get("data", {}) for cell in code_of(notebook) for o in cell["outputs"]]
    assert sum("image/png" in each for each in data) >= 1


def test_nothing_is_installed_where_the_package_is(notebook):
    first = code_of(notebook)[0]
    assert "%pip install" in first["source"] and first["outputs"] == []


def test_no_output_names_a_folder_of_the_machine(notebook):
    text = json.dumps([cell["outputs"] for cell in code_of(notebook)])
    assert "/home/" not in text and "/root/" not in text and str(ROOT) not in text
