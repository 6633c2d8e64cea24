"""Formulas as people write them: infix notation, read and written, and LaTeX.

A negative number at the head of a term belongs to that term: `a - 2*y` is
a + (-2)*y. So the canonical form, which carries signs in the constants, reads
naturally; a subtraction of a term that begins with a number gets parentheses,
and every prefix sequence survives the round trip unchanged.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Sequence

from nsode_jax.expressions.operators import FUNCTIONS, OPERATORS
from nsode_jax.expressions.prefix import ExpressionError, Prefix, argument_starts

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
"""A name in a formula; `e` in `1e5` is none."""

_LONG = 1e7
"""From here on 120100000000000 is written as 1.201e+14."""

_MAX_CHARACTERS = 20_000
_MAX_PARTS = 1_000
"""Of a formula in text: longer ones are no laws, and would exhaust Python's stack."""


def format_number(value: float) -> str:
    """Shortest text that reads back as the same float; whole numbers plain, up to `_LONG`."""
    if abs(value) >= _LONG and float(short := f"{value:.6g}") == value:
        return short
    if value == int(value) and abs(value) < 1e15:
        return str(int(value)) if value or math.copysign(1.0, value) > 0 else "-0.0"
    return repr(value)


def _leads_with_number(prefix: Sequence[str | float], start: int) -> bool:
    """Whether the text of this subtree begins with a bare number of a term."""
    while prefix[start] in ("mul", "div"):
        start += 1
    return not isinstance(prefix[start], str)


def to_infix(prefix: Prefix) -> str:
    """The formula as text; `parse` gives back the same prefix."""

    def write(start: int, needed: int, heads_term: bool) -> str:
        """Text of a subtree that must bind at least as tightly as `needed`.

        `heads_term`: a leading minus sign would be read as the term's own.
        """
        token = prefix[start]
        if not isinstance(token, str):
            text = format_number(token)
            bare = not text.startswith("-") or (heads_term and needed <= 2)
            return text if bare else f"({text})"
        if token not in OPERATORS:
            return token
        arguments = argument_starts(prefix, start)
        operator = OPERATORS[token]
        if not operator.infix:
            return f"{token}({', '.join(write(argument, 0, True) for argument in arguments)})"
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


_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega"
).split()
_SUBSCRIPTED = re.compile(r"([A-Za-z]+)_?(\d*)", re.ASCII)


def latex_name(name: str) -> str:
    """y as it is, y1 as y_{1}, theta as the letter, longer names upright."""
    match = _SUBSCRIPTED.fullmatch(name)
    if match is None:
        return rf"\mathrm{{{name}}}".replace("_", r"\_")
    letters, number = match.groups()
    if letters in _GREEK:
        letters = rf"\{letters}"
    elif len(letters) > 1:
        letters = rf"\mathrm{{{letters}}}"
    return f"{letters}_{{{number}}}" if number else letters


def to_latex(prefix: Prefix, digits: int) -> str:
    """The formula in LaTeX, constants with so many significant digits."""

    def write(start: int, needed: int, heads_term: bool) -> str:
        """As in `to_infix`; fractions and e^x bind like powers."""
        token = prefix[start]
        if not isinstance(token, str):
            text = _latex_number(token, digits)
            bare = (heads_term and needed <= 2) if text.startswith("-") else True
            return text if bare and ("^" not in text or needed <= 2) else wrap(text)
        if token not in OPERATORS:
            return latex_name(token)
        arguments = argument_starts(prefix, start)
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
            return operator.latex.format(*(write(argument, 0, True) for argument in arguments))
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
    r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(\w+|[?□])|(\*\*|[-+*/^(),]))",
    re.ASCII,
)
"""Numbers; names, and the gaps of a law that is known in part; signs."""

_NOT_ZERO = re.compile(r"[.0]*[1-9]")
_TYPOGRAPHIC = str.maketrans("−·⋅×\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}", "-***  ")
"""Signs and blanks as they are in printed formulas, from where they are copied."""

_MISSING = "is a * missing?"
_NO_FUNCTION = f"is a * missing? Functions are {', '.join(FUNCTIONS)}"

_MAX_DEPTH = 100


def unknown_names(text: str, variables: Sequence[str]) -> tuple[str, ...]:
    """Names in a formula that `parse` would not know, each once, as they come."""
    known = {*variables, "pi", "ln", *OPERATORS}
    return tuple(dict.fromkeys(name for name in NAME.findall(text) if name not in known))


def parse(text: str, variables: Sequence[str]) -> Prefix:
    """The prefix of a formula in infix notation.

    Raises:
      ExpressionError: naming the position, if the text is no such formula.
    """
    if not isinstance(text, str):
        raise ExpressionError(f"a formula must be text, got {type(text).__name__}")
    return tuple(_Parser(text, variables).parse())


class _Parser:
    """Recursive descent over the grammar

    sum     = ["-"] term (("+" | "-") term)*
    term    = factor (("*" | "/") factor)*
    factor  = "-" factor | power
    power   = atom [("**" | "^") factor]
    atom    = number | variable | "pi" | function "(" sum ("," sum)* ")" | "(" sum ")"
    """

    def __init__(self, text: str, variables: Sequence[str]):
        self._text = text
        self._variables = variables
        self._tokens: list[tuple[str, str, int]] = []  # (kind, text, position)
        self._next = 0
        self._depth = 0
        position = 0
        if len(text) > _MAX_CHARACTERS:
            raise self._error(f"more than {_MAX_CHARACTERS} characters", _MAX_CHARACTERS)
        stripped = text.translate(_TYPOGRAPHIC).rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if not match:
                rest = stripped[position:].lstrip()
                raise self._error(
                    f"unexpected character {rest[0]!r}", len(stripped) - len(rest), _advice(rest[0])
                )
            group = match.lastindex
            assert group is not None  # Each alternative is a group.
            kind = ("number", "name", "sign")[group - 1]
            self._tokens.append((kind, match.group(group), match.start(group)))
            position = match.end()
            if len(self._tokens) > _MAX_PARTS:
                raise self._error(f"more than {_MAX_PARTS} parts", position)
        self._tokens.append(("end", "", len(stripped)))

    def parse(self) -> list[str | float]:
        prefix = self._sum()
        kind, text, position = self._peek()
        if kind != "end":
            advice = "" if kind == "sign" and text != "(" else _MISSING
            raise self._error(f"unexpected {text!r}", position, advice)
        return prefix

    def _error(self, what: str, position: int, advice: str = "") -> ExpressionError:
        shown = self._text if len(self._text) <= 200 else self._text[:199] + "…"
        what = what if len(what) <= 200 else what[:199] + "…"
        advice = f"; {advice}" if advice else ""
        return ExpressionError(
            f"cannot read the formula {shown!r}: {what} at {position + 1}{advice}"
        )

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
            left = _negative(left)
        while sign := self._accept("*", "/"):
            left = ["mul" if sign == "*" else "div", *left, *self._factor()]
        return left

    def _factor(self) -> list[str | float]:
        with self._deeper():
            if self._accept("-"):
                if self._number_heads_term():
                    return _negative(self._factor())
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
            if value == 0.0 and _NOT_ZERO.match(text):
                raise self._error(f"the number {text} is too small", position)
            return [value]
        if kind == "name":
            if text in self._variables:
                if self._peek()[1] == "(":
                    raise self._error(f"{text!r} is no function", position, _NO_FUNCTION)
                return [text]
            if text == "pi":
                return [math.pi]
            name = "log" if text == "ln" else text
            operator = OPERATORS.get(name)
            if operator is None or operator.infix:
                known = ", ".join([*self._variables, "pi", *FUNCTIONS])
                raise self._error(f"unknown name {text!r}", position, f"known are {known}")
            self._expect("(")
            prefix = [name, *self._sum()]
            for _ in range(operator.arity - 1):
                self._expect(",")
                prefix += self._sum()
            self._expect(")")
            return prefix
        if text == "(":
            inner = self._sum()
            self._expect(")")
            return inner
        self._next -= 1
        raise self._error(
            "the formula ends too early" if kind == "end" else f"unexpected {text!r}", position
        )


def _advice(character: str) -> str:
    """What to do about a character that has no place in a formula."""
    if character == "=":
        return "write the right-hand side alone"
    return "letters of names are those from a to z" if character.isalpha() else ""


def _negative(prefix: list[str | float]) -> list[str | float]:
    """Of a number."""
    number = prefix[0]
    assert isinstance(number, float)
    return [-number]
