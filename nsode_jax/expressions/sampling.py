"""The prior over equations: random unary-binary trees and their decoration.

Paper, section 2.1 and appendix B.2, after Lample and Charton (2019): the shape
is drawn uniformly among all unary-binary trees with up to K internal nodes,
then nodes and leaves are decorated at random.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from nsode_jax.expressions.expression import Expression, Prefix
from nsode_jax.expressions.operators import BINARY, UNARY, VARIABLE


@dataclasses.dataclass(frozen=True)
class EquationPrior:
    """Distribution over equations. The defaults are the paper's (appendix B.2).

    Attributes:
      max_operators: K, the largest number of internal nodes of a tree.
      uniform_sizes: draw the number of internal nodes uniformly from 1 to K
        instead of drawing uniformly among trees, most of which have K nodes.
      symbol_probability: p_sym, the share of leaves that are the variable.
      integer_probability: share of integers among the constants.
      max_constant: constants are drawn from (-max_constant, max_constant), and
        integers from -max_constant to max_constant without 0.
      small_constant_share: share of real constants whose magnitude is drawn
        log-uniformly from 1e-2 to max_constant instead.
      max_exponent: largest magnitude of a constant exponent.
      integer_exponent_probability: share of integers among constant exponents.
      law_share: share of equations drawn from sums, products and quotients of
        powers of y, the forms that known laws take, instead of random trees.
    """

    max_operators: int = 5
    uniform_sizes: bool = False
    symbol_probability: float = 0.5
    integer_probability: float = 0.5
    max_constant: float = 10.0
    small_constant_share: float = 0.0
    max_exponent: float = 10.0
    integer_exponent_probability: float = 0.5
    law_share: float = 0.0

    def __post_init__(self):
        if self.max_operators < 1:
            raise ValueError(f"max_operators must be at least 1, got {self.max_operators}")
        if self.max_constant < 2 or self.max_exponent < 2:
            raise ValueError("max_constant and max_exponent must be at least 2")
        for name in (
            "symbol_probability",
            "integer_probability",
            "small_constant_share",
            "integer_exponent_probability",
            "law_share",
        ):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}")


@functools.cache
def count_trees(internal_nodes: int) -> int:
    """Number of unary-binary trees with so many internal nodes: 1, 2, 6, 22, 90, 394."""
    if internal_nodes == 0:
        return 1
    rest = internal_nodes - 1
    return count_trees(rest) + sum(
        count_trees(left) * count_trees(rest - left) for left in range(internal_nodes)
    )


def sample_shape(internal_nodes: int, rng: np.random.Generator) -> list[int]:
    """Arities in prefix order of a uniformly drawn unary-binary tree.

    Counting the subtrees exactly makes every shape equally likely, which is the
    distribution of Lample and Charton's algorithm.
    """
    if internal_nodes == 0:
        return [0]
    rest = internal_nodes - 1
    weights = [count_trees(rest)] + [
        count_trees(left) * count_trees(rest - left) for left in range(internal_nodes)
    ]
    choice = _weighted(weights, rng)
    if choice == 0:
        return [1, *sample_shape(rest, rng)]
    left = choice - 1
    return [2, *sample_shape(left, rng), *sample_shape(rest - left, rng)]


def _weighted(weights: list[float], rng: np.random.Generator) -> int:
    return int(np.searchsorted(np.cumsum(weights), rng.random() * sum(weights), side="right"))


def sample_magnitude(prior: EquationPrior, rng: np.random.Generator) -> float:
    """A positive constant: an integer or a real, by the prior's shares."""
    if rng.random() < prior.integer_probability:
        return float(rng.integers(1, int(prior.max_constant) + 1))
    if rng.random() < prior.small_constant_share:
        return float(10.0 ** rng.uniform(-2.0, np.log10(prior.max_constant)))
    return float(rng.uniform(0.0, prior.max_constant))


def sample_exponent(prior: EquationPrior, rng: np.random.Generator) -> float:
    """A positive constant exponent: an integer or a real, by the prior's shares."""
    if rng.random() < prior.integer_exponent_probability:
        return float(rng.integers(1, int(prior.max_exponent) + 1))
    return float(rng.uniform(0.0, prior.max_exponent))


def sample_constant(prior: EquationPrior, rng: np.random.Generator) -> float:
    """A constant of either sign from the prior."""
    return sample_magnitude(prior, rng) * (1 if rng.random() < 0.5 else -1)


def sample_expression(prior: EquationPrior, rng: np.random.Generator) -> Expression:
    """A random right-hand side, not yet simplified."""
    if rng.random() < prior.law_share:
        return Expression(_sample_law(prior, rng))
    if prior.uniform_sizes:
        size = int(rng.integers(1, prior.max_operators + 1))
    else:
        sizes = [count_trees(k) for k in range(1, prior.max_operators + 1)]
        size = 1 + _weighted(sizes, rng)
    return Expression(tuple(_decorate(arity, prior, rng) for arity in sample_shape(size, rng)))


def _decorate(arity: int, prior: EquationPrior, rng: np.random.Generator) -> str | float:
    if arity == 0:
        if rng.random() < prior.symbol_probability:
            return VARIABLE
        return sample_constant(prior, rng)
    operators = BINARY if arity == 2 else UNARY
    return operators[_weighted([op.probability for op in operators], rng)].token


def _sample_law(prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    """A sum of a few terms c*y**p, some with a saturating or periodic factor.

    Covers the forms of growth, decay, harvesting, Hill and Michaelis-Menten
    kinetics, and pendulum equations.
    """
    powers = rng.permutation([0, 1, 1, 2, 2, 3, 4])
    terms = [
        _sample_term(int(power), prior, rng)
        for power in sorted(set(powers[: rng.integers(1, 4)].tolist()), reverse=True)
    ]
    law = terms[0]
    for term in terms[1:]:
        law = ("add", *law, *term)
    if rng.random() < 0.15:
        argument = _power(int(rng.integers(1, 3)), prior, rng)
        law = ("mul", *law, *_wrap(argument, prior, rng))
    return law


def _sample_term(power: int, prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    term = (sample_constant(prior, rng),)
    if power:
        term = ("mul", *term, *_power(power, prior, rng))
    if rng.random() < 0.2:
        denominator = ("add", sample_constant(prior, rng), *_power(max(power, 1), prior, rng))
        term = ("div", *term, *denominator)
    elif rng.random() < 0.15:
        term = ("mul", sample_constant(prior, rng), *_wrap(_power(1, prior, rng), prior, rng))
    return term


def _power(power: int, prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    if rng.random() < 0.15:
        return ("pow", VARIABLE, sample_exponent(prior, rng))
    return (VARIABLE,) if power == 1 else ("pow", VARIABLE, float(power))


def _wrap(argument: Prefix, prior: EquationPrior, rng: np.random.Generator) -> Prefix:
    """A unary function of an argument, often with a coefficient inside."""
    if rng.random() < 0.6:
        argument = ("mul", sample_constant(prior, rng), *argument)
    operator = UNARY[_weighted([op.probability for op in UNARY], rng)]
    return (operator.token, *argument)
