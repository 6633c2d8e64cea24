"""The one table of operators.

Every other place that needs to know an operator (parser, printer, SymPy, Python code,
NumPy, LaTeX, batched programs in JAX and their derivatives, the compiled machine, the
complexity of laws, the vocabulary of new networks) looks it up here. To add a function
f(x) or f(x, z), add a row; a new infix sign also needs a rule in the grammar of
`notation`. Where more is known about an operator than its arguments, so that laws can be
rewritten (sin(-x) = -sin(x)), `algebra` holds it. Networks trained before keep the
symbols that are stored with their weights.
"""

from __future__ import annotations

import dataclasses

import numpy as np

VARIABLE = "y"
"""The observed quantity; the only variable of a scalar autonomous ODE."""

VARIABLES = (VARIABLE,)
"""The variables of an equation, in their order, where no others are named."""

TIME = "t"
"""The time, in equations that depend on it."""

CONSTANT = "c"
"""Stands for a positive numerical constant in a skeleton."""

NEGATIVE_CONSTANT = "-c"
"""Stands for a negative numerical constant in a skeleton."""

UNIT = "1"
"""The numerator of a plain reciprocal, 1/x: structure, not a constant."""


@dataclasses.dataclass(frozen=True)
class Operator:
    """One operator of the language of equations.

    Attributes:
      token: name in prefix notation and in the vocabulary.
      arity: number of arguments, 1 or 2.
      opcode: integer of the operator in compiled programs; of a new row the next one.
      numpy: the same function on arrays; undefined values become NaN or inf.
      jax: name of the same function in `jax.numpy` (a name, so that nothing in
        this room imports JAX).
      python: template of a Python expression over the `math` module; of a new row a
        call of one of its functions, which the compiled machine calls too.
      sympy: name of the same function in SymPy; empty where SymPy has none and
        writes it with others (a - b as a + (-1)*b).
      latex: LaTeX template.
      infix: operator sign in infix notation; functions have none.
      precedence: binding strength in infix notation; higher binds tighter.
      cost: how many tokens it counts as in the complexity of a law.
    """

    token: str
    arity: int
    opcode: int
    numpy: np.ufunc
    jax: str
    python: str
    sympy: str
    latex: str
    infix: str = ""
    precedence: int = 4
    cost: float = 1.0


# fmt: off
_TABLE = (
    Operator("add", 2, 0, np.add, "add", "({0} + {1})", "Add", "{0} + {1}",
             infix="+", precedence=1),
    Operator("sub", 2, 1, np.subtract, "subtract", "({0} - {1})", "", "{0} - {1}",
             infix="-", precedence=1),
    Operator("mul", 2, 2, np.multiply, "multiply", "({0} * {1})", "Mul", r"{0} \cdot {1}",
             infix="*", precedence=2),
    Operator("div", 2, 3, np.divide, "divide", "({0} / {1})", "", r"\frac{{{0}}}{{{1}}}",
             infix="/", precedence=2),
    Operator("pow", 2, 4, np.power, "power", "pow({0}, {1})", "Pow", "{0}^{{{1}}}",
             infix="**", precedence=3),
    Operator("sin", 1, 5, np.sin, "sin", "sin({0})", "sin", r"\sin\left({0}\right)",
             cost=3.0),
    Operator("cos", 1, 6, np.cos, "cos", "cos({0})", "cos", r"\cos\left({0}\right)",
             cost=3.0),
    Operator("exp", 1, 7, np.exp, "exp", "exp({0})", "exp", "e^{{{0}}}",
             cost=2.0),
    Operator("sqrt", 1, 8, np.sqrt, "sqrt", "sqrt({0})", "sqrt", r"\sqrt{{{0}}}"),
    Operator("log", 1, 9, np.log, "log", "log({0})", "log", r"\log\left({0}\right)",
             cost=2.0),
    # Never sampled, but kept where simplification leaves it (paper, table 5).
    Operator("neg", 1, 10, np.negative, "negative", "(-{0})", "", "-{0}",
             infix="-", precedence=1),
)
# fmt: on

OPERATORS: dict[str, Operator] = {operator.token: operator for operator in _TABLE}
FUNCTIONS = {token: operator for token, operator in OPERATORS.items() if not operator.infix}
"""Those that are written f(x): sin, cos, exp, sqrt, log."""


def arity(token: str | float) -> int:
    """Number of arguments of a prefix token; 0 for the variable and constants."""
    operator = OPERATORS.get(token) if isinstance(token, str) else None
    return operator.arity if operator else 0


ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg"})
"""Operators that every law may use."""
