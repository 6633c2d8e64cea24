"""An equation as data: prefix notation, infix notation, skeletons.

`Expression` is the right-hand side f of dy/dt = f(y), with its constants. Other and more
variables, such as t or y1, y2, are named with it.
`Skeleton` is the same without the values of the constants (their signs stay,
as in the paper's definition of a recovered skeleton, section 2.3).
"""

from __future__ import annotations

import dataclasses
import functools
import keyword
import math
import types
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.display import tidied
from nsode_jax.expressions.notation import parse, to_infix, to_latex
from nsode_jax.expressions.operators import (
    CONSTANT,
    NEGATIVE_CONSTANT,
    OPERATORS,
    UNIT,
    VARIABLES,
)
from nsode_jax.expressions.prefix import (
    ExpressionError,
    NotRepresentable,
    Prefix,
    subtree_end,
)

if TYPE_CHECKING:
    import sympy

_PLACEHOLDERS = (CONSTANT, NEGATIVE_CONSTANT)
_MAX_CONSTANT = 1e60  # In the units of the data constants may be very large.
_MAX_WHOLE_EXPONENT = 100
_SKELETON_TOKENS = {*OPERATORS, UNIT, *_PLACEHOLDERS}
_RESERVED = {*OPERATORS, *_PLACEHOLDERS, *keyword.kwlist, "pi", "ln"}
_MATH = {name: function for name, function in vars(math).items() if callable(function)}


def _unit_positions(prefix: Sequence[str | float]) -> set[int]:
    """Positions of the numerator 1 of plain reciprocals (1/x)."""
    return {
        i + 1
        for i in range(len(prefix) - 1)
        if prefix[i] == "div" and prefix[i + 1] == 1.0 and not isinstance(prefix[i + 1], str)
    }


def is_variable_name(name: str) -> bool:
    """Whether a variable may be called so."""
    return _is_ascii_identifier(name) and name not in _RESERVED


def _is_ascii_identifier(name: object) -> bool:
    return isinstance(name, str) and name.isascii() and name.isidentifier()


@functools.lru_cache(maxsize=256)
def _check_variables(variables: tuple[str, ...]) -> None:
    """Names are Python identifiers of ASCII letters that mean nothing else in a formula."""
    for name in variables:
        if not _is_ascii_identifier(name):
            raise ExpressionError(f"a variable needs a name such as y1, got {name!r}")
        if name in _RESERVED:
            raise ExpressionError(f"a variable cannot be named {name!r}: that has a meaning")
    if len(set(variables)) != len(variables):
        raise ExpressionError(f"variables must differ, got {', '.join(variables)}")


@dataclasses.dataclass(frozen=True)
class Skeleton:
    """An expression without the values of its constants.

    Attributes:
      tokens: prefix notation; `c` and `-c` stand for a positive and a negative
        constant, `1` for the numerator of a plain reciprocal.
      variables: names of the variables, in their order.
    """

    tokens: tuple[str, ...]
    variables: tuple[str, ...] = VARIABLES

    def __post_init__(self):
        _check_variables(self.variables)
        for token in self.tokens:
            if token not in _SKELETON_TOKENS and token not in self.variables:
                raise ExpressionError(f"unknown token in a skeleton: {token!r}")
        if not self.tokens or subtree_end(self.tokens, 0) != len(self.tokens):
            raise ExpressionError("a skeleton must be one complete expression")

    @functools.cached_property
    def key(self) -> str:
        """The skeleton as text; of the same variables, equal keys mean equal skeletons."""
        return " ".join(self.tokens)

    @classmethod
    def from_key(cls, key: str, variables: tuple[str, ...] = VARIABLES) -> Skeleton:
        """The inverse of `key`."""
        return cls(tuple(key.split()), variables)

    @functools.cached_property
    def unsigned_key(self) -> str:
        """The key with the signs of the constants left out."""
        return " ".join(CONSTANT if t == NEGATIVE_CONSTANT else t for t in self.tokens)

    @functools.cached_property
    def num_constants(self) -> int:
        """How many constants the skeleton holds."""
        return sum(token in _PLACEHOLDERS for token in self.tokens)

    @property
    def signs(self) -> tuple[int, ...]:
        """Sign of each constant, in prefix order: 1 or -1."""
        return tuple(1 if t == CONSTANT else -1 for t in self.tokens if t in _PLACEHOLDERS)

    def with_constants(self, constants: Iterable[float]) -> Expression:
        """The expression with these constants, in prefix order.

        Raises:
          ExpressionError: if their number is not `num_constants`.
        """
        values = [float(c) for c in constants]
        if len(values) != self.num_constants:
            raise ExpressionError(
                f"the skeleton has {self.num_constants} constants, got {len(values)}"
            )
        remaining = iter(values)
        prefix: list[str | float] = []
        for token in self.tokens:
            if token in _PLACEHOLDERS:
                prefix.append(next(remaining))
            else:
                prefix.append(1.0 if token == UNIT else token)
        return Expression(tuple(prefix), self.variables)


@dataclasses.dataclass(frozen=True)
class Expression:
    """The right-hand side f of dy/dt = f(y), or of other variables, such as f(y1, y2, t).

    Attributes:
      prefix: operators and variables as strings, constants as floats.
      variables: names of the variables, in the order in which functions take them;
        f need not depend on all.
    """

    prefix: Prefix
    variables: tuple[str, ...] = VARIABLES

    def __post_init__(self):
        _check_variables(self.variables)
        for token in self.prefix:
            if isinstance(token, str):
                if token not in OPERATORS and token not in self.variables:
                    raise ExpressionError(f"unknown token in an expression: {token!r}")
            elif not math.isfinite(token):
                raise ExpressionError(f"a constant must be finite, got {token!r}")
        if not self.prefix or subtree_end(self.prefix, 0) != len(self.prefix):
            raise ExpressionError("an expression must be one complete tree")

    @classmethod
    def from_infix(cls, text: str, variables: tuple[str, ...] = VARIABLES) -> Expression:
        """Reads a formula such as `-1.3*y + 2.1*y**2.2`.

        Known: numbers, the variables, `pi`, + - * / ** ^, parentheses and the functions
        of the operator table (`ln` is `log`). Nothing in the text is executed.

        Raises:
          ExpressionError: naming the position, for any other text, for one of more
            than 20,000 characters or 1,000 parts, and for what is no text.
        """
        return cls(parse(text, variables), variables)

    @property
    def infix(self) -> str:
        """The formula as text; `from_infix` gives back the same prefix."""
        return to_infix(self.prefix)

    @property
    def complexity(self) -> int:
        """Number of operators, variables and constants (paper, section 2.1)."""
        return len(self.prefix)

    @functools.cached_property
    def constants(self) -> tuple[float, ...]:
        """Constants in prefix order; the 1 of a plain reciprocal is not one."""
        units = _unit_positions(self.prefix)
        return tuple(
            t for i, t in enumerate(self.prefix) if not isinstance(t, str) and i not in units
        )

    @functools.cached_property
    def skeleton(self) -> Skeleton:
        """The expression without the values of its constants."""
        units = _unit_positions(self.prefix)
        tokens = []
        for i, token in enumerate(self.prefix):
            if isinstance(token, str):
                tokens.append(token)
            elif i in units:
                tokens.append(UNIT)
            else:
                tokens.append(CONSTANT if token >= 0 else NEGATIVE_CONSTANT)
        return Skeleton(tuple(tokens), self.variables)

    def rounded(self, digits: int) -> Expression:
        """For display: constants to so many significant digits, no minus in front if avoidable.

        A factor that is rounded to 1 is not written.
        """
        rounded = (t if isinstance(t, str) else float(f"{t:.{digits}g}") for t in self.prefix)
        return Expression(tidied(tuple(rounded)), self.variables)

    def latex(self, digits: int = 6) -> str:
        """The formula in LaTeX, constants with so many significant digits."""
        return to_latex(self.prefix, digits)

    def to_sympy(self) -> sympy.Expr:
        """The formula as a SymPy expression in symbols of the variables' names.

        It is evaluated as SymPy does by itself.

        Raises:
          NotRepresentable: if a part without variables is not a finite real number.
        """
        return _to_sympy(self.prefix)

    def evaluate(self, *values: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
        """f in float64; NaN or inf where it is undefined.

        Args:
          *values: one array for each variable, in their order; they broadcast.

        Raises:
          TypeError: if there are not as many as variables.
        """
        if len(values) != len(self.variables):
            raise TypeError(f"f({', '.join(self.variables)}) was given {len(values)} values")
        arrays = [np.asarray(value, np.float64) for value in values]
        with np.errstate(all="ignore"):
            value, _ = _evaluate(self.prefix, 0, dict(zip(self.variables, arrays)))
        if len(arrays) == 1:
            shape = arrays[0].shape
        else:
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
        return np.broadcast_to(value, shape).astype(np.float64)

    def compile(self) -> Callable[..., float]:
        """A fast scalar function f(*variables), or f(*variables, *constants), over `math`.

        Without constants the expression's own are used. The function raises
        ArithmeticError or ValueError where f is undefined.
        """
        function = _compile(self.skeleton)
        # The same code with the constants as defaults: a wrapper would cost as much
        # again, and solvers call this millions of times.
        return types.FunctionType(function.__code__, function.__globals__, argdefs=self.constants)

    def __str__(self) -> str:
        return self.infix


def checked_number(value: float) -> float:
    """The same value, if an expression may hold it as a constant.

    Raises:
      NotRepresentable: if it is NaN or its size is above 1e60.
    """
    if not abs(value) <= _MAX_CONSTANT:
        raise NotRepresentable(f"constant out of range: {value}")
    return value


def fold(token: str, arguments: Sequence[float]) -> float:
    """The value of an operator on numbers.

    Raises:
      NotRepresentable: if it is no finite real number, or out of range.
    """
    try:
        value = _operator(token)(*arguments)
    except (ArithmeticError, ValueError) as error:
        numbers = ", ".join(map(str, arguments))
        raise NotRepresentable(f"not a finite real number: {token}({numbers})") from error
    return checked_number(value) + 0.0  # No negative zero.


@functools.cache
def _operator(token: str) -> Callable[..., float]:
    return _compile(Skeleton((token, *[CONSTANT] * OPERATORS[token].arity), ()))


def _to_sympy(prefix: Prefix) -> sympy.Expr:
    import sympy  # Slow to import.

    def number(value: float) -> sympy.Expr:
        whole = value == int(value) and abs(value) < 2**53
        return sympy.Integer(int(value)) if whole else sympy.Float(value)

    def build(start: int) -> tuple[sympy.Expr | float, int]:
        """The subtree at `start`, a float if it has no variables, and its end.

        SymPy would carry numbers such as sin(3) along as symbols, like terms would not
        meet, and it would write out all digits of a power of whole numbers.
        """
        token = prefix[start]
        if not isinstance(token, str):
            return token, start + 1
        if token not in OPERATORS:
            return sympy.Symbol(token), start + 1
        arguments, position = [], start + 1
        for _ in range(OPERATORS[token].arity):
            argument, position = build(position)
            arguments.append(argument)
        if all(isinstance(argument, float) for argument in arguments):
            return fold(token, arguments), position
        numbers = [number(a) if isinstance(a, float) else a for a in arguments]
        if token == "pow" and isinstance(arguments[1], float):
            # (2*y)**(10**10) holds a number of three billion digits, unless it is a float.
            if abs(arguments[1]) > _MAX_WHOLE_EXPONENT:
                numbers[1] = sympy.Float(arguments[1])
        value = apply(token, *numbers)
        if value.is_number:  # y - y, or 0*y
            if not value.is_finite or not value.is_real:
                raise NotRepresentable(f"not a finite real number: {value!s}")
            return checked_number(float(value)), position
        return value, position

    def apply(token: str, *arguments: sympy.Expr) -> sympy.Expr:
        match token:
            case "sub":
                return arguments[0] - arguments[1]
            case "div":
                return arguments[0] / arguments[1]
            case "neg":
                return -arguments[0]
        return getattr(sympy, OPERATORS[token].sympy)(*arguments)

    value, _ = build(0)
    return value if isinstance(value, sympy.Expr) else number(value)


def _evaluate(
    prefix: Prefix, start: int, values: dict[str, np.ndarray]
) -> tuple[np.ndarray | np.float64, int]:
    token = prefix[start]
    if not isinstance(token, str):
        return np.float64(token), start + 1
    if token not in OPERATORS:
        return values[token], start + 1
    arguments, position = [], start + 1
    for _ in range(OPERATORS[token].arity):
        value, position = _evaluate(prefix, position, values)
        arguments.append(value)
    return OPERATORS[token].numpy(*arguments), position


@functools.lru_cache(maxsize=4096)
def _compile(skeleton: Skeleton) -> Callable[..., float]:
    """Python function f(x0, x1, ..., c0, c1, ...) of a skeleton.

    The source is put together from the operator table's templates only: a
    skeleton cannot hold any other text, so nothing foreign is ever executed.
    """
    variables = {name: f"x{i}" for i, name in enumerate(skeleton.variables)}
    constants = [f"c{i}" for i in range(skeleton.num_constants)]
    remaining = iter(constants)

    def build(start: int) -> tuple[str, int]:
        token = skeleton.tokens[start]
        if token in _PLACEHOLDERS:
            return next(remaining), start + 1
        if token not in OPERATORS:
            return ("1.0" if token == UNIT else variables[token]), start + 1
        arguments, position = [], start + 1
        for _ in range(OPERATORS[token].arity):
            text, position = build(position)
            arguments.append(text)
        return OPERATORS[token].python.format(*arguments), position

    body, _ = build(0)
    parameters = ", ".join([*variables.values(), *constants])
    return eval(f"lambda {parameters}: {body}", {"__builtins__": {}, **_MATH})  # noqa: S307
