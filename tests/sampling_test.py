"""The prior over equations: shapes, sizes, decoration, laws."""

import collections

import numpy as np
import pytest

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.sampling import (
    EquationPrior,
    count_trees,
    sample_expression,
    sample_magnitude,
    sample_shape,
)


def test_trees_are_counted_and_drawn_uniformly():
    assert [count_trees(n) for n in range(6)] == [1, 2, 6, 22, 90, 394]
    rng = np.random.default_rng(0)
    drawn = collections.Counter(tuple(sample_shape(3, rng)) for _ in range(22_000))
    assert len(drawn) == 22
    # Each count is binomial around 1000 with standard deviation 31.
    assert all(850 < count < 1150 for count in drawn.values())


def test_sizes_follow_the_number_of_trees():
    rng = np.random.default_rng(0)
    sizes = collections.Counter(
        sum(token in OPERATORS for token in sample_expression(EquationPrior(), rng).prefix)
        for _ in range(5000)
    )
    total = sum(count_trees(n) for n in range(1, 6))
    for size in range(1, 6):
        assert abs(sizes[size] / 5000 - count_trees(size) / total) < 0.03


def test_decoration_follows_the_tables():
    rng = np.random.default_rng(0)
    tokens = collections.Counter()
    for _ in range(3000):
        tokens.update(
            "constant" if not isinstance(t, str) else t
            for t in sample_expression(EquationPrior(), rng).prefix
        )
    assert tokens["neg"] == 0
    for group in (("add", "sub", "mul", "div", "pow"), ("sin", "cos", "exp", "sqrt", "log")):
        total = sum(tokens[token] for token in group)
        assert all(abs(tokens[token] / total - 0.2) < 0.02 for token in group)
    leaves = tokens["y"] + tokens["constant"]
    assert abs(tokens["y"] / leaves - 0.5) < 0.02


def test_impossible_priors_are_refused():
    with pytest.raises(ValueError, match="max_operators"):
        EquationPrior(max_operators=0)
    with pytest.raises(ValueError, match="symbol_probability"):
        EquationPrior(symbol_probability=1.5)


def test_without_unary_or_binary_nodes_shapes_are_still_uniform():
    catalan = [1, 1, 2, 5, 14, 42]
    assert [count_trees(n, unary=False) for n in range(6)] == catalan
    assert [count_trees(n, binary=False) for n in range(6)] == [1] * 6
    rng = np.random.default_rng(0)
    drawn = collections.Counter(tuple(sample_shape(3, rng, unary=False)) for _ in range(5000))
    assert len(drawn) == 5
    assert all(900 < count < 1100 for count in drawn.values())
    assert sample_shape(3, rng, binary=False) == [1, 1, 1, 0]


def test_operators_and_their_weights_can_be_chosen():
    prior = EquationPrior(operators="add=3 mul sin")
    rng = np.random.default_rng(0)
    used = collections.Counter(
        token
        for _ in range(2000)
        for token in sample_expression(prior, rng).prefix
        if token in OPERATORS
    )
    assert set(used) == {"add", "mul", "sin"}
    assert 2.7 < used["add"] / used["mul"] < 3.3
    only_unary = EquationPrior(operators="sin", max_operators=2)
    assert sample_expression(only_unary, rng).prefix.count("sin") >= 1


def test_sizes_can_be_weighted():
    prior = EquationPrior(max_operators=8, size_weights=(1, 0, 0, 0, 0, 0, 0, 3))
    rng = np.random.default_rng(0)
    sizes = collections.Counter(
        sum(token in OPERATORS for token in sample_expression(prior, rng).prefix)
        for _ in range(2000)
    )
    assert set(sizes) == {1, 8}
    assert abs(sizes[8] / 2000 - 0.75) < 0.04


def test_log_uniform_constants_are_small_ones_too():
    prior = EquationPrior(integer_probability=0.0, log_uniform_share=1.0, min_constant=1e-3)
    rng = np.random.default_rng(0)
    sizes = np.array([sample_magnitude(prior, rng) for _ in range(4000)])
    assert 1e-3 <= sizes.min() < 2e-3
    assert 9 < sizes.max() <= 10
    for decade in (1e-3, 1e-2, 1e-1, 1.0):  # Four decades, a quarter each.
        assert abs(np.mean((decade <= sizes) & (sizes < 10 * decade)) - 0.25) < 0.03


def test_laws_take_the_forms_of_known_ones():
    prior = EquationPrior(law_share=1.0, max_exponent=5.0, integer_exponent_probability=0.75)
    rng = np.random.default_rng(0)
    skeletons = (canonicalize(sample_expression(prior, rng)).skeleton for _ in range(10_000))
    drawn = {skeleton.unsigned_key for skeleton in skeletons}
    for law in (
        "0.55*y - 0.0008*y**2",  # Logistic growth.
        "0.4*y - 0.004*y**2 - 0.3",  # With harvesting.
        "-0.0002*y**3 + 0.03*y**2 - 0.14*y",  # Allee effect.
        "2*y/(3 + y) - 0.3",  # Michaelis-Menten.
        "y**2/(y**2 + 1.5)*1.3 - 0.55*y + 0.1",  # Gene switching.
        "0.5 - 2*sin(3*y)",  # A driven pendulum.
        "9.8 - 0.002*y**2",  # A falling body.
        "7.2*y**0.66 - 5.5*y",  # Growth of von Bertalanffy.
    ):
        assert canonicalize(Expression.from_infix(law)).skeleton.unsigned_key in drawn, law


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operators": ""}, "operators must not be empty"),
        ({"operators": "add plus"}, "operators names 'plus', which is none of add sub"),
        ({"operators": "add=-1"}, "gives add the weight '-1'"),
        ({"max_operators": 0}, "max_operators must be at least 1"),
        ({"size_weights": (1.0,)}, "size_weights must be max_operators=5 weights"),
        ({"size_weights": (0.0,) * 5}, "not all 0"),
        ({"symbol_probability": 0.0}, "no equation would depend on y"),
        ({"law_share": 1.1}, "law_share must lie in"),
        ({"min_constant": 0.0}, "min_constant must lie in"),
    ],
)
def test_impossible_settings_say_what_is_wrong(settings, message):
    with pytest.raises(ValueError, match=message):
        EquationPrior(**settings)
