"""One form per equation: SymPy's evaluation, numeric folding, a fixed order.

Random trees that mean the same should give the same prefix (paper, section
2.1). SymPy evaluates the tree; on the way back to prefix notation numbers are
folded, products of sums of powers of y are expanded, and the arguments of sums
and products are ordered by their structure, never by the values of constants:
so a skeleton does not depend on them.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Iterator

import sympy

from nsode_jax.expressions.expression import Expression, ExpressionError, Prefix, Skeleton
from nsode_jax.expressions.operators import OPERATORS, VARIABLE

Y = sympy.Symbol(VARIABLE)

_MAX_CONSTANT = 1e15
_MAX_EXPANDED_TERMS = 12
_MAX_PASSES = 6
_UNARY_FUNCTIONS = {sympy.sin: "sin", sympy.cos: "cos", sympy.exp: "exp", sympy.log: "log"}


class NotRepresentable(ExpressionError):
    """The simplified expression leaves our language (complex, infinite, other functions)."""


class TimeLimitExceeded(BaseException):
    """SymPy took too long. Not an Exception, so that SymPy cannot swallow it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises `TimeLimitExceeded` in the body after so many seconds of processor time.

    Processor time, so that a busy machine does not change what is dropped. Works
    by a signal, so only in the main thread of a process; elsewhere the body runs
    without a limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(signum, frame):
        raise TimeLimitExceeded

    previous = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, previous)


def _number(value: float) -> sympy.Expr:
    whole = value == int(value) and abs(value) < 2**53
    return sympy.Integer(int(value)) if whole else sympy.Float(value)


_COMPOSED = {
    "sub": lambda a, b: sympy.Add(a, sympy.Mul(sympy.S.NegativeOne, b)),
    "div": lambda a, b: sympy.Mul(a, sympy.Pow(b, sympy.S.NegativeOne)),
    "neg": lambda a: sympy.Mul(sympy.S.NegativeOne, a),
}
_BUILDERS = {
    token: getattr(sympy, operator.sympy) if operator.sympy else _COMPOSED[token]
    for token, operator in OPERATORS.items()
}


def to_sympy(expression: Expression) -> sympy.Expr:
    """The expression in the symbol `y`, evaluated as SymPy does by itself.

    Raises:
      NotRepresentable: if a part without y is not a finite real number.
    """

    def build(position: int) -> tuple[sympy.Expr, int]:
        token = expression.prefix[position]
        if not isinstance(token, str):
            return _number(token), position + 1
        if token == VARIABLE:
            return Y, position + 1
        arguments, position = [], position + 1
        for _ in range(OPERATORS[token].arity):
            argument, position = build(position)
            arguments.append(argument)
        value = _BUILDERS[token](*arguments)
        # Numbers such as sin(3) or exp(-6) are folded at once: SymPy would carry
        # them along as symbols, and like terms would not meet.
        return (value if value.free_symbols else _number(_float(value))), position

    return build(0)[0]


def from_sympy(expression: sympy.Expr) -> Expression:
    """The canonical prefix form of a SymPy expression in `y`.

    Raises:
      NotRepresentable: if it holds anything but real finite numbers, `y` and
        the operators of our table.
    """
    return Expression(_prefix(expression))


def canonicalize(
    expression: Expression, *, simplify: bool = False, seconds: float = 1.0
) -> Expression:
    """The one form that stands for all equal ways to write the expression.

    Args:
      expression: any expression.
      simplify: also run SymPy's `simplify` (the paper's setting): slower by a
        factor of ten, and merges a few more skeletons.
      seconds: limit of processor time.

    Raises:
      NotRepresentable: if the result leaves our language.
      TimeLimitExceeded: if SymPy takes longer than `seconds`.
    """
    with time_limit(seconds):
        for _ in range(_MAX_PASSES):
            result = to_sympy(expression)
            if simplify:
                result = sympy.simplify(result)
            canonical = from_sympy(result)
            if canonical == expression:
                return canonical
            expression = canonical
    raise NotRepresentable(f"no stable form: {expression.infix}")


def _float(expression: sympy.Expr) -> float:
    """Value of an expression without y."""
    if not expression.is_Number:
        if expression.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
            raise NotRepresentable(f"not a finite real number: {expression}")
        expression = expression.evalf(17)
        if not expression.is_Number:
            raise NotRepresentable(f"not a real number: {expression}")
    try:
        value = float(expression)
    except (TypeError, OverflowError) as error:
        raise NotRepresentable(f"not a real number: {expression}") from error
    if not math.isfinite(value) or abs(value) > _MAX_CONSTANT:
        raise NotRepresentable(f"constant out of range: {value}")
    return value


def _is_constant(expression: sympy.Expr) -> bool:
    return expression.is_Number or not expression.free_symbols


def _order(prefix: Prefix) -> tuple:
    """Sort key: structure first, then signs, and values only to break ties."""
    skeleton = Expression(prefix).skeleton
    values = tuple(t for t in prefix if not isinstance(t, str))
    return (-len(skeleton.tokens), skeleton.unsigned_key, skeleton.key, values)


def _prefix(expression: sympy.Expr) -> Prefix:
    if _is_constant(expression):
        return (_float(expression),)
    if expression == Y:
        return (VARIABLE,)
    if expression.is_Add:
        return _sum(expression)
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow and expression.base != sympy.E:
        return _power(expression)
    token = _UNARY_FUNCTIONS.get(expression.func)
    if token is None and expression.is_Pow:
        token = "exp"
    if token is None:
        raise NotRepresentable(f"not in the table of operators: {expression.func.__name__}")
    return (token, *_prefix(expression.exp if token == "exp" else expression.args[0]))


def _join(operator: str, arguments: list[Prefix]) -> Prefix:
    """Left-nested chain of a binary operator."""
    joined = arguments[0]
    for argument in arguments[1:]:
        joined = (operator, *joined, *argument)
    return joined


def _sum(expression: sympy.Expr) -> Prefix:
    constant, plus, minus = 0.0, [], []
    for term in expression.args:
        if _is_constant(term):
            constant += _float(term)
            continue
        prefix = _prefix(term)
        if prefix[0] == "neg":
            minus.append(prefix[1:])
        elif prefix[0] in ("add", "sub"):  # A product that was expanded.
            return _sum(sympy.expand(expression))
        else:
            plus.append(prefix)
    plus.sort(key=_order)
    minus.sort(key=_order)
    if constant or not (plus or minus):
        plus.append((constant,))
    if not plus:
        plus.append(("neg", *minus.pop(0)))
    positive = _join("add", plus)
    return _join("sub", [positive, *minus])


def _product(expression: sympy.Expr) -> Prefix:
    expanded = _expanded_power_sum(expression)
    if expanded is not None:
        return _prefix(expanded)
    coefficient, numerator, denominator = 1.0, [], []
    for factor in expression.args:
        if _is_constant(factor):
            coefficient *= _float(factor)
            continue
        prefix = _prefix(factor)
        if prefix[0] == "neg":
            coefficient, prefix = -coefficient, prefix[1:]
        if prefix[:2] == ("div", 1.0):
            denominator.append(prefix[2:])
        elif prefix[0] == "mul" and not isinstance(prefix[1], str):
            coefficient *= prefix[1]
            numerator.append(prefix[2:])
        else:
            numerator.append(prefix)
    if not math.isfinite(coefficient) or coefficient == 0.0:
        raise NotRepresentable("the coefficient of a product is zero or infinite")
    numerator.sort(key=_order)
    denominator.sort(key=_order)
    negated = coefficient == -1.0
    if negated:
        coefficient = 1.0
    if coefficient != 1.0 or not numerator:
        numerator.insert(0, (coefficient,))
    product = _join("mul", numerator)
    if denominator:
        product = ("div", *product, *_join("mul", denominator))
    return ("neg", *product) if negated else product


def _power(expression: sympy.Expr) -> Prefix:
    base, exponent = expression.base, expression.exp
    if not _is_constant(exponent):
        return ("pow", *_prefix(base), *_prefix(exponent))
    value = _float(exponent)
    if value < 0:
        return ("div", 1.0, *_raised(_prefix(base), -value))
    return _raised(_prefix(base), value)


def _raised(base: Prefix, exponent: float) -> Prefix:
    if exponent == 1.0:
        return base
    return ("sqrt", *base) if exponent == 0.5 else ("pow", *base, exponent)


def _is_power_sum(expression: sympy.Expr) -> bool:
    """Whether it is a sum of terms c * y**p with numeric p."""
    for term in expression.args if expression.is_Add else (expression,):
        for factor in term.args if term.is_Mul else (term,):
            power_of_y = factor == Y or (
                factor.is_Pow and factor.base == Y and _is_constant(factor.exp)
            )
            if not (power_of_y or _is_constant(factor)):
                return False
    return True


def _expanded_power_sum(expression: sympy.Expr) -> sympy.Expr | None:
    """A product of sums of powers of y, or a number times a sum, multiplied out.

    c1*y*(c2 - y) and c*y - c*y**2 are one law and must be one skeleton.
    """
    sums = [factor for factor in expression.args if factor.is_Add]
    if not sums:
        return None
    others = [factor for factor in expression.args if not factor.is_Add]
    number_times_sum = len(sums) == 1 and all(_is_constant(factor) for factor in others)
    if not number_times_sum and not all(_is_power_sum(factor) for factor in expression.args):
        return None
    if math.prod(len(factor.args) for factor in sums) > _MAX_EXPANDED_TERMS:
        return None
    expanded = sympy.expand_mul(expression)
    return None if expanded == expression else expanded


def is_trivial(skeleton: Skeleton) -> bool:
    """Whether the equation does not depend on y (filtered out, section 2.1)."""
    return VARIABLE not in skeleton.tokens
