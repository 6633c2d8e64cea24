"""One form per equation: our own algebra, and SymPy's `simplify` on request.

Random trees that mean the same should give the same prefix (paper, section 2.1).
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
from collections.abc import Iterator
from typing import cast

import sympy

from nsode_jax.expressions.algebra import normal_form
from nsode_jax.expressions.expression import Expression, Skeleton, checked_number
from nsode_jax.expressions.operators import FUNCTIONS, VARIABLE, VARIABLES
from nsode_jax.expressions.prefix import NotRepresentable, Prefix, subtree_end

__all__ = [
    "NotRepresentable",
    "TimeLimitExceeded",
    "Y",
    "canonicalize",
    "from_sympy",
    "is_trivial",
    "time_limit",
]

Y = sympy.Symbol(VARIABLE)
"""The variable of a scalar equation, as `from_sympy` knows it."""

_MAX_PASSES = 6
_MAX_EXPONENT = 100.0
_REPEAT_SECONDS = 0.1
_GC_CALLBACK = "_xla_gc_callback"  # JAX's.
_FUNCTIONS = {getattr(sympy, operator.sympy): token for token, operator in FUNCTIONS.items()}


class TimeLimitExceeded(BaseException):
    """SymPy took too long. Not an Exception, so that SymPy cannot swallow it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises `TimeLimitExceeded` in the body after so many seconds of processor time.

    Processor time, so that a busy machine does not change what is dropped. Raises
    again every tenth of a second, in case a bare `except` (mpmath has some) or a
    destructor swallows it. Works by a signal: outside the main thread of a process, and
    where there is no such timer (Windows), the body runs to its end without a limit.
    """
    has_timer = hasattr(signal, "setitimer")
    if not has_timer or threading.current_thread() is not threading.main_thread():
        yield
        return
    running = True

    def expire(signum, frame):
        # What is raised in a callback of the garbage collector is printed and lost.
        in_callback = frame is not None and frame.f_code.co_name == _GC_CALLBACK
        if running and not in_callback:
            raise TimeLimitExceeded

    previous = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, seconds, _REPEAT_SECONDS)
    try:
        try:
            yield
        finally:
            running = False
    finally:  # Also when the limit strikes just after the body has ended.
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, previous)


def canonicalize(
    expression: Expression, *, simplify: bool = False, seconds: float = 1.0
) -> Expression:
    """The one form that stands for all equal ways to write the expression.

    Args:
      expression: any expression.
      simplify: also run SymPy's `simplify` (the paper's setting): hundreds of
        times slower, and merges less than one skeleton in a hundred. Not tried where
        a number in an exponent is above 100, since SymPy might multiply it out.
      seconds: limit of processor time for `simplify`.

    Raises:
      NotRepresentable: if the result leaves our language.
      TimeLimitExceeded: if `simplify` takes longer than `seconds`.
    """
    variables = expression.variables
    canonical = Expression(normal_form(expression.prefix), variables)
    if not simplify:
        return canonical
    with time_limit(seconds):
        for _ in range(_MAX_PASSES):
            if _has_large_exponent(canonical.prefix):
                return canonical
            simplified = from_sympy(sympy.simplify(canonical.to_sympy()), variables)
            if simplified == canonical:
                return canonical
            canonical = simplified
    raise NotRepresentable(f"no stable form: {expression.infix}")


def _has_large_exponent(prefix: Prefix) -> bool:
    for i, token in enumerate(prefix):
        if token == "pow":
            start = subtree_end(prefix, i + 1)
            exponent = prefix[start : subtree_end(prefix, start)]
            if any(not isinstance(t, str) and abs(t) > _MAX_EXPONENT for t in exponent):
                return True
    return False


def from_sympy(expression: sympy.Expr, variables: tuple[str, ...] = VARIABLES) -> Expression:
    """The canonical form of a SymPy expression in symbols of the variables' names.

    Raises:
      NotRepresentable: if it holds anything but real finite numbers, the variables and
        the operators of our table.
    """
    for symbol in expression.free_symbols:
        if not isinstance(symbol, sympy.Symbol) or symbol.name not in variables:
            raise NotRepresentable(f"{symbol} is none of the variables {', '.join(variables)}")
    return Expression(normal_form(_prefix(expression)), variables)


def _prefix(expression: sympy.Expr) -> Prefix:
    if not expression.free_symbols:
        return (_number(expression),)
    if isinstance(expression, sympy.Symbol):
        return (expression.name,)
    arguments = cast("tuple[sympy.Expr, ...]", expression.args)
    if expression.is_Add or expression.is_Mul:
        operator = "add" if expression.is_Add else "mul"
        prefix, *others = map(_prefix, arguments)
        for other in others:
            prefix = (operator, *prefix, *other)
        return prefix
    if expression.is_Pow and arguments[0] != sympy.E:
        return ("pow", *_prefix(arguments[0]), *_prefix(arguments[1]))
    token = "exp" if expression.is_Pow else _FUNCTIONS.get(expression.func)
    if token is None:
        raise NotRepresentable(f"not in the table of operators: {expression.func.__name__}")
    if token == "exp":
        return (token, *_prefix(arguments[-1]))
    return (token, *itertools.chain.from_iterable(map(_prefix, arguments)))


def _number(expression: sympy.Expr) -> float:
    """Value of an expression without variables."""
    if expression.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
        raise NotRepresentable(f"not a finite real number: {expression!s}")
    try:
        value = checked_number(float(expression))
    except (TypeError, OverflowError) as error:
        raise NotRepresentable(f"not a real number: {expression!s}") from error
    if value == 0.0 and expression.is_zero is False:
        raise NotRepresentable(f"a number too small to be held: {expression!s}")
    return value


def is_trivial(skeleton: Skeleton) -> bool:
    """Whether the equation depends on none of its variables (filtered out, section 2.1)."""
    return not any(variable in skeleton.tokens for variable in skeleton.variables)
