"""All simple laws: none is missing, none is there twice."""

import itertools

import numpy as np
import pytest

from nsode_jax.expressions.canonical import NotRepresentable, canonicalize, is_trivial
from nsode_jax.expressions.enumeration import enumerate_skeletons, is_redundant
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.operators import OPERATORS


def all_trees(symbols, operators):
    """Every prefix of so many symbols."""
    if symbols == 1:
        yield from (("y",), ("c",))
        return
    for token in operators:
        if OPERATORS[token].arity == 1:
            yield from ((token, *argument) for argument in all_trees(symbols - 1, operators))
        else:
            for size in range(1, symbols - 1):
                for left in all_trees(size, operators):
                    for right in all_trees(symbols - 1 - size, operators):
                        yield (token, *left, *right)


def forms_by_brute_force(symbols, operators, constants):
    """Unsigned keys of the canonical forms of all trees, with every choice of constants."""
    found = set()
    for size in range(1, symbols + 1):
        for tree in all_trees(size, operators):
            for values in itertools.product(constants, repeat=tree.count("c")):
                remaining = iter(values)
                prefix = tuple(next(remaining) if token == "c" else token for token in tree)
                try:
                    skeleton = canonicalize(Expression(prefix)).skeleton
                except NotRepresentable:
                    continue
                if not is_trivial(skeleton):
                    found.add(skeleton.unsigned_key)
    return found


@pytest.mark.parametrize(
    ("operators", "symbols", "constants"),
    [
        (tuple(OPERATORS), 4, (-3.3, -2.0, -1.0, 0.5, 1.0, 1.7, 2.0)),
        (("add", "mul", "div", "sin", "neg"), 5, (-3.3, 1.7)),
        (("sub", "pow", "exp", "log", "sqrt"), 5, (-3.3, 2.0, 1.7)),
    ],
)
def test_no_skeleton_is_missing(operators, symbols, constants):
    """Every law that can be written with so many symbols, and at most so many when canonical."""
    levels = enumerate_skeletons(symbols, operators)
    enumerated = {key for level in levels for key in level}
    allowed = {*operators, "y", "c", "1"}
    for key in forms_by_brute_force(symbols, operators, constants):
        tokens = key.split()
        if len(tokens) <= symbols and allowed.issuperset(tokens) and key not in enumerated:
            # Shorter ones have the same laws.
            assert is_redundant(tuple(key.split())), key


def test_levels_are_canonical_distinct_and_of_their_size():
    levels = enumerate_skeletons(5)
    assert [len(level) for level in levels] == [len(set(level)) for level in levels]
    rng = np.random.default_rng(0)
    for symbols, level in enumerate(levels, start=1):
        assert level == sorted(level)
        for key in rng.choice(level, min(40, len(level)), replace=False):
            skeleton = Skeleton.from_key(key)
            assert len(skeleton.tokens) == symbols
            assert "y" in skeleton.tokens
            forms = set()
            for values in ((1.37, 2.71, 3.19, 4.3), (2.0, 4.0, 6.0, 8.0), (-1.3, -2.7, -3.1, -4.3)):
                values = values[: skeleton.num_constants]
                try:
                    canonical = canonicalize(skeleton.with_constants(values))
                except NotRepresentable:
                    continue
                forms.add(canonical.skeleton.unsigned_key)
            assert key in forms


def test_known_laws_are_there():
    levels = enumerate_skeletons(6)
    for text in (
        "2*y",
        "3 - 2*y",
        "y - y**2",
        "2*sin(y)",
        "1.5*y*log(y)",
        "exp(-y) + 3",
        "1/(2 + y)",
    ):
        key = canonicalize(Expression.from_infix(text)).skeleton.unsigned_key
        assert key in levels[len(key.split()) - 1], text


def test_an_alphabet_of_ones_own():
    operators = ("add", "mul", "pow")
    levels = enumerate_skeletons(6, operators)
    everything = enumerate_skeletons(6)
    for level, all_of_size in zip(levels, everything, strict=True):
        allowed = {*operators, "y", "c"}
        assert level == [key for key in all_of_size if allowed.issuperset(key.split())]


@pytest.mark.parametrize(
    ("key", "redundant"),
    [
        ("mul c y", False),
        ("add mul c sin y c", False),
        ("mul c exp add mul c y c", True),  # c*exp(c*y)
        ("add mul c log mul c y c", True),  # c*log(y) + c
        ("div mul c y add mul c y c", True),
        ("mul c pow add mul c y c c", True),
        ("mul c sqrt pow y c", False),  # c*|y|**n
        ("pow pow y c c", False),
        ("log neg pow y c", True),  # Nowhere defined, but for odd exponents: then c*log(-y).
        ("sqrt sub cos y c", False),
        ("log log cos y", True),  # Nowhere defined.
        ("add pow sin y c pow cos y c", False),
        ("y", False),
    ],
)
def test_what_is_redundant(key, redundant):
    assert is_redundant(tuple(key.split())) == redundant
