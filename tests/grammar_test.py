"""The grammar mask against brute force, and the rule for constants against the paper's formula."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsode_jax.decoding.grammar import (
    TokenTable,
    constant_modes,
    legal_tokens,
    next_open_slots,
    soft_token,
    variables_of,
    writable_tokens,
)

PAD, BOS, EOS, Y, ADD, SIN = range(6)
# <pad> <bos> <eos> y add sin and a grid of four.
TABLE = TokenTable((0, 0, 0, 0, 2, 1, 0, 0, 0, 0), BOS, EOS, PAD, grid_start=6, grid_size=4)
# Few enough tokens to write down all sequences.
SMALL = TokenTable((0, 0, 0, 0, 2, 1), BOS, EOS, PAD, grid_start=6, grid_size=0)


Y1, Y2, MUL, BAR = range(3, 7)
PAIRS = TokenTable(
    (0, 0, 0, 0, 0, 2, 0), BOS, EOS, PAD, grid_start=7, grid_size=0, states=(Y1, Y2), separator=BAR
)


def is_expression(tokens, table, equations=1):
    """Whether the tokens are so many complete prefix expressions and <eos>, by recursion."""

    def read(position):
        if position >= len(tokens) or table.special[tokens[position]]:
            return None
        position, arguments = position + 1, table.arities[tokens[position]]
        for _ in range(arguments):
            position = read(position)
            if position is None:
                return None
        return position

    position = read(0)
    for _ in range(equations - 1):
        if position is None or position >= len(tokens) or tokens[position] != table.separator:
            return False
        position = read(position + 1)
    return position == len(tokens) - 1 and tokens[-1] == table.eos


def next_tokens(table, max_length, equations=1):
    """What may follow each beginning of a legal sequence, by writing all of them down."""
    writable = np.flatnonzero(writable_tokens(table)).tolist()
    next_of = {}
    for length in range(1, max_length + 1):
        for sequence in itertools.product(writable, repeat=length):
            if is_expression(sequence, table, equations):
                for position, token in enumerate(sequence):
                    next_of.setdefault(sequence[:position], set()).add(token)
    return next_of


@pytest.mark.parametrize("max_length", [2, 3, 4, 5, 6])
def test_legal_tokens_are_those_of_some_complete_expression(max_length):
    next_of = next_tokens(SMALL, max_length)
    for prefix, expected in next_of.items():
        open_slots = jnp.asarray(1)
        for token in prefix:
            open_slots = next_open_slots(open_slots, jnp.asarray(token), SMALL)
        legal = legal_tokens(open_slots, max_length - len(prefix), SMALL)
        assert set(np.flatnonzero(legal)) == expected, prefix


@pytest.mark.parametrize(("equations", "max_length"), [(1, 4), (2, 4), (2, 6), (3, 6)])
def test_legal_tokens_are_those_of_so_many_equations(equations, max_length):
    next_of = next_tokens(PAIRS, max_length, equations)
    assert next_of
    for prefix, expected in next_of.items():
        open_slots = jnp.asarray(1)
        for token in prefix:
            open_slots = next_open_slots(open_slots, jnp.asarray(token), PAIRS)
        left = equations - 1 - prefix.count(BAR)
        legal = legal_tokens(open_slots, max_length - len(prefix), PAIRS, left)
        assert set(np.flatnonzero(legal)) == expected, prefix


def test_equations_of_few_quantities_do_not_hold_others():
    held = variables_of(jnp.asarray([1, 2]), PAIRS)
    np.testing.assert_array_equal(np.flatnonzero(~held[0]), [Y2])
    assert held[1].all()


def test_legal_tokens_under_jit_over_any_shape():
    open_slots = jnp.asarray([[0, 1, 2], [3, 1, 0]])
    remaining = jnp.asarray([[5, 2, 3], [9, 9, 1]])
    legal = jax.jit(lambda slots, left: legal_tokens(slots, left, TABLE))(open_slots, remaining)
    assert legal.shape == (2, 3, TABLE.size)
    for index in np.ndindex(2, 3):
        alone = legal_tokens(open_slots[index], remaining[index], TABLE)
        np.testing.assert_array_equal(legal[index], alone)
    np.testing.assert_array_equal(np.flatnonzero(legal[0, 0]), [EOS])
    np.testing.assert_array_equal(np.flatnonzero(legal[0, 1]), [Y, 6, 7, 8, 9])
    assert not legal[0, 2, ADD] and not legal[0, 2, SIN]
    assert not legal[..., [PAD, BOS]].any()
    same = legal_tokens(open_slots, 5, TABLE)
    np.testing.assert_array_equal(same, legal_tokens(open_slots, jnp.full((2, 3), 5), TABLE))


def test_special_tokens_fill_no_slot():
    slots = jnp.asarray([0, 0, 1, 1, 1, 2])
    token = jnp.asarray([EOS, PAD, BOS, Y, ADD, SIN])
    np.testing.assert_array_equal(next_open_slots(slots, token, TABLE), [0, 0, 1, 0, 2, 2])


def test_writable_tokens():
    np.testing.assert_array_equal(np.flatnonzero(writable_tokens(TABLE)), [2, 3, 4, 5, 6, 7, 8, 9])


def paper_rule(probability, token):
    """Section 2.2, decoding constants, for one grid token, in float64."""
    neighbours = [j for j in (token - 1, token + 1) if 6 <= j <= 9]
    other = max(neighbours, key=lambda j: probability[j])
    low, high = min(token, other), max(token, other)
    return low, probability[high] / (probability[low] + probability[high])


def test_constants_follow_the_paper_at_every_grid_token():
    logits = np.random.default_rng(0).normal(0, 3, (50, TABLE.size))
    probability = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for token in range(6, 10):
        low, fraction = soft_token(
            jnp.asarray(np.log(probability), jnp.float32), jnp.full(50, token), TABLE
        )
        expected = [paper_rule(row, token) for row in probability]
        np.testing.assert_array_equal(low, [e[0] for e in expected])
        np.testing.assert_allclose(fraction, [e[1] for e in expected], rtol=1e-5, atol=1e-7)


def test_constant_by_hand_in_the_middle_and_at_the_ends():
    # p(6..9) = 0.1, 0.3, 0.5, 0.05
    probability = np.array([0.01, 0.01, 0.01, 0.01, 0.005, 0.005, 0.1, 0.3, 0.5, 0.05])
    rows = jnp.log(jnp.broadcast_to(jnp.asarray(probability, jnp.float32)[None], (4, 10)))
    low, fraction = soft_token(rows, jnp.asarray([6, 7, 8, 9]), TABLE)
    np.testing.assert_array_equal(low, [6, 7, 7, 8])
    np.testing.assert_allclose(fraction, [0.3 / 0.4, 0.5 / 0.8, 0.5 / 0.8, 0.05 / 0.55], rtol=1e-5)


def test_the_ends_of_the_grid_never_lean_on_what_lies_beyond():
    # The operator just below the grid is the likeliest token of all.
    logits = jnp.zeros((2, 10)).at[:, SIN].set(50.0).at[:, 7].set(-2.0).at[:, 8].set(-60.0)
    low, fraction = soft_token(logits, jnp.asarray([6, 9]), TABLE)
    np.testing.assert_array_equal(low, [6, 8])
    np.testing.assert_allclose(fraction, jax.nn.sigmoid(jnp.asarray([-2.0, 60.0])), rtol=1e-6)


def test_impossible_neighbours_and_far_logits_stay_finite():
    logits = jnp.full((4, 10), -jnp.inf).at[jnp.arange(4), jnp.arange(6, 10)].set(0.0)
    low, fraction = soft_token(logits, jnp.arange(6, 10), TABLE)
    value = low + fraction
    np.testing.assert_array_equal(value, [6.0, 7.0, 8.0, 9.0])
    assert (low <= TABLE.size - 2).all()
    low, fraction = soft_token(jnp.zeros((1, 10)).at[0, 7].set(1e4), jnp.asarray([7]), TABLE)
    assert np.isfinite(fraction).all() and float(low[0] + fraction[0]) == 7.0


def test_other_tokens_are_fed_back_as_they_are():
    logits = jax.random.normal(jax.random.key(0), (6, 10))
    low, fraction = soft_token(logits, jnp.arange(6), TABLE)
    np.testing.assert_array_equal(low, np.arange(6))
    np.testing.assert_array_equal(fraction, np.zeros(6))
    low, fraction = soft_token(logits[:, :6], jnp.arange(6), SMALL)
    np.testing.assert_array_equal(low, np.arange(6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eos": 0}, "three tokens"),
        ({"eos": 10}, "three tokens"),
        ({"grid_size": 1}, "at least 2"),
        ({"grid_start": 7}, "below 10"),
        ({"arities": (0, 0, 0, 1, 2, 1, 1, 1, 1, 1)}, "arity 0"),
    ],
)
def test_token_tables_that_make_no_sense_are_refused(change, message):
    fields = dict(arities=TABLE.arities, bos=1, eos=2, pad=0, grid_start=6, grid_size=4)
    with pytest.raises(ValueError, match=message):
        TokenTable(**(fields | change))


def test_modes_of_the_grid_by_hand():
    table = TokenTable((0,) * 4 + (1,) + (0,) * 7, 1, 2, 0, grid_start=5, grid_size=7)
    #                        <pad> <bos> <eos> y     sin   grid: three modes, the last one a tie
    probability = np.array([0.01, 0.01, 0.08, 0.2, 0.1, 0.1, 0.05, 0.15, 0.2, 0.02, 0.04, 0.04])
    tops = [True] * 5 + [True, False, False, True, False, False, True]
    # 0.05 and 0.02 belong to their likelier neighbours, 0.15 and 0.2.
    mass = [0.01, 0.01, 0.08, 0.2, 0.1] + [0.1] + [0.42] * 4 + [0.08] * 2
    log_mass, is_top = constant_modes(jnp.log(probability)[None, None], table)
    np.testing.assert_allclose(np.exp(log_mass[0, 0]), mass, rtol=1e-5)
    assert is_top[0, 0].tolist() == tops


def test_modes_share_out_all_probability():
    logits = 3 * jax.random.normal(jax.random.key(0), (500, TABLE.size))
    log_p = jax.nn.log_softmax(logits)
    log_mass, is_top = constant_modes(log_p, TABLE)
    np.testing.assert_allclose(jnp.where(is_top, jnp.exp(log_mass), 0.0).sum(-1), 1.0, rtol=1e-5)
    assert (is_top[:, :6]).all() and (log_mass[:, :6] == log_p[:, :6]).all()
    tops = is_top[:, 6:].sum(-1)
    assert tops.min() == 1 and tops.max() == 2


def test_a_language_without_constants_has_no_modes():
    log_p = jax.nn.log_softmax(jnp.arange(6.0)[None])
    log_mass, is_top = constant_modes(log_p, SMALL)
    np.testing.assert_array_equal(log_mass, log_p)
    assert is_top.all()
