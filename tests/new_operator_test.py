"""A new operator is one row of the table: everything else follows from it."""

import os
import subprocess
import sys
from pathlib import Path

from nsode_jax.expressions import operators

ROWS = """
    Operator("tanh", 1, 11, np.tanh, "tanh", "tanh({0})", "tanh", r"\\tanh\\left({0}\\right)",
             cost=3.0),
    Operator("atan2", 2, 12, np.arctan2, "arctan2", "atan2({0}, {1})", "atan2",
             r"\\mathrm{{atan2}}\\left({0}, {1}\\right)"),
)
"""

SCRIPT = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("nsode_jax.expressions.operators", sys.argv[1])
table = importlib.util.module_from_spec(spec)
sys.modules["nsode_jax.expressions.operators"] = table
spec.loader.exec_module(table)
import nsode_jax.expressions
nsode_jax.expressions.operators = table

import jax
import numpy as np
from nsode_jax.data.vocabulary import SYMBOLS, Vocabulary
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.canonical import canonicalize, from_sympy
from nsode_jax.expressions.enumeration import enumerate_skeletons
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.sampling import EquationPrior, sample_expression
from nsode_jax.fitting import programs, tile_machine
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.pretrained import load_pretrained
from nsode_jax.selection.complexity import weighted_complexity

y = np.linspace(-2.0, 2.0, 9)
law = Expression.from_infix("2*tanh(3*y)*1.5 - atan2(y, 2.5)")
expected = 3 * np.tanh(3 * y) - np.arctan2(y, 2.5)

# Written and read.
assert Expression.from_infix(law.infix) == law
assert law.latex() == (
    r"2 \\tanh\\left(3 y\\right) \\cdot 1.5 - \\mathrm{atan2}\\left(y, 2.5\\right)"
), law.latex()

# One form, and SymPy's.
canonical = canonicalize(law)
assert canonical.infix == "3*tanh(3*y) - atan2(y, 2.5)", canonical.infix
assert canonicalize(canonical) == canonical
assert canonicalize(Expression.from_infix("tanh(y)*2 + tanh(y)")).infix == "3*tanh(y)"
assert from_sympy(canonical.to_sympy()) == canonical

# Values, in all five ways, and derivatives.
np.testing.assert_allclose(law.evaluate(y), expected, rtol=1e-13)
np.testing.assert_allclose([law.compile()(x) for x in y.tolist()], expected, rtol=1e-13)
np.testing.assert_allclose(Program.from_expression(law).evaluate(y), expected, rtol=1e-13)
with jax.enable_x64(True):
    (packed, _), *_ = programs.pack([canonical])
    values, slope, gradient = tile_machine.evaluate_with_gradient(
        packed, packed.constants, jax.numpy.asarray(y)
    )
np.testing.assert_allclose(values[0], expected, rtol=1e-13)
np.testing.assert_allclose(
    slope[0], 9 / np.cosh(3 * y) ** 2 - 2.5 / (y**2 + 2.5**2), rtol=1e-10
)
np.testing.assert_allclose(gradient[0, 2], y / (y**2 + 2.5**2), rtol=1e-10, atol=1e-15)

# Solved.
t = np.linspace(0.0, 1.0, 11)
decay = Expression.from_infix("-tanh(y)")  # sinh(y) = sinh(y0) exp(-t)
exact = np.arcsinh(np.sinh(1.2) * np.exp(-t))
np.testing.assert_allclose(solve(decay, 1.2, t), exact, rtol=1e-7)

# Drawn, enumerated, counted in the complexity.
drawn = sample_expression(EquationPrior(operators="tanh add"), np.random.default_rng(0))
assert "tanh" in drawn.prefix
assert {"tanh mul c y", "atan2 y c"} <= set(sum(enumerate_skeletons(4), []))
assert weighted_complexity(decay) == 5.0

# New networks write it; those trained before keep their symbols.
assert SYMBOLS[-2:] == ("tanh", "atan2")
assert ModelConfig().vocabulary_size == Vocabulary().size == 38
old = load_pretrained("small")[2]
assert old.size == 36 and "tanh" not in old.symbols
print("done")
"""


def test_a_row_is_all_that_a_function_needs(tmp_path):
    source = Path(operators.__file__).read_text(encoding="utf-8")
    start, end = source.split("\n)\n", 1)
    copy = tmp_path / "operators.py"
    copy.write_text(f"{start}{ROWS}{end}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(copy)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "JAX_NUMPY_RANK_PROMOTION": "allow"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
