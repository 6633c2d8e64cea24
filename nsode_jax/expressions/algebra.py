"""The one form of equal equations: from prefix notation to values of `arithmetic` and back.

An equation in prefix notation is rebuilt from the leaves up, with numbers folded,
sums and products flattened, like terms collected and powers of one base merged.
Then it is written again: products of sums of powers of variables are multiplied out, and
the arguments of sums and products are ordered by their structure, never by the
values of constants: so a skeleton does not depend on them. Both steps are repeated
until nothing changes.
"""

from __future__ import annotations

import itertools
import math

from nsode_jax.expressions.arithmetic import (
    EULER,
    Call,
    Node,
    Power,
    Product,
    Sum,
    exponential_of,
    logarithm_of,
    power_of,
    product_of,
    quotient_of,
    scaled,
    sum_of,
)
from nsode_jax.expressions.expression import checked_number, fold
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.prefix import NotRepresentable, Prefix

_MAX_PASSES = 8
_MAX_EXPANDED_TERMS = 12


def normal_form(prefix: Prefix) -> Prefix:
    """The one prefix that stands for all equal ways to write the expression.

    Raises:
      NotRepresentable: if a part without variables is not a finite real number, or if
        numbers leave the range.
    """
    previous = None
    for _ in range(_MAX_PASSES):
        node = _build(prefix)
        if node == previous:
            return prefix
        written = _write(node)
        if written == prefix:
            return prefix
        previous, prefix = node, written
    raise NotRepresentable(f"no stable form: {prefix}")


# --- from prefix notation to nodes --------------------------------------------


def _build(prefix: Prefix) -> Node:
    def subtree(start: int) -> tuple[Node, int]:
        token = prefix[start]
        if not isinstance(token, str):
            return token + 0.0, start + 1  # No negative zero.
        if token not in OPERATORS:
            return token, start + 1
        arguments, position = [], start + 1
        for _ in range(OPERATORS[token].arity):
            argument, position = subtree(position)
            arguments.append(argument)
        if all(isinstance(argument, float) for argument in arguments):
            return fold(token, arguments), position
        rule = _RULES.get(token)
        node = rule(*arguments) if rule else Call(token, *arguments)
        return (checked_number(node) if isinstance(node, float) else node), position

    return subtree(0)[0]


def _sine(argument: Node) -> Node:
    if _has_minus(argument):
        return scaled(-1.0, Call("sin", scaled(-1.0, argument)))
    return Call("sin", argument)


def _cosine(argument: Node) -> Node:
    return Call("cos", scaled(-1.0, argument) if _has_minus(argument) else argument)


def _has_minus(node: Node) -> bool:
    """Whether to write -(-x) for x inside sin and cos: true of exactly one of x and -x.

    Most terms of a sum shall be positive and, if just half of them are, the shortest
    term with y.
    """
    if isinstance(node, Product):
        return node.coefficient < 0.0
    if not isinstance(node, Sum):
        return False
    numbers = [c for c, _ in node.terms] + ([node.constant] if node.constant else [])
    negative = sum(c < 0.0 for c in numbers)
    if 2 * negative != len(numbers):
        return 2 * negative > len(numbers)

    def shortest_first(term: tuple[float, Node]) -> tuple:
        written = _write(term[1])
        return len(written), _order(written)

    return min(node.terms, key=shortest_first)[0] < 0.0


_RULES = {
    "add": lambda a, b: sum_of([(1.0, a), (1.0, b)]),
    "sub": lambda a, b: sum_of([(1.0, a), (-1.0, b)]),
    "mul": lambda a, b: product_of([a, b]),
    "div": quotient_of,
    "pow": power_of,
    "sin": _sine,
    "cos": _cosine,
    "exp": exponential_of,
    "sqrt": lambda a: power_of(a, 0.5),
    "log": logarithm_of,
    "neg": lambda a: scaled(-1.0, a),
}
"""Of operators about which more is known than their arguments."""


# --- from nodes to prefix notation ----------------------------------------------


def _write(node: Node) -> Prefix:
    if isinstance(node, float):
        return (checked_number(node),)
    if isinstance(node, str):
        return (node,)
    if isinstance(node, Call):
        return (node.function, *itertools.chain.from_iterable(map(_write, node.arguments)))
    if isinstance(node, Power):
        return _write_power(node.base, node.exponent)
    if isinstance(node, Product):
        return _write_product(node)
    assert isinstance(node, Sum)
    return _write_sum(node)


def _write_power(base: Node, exponent: Node) -> Prefix:
    if base == EULER:
        return ("exp", *_write(exponent))
    if isinstance(exponent, float):
        if exponent < 0.0:
            return ("div", 1.0, *_write_power(base, -exponent))
        if exponent == 1.0:
            return _write(base)
        if exponent == 0.5:
            return ("sqrt", *_write(base))
    return ("pow", *_write(base), *_write(exponent))


def _write_sum(node: Sum) -> Prefix:
    addends = node.addends
    expanded = [_expanded(addend) for addend in addends]
    if expanded != addends:
        return _write(sum_of((1.0, addend) for addend in expanded))
    written = [_write(scaled(c, term)) for c, term in node.terms]
    plus = sorted((term for term in written if term[0] != "neg"), key=_order)
    minus = sorted((term[1:] for term in written if term[0] == "neg"), key=_order)
    if node.constant:
        plus.append((checked_number(node.constant),))
    if not plus:
        plus.append(("neg", *minus.pop(0)))
    return _chain("sub", [_chain("add", plus), *minus])


def _write_product(node: Product) -> Prefix:
    expanded = _expanded(node)
    if expanded is not node:
        return _write(expanded)
    written = [_write(factor) for factor in node.factors]
    numerator = sorted((f for f in written if f[:2] != ("div", 1.0)), key=_order)
    denominator = sorted((f[2:] for f in written if f[:2] == ("div", 1.0)), key=_order)
    coefficient = checked_number(node.coefficient)
    if abs(coefficient) != 1.0 or not numerator:
        numerator.insert(0, (abs(coefficient) if coefficient == -1.0 else coefficient,))
    product = _chain("mul", numerator)
    if denominator:
        product = ("div", *product, *_chain("mul", denominator))
    return ("neg", *product) if coefficient == -1.0 else product


def _chain(operator: str, arguments: list[Prefix]) -> Prefix:
    """Left-nested chain of a binary operator."""
    chain = arguments[0]
    for argument in arguments[1:]:
        chain = (operator, *chain, *argument)
    return chain


def _order(prefix: Prefix) -> tuple:
    """Sort key: length and structure first, then signs, and values only to break ties."""
    values = [token for token in prefix if not isinstance(token, str)]
    structure = []
    for i, token in enumerate(prefix):
        if isinstance(token, str):
            structure.append(token)
        else:
            structure.append("1" if token == 1.0 and prefix[i - 1] == "div" else "c")
    return -len(prefix), structure, [value >= 0.0 for value in values], values


def _is_power_of_variable(node: Node) -> bool:
    if isinstance(node, Power) and isinstance(node.exponent, float):
        node = node.base
    return isinstance(node, str) and node != EULER


def _is_sum_of_powers(node: Node) -> bool:
    """Whether it is a sum of terms c * x**p * y**q ... of variables with numeric exponents."""
    terms = [term for _, term in node.terms] if isinstance(node, Sum) else [node]
    factors = [f for t in terms for f in (t.factors if isinstance(t, Product) else (t,))]
    return all(map(_is_power_of_variable, factors))


def _expanded(node: Node) -> Node:
    """A product of sums of powers of variables, multiplied out; anything else as it is.

    c1*y*(c2 - y) and c*y - c*y**2 are one law and must be one skeleton.
    """
    if not isinstance(node, Product) or not all(map(_is_sum_of_powers, node.factors)):
        return node
    sums = [factor.addends for factor in node.factors if isinstance(factor, Sum)]
    if not sums or math.prod(map(len, sums)) > _MAX_EXPANDED_TERMS:
        return node
    others = [factor for factor in node.factors if not isinstance(factor, Sum)]
    terms = [product_of([node.coefficient, *others])]
    for addends in sums:
        terms = [product_of([term, addend]) for term in terms for addend in addends]
    return sum_of((1.0, term) for term in terms)
