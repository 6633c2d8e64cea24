"""Formulas as values that add, multiply and take powers of each other, like terms collected.

The rules are those of SymPy's automatic evaluation for a real symbol that need not be
positive: (2*y)**0.5 is 2**0.5 * y**0.5, but (y**2)**0.5 is not y. They go on where
numbers are real: (y**3)**0.5 is y**1.5, and log(1/y) is -log(y), neither of which has
values below 0. Of exponentials, which are positive wherever they stand, they ask more: all
that are multiplied are one, those under a power or a logarithm are taken out of it, and a
power of a positive number is one, so 2**y * exp(y)**0.5 is exp(1.19*y), and log(exp(y)) is
y. In plain Python they take a twentieth of the time: SymPy asks of every new number and
power whether it is real, positive, zero and so on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from nsode_jax.expressions.expression import fold
from nsode_jax.expressions.prefix import NotRepresentable

EULER = "exp(1)"
"""The base of exp(x), which is a power like others; no variable's name."""


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
    """base**exponent; a square root is the power 1/2 and exp(x) a power of `EULER`."""

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
        addends = [scaled(c, node) for c, node in self.terms]
        return [*addends, self.constant] if self.constant else addends


Node = float | str | Call | Power | Product | Sum
"""A number, a variable (or `EULER`, as a base) or an operation."""


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


def scaled(coefficient: float, node: Node) -> Node:
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


def sum_of(terms: Iterable[tuple[float, Node]]) -> Node:
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
        return scaled(*collected[0])
    return Sum(constant, collected)


def _base_and_exponent(node: Node) -> tuple[Node, Node]:
    return (node.base, node.exponent) if isinstance(node, Power) else (node, 1.0)


def product_of(nodes: Iterable[Node]) -> Node:
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
            if base == EULER:
                exponentials.append((1.0, exponent))
                continue
            c, like = _split(exponent)
            exponents[base, like] = _plus(exponents.get((base, like), 0.0), c)
    if coefficient == 0.0:
        return 0.0
    factors = [power_of(base, scaled(c, like)) for (base, like), c in exponents.items() if c]
    if len(exponentials) == 1:
        factors.append(Power(EULER, exponentials[0][1]))
    elif exponentials:
        factors.append(exponential_of(sum_of(exponentials)))
    if not factors:
        return coefficient
    if len(factors) == 1:
        return scaled(coefficient, factors[0])
    # A merged power may be a product or a number, or meet another one.
    merged = {(base, _split(exponent)[1]) for base, exponent in map(_base_and_exponent, factors)}
    if len(merged) < len(factors) or any(isinstance(f, float | Product) for f in factors):
        return product_of([coefficient, *factors])
    return Product(coefficient, factors)


def quotient_of(numerator: Node, denominator: Node) -> Node:
    """Product with the power -1 of the denominator."""
    if denominator == 0.0:
        raise NotRepresentable("division by zero")
    return product_of([numerator, power_of(denominator, -1.0)])


def power_of(base: Node, exponent: Node) -> Node:
    """base**exponent, with powers of powers merged and numbers taken out."""
    if exponent == 0.0 or base == 1.0:
        return 1.0
    if exponent == 1.0:
        return base
    if isinstance(base, float) and isinstance(exponent, float):
        return fold("pow", (base, exponent))
    if base == EULER:
        return exponential_of(exponent)
    if isinstance(base, Power) and base.base == EULER:
        return exponential_of(product_of([base.exponent, exponent]))
    exponential, rest = _without_exponential(base)
    if exponential is not None:
        return product_of([power_of(exponential, exponent), power_of(rest, exponent)])
    whole = isinstance(exponent, float) and exponent.is_integer()
    if isinstance(base, Power) and (whole or _is_positive_with_its_base(base)):
        return power_of(base.base, product_of([base.exponent, exponent]))
    if not isinstance(exponent, float):
        return _symbolic_power(base, exponent)
    if isinstance(base, Product):
        if whole:
            number = _nonzero(fold("pow", (base.coefficient, exponent)))
            return product_of([number, *(power_of(factor, exponent) for factor in base.factors)])
        size = abs(base.coefficient)
        if size != 1.0:
            number = _nonzero(fold("pow", (size, exponent)))
            return scaled(number, power_of(scaled(1.0 / size, base), exponent))
    return Power(base, exponent)


def _symbolic_power(base: Node, exponent: Node) -> Node:
    """A power whose exponent depends on variables."""
    if isinstance(base, float) and base > 0.0:
        rate, constant = fold("log", (base,)), 0.0
        if isinstance(exponent, Sum):
            constant, exponent = exponent.constant, sum_of(exponent.terms)
        number = _nonzero(fold("pow", (base, constant)))
        return product_of([number, exponential_of(scaled(rate, exponent))])
    if isinstance(base, float):
        raise NotRepresentable(f"not a real number almost everywhere: {base}**x")
    coefficient, rest = _split(exponent)
    factors = list(rest.factors) if isinstance(rest, Product) else [rest]
    inverse_logarithm = Power(Call("log", base), -1.0)
    if inverse_logarithm in factors:  # b**(x/log(b)) = exp(x)
        factors.remove(inverse_logarithm)
        return exponential_of(product_of([coefficient, *factors]))
    return Power(base, exponent)


def _is_positive_with_its_base(power: Power) -> bool:
    """Whether x**c is positive just where x is: not if c is even, and y**2 = (-y)**2."""
    return not isinstance(power.exponent, float) or power.exponent % 2.0 != 0.0


def _without_exponential(node: Node) -> tuple[Power | None, Node]:
    """The exponential in a product, None if there is none, and what it is multiplied by."""
    if isinstance(node, Product):
        for i, factor in enumerate(node.factors):
            if isinstance(factor, Power) and factor.base == EULER:
                others = node.factors[:i] + node.factors[i + 1 :]
                return factor, product_of([node.coefficient, *others])
    return None, node


def exponential_of(argument: Node) -> Node:
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
            taken_out.append(
                power_of(logarithms[0].arguments[0], product_of([coefficient, *factors]))
            )
        else:
            kept.append((coefficient, term))
    if not taken_out:
        return Power(EULER, argument)
    return product_of([*taken_out, exponential_of(sum_of(kept))])


def logarithm_of(argument: Node) -> Node:
    """log, with exponentials and exponents taken out of it."""
    if isinstance(argument, float):
        return fold("log", (argument,))
    if isinstance(argument, Power) and argument.base == EULER:
        return argument.exponent
    if isinstance(argument, Power) and _is_positive_with_its_base(argument):
        return product_of([argument.exponent, logarithm_of(argument.base)])
    exponential, rest = _without_exponential(argument)
    if exponential is not None:
        return sum_of([(1.0, exponential.exponent), (1.0, logarithm_of(rest))])
    return Call("log", argument)
