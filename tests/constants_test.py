"""The six rules for resampling constants, and that resampling keeps the skeleton."""

import numpy as np
import pytest

from nsode_jax.expressions.canonical import NotRepresentable, canonicalize, is_trivial
from nsode_jax.expressions.constants import (
    constant_roles,
    is_allowed,
    is_plain,
    linear_constants,
    resample_constants,
    structure,
)
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.sampling import EquationPrior, sample_expression

WIDE = EquationPrior(
    law_share=0.4,
    integer_probability=0.3,
    log_uniform_share=0.5,
    max_exponent=5.0,
    integer_exponent_probability=0.75,
)


def skeletons(prior, count, seed):
    """Different skeletons of random equations that depend on y."""
    rng, found = np.random.default_rng(seed), {}
    while len(found) < count:
        try:
            skeleton = canonicalize(sample_expression(prior, rng)).skeleton
        except NotRepresentable:
            continue
        if not is_trivial(skeleton) and skeleton.num_constants:
            found[skeleton] = None
    return list(found)


def test_roles_of_constants():
    skeleton = Skeleton.from_key("add mul c pow c pow y c div c add y -c")
    assert constant_roles(skeleton) == ("coefficient", "base", "exponent", "coefficient", "other")
    assert constant_roles(Skeleton.from_key("div y c")) == ("divisor",)


@pytest.mark.parametrize(
    ("value", "sign", "role"),
    [
        (2.5, 1, "other"),
        (1.0, 1, "other"),
        (-1.0, -1, "other"),
        (2.0, 1, "base"),
        (2.5, 1, "exponent"),
        (-2.0, -1, "exponent"),
        (0.5, 1, "coefficient"),
        (-3.0, -1, "divisor"),
    ],
)
def test_other_constants_are_allowed(value, sign, role):
    assert is_allowed(value, sign, role)


@pytest.mark.parametrize("role", ["coefficient", "divisor", "base", "exponent", "other"])
def test_rule_1_no_constant_is_0(role):
    assert not is_allowed(0.0, 1, role)
    assert not is_allowed(-0.0, 1, role)


@pytest.mark.parametrize("role", ["coefficient", "divisor", "base", "exponent", "other"])
def test_rule_2_constants_keep_their_sign(role):
    assert not is_allowed(-2.0, 1, role)
    assert not is_allowed(2.0, -1, role)


def test_rule_3_no_base_is_1():
    assert not is_allowed(1.0, 1, "base")


def test_rule_4_no_exponent_is_1_or_minus_1_or_a_square_root():
    for value in (1.0, -1.0, 0.5, -0.5):
        assert not is_allowed(value, 1 if value > 0 else -1, "exponent")


def test_rule_5_no_coefficient_is_1_or_minus_1():
    assert not is_allowed(1.0, 1, "coefficient")
    assert not is_allowed(-1.0, -1, "coefficient")


def test_rule_6_no_divisor_is_1_or_minus_1():
    assert not is_allowed(1.0, 1, "divisor")
    assert not is_allowed(-1.0, -1, "divisor")


@pytest.mark.parametrize("prior", [EquationPrior(), WIDE])
def test_resampling_never_changes_the_skeleton(prior):
    """10,000 draws over 400 skeletons, checked in full."""
    rng = np.random.default_rng(1)
    resampled = 0
    for skeleton in skeletons(prior, 200, seed=2):
        signs, roles = skeleton.signs, constant_roles(skeleton)
        for _ in range(25):
            expression = resample_constants(skeleton, prior, rng)
            if expression is None:
                continue
            resampled += 1
            assert expression.skeleton == skeleton
            assert canonicalize(expression) == expression
            assert all(map(is_allowed, expression.constants, signs, roles)), expression.infix
            assert all(abs(c) <= prior.max_constant for c in expression.constants)
    assert resampled > 4900


def test_draws_that_merge_are_drawn_again():
    """y**c + y**c with two equal exponents has one term less."""
    skeleton = canonicalize(Expression.from_infix("y**2 + y**3")).skeleton
    prior = EquationPrior(max_exponent=3.0, integer_exponent_probability=1.0)
    rng = np.random.default_rng(0)
    drawn = {resample_constants(skeleton, prior, rng).constants for _ in range(50)}
    assert drawn == {(2.0, 3.0)}


def test_impossible_skeletons_give_none():
    """Both exponents would have to be 2."""
    skeleton = canonicalize(Expression.from_infix("y**2 + y**3")).skeleton
    prior = EquationPrior(max_exponent=2.0, integer_exponent_probability=1.0)
    assert resample_constants(skeleton, prior, np.random.default_rng(0)) is None


@pytest.mark.parametrize(
    ("key", "linear"),
    [
        ("add c mul c y", [True, True]),
        ("mul c sin mul c y", [True, False]),
        ("div c add c y", [True, False]),
        ("mul c pow y c", [True, False]),
        ("mul add c y add c y", [True, False]),
        ("exp c", [False]),
    ],
)
def test_linear_constants(key, linear):
    assert linear_constants(Skeleton.from_key(key)).tolist() == linear


@pytest.mark.parametrize(
    ("value", "plain"), [(2.0, True), (-3.0, True), (1.5, True), (4.5, False), (2.01, False)]
)
def test_is_plain(value, plain):
    assert is_plain(value) is plain


def test_structures_tell_exponents_but_no_coefficients():
    def of(text):
        return structure(Expression.from_infix(text))

    assert of("0.7*y - 2*y**2") == of("-0.1*y + 3*y**2") != of("0.7*y - 2*y**3")
    assert of("2*y**0.71") == of("2*y**1.3")
