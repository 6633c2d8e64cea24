"""AI Feynman 2.0, in a Python environment of its own.

The package is old: it wants numpy below 1.24 (from there on its polynomial fit fails
without a word), setuptools below 66, gfortran and torch. One way to make such an
environment, for Python 3.11:

    python3.11 -m venv feynman
    feynman/bin/pip install torch sympy==1.11.1 pandas==2.0.3 matplotlib==3.7.5 \\
        scikit-learn==1.2.2 sortedcontainers seaborn scipy==1.10.1 numpy==1.23.5
    feynman/bin/pip install setuptools==65.7.0 wheel
    feynman/bin/pip install --no-deps --no-build-isolation aifeynman==2.0.7
    export NSODE_AIFEYNMAN_PYTHON=$PWD/feynman/bin/python

What it writes is read by our own parser; nothing of it is executed here.
"""

from __future__ import annotations

import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression, ExpressionError

_DATA = "data.txt"
_SOLUTION = f"results/solution_{_DATA}"
_ERRORS = "errors.txt"
_MAX_SECONDS = 2 * 3600
_MAX_CHARACTERS = 5_000

# Its parameters: seed, seconds of brute force, epochs.
_RUN = f"""
import sys
import numpy, torch
from aifeynman import run_aifeynman
seed, seconds, epochs = map(int, sys.argv[1:])
numpy.random.seed(seed)
torch.manual_seed(seed)
torch.set_num_threads(1)
run_aifeynman("./", "{_DATA}", seconds, "14ops.txt", polyfit_deg=4, NN_epochs=epochs)
"""


class FeynmanError(Exception):
    """Why a run has no result, in one line."""


def feynman_front(
    y: Float[np.ndarray, " time"],
    slope: Float[np.ndarray, " time"],
    seed: int,
    python: str,
    brute_force_seconds: int = 60,
    epochs: int = 500,
) -> list[Expression]:
    """The Pareto front of complexity and error.

    Args:
      y: values, shape [time].
      slope: dy/dt there, shape [time].
      seed: of the data split and the networks.
      python: interpreter of the environment with AI Feynman.
      brute_force_seconds, epochs: the paper's settings (appendix E). Brute force is tried
        on some 24 forms of the data, for so long each.

    Raises:
      FeynmanError: if there is no such interpreter, the run fails, or it takes longer
        than two hours.
    """
    interpreter = shutil.which(python)
    if interpreter is None:
        raise FeynmanError(f"there is no Python interpreter {python}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "results").mkdir()
        np.savetxt(folder / _DATA, np.stack([y, slope], axis=1))
        settings = map(str, (seed, brute_force_seconds, epochs))
        _run([os.path.abspath(interpreter), "-c", _RUN, *settings], folder)
        try:
            return laws_in((folder / _SOLUTION).read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            errors = (folder / _ERRORS).read_text(encoding="utf-8", errors="replace")
            last_line = (errors.strip().splitlines() or ["it wrote no solution"])[-1]
            raise FeynmanError(last_line) from None


def _run(command: list[str], folder: pathlib.Path) -> None:
    """Runs the command in the folder; if it must be stopped, with all it has started."""
    # It starts its brute force by name.
    path = os.pathsep.join([str(pathlib.Path(command[0]).parent), os.environ.get("PATH", "")])
    with (folder / _ERRORS).open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path, "MPLBACKEND": "Agg"},
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            process.wait(_MAX_SECONDS)
        except subprocess.TimeoutExpired:
            raise FeynmanError(f"no result after {_MAX_SECONDS} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


# --- its notation -------------------------------------------------------------

_CALLS = {"tan": "(sin({0})/cos({0}))", "abs": "sqrt(({0})**2)", "Abs": "sqrt(({0})**2)"}
_CALL = re.compile(rf"\b({'|'.join(_CALLS)})\(")


def laws_in(solution: str) -> list[Expression]:
    """The formulas of a solution file that our operators can express, in its order.

    Args:
      solution: lines of five numbers and a formula in x0.
    """
    laws = []
    for line in solution.splitlines():
        *numbers, formula = line.split(maxsplit=5) or [""]
        try:
            if len(numbers) == 5:
                laws.append(Expression.from_infix(in_our_notation(formula)))
        except ExpressionError:
            continue
    return laws


def in_our_notation(formula: str) -> str:
    """The formula with y for x0, and with tan and abs written by what we have.

    Raises:
      ExpressionError: if a parenthesis is missing or the text grows too long.
    """
    formula = re.sub(r"\bx0\b", "y", formula)
    formula = re.sub(r"\bE\b", repr(math.e), formula)
    while call := _CALL.search(formula):
        end = _closing(formula, call.end())
        rewritten = _CALLS[call.group(1)].format(formula[call.end() : end])
        formula = formula[: call.start()] + rewritten + formula[end + 1 :]
        if len(formula) > _MAX_CHARACTERS:  # Nested tangents double each time.
            raise ExpressionError("the formula is too long")
    return formula


def _closing(text: str, start: int) -> int:
    """Index of the parenthesis that closes the one before `start`."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if not depth:
            return index
    raise ExpressionError("a parenthesis is not closed")
