"""Laws as the text of a Python program, and formulas whose constants have names."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.constants import exponent_constants, is_plain
from nsode_jax.expressions.display import positive_term_first
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.notation import to_infix
from nsode_jax.expressions.operators import FUNCTIONS, UNIT
from nsode_jax.expressions.prefix import Prefix
from nsode_jax.results.callables import BACKENDS
from nsode_jax.selection.named_formula import NamedFormula

_TEMPLATE = '''"""The {what} of {observed}, found by nsode_jax."""

import {module} as {library}

CONSTANTS = (
{constants}
)


def vector_field(t, y, args=None{argument}):
    """d[{states}]/dt, as {taker} takes it; args are other constants."""
{unpacked}
    return {library}.stack(
        [
{rows}
        ],
        axis=-1,
    )
'''

_SERIES_TEMPLATE = '''"""A law of series with constants of their own, found by nsode_jax."""

import numpy as np

# {names}
CONSTANTS = {{
{constants}
}}

# first time, value there
STARTS = {{
{starts}
}}


def vector_field(t, y, series):
    """dy/dt of a series, as solve_ivp takes it with args=(label,), one of CONSTANTS."""{unpacked}
    return {formula}
'''

_MODULES = {"numpy": ("numpy", "np"), "jax": ("jax.numpy", "jnp")}
_TAKERS = {"numpy": "scipy.integrate.solve_ivp", "jax": "diffrax.ODETerm"}
_TAKEN = {"t", "args", "inputs", "np", "jnp", "CONSTANTS"}


EXPONENT = "exponent"
"""Stands for the name of a constant that is written as it is: the 2 of a square."""


class NamedConstants(NamedTuple):
    """Formulas in which c0, c1, ... stand for their constants, in the order of what is shown.

    Attributes:
      texts: a formula for each equation; exponents such as the 2 of a square have no names.
      places: of the constants that have names, among those of all equations.
      shown: for each equation place and name of all its constants as they stand in the text,
        `EXPONENT` for those without a name.
    """

    texts: tuple[str, ...]
    places: tuple[int, ...]
    shown: tuple[tuple[tuple[int, str], ...], ...]


class _Placed(float):
    """A constant that knows its place among those of all equations, and its name."""

    place: int
    name: str


def with_names(
    equations: Sequence[Expression], variables: Mapping[str, str] | None = None
) -> NamedConstants:
    """Formulas with names for their constants, their terms in the order in which they are shown.

    Args:
      equations: a formula, or several that belong together.
      variables: what variables are called, where it is not their own name.
    """
    texts: list[str] = []
    places: list[int] = []
    shown: list[tuple[tuple[int, str], ...]] = []
    before = 0
    for equation in equations:
        prefix = positive_term_first(_placed(equation, before))
        constants = [token for token in prefix if isinstance(token, _Placed)]
        for constant in constants:
            if not constant.name:
                constant.name = f"c{len(places)}"
                places.append(constant.place)
        texts.append(to_infix(tuple(_written(token, variables or {}) for token in prefix)))
        shown.append(tuple((constant.place, constant.name) for constant in constants))
        before += len(equation.constants)
    return NamedConstants(tuple(texts), tuple(places), tuple(shown))


def _placed(equation: Expression, before: int) -> Prefix:
    """The prefix of an equation with constants that know their places."""
    fixed = iter(exponent_constants(equation.skeleton))
    places = itertools.count(before)
    prefix: list[str | float] = []
    for token, kind in zip(equation.prefix, equation.skeleton.tokens, strict=True):
        if isinstance(token, str) or kind == UNIT:
            prefix.append(token)
            continue
        constant = _Placed(token)
        constant.place = next(places)
        constant.name = EXPONENT if next(fixed) and is_plain(token) else ""
        prefix.append(constant)
    return tuple(prefix)


def _written(token: str | float, variables: Mapping[str, str]) -> str | float:
    if isinstance(token, _Placed):
        return float(token) if token.name == EXPONENT else token.name
    return variables.get(token, token) if isinstance(token, str) else token


def program(
    observed: Sequence[str],
    states: Sequence[str],
    inputs: Sequence[str],
    equations: Sequence[Expression],
    backend: str = "numpy",
) -> str:
    """The text of a Python program that holds laws as (t, y, args) -> dy/dt.

    Args:
      observed: the quantities that were measured.
      states: what has an equation, velocities too.
      inputs: measured inputs.
      equations: a right-hand side for each state; constants are written with all digits.
      backend: `numpy` for `scipy.integrate.solve_ivp`, or `jax` for `diffrax.ODETerm`.

    Returns:
      The text. Where there are inputs, `vector_field` takes `inputs` too, a function of t
      that gives their values.

    Raises:
      ValueError: if there is no such backend.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be {' or '.join(BACKENDS)}, got {backend!r}")
    module, library = _MODULES[backend]
    names = {name: _variable(name) for name in (*states, *inputs)}
    texts, places, _ = with_names(equations, names)
    fitted = [constant for equation in equations for constant in equation.constants]
    constants = [float(fitted[place]) for place in places]
    rows = [
        f"            {_called(text, library)},  # d{state}/dt"
        for state, text in zip(states, texts, strict=True)
    ]
    symbols = [f"c{i}" for i in range(len(constants))]
    unpacked = [(states, "y"), (inputs, "inputs(t)")]
    lines = [f"    {_tuple([names[n] for n in group])} = {source}"
             for group, source in unpacked if group]  # fmt: skip
    if constants:
        lines.append(f"    {_tuple(symbols)} = CONSTANTS if args is None else args")
    return _TEMPLATE.format(
        what="laws" if len(observed) > 1 else "law",
        observed=", ".join(observed),
        module=module,
        library=library,
        constants="\n".join(
            f"    {value!r},  # {name}" for name, value in zip(symbols, constants, strict=True)
        ),
        argument=", *, inputs" if inputs else "",
        states=", ".join(states),
        taker=_TAKERS[backend],
        unpacked="\n".join(lines),
        rows="\n".join(rows),
    )


def program_of_series(
    formula: NamedFormula,
    labels: Sequence[str],
    constants: Float[np.ndarray, "series constants"],
    starts: Sequence[tuple[float, float]],
) -> str:
    """The text of a Python program that holds one law of many series.

    Args:
      formula: f(y), with names for its constants.
      labels: what the series are called: any text, which the program never executes.
      constants: of each series.
      starts: first time and value of each.

    Returns:
      The text; its `vector_field` takes the label of a series as its last argument.
    """
    names = [_variable_of_series(name) for name in formula.names]
    text = to_infix(tuple(names[t] if isinstance(t, int) else t for t in formula.template))
    values = (tuple(map(float, row)) for row in constants)
    begin = (tuple(map(float, start)) for start in starts)
    return _SERIES_TEMPLATE.format(
        names=", ".join(formula.names),
        constants=_rows(labels, values),
        starts=_rows(labels, begin),
        unpacked=f"\n    {_tuple(names)} = CONSTANTS[series]" if names else "",
        formula=_called(text, "np"),
    )


def _rows(labels: Sequence[str], values: Iterable[tuple[float, ...]]) -> str:
    pairs = zip(labels, values, strict=True)
    return "\n".join(f"    {label!r}: {row!r}," for label, row in pairs)


def _variable_of_series(name: str) -> str:
    taken = {"t", "y", "series", "np", "CONSTANTS", "STARTS"}
    return f"{name}_" if name in taken or keyword.iskeyword(name) else name


def _tuple(names: Sequence[str]) -> str:
    return f"{', '.join(names)}{',' * (len(names) == 1)}"


def _variable(name: str) -> str:
    """A name that means nothing else in the program."""
    if name in _TAKEN or keyword.iskeyword(name) or re.fullmatch(r"c\d+_*|\w+_", name):
        return f"{name}_"
    return name


def _called(formula: str, library: str) -> str:
    """The formula with the functions of a library."""
    for operator in FUNCTIONS.values():
        formula = re.sub(rf"\b{operator.token}\(", f"{library}.{operator.jax}(", formula)
    return formula
