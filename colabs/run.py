"""Runs notebooks and keeps what they show: python colabs/run.py colabs/*.ipynb.

With --check in front they are only run, and stay as they are.
A notebook that fails, or would show too much to be kept with the sources, ends it with an error.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image  # Comes with matplotlib.

ROOT = Path(__file__).parent.parent
LARGEST = 500_000
"""Bytes that a notebook may have."""

_SECONDS = 900  # A cell may take so long.
_COLOURS = 64
_VOLATILE = ("execution", "collapsed")


def fingerprint(cells: Sequence[dict]) -> str:
    """Of the code: it tells whether outputs are those of the cells as they stand."""
    code = "\0".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    return hashlib.sha256(code.encode()).hexdigest()


def run(path: Path, keep: bool = True) -> None:
    """Runs a notebook from top to bottom in a fresh kernel.

    Args:
      path: of the notebook.
      keep: whether its outputs are written into it.

    Raises:
      nbclient.exceptions.CellExecutionError: if a cell fails.
      ValueError: if the notebook became too large.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    # A kernel in another folder finds the package of this repository all the same.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    NotebookClient(
        notebook,
        timeout=_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        store_widget_state=False,
        coalesce_streams=True,
    ).execute()
    if not keep:
        return
    for cell in notebook.cells:
        for name in _VOLATILE:
            cell.metadata.pop(name, None)
        for output in cell.get("outputs", ()):
            if "image/png" in (data := output.get("data", {})):
                data["image/png"] = _smaller(data["image/png"])
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "code": fingerprint(notebook.cells),
    }
    text = nbformat.writes(notebook) + "\n"
    if len(text.encode()) > LARGEST:
        raise ValueError(f"{path} would have {len(text.encode()):,} bytes; show less")
    path.write_text(text, encoding="utf-8")


def _smaller(encoded: str) -> str:
    """A picture with so many colours only; pictures are most of a notebook."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
        picture.convert("RGB").quantize(_COLOURS).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


if __name__ == "__main__":
    keep = "--check" not in sys.argv
    for name in sys.argv[1 if keep else 2 :]:
        print(f"running {name}", flush=True)
        run(Path(name).resolve(), keep)
