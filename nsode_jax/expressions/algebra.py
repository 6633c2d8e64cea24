"""Rules of algebra that give equal equations one form.

An equation in prefix notation is rebuilt from the leaves up, with numbers folded,
sums and products flattened, like terms collected and powers of one base merged.
Then it is written again: products of sums of powers of variables are multiplied out, and
the arguments of sums and products are ordered by their structure, never by the
values of constants: so a skeleton does not depend on them. Both steps are repeated
until nothing changes.

The rules are those of SymPy's automatic evaluation for a real symbol that need not be
positive: (2*y)**0.5 is 2**0.5 * y**0.5, but (y**2)**0.5 is not y. They go on where
numbers are real: (y**3)**0.5 is y**1.5, and log(1/y) is -log(y), neither of which has
values below 0. Of exponentials, which
are positive wherever they stand, they ask more: all that are multiplied are one, those
under a power or a logarithm are taken out of it, and a power of a positive number is one,
so 2**y * exp(y)**0.5 is exp(1.19*y), and log(exp(y)) is y. In plain Python they take a
twentieth of the time: SymPy asks of every new number and power whether it is real,
positive, zero and so on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

from nsode_jax.expressions.expression import checked_number, fold
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.prefix import NotRepresentable, Prefix

_MAX_PASSES = 8
_MAX_EXPANDED_TERMS = 12
_EULER = "exp(1)"  # The base of exp(x), which is a power like others; no variable's name.


class _Operation:
    """An operator with its arguments; equal to any other with the same ones."""

    __slots__ = ("_content", "_hash")

    def __init__(self, content: tuple):
        self._content = content
        self._hash = hash((type(self), content))

    def __eq__(self, other: Any) -> bool:
        return (
            type(self) is type(other)
            and self._hash == other._hash
            and self._content == other._content
        )

    def __hash__(self) -> int:
        return self._hash


class Call(_Operation):
    """sin, cos, log or another function (the others are sums, products and powers)."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: str, *arguments: Node):
        self.function, self.arguments = function, arguments
        super().__init__((function, *arguments))


class Power(_Operation):
    """base**exponent; a square root is the power 1/2 and exp(x) a power of `_EULER`."""

    __slots__ = ("base", "exponent")

    def __init__(self, base: Node, exponent: Node):
        self.base, self.exponent = base, exponent
        super().__init__((base, exponent))


class Product(_Operation):
    """coefficient * factors[0] * factors[1] * ..., none of them a number or a product.

    The order of the factors is kept, so that results are the same in every process,
    but does not count in comparisons.
    """

    __slots__ = ("coefficient", "factors")

    def __init__(self, coefficient: float, factors: Iterable[Node]):
        self.coefficient, self.factors = coefficient, tuple(factors)
        super().__init__((coefficient, frozenset(self.factors)))


class Sum(_Operation):
    """constant + terms[0] + terms[1] + ..., where a term is (coefficient, node).

    The nodes are no numbers or sums and have no coefficient of their own. Their order
    is kept but does not count, as in `Product`.
    """

    __slots__ = ("constant", "terms")

    def __init__(self, constant: float, terms: Iterable[tuple[float, Node]]):
        self.constant, self.terms = constant, tuple(terms)
        super().__init__((constant, frozenset(self.terms)))

    @property
    def addends(self) -> list[Node]:
        """The terms with their coefficients, and the constant if there is one."""
        addends = [_scaled(c, node) for c, node in self.terms]
        return [*addends, self.constant] if self.constant else addends


Node = float | str | Call | Power | Product | Sum
"""A number, a variable (or `_EULER`, as a base) or an operation."""


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


def _plus(a: float, b: float) -> float:
    """a + b, where what rounding leaves of a difference of equal numbers is 0."""
    result = a + b
    return 0.0 if abs(result) <= 1e-15 * abs(a) else result


def _times(a: float, b: float) -> float:
    """a * b, where what is a whole number but for rounding is one: 49 * (1/49)."""
    result = a * b
    if not math.isfinite(result) or (result == 0.0 and a and b):
        raise NotRepresentable("the coefficient of a product is zero or infinite")
    whole = round(result)
    return float(whole) if abs(result - whole) <= 3e-16 * abs(whole) else result


def _nonzero(value: float) -> float:
    """The value of exp or of a power of a number: 0 only where a float ends."""
    if value == 0.0:
        raise NotRepresentable("the coefficient of a product is zero or infinite")
    return value


def _split(node: Node) -> tuple[float, Node]:
    """The coefficient of a product and the rest of it; (c, 1) for a number."""
    if isinstance(node, float):
        return node, 1.0
    if not isinstance(node, Product) or node.coefficient == 1.0:
        return 1.0, node
    if len(node.factors) == 1:
        return node.coefficient, node.factors[0]
    return node.coefficient, Product(1.0, node.factors)


def _scaled(coefficient: float, node: Node) -> Node:
    """The product of a number and a node; sums are multiplied out."""
    if isinstance(node, float):
        return _times(coefficient, node)
    if coefficient == 0.0:
        return 0.0
    if coefficient == 1.0:
        return node
    if isinstance(node, Sum):
        constant = _times(coefficient, node.constant)
        return Sum(constant, ((_times(coefficient, c), term) for c, term in node.terms))
    own, rest = _split(node)
    coefficient = _times(coefficient, own)
    if coefficient == 1.0:
        return rest
    return Product(coefficient, rest.factors if isinstance(rest, Product) else (rest,))


def _sum(terms: Iterable[tuple[float, Node]]) -> Node:
    """Sum of coefficient * node, with like terms collected."""
    constant = 0.0
    coefficients: dict[Node, float] = {}
    for factor, node in terms:
        if isinstance(node, float):
            constant = _plus(constant, _times(factor, node))
            continue
        if isinstance(node, Sum):
            constant = _plus(constant, _times(factor, node.constant))
        for own, term in node.terms if isinstance(node, Sum) else (_split(node),):
            coefficients[term] = _plus(coefficients.get(term, 0.0), _times(factor, own))
    collected = [(c, term) for term, c in coefficients.items() if c]
    if not collected:
        return constant
    if len(collected) == 1 and not constant:
        return _scaled(*collected[0])
    return Sum(constant, collected)


def _base_and_exponent(node: Node) -> tuple[Node, Node]:
    return (node.base, node.exponent) if isinstance(node, Power) else (node, 1.0)


def _product(nodes: Iterable[Node]) -> Node:
    """Product with the powers of one base merged, if their exponents are like terms."""
    coefficient = 1.0
    exponents: dict[tuple[Node, Node], float] = {}  # (base, like term of exponents) -> its sum
    exponentials: list[tuple[float, Node]] = []  # exp(u) * exp(v) = exp(u + v)
    flat = list(nodes)
    for node in flat:
        if isinstance(node, float):
            coefficient = _times(coefficient, node)
        elif isinstance(node, Product):
            coefficient = _times(coefficient, node.coefficient)
            flat.extend(node.factors)
        else:
            base, exponent = _base_and_exponent(node)
            if base == _EULER:
                exponentials.append((1.0, exponent))
                continue
            c, like = _split(exponent)
            exponents[base, like] = _plus(exponents.get((base, like), 0.0), c)
    if coefficient == 0.0:
        return 0.0
    factors = [_power(base, _scaled(c, like)) for (base, like), c in exponents.items() if c]
    if len(exponentials) == 1:
        factors.append(Power(_EULER, exponentials[0][1]))
    elif exponentials:
        factors.append(_exponential(_sum(exponentials)))
    if not factors:
        return coefficient
    if len(factors) == 1:
        return _scaled(coefficient, factors[0])
    # A merged power may be a product or a number, or meet another one.
    merged = {(base, _split(exponent)[1]) for base, exponent in map(_base_and_exponent, factors)}
    if len(merged) < len(factors) or any(isinstance(f, float | Product) for f in factors):
        return _product([coefficient, *factors])
    return Product(coefficient, factors)


def _quotient(numerator: Node, denominator: Node) -> Node:
    if denominator == 0.0:
        raise NotRepresentable("division by zero")
    return _product([numerator, _power(denominator, -1.0)])


def _power(base: Node, exponent: Node) -> Node:
    if exponent == 0.0 or base == 1.0:
        return 1.0
    if exponent == 1.0:
        return base
    if isinstance(base, float) and isinstance(exponent, float):
        return fold("pow", (base, exponent))
    if base == _EULER:
        return _exponential(exponent)
    if isinstance(base, Power) and base.base == _EULER:
        return _exponential(_product([base.exponent, exponent]))
    exponential, rest = _without_exponential(base)
    if exponential is not None:
        return _product([_power(exponential, exponent), _power(rest, exponent)])
    whole = isinstance(exponent, float) and exponent.is_integer()
    if isinstance(base, Power) and (whole or _is_positive_with_its_base(base)):
        return _power(base.base, _product([base.exponent, exponent]))
    if not isinstance(exponent, float):
        return _symbolic_power(base, exponent)
    if isinstance(base, Product):
        if whole:
            number = _nonzero(fold("pow", (base.coefficient, exponent)))
            return _product([number, *(_power(factor, exponent) for factor in base.factors)])
        size = abs(base.coefficient)
        if size != 1.0:
            number = _nonzero(fold("pow", (size, exponent)))
            return _scaled(number, _power(_scaled(1.0 / size, base), exponent))
    return Power(base, exponent)


def _symbolic_power(base: Node, exponent: Node) -> Node:
    """A power whose exponent depends on variables."""
    if isinstance(base, float) and base > 0.0:
        rate, constant = fold("log", (base,)), 0.0
        if isinstance(exponent, Sum):
            constant, exponent = exponent.constant, _sum(exponent.terms)
        number = _nonzero(fold("pow", (base, constant)))
        return _product([number, _exponential(_scaled(rate, exponent))])
    if isinstance(base, float):
        raise NotRepresentable(f"not a real number almost everywhere: {base}**x")
    coefficient, rest = _split(exponent)
    factors = list(rest.factors) if isinstance(rest, Product) else [rest]
    inverse_logarithm = Power(Call("log", base), -1.0)
    if inverse_logarithm in factors:  # b**(x/log(b)) = exp(x)
        factors.remove(inverse_logarithm)
        return _exponential(_product([coefficient, *factors]))
    return Power(base, exponent)


def _is_positive_with_its_base(power: Power) -> bool:
    """Whether x**c is positive just where x is: not if c is even, and y**2 = (-y)**2."""
    return not isinstance(power.exponent, float) or power.exponent % 2.0 != 0.0


def _without_exponential(node: Node) -> tuple[Power | None, Node]:
    """The exponential in a product, None if there is none, and what it is multiplied by."""
    if isinstance(node, Product):
        for i, factor in enumerate(node.factors):
            if isinstance(factor, Power) and factor.base == _EULER:
                others = node.factors[:i] + node.factors[i + 1 :]
                return factor, _product([node.coefficient, *others])
    return None, node


def _exponential(argument: Node) -> Node:
    """exp, with numbers and logarithms taken out of the exponent."""
    if isinstance(argument, float):
        return fold("exp", (argument,))
    constant, terms = 0.0, [_split(argument)]
    if isinstance(argument, Sum):
        constant, terms = argument.constant, argument.terms
    taken_out: list[Node] = [_nonzero(fold("exp", (constant,)))] if constant else []
    kept = []
    for coefficient, term in terms:
        factors = list(term.factors) if isinstance(term, Product) else [term]
        logarithms = [f for f in factors if isinstance(f, Call) and f.function == "log"]
        if len(logarithms) == 1:  # exp(x*log(b)) = b**x
            factors.remove(logarithms[0])
            taken_out.append(_power(logarithms[0].arguments[0], _product([coefficient, *factors])))
        else:
            kept.append((coefficient, term))
    if not taken_out:
        return Power(_EULER, argument)
    return _product([*taken_out, _exponential(_sum(kept))])


def _logarithm(argument: Node) -> Node:
    """log, with exponentials and exponents taken out of it."""
    if isinstance(argument, float):
        return fold("log", (argument,))
    if isinstance(argument, Power) and argument.base == _EULER:
        return argument.exponent
    if isinstance(argument, Power) and _is_positive_with_its_base(argument):
        return _product([argument.exponent, _logarithm(argument.base)])
    exponential, rest = _without_exponential(argument)
    if exponential is not None:
        return _sum([(1.0, exponential.exponent), (1.0, _logarithm(rest))])
    return Call("log", argument)


def _sine(argument: Node) -> Node:
    if _has_minus(argument):
        return _scaled(-1.0, Call("sin", _scaled(-1.0, argument)))
    return Call("sin", argument)


def _cosine(argument: Node) -> Node:
    return Call("cos", _scaled(-1.0, argument) if _has_minus(argument) else argument)


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
    "add": lambda a, b: _sum([(1.0, a), (1.0, b)]),
    "sub": lambda a, b: _sum([(1.0, a), (-1.0, b)]),
    "mul": lambda a, b: _product([a, b]),
    "div": _quotient,
    "pow": _power,
    "sin": _sine,
    "cos": _cosine,
    "exp": _exponential,
    "sqrt": lambda a: _power(a, 0.5),
    "log": _logarithm,
    "neg": lambda a: _scaled(-1.0, a),
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
    if base == _EULER:
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
        return _write(_sum((1.0, addend) for addend in expanded))
    written = [_write(_scaled(c, term)) for c, term in node.terms]
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
    return isinstance(node, str) and node != _EULER


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
    terms = [_product([node.coefficient, *others])]
    for addends in sums:
        terms = [_product([term, addend]) for term in terms for addend in addends]
    return _sum((1.0, term) for term in terms)
