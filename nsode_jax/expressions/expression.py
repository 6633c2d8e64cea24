"""An equation as data: prefix notation, infix notation, skeletons.

`Expression` is the right-hand side f of dy/dt = f(y), with its constants.
`Skeleton` is the same without the values of the constants (their signs stay,
as in the paper's definition of a recovered skeleton, section 2.3).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.operators import (
    CONSTANT,
    NEGATIVE_CONSTANT,
    OPERATORS,
    UNIT,
    VARIABLE,
    arity,
)

if TYPE_CHECKING:
    import sympy

Prefix = tuple[str | float, ...]

_PLACEHOLDERS = (CONSTANT, NEGATIVE_CONSTANT)
_MAX_CONSTANT = 1e60  # In the units of the data constants may be very large.
_MAX_WHOLE_EXPONENT = 100
_SKELETON_TOKENS = {*OPERATORS, VARIABLE, UNIT, *_PLACEHOLDERS}
_ARITIES = {token: operator.arity for token, operator in OPERATORS.items()}


_MAX_CHARACTERS = 20_000
_MAX_PARTS = 1_000
"""Of a formula in text: longer ones are no laws, and would exhaust Python's stack."""


class ExpressionError(ValueError):
    """The text or the tokens are not an expression of our grammar."""


class NotRepresentable(ExpressionError):
    """The simplified expression leaves our language (complex, infinite, other functions)."""


def subtree_end(prefix: Sequence[str | float], start: int) -> int:
    """Index just after the subtree whose root is at `start`.

    Raises:
      ExpressionError: if the subtree is incomplete.
    """
    open_slots, position = 1, start
    try:
        while open_slots:
            open_slots += _ARITIES.get(prefix[position], 0) - 1
            position += 1
    except IndexError:
        message = "the expression is incomplete: an operator lacks an argument"
        raise ExpressionError(message) from None
    return position


def _argument_spans(prefix: Sequence[str | float], start: int) -> list[int]:
    """Start of each argument of the operator at `start`."""
    starts, position = [], start + 1
    for _ in range(arity(prefix[start])):
        starts.append(position)
        position = subtree_end(prefix, position)
    return starts


def _unit_positions(prefix: Sequence[str | float]) -> set[int]:
    """Positions of the numerator 1 of plain reciprocals (1/x)."""
    return {
        i + 1
        for i in range(len(prefix) - 1)
        if prefix[i] == "div" and prefix[i + 1] == 1.0 and not isinstance(prefix[i + 1], str)
    }


@dataclasses.dataclass(frozen=True)
class Skeleton:
    """An expression without the values of its constants.

    Attributes:
      tokens: prefix notation; `c` and `-c` stand for a positive and a negative
        constant, `1` for the numerator of a plain reciprocal.
    """

    tokens: tuple[str, ...]

    def __post_init__(self):
        for token in self.tokens:
            if token not in _SKELETON_TOKENS:
                raise ExpressionError(f"unknown token in a skeleton: {token!r}")
        if not self.tokens or subtree_end(self.tokens, 0) != len(self.tokens):
            raise ExpressionError("a skeleton must be one complete expression")

    @functools.cached_property
    def key(self) -> str:
        """The skeleton as text; equal keys mean equal skeletons."""
        return " ".join(self.tokens)

    @classmethod
    def from_key(cls, key: str) -> Skeleton:
        """The inverse of `key`."""
        return cls(tuple(key.split()))

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
        return Expression(tuple(prefix))


@dataclasses.dataclass(frozen=True)
class Expression:
    """The right-hand side f(y) of an autonomous ODE dy/dt = f(y).

    Attributes:
      prefix: operators and the variable as strings, constants as floats.
    """

    prefix: Prefix

    def __post_init__(self):
        for token in self.prefix:
            if isinstance(token, str):
                if token not in OPERATORS and token != VARIABLE:
                    raise ExpressionError(f"unknown token in an expression: {token!r}")
            elif not math.isfinite(token):
                raise ExpressionError(f"a constant must be finite, got {token!r}")
        if not self.prefix or subtree_end(self.prefix, 0) != len(self.prefix):
            raise ExpressionError("an expression must be one complete tree")

    @classmethod
    def from_infix(cls, text: str) -> Expression:
        """Reads a formula such as `-1.3*y + 2.1*y**2.2`.

        Known: numbers, `y`, `pi`, + - * / ** ^, parentheses and the functions
        of the operator table (`ln` is `log`). Nothing in the text is executed.

        Raises:
          ExpressionError: naming the position, for any other text, for one of more
            than 20,000 characters or 1,000 parts, and for what is no text.
        """
        if not isinstance(text, str):
            raise ExpressionError(f"a formula must be text, got {type(text).__name__}")
        return cls(tuple(_Parser(text).parse()))

    @property
    def infix(self) -> str:
        """The formula as text; `from_infix` gives back the same prefix."""
        return _to_infix(self.prefix)

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
        return Skeleton(tuple(tokens))

    def rounded(self, digits: int) -> Expression:
        """For display: constants to so many significant digits, no minus in front if avoidable."""
        rounded = (t if isinstance(t, str) else float(f"{t:.{digits}g}") for t in self.prefix)
        return Expression(_positive_term_first(tuple(rounded)))

    def latex(self, digits: int = 6) -> str:
        """The formula in LaTeX, constants with so many significant digits."""
        return _to_latex(self.prefix, digits)

    def to_sympy(self) -> sympy.Expr:
        """The formula as a SymPy expression in the symbol `y`, evaluated as SymPy does by itself.

        Raises:
          NotRepresentable: if a part without y is not a finite real number.
        """
        return _to_sympy(self.prefix)

    def evaluate(self, y: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
        """f at each y in float64; NaN or inf where f is undefined."""
        y = np.asarray(y, np.float64)
        with np.errstate(all="ignore"):
            value, _ = _evaluate(self.prefix, 0, y)
        return np.broadcast_to(value, y.shape).astype(np.float64)

    def compile(self) -> Callable[..., float]:
        """A fast scalar function f(y), or f(y, *constants), over `math`.

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
        value = _operator(token)(None, *arguments)
    except (ArithmeticError, ValueError) as error:
        numbers = ", ".join(map(str, arguments))
        raise NotRepresentable(f"not a finite real number: {token}({numbers})") from error
    return checked_number(value) + 0.0  # No negative zero.


@functools.cache
def _operator(token: str) -> Callable[..., float]:
    return _compile(Skeleton((token, *[CONSTANT] * OPERATORS[token].arity)))


def _to_sympy(prefix: Prefix) -> sympy.Expr:
    import sympy  # Slow to import.

    def number(value: float) -> sympy.Expr:
        whole = value == int(value) and abs(value) < 2**53
        return sympy.Integer(int(value)) if whole else sympy.Float(value)

    def build(start: int) -> tuple[sympy.Expr | float, int]:
        """The subtree at `start`, a float if it does not depend on y, and its end.

        SymPy would carry numbers such as sin(3) along as symbols, like terms would not
        meet, and it would write out all digits of a power of whole numbers.
        """
        token = prefix[start]
        if not isinstance(token, str):
            return token, start + 1
        if token == VARIABLE:
            return sympy.Symbol(VARIABLE), start + 1
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
                raise NotRepresentable(f"not a finite real number: {value}")
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
    return number(value) if isinstance(value, float) else value


def _evaluate(prefix: Prefix, start: int, y: np.ndarray) -> tuple[np.ndarray, int]:
    token = prefix[start]
    if not isinstance(token, str):
        return np.float64(token), start + 1
    if token == VARIABLE:
        return y, start + 1
    arguments, position = [], start + 1
    for _ in range(OPERATORS[token].arity):
        value, position = _evaluate(prefix, position, y)
        arguments.append(value)
    return OPERATORS[token].numpy(*arguments), position


@functools.lru_cache(maxsize=4096)
def _compile(skeleton: Skeleton) -> Callable[..., float]:
    """Python function f(y, c0, c1, ...) of a skeleton.

    The source is put together from the operator table's templates only: a
    skeleton cannot hold any other text, so nothing foreign is ever executed.
    """
    names = iter(f"c{i}" for i in range(skeleton.num_constants))

    def build(start: int) -> tuple[str, int]:
        token = skeleton.tokens[start]
        if token in _PLACEHOLDERS:
            return next(names), start + 1
        if token in (VARIABLE, UNIT):
            return ("1.0" if token == UNIT else VARIABLE), start + 1
        arguments, position = [], start + 1
        for _ in range(OPERATORS[token].arity):
            text, position = build(position)
            arguments.append(text)
        return OPERATORS[token].python.format(*arguments), position

    body, _ = build(0)
    parameters = ", ".join([VARIABLE] + [f"c{i}" for i in range(skeleton.num_constants)])
    scope = {name: getattr(math, name) for name in ("sin", "cos", "exp", "sqrt", "log", "pow")}
    return eval(f"lambda {parameters}: {body}", {"__builtins__": {}, **scope})  # noqa: S307


def _positive_term_first(prefix: Prefix) -> Prefix:
    """The same sum, begun with its first term that has no minus sign, if there is one."""
    terms, rest = [], prefix
    while rest[0] in ("add", "sub"):
        middle = subtree_end(rest, 1)
        terms.insert(0, (rest[0], rest[middle:]))
        rest = rest[1:middle]
    terms.insert(0, ("add", rest))

    def is_positive(sign: str, term: Prefix) -> bool:
        head = next(token for token in term if token not in ("mul", "div"))
        return sign == "add" and head != "neg" and (isinstance(head, str) or head >= 0)

    first = next((i for i, term in enumerate(terms) if is_positive(*term)), 0)
    terms.insert(0, terms.pop(first))
    joined = terms[0][1]
    for sign, term in terms[1:]:
        if sign == "add" and term[0] == "neg":  # Was in front: -y + 2 becomes 2 - y.
            sign, term = "sub", term[1:]
        joined = (sign, *joined, *term)
    return joined


# --- infix notation ---------------------------------------------------------
#
# A negative number at the head of a term belongs to that term: `a - 2*y` is
# a + (-2)*y. So the canonical form, which carries signs in the constants, reads
# naturally; a subtraction of a term that begins with a number gets parentheses,
# and every prefix sequence survives the round trip unchanged.


def format_number(value: float) -> str:
    """Shortest text that reads back as the same float; whole numbers plain."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value)) if value or math.copysign(1.0, value) > 0 else "-0.0"
    return repr(value)


def _leads_with_number(prefix: Sequence[str | float], start: int) -> bool:
    """Whether the text of this subtree begins with a bare number of a term."""
    while prefix[start] in ("mul", "div"):
        start += 1
    return not isinstance(prefix[start], str)


def _to_infix(prefix: Prefix) -> str:
    def write(start: int, needed: int, heads_term: bool) -> str:
        """Text of a subtree that must bind at least as tightly as `needed`.

        `heads_term`: a leading minus sign would be read as the term's own.
        """
        token = prefix[start]
        if not isinstance(token, str):
            text = format_number(token)
            bare = not text.startswith("-") or (heads_term and needed <= 2)
            return text if bare else f"({text})"
        if token == VARIABLE:
            return VARIABLE
        arguments = _argument_spans(prefix, start)
        operator = OPERATORS[token]
        if not operator.infix:
            return f"{token}({write(arguments[0], 0, True)})"
        if needed > operator.precedence:
            return f"({write(start, 0, True)})"
        first = arguments[0]
        if token == "neg":
            text = "-" + _unless_number(first, write(first, 2, False))
            return text if heads_term else f"({text})"
        second = arguments[1]
        if token == "pow":
            # A negative base needs parentheses; the exponent groups to the right.
            return f"{write(first, 4, False)}**{write(second, 3, False)}"
        if token in ("mul", "div"):
            return f"{write(first, 2, heads_term)}{operator.infix}{write(second, 3, False)}"
        left = write(first, 1, heads_term)
        if token == "sub":
            return f"{left} - {_unless_number(second, write(second, 2, False))}"
        right = write(second, 2, True)
        if right.startswith("-"):
            if prefix[second] == "neg":
                return f"{left} + ({right})"
            return f"{left} - {right[1:]}"
        return f"{left} + {right}"

    def _unless_number(start: int, text: str) -> str:
        return f"({text})" if _leads_with_number(prefix, start) and text[0] != "(" else text

    return write(0, 0, True)


def _latex_number(value: float, digits: int) -> str:
    text = format_number(float(f"{value:.{digits}g}"))
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    power = f"10^{{{int(exponent)}}}"
    if mantissa in ("1", "-1"):
        return mantissa.replace("1", power)
    return rf"{mantissa} \cdot {power}"


def _to_latex(prefix: Prefix, digits: int) -> str:
    def write(start: int, needed: int, heads_term: bool) -> str:
        """As in `_to_infix`; fractions and e^x bind like powers."""
        token = prefix[start]
        if token == VARIABLE:
            return VARIABLE
        if not isinstance(token, str):
            text = _latex_number(token, digits)
            bare = (heads_term and needed <= 2) if text.startswith("-") else True
            return text if bare and ("^" not in text or needed <= 2) else wrap(text)
        arguments = _argument_spans(prefix, start)
        operator = OPERATORS[token]
        if token in ("div", "exp"):
            inside = [write(argument, 0, True) for argument in arguments]
            sign = ""
            is_term = prefix[arguments[0]] not in ("add", "sub")
            if token == "div" and heads_term and is_term and inside[0].startswith("-"):
                sign, inside[0] = "-", inside[0][1:]
            text = sign + operator.latex.format(*inside)
            return wrap(text) if needed > 3 else text
        if not operator.infix:
            return operator.latex.format(write(arguments[0], 0, True))
        if needed > operator.precedence:
            return wrap(write(start, 0, True))
        if token == "neg":
            text = operator.latex.format(write(arguments[0], 2, False))
            return text if heads_term else wrap(text)
        left, right = arguments
        if token == "pow":
            return operator.latex.format(write(left, 4, False), write(right, 0, True))
        if token == "mul":
            texts = write(left, 2, heads_term), write(right, 3, False)
            # A dot only where two numbers would run together.
            return operator.latex.format(*texts) if texts[1][0].isdigit() else " ".join(texts)
        texts = write(left, 1, heads_term), write(right, 2, token == "add")
        if token == "add" and texts[1].startswith("-"):
            if prefix[right] == "neg":
                return f"{texts[0]} + {wrap(texts[1])}"
            return f"{texts[0]} - {texts[1][1:]}"
        return operator.latex.format(*texts)

    def wrap(text: str) -> str:
        return rf"\left({text}\right)"

    return write(0, 0, True)


_TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(\w+)|(\*\*|[-+*/^()]))",
    re.ASCII,
)
_MAX_DEPTH = 100


class _Parser:
    """Recursive descent over the grammar

    sum     = ["-"] term (("+" | "-") term)*
    term    = factor (("*" | "/") factor)*
    factor  = "-" factor | power
    power   = atom [("**" | "^") factor]
    atom    = number | "y" | "pi" | function "(" sum ")" | "(" sum ")"
    """

    def __init__(self, text: str):
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []  # (kind, text, position)
        self._next = 0
        self._depth = 0
        position = 0
        if len(text) > _MAX_CHARACTERS:
            raise self._error(f"more than {_MAX_CHARACTERS} characters", _MAX_CHARACTERS)
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if not match:
                raise self._error(
                    f"unexpected character {stripped[position:].lstrip()[0]!r}", position
                )
            kind = ("number", "name", "sign")[match.lastindex - 1]
            self._tokens.append((kind, match.group(match.lastindex), match.start(match.lastindex)))
            position = match.end()
            if len(self._tokens) > _MAX_PARTS:
                raise self._error(f"more than {_MAX_PARTS} parts", position)
        self._tokens.append(("end", "", len(stripped)))

    def parse(self) -> list[str | float]:
        prefix = self._sum()
        kind, text, position = self._peek()
        if kind != "end":
            raise self._error(f"unexpected {text!r}", position)
        return prefix

    def _error(self, what: str, position: int) -> ExpressionError:
        shown = self._text if len(self._text) <= 200 else self._text[:199] + "…"
        what = what if len(what) <= 200 else what[:199] + "…"
        return ExpressionError(f"cannot read the formula {shown!r}: {what} at {position + 1}")

    def _peek(self, ahead: int = 0) -> tuple[str, str, int]:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _accept(self, *signs: str) -> str | None:
        kind, text, _ = self._peek()
        if kind == "sign" and text in signs:
            self._next += 1
            return text
        return None

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            kind, text, position = self._peek()
            found = "the end" if kind == "end" else repr(text)
            raise self._error(f"expected {sign!r}, found {found}", position)

    def _number_heads_term(self) -> bool:
        """After a minus: the number that follows takes the sign (not in -2**y)."""
        return self._peek()[0] == "number" and self._peek(1)[1] not in ("**", "^")

    @contextlib.contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error("too deeply nested", self._peek()[2])
        yield
        self._depth -= 1

    def _sum(self) -> list[str | float]:
        self._accept("+")
        left = self._term()
        while sign := self._accept("+", "-"):
            if sign == "-" and self._number_heads_term():
                left = ["add", *left, *self._term(negate=True)]
            else:
                left = ["add" if sign == "+" else "sub", *left, *self._term()]
        return left

    def _term(self, negate: bool = False) -> list[str | float]:
        if not negate and self._accept("-"):
            if not self._number_heads_term():
                with self._deeper():
                    return ["neg", *self._term()]
            negate = True
        left = self._factor()
        if negate:
            left = [-left[0]]
        while sign := self._accept("*", "/"):
            left = ["mul" if sign == "*" else "div", *left, *self._factor()]
        return left

    def _factor(self) -> list[str | float]:
        with self._deeper():
            if self._accept("-"):
                if self._number_heads_term():
                    return [-self._factor()[0]]
                return ["neg", *self._factor()]
            base = self._atom()
            if self._accept("**", "^"):
                return ["pow", *base, *self._factor()]
            return base

    def _atom(self) -> list[str | float]:
        kind, text, position = self._peek()
        self._next += 1
        if kind == "number":
            value = float(text)
            if not math.isfinite(value):
                raise self._error(f"the number {text} is too large", position)
            return [value]
        if kind == "name":
            name = "log" if text == "ln" else text
            if name == VARIABLE:
                return [VARIABLE]
            if name == "pi":
                return [math.pi]
            operator = OPERATORS.get(name)
            if operator is None or operator.infix:
                raise self._error(f"unknown name {text!r}", position)
            self._expect("(")
            argument = self._sum()
            self._expect(")")
            return [name, *argument]
        if text == "(":
            inner = self._sum()
            self._expect(")")
            return inner
        self._next -= 1
        raise self._error(
            "the formula ends too early" if kind == "end" else f"unexpected {text!r}", position
        )
