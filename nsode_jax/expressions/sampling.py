"""The prior over equations: random unary-binary trees and their decoration.

Paper, section 2.1 and appendix B.2, after Lample and Charton (2019): the shape
is drawn uniformly among all unary-binary trees with up to K internal nodes,
then nodes and leaves are decorated at random.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable

import numpy as np

from nsode_jax.expressions.expression import Expression, Prefix
from nsode_jax.expressions.operators import OPERATORS, VARIABLE, VARIABLES
from nsode_jax.system.settings import require_at_least_1, require_shares


@dataclasses.dataclass(frozen=True)
class EquationPrior:
    """Distribution over equations. The defaults are the paper's (appendix B.2).

    Attributes:
      operators: the operators that trees are decorated with, as words; `add=0.3`
        gives one a weight relative to the others of its arity, 1 without.
      max_operators: K, the largest number of internal nodes of a tree.
      size_weights: relative frequencies of trees with 1, 2, ... K internal nodes.
        Empty: uniform over trees, so that a size is as frequent as it has trees.
      symbol_probability: p_sym, the share of leaves that are the variable.
      integer_probability: share of integers among the constants.
      max_constant: constants are drawn from (-max_constant, max_constant), and
        integers from -max_constant to max_constant without 0.
      log_uniform_share: share of real constants whose magnitude is drawn
        log-uniformly from min_constant to max_constant instead.
      min_constant: smallest magnitude of these.
      max_exponent: largest magnitude of a constant exponent.
      integer_exponent_probability: share of integers among constant exponents.
      law_share: share of equations drawn from sums, products and quotients of
        powers of y, the forms that known laws take, instead of random trees.
    """

    operators: str = "add sub mul div pow sin cos exp sqrt log"
    max_operators: int = 5
    size_weights: tuple[float, ...] = ()
    symbol_probability: float = 0.5
    integer_probability: float = 0.5
    max_constant: float = 10.0
    log_uniform_share: float = 0.0
    min_constant: float = 1e-2
    max_exponent: float = 10.0
    integer_exponent_probability: float = 0.5
    law_share: float = 0.0

    def __post_init__(self):
        require_at_least_1(self, "max_operators")
        for name in ("max_constant", "max_exponent"):  # Below 2 some rules leave no integer.
            if not 2.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least 2, got {getattr(self, name)}")
        if not 0.0 < self.min_constant < self.max_constant:
            raise ValueError(f"min_constant must lie in (0, max_constant), got {self.min_constant}")
        if self.size_weights and (
            len(self.size_weights) != self.max_operators
            or min(self.size_weights) < 0
            or not sum(self.size_weights) > 0
        ):
            raise ValueError(
                f"size_weights must be max_operators={self.max_operators} weights, not all 0, "
                f"got {self.size_weights}"
            )
        require_shares(
            self,
            "symbol_probability",
            "integer_probability",
            "log_uniform_share",
            "integer_exponent_probability",
            "law_share",
        )
        if self.symbol_probability == 0.0 and self.law_share == 0.0:
            raise ValueError("symbol_probability must not be 0: no equation would depend on y")
        if not (self.unary or self.binary):
            raise ValueError("operators must not be empty")

    @functools.cached_property
    def unary(self) -> dict[str, float]:
        """Weights of the unary operators."""
        return self._weights(1)

    @functools.cached_property
    def binary(self) -> dict[str, float]:
        """Weights of the binary operators."""
        return self._weights(2)

    def _weights(self, arity: int) -> dict[str, float]:
        weights = {}
        for word in self.operators.split():
            token, _, weight = word.partition("=")
            if token not in OPERATORS:
                raise ValueError(
                    f"operators names {token!r}, which is none of {' '.join(OPERATORS)}"
                )
            try:
                value = float(weight) if weight else 1.0
            except ValueError:
                value = math.nan
            if not 0.0 < value < math.inf:
                raise ValueError(f"operators gives {token} the weight {weight!r}, not a number > 0")
            if OPERATORS[token].arity == arity:
                weights[token] = value
        return weights


@functools.cache
def count_trees(internal_nodes: int, unary: bool = True, binary: bool = True) -> int:
    """Number of unary-binary trees with so many internal nodes: 1, 2, 6, 22, 90, 394.

    Without unary nodes these are the Catalan numbers, without binary ones 1.
    """
    if internal_nodes == 0:
        return 1
    return sum(_subtree_counts(internal_nodes, unary, binary))


def _subtree_counts(internal_nodes: int, unary: bool, binary: bool) -> list[int]:
    """Trees with a unary root, then with a binary root and 0, 1, ... nodes on its left."""
    rest = internal_nodes - 1
    return [count_trees(rest, unary, binary) if unary else 0] + [
        count_trees(left, unary, binary) * count_trees(rest - left, unary, binary) if binary else 0
        for left in range(internal_nodes)
    ]


def sample_shape(
    internal_nodes: int, rng: np.random.Generator, unary: bool = True, binary: bool = True
) -> list[int]:
    """Arities in prefix order of a uniformly drawn unary-binary tree.

    Counting the subtrees exactly makes every shape equally likely, which is the
    distribution of Lample and Charton's algorithm.
    """
    if internal_nodes == 0:
        return [0]
    rest = internal_nodes - 1
    choice = _weighted(_subtree_counts(internal_nodes, unary, binary), rng)
    if choice == 0:
        return [1, *sample_shape(rest, rng, unary, binary)]
    left = choice - 1
    return [
        2,
        *sample_shape(left, rng, unary, binary),
        *sample_shape(rest - left, rng, unary, binary),
    ]


def _weighted(weights: Iterable[float], rng: np.random.Generator) -> int:
    """Index of a weight, drawn in proportion to it."""
    ends = list(itertools.accumulate(weights))
    return bisect.bisect(ends, rng.random() * ends[-1])


def sample_magnitude(prior: EquationPrior, rng: np.random.Generator) -> float:
    """A positive constant: an integer or a real, by the prior's shares."""
    if rng.random() < prior.integer_probability:
        return float(rng.integers(1, int(prior.max_constant) + 1))
    if rng.random() < prior.log_uniform_share:
        return float(np.exp(rng.uniform(*np.log((prior.min_constant, prior.max_constant)))))
    return float(rng.uniform(0.0, prior.max_constant))


def sample_exponent(prior: EquationPrior, rng: np.random.Generator) -> float:
    """A positive constant exponent: an integer or a real, by the prior's shares."""
    if rng.random() < prior.integer_exponent_probability:
        return float(rng.integers(1, int(prior.max_exponent) + 1))
    return float(rng.uniform(0.0, prior.max_exponent))


def sample_constant(prior: EquationPrior, rng: np.random.Generator) -> float:
    """A constant of either sign from the prior."""
    return sample_magnitude(prior, rng) * (1 if rng.random() < 0.5 else -1)


def sample_expression(
    prior: EquationPrior, rng: np.random.Generator, variables: tuple[str, ...] = VARIABLES
) -> Expression:
    """A random right-hand side of these variables, not yet simplified."""
    if rng.random() < prior.law_share:
        return sample_law(prior, rng, variables)
    kinds = bool(prior.unary), bool(prior.binary)
    sizes = prior.size_weights or [
        count_trees(k, *kinds) for k in range(1, prior.max_operators + 1)
    ]
    shape = sample_shape(1 + _weighted(sizes, rng), rng, *kinds)
    tree = tuple(_decorate(arity, prior, rng) for arity in shape)
    return _of_variables(tree, variables, rng)


def sample_law(
    prior: EquationPrior, rng: np.random.Generator, variables: tuple[str, ...] = VARIABLES
) -> Expression:
    """A random right-hand side of the forms that known laws take, not yet simplified."""
    return _of_variables(_sample_law(prior, rng), variables, rng)


def _of_variables(tree: Prefix, variables: tuple[str, ...], rng: np.random.Generator) -> Expression:
    """A tree of y with one of the variables, drawn uniformly, at each y (appendix A)."""
    if len(variables) == 1:
        (only,) = variables
        return Expression(tuple(only if t == VARIABLE else t for t in tree), variables)
    tokens = (variables[rng.integers(len(variables))] if t == VARIABLE else t for t in tree)
    return Expression(tuple(tokens), variables)


def _decorate(arity: int, prior: EquationPrior, rng: np.random.Generator) -> str | float:
    if arity == 0:
        if rng.random() < prior.symbol_probability:
            return VARIABLE
        return sample_constant(prior, rng)
    return _draw(prior.binary if arity == 2 else prior.unary, rng)


def _draw(weights: dict[str, float], rng: np.random.Generator) -> str:
    return list(weights)[_weighted(weights.values(), rng)]


def _sample_law(prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    """A sum of terms or a product of factors, some times a function of y.

    Covers the forms of growth, decay, harvesting, Allee thresholds, Hill and
    Michaelis-Menten kinetics, and pendulum equations.
    """
    law = _sample_product(prior, rng) if rng.random() < 0.25 else _sample_sum(prior, rng)
    if rng.random() < 0.15:
        law = ("mul", *law, *_wrap(_power(int(rng.integers(1, 3)), prior, rng), prior, rng))
    return law


def _sample_sum(prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    """Terms c*y**p with distinct powers p, some saturating, some a function of y."""
    powers = rng.permutation([0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5])
    distinct = sorted(set(powers[: rng.integers(1, 5)].tolist()), reverse=True)
    terms = [_sample_term(power, prior, rng) for power in distinct]

    def plus(left: Prefix, right: Prefix) -> Prefix:
        return ("add", *left, *right)

    return functools.reduce(plus, terms)


def _sample_term(power: int, prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    term: Prefix = (sample_constant(prior, rng),)
    if power:
        term = ("mul", *term, *_power(power, prior, rng))
    if rng.random() < 0.2:
        term = ("div", *term, *_saturation(max(power, 1), prior, rng))
    elif rng.random() < 0.15:
        term = ("mul", sample_constant(prior, rng), *_wrap(_power(1, prior, rng), prior, rng))
    return term


def _sample_product(prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    """c * y**p * (c - y) ..., some saturating, some with one more term."""
    law: Prefix = (sample_constant(prior, rng),)
    power = int(rng.integers(0, 3))
    if power:
        law = ("mul", *law, *_power(power, prior, rng))
    for _ in range(rng.integers(1, 3)):
        law = ("mul", *law, "sub", sample_magnitude(prior, rng), VARIABLE)
    if rng.random() < 0.4:
        law = ("div", *law, *_saturation(int(rng.integers(1, 4)), prior, rng))
    if rng.random() < 0.3:
        law = ("add", *law, *_sample_term(int(rng.integers(0, 3)), prior, rng))
    return law


def _saturation(power: int, prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    """The denominator c + y**p."""
    return ("add", sample_constant(prior, rng), *_power(power, prior, rng))


def _power(power: int, prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    if rng.random() < 0.15:
        return ("pow", VARIABLE, sample_exponent(prior, rng))
    return (VARIABLE,) if power == 1 else ("pow", VARIABLE, float(power))


def _wrap(argument: Prefix, prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    """A unary function of an argument, often with a coefficient inside."""
    if rng.random() < 0.6:
        argument = ("mul", sample_constant(prior, rng), *argument)
    return (_draw(prior.unary, rng), *argument) if prior.unary else argument
