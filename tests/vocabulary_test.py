"""Token ids, two-hot constants and IEEE-754 bits."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from nsode_jax.data.bits import float_to_words, words_to_bits, words_to_float
from nsode_jax.data.encode import ExampleFormat, encode_trajectories, trajectory_points
from nsode_jax.data.vocabulary import SYMBOLS, NotEncodable, Vocabulary
from nsode_jax.expressions.coupled import SystemConfig
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import OPERATORS


def test_layout():
    vocabulary = Vocabulary()
    assert vocabulary.size == 3 + 1 + len(OPERATORS) + 21 == 36
    assert vocabulary.grid.tolist() == list(range(-10, 11))
    assert len(vocabulary.arities) == vocabulary.size
    assert vocabulary.arities[vocabulary.symbols.index("pow")] == 2
    assert vocabulary.arities[vocabulary.symbols.index("sin")] == 1
    assert set(vocabulary.arities[vocabulary.grid_start :]) == {0}


@pytest.mark.parametrize("constant", [-10.0, 10.0, 0.0, 1.0, 1.64, -3.25, 9.999, 1e-9])
def test_two_hot_interpolates_the_constant(constant):
    vocabulary = Vocabulary()
    low, fraction = vocabulary.two_hot(constant)
    x = vocabulary.grid
    i = low - vocabulary.grid_start
    upper = x[i + 1] if i + 1 < x.size else 0.0
    assert 0.0 <= fraction < 1.0
    assert (1 - fraction) * x[i] + fraction * upper == pytest.approx(constant, abs=1e-14)
    assert vocabulary.constant(low, fraction) == pytest.approx(constant, abs=1e-14)


@pytest.mark.parametrize("constant", [-10.001, 10.001, float("nan")])
def test_constants_outside_the_grid_are_refused(constant):
    with pytest.raises(NotEncodable, match="outside the grid"):
        Vocabulary().two_hot(constant)


def test_encode_and_decode():
    vocabulary = Vocabulary()
    expression = Expression.from_infix("-1.3*y + 2.1*y**2.2 - sin(y)/y")
    low, fraction = vocabulary.encode(expression, 20)
    assert low[expression.complexity] == vocabulary.eos
    assert (low[expression.complexity + 1 :] == vocabulary.pad).all()
    decoded = vocabulary.decode(low, fraction)
    assert decoded.skeleton == expression.skeleton
    np.testing.assert_allclose(decoded.constants, expression.constants, rtol=1e-6)


def test_too_long_is_refused():
    expression = Expression.from_infix("y + y")
    assert Vocabulary().encode(expression, 4)[0].size == 4
    with pytest.raises(NotEncodable, match="exceed 3"):
        Vocabulary().encode(expression, 3)


def test_token_ids_follow_the_stored_symbols():
    """Not the table of operators, which may have grown since a network was trained."""
    few = (*SYMBOLS[:4], "sin", "mul", "add")
    vocabulary = Vocabulary(symbols=few)
    assert vocabulary.size == 7 + 21 and vocabulary.arities[4:7] == (1, 2, 2)
    expression = Expression.from_infix("2.5*sin(y) + y")
    low, fraction = vocabulary.encode(expression, 10)
    assert low[:6].tolist() == [6, 5, vocabulary.grid_start + 12, 4, 3, 3]
    assert vocabulary.decode(low, fraction) == expression
    with pytest.raises(NotEncodable, match="no symbol 'cos'"):
        vocabulary.encode(Expression.from_infix("cos(y)"), 10)


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (SYMBOLS[1:], "begin with <pad>, <bos>, <eos>"),
        ((*SYMBOLS, "sin"), "differ"),
        ((*SYMBOLS, "tan"), "'tan' is no operator"),
    ],
)
def test_symbols_that_make_no_sense_are_refused(symbols, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(symbols=symbols)


@pytest.mark.parametrize("most", [0.0, float("nan"), float("inf")])
def test_a_grid_without_a_range_is_refused(most):
    with pytest.raises(ValueError, match="a positive, finite range"):
        Vocabulary(max_constant=most)


def test_incomplete_sequences_do_not_decode():
    vocabulary = Vocabulary()
    add = vocabulary.symbols.index("add")
    with pytest.raises(ExpressionError):
        vocabulary.decode([add, 3, vocabulary.eos], [0.0, 0.0, 0.0])


SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1.7e308, np.inf, -np.inf, np.nan, np.pi]


def test_words_are_lossless():
    values = np.array(SPECIAL)
    back = words_to_float(float_to_words(values))
    assert values.tobytes() == back.tobytes()
    random = np.random.default_rng(0).integers(0, 2**64, 1000, dtype=np.uint64).view(np.float64)
    assert random.tobytes() == words_to_float(float_to_words(random)).tobytes()


def test_bits_are_sign_exponent_mantissa():
    values = np.array(SPECIAL)
    bits = np.asarray(words_to_bits(jnp.asarray(float_to_words(values))))
    assert bits.shape == (len(SPECIAL), 64)
    expected = [[int(b) for b in f"{v:064b}"] for v in values.view(np.uint64).tolist()]
    assert bits.tolist() == expected
    assert bits[2].tolist() == [0] * 2 + [1] * 10 + [0] * 52  # 1.0


def test_short_trajectories_are_filled_up_with_nan():
    form = ExampleFormat(num_points=16, max_length=8, derivative_channel=True)
    t = np.linspace(0, 1, 10)
    points, mask = trajectory_points(t, t**2, form)
    assert mask.tolist() == [True] * 10 + [False] * 6
    np.testing.assert_array_equal(points[:10, 0], t)
    np.testing.assert_array_equal(points[:10, 1], t**2)
    np.testing.assert_allclose(points[1:9, 2], 2 * t[1:9], atol=1e-12)
    assert np.isnan(points[10:]).all()
    words, masks = encode_trajectories([(t, t**2), (t, t)], form)
    assert words.shape == (2, 16, 3, 2)
    assert words_to_float(words[0]).tobytes() == points.tobytes()
    assert masks[0].tolist() == mask.tolist()


def test_long_trajectories_are_thinned_to_their_ends():
    form = ExampleFormat(num_points=16, max_length=8, derivative_channel=False)
    t = np.linspace(0, 1, 1000)
    points, mask = trajectory_points(t, t, form)
    assert points.shape == (16, 2)
    assert mask.all()
    assert (points[0, 0], points[-1, 0]) == (0.0, 1.0)


PAIRS = SystemConfig(2, explicit_time=True)


def laws(*texts, system=PAIRS):
    variables = system.variables(len(texts))
    return tuple(Expression.from_infix(text, variables) for text in texts)


def test_vocabulary_of_one_quantity_is_the_same_as_ever():
    assert Vocabulary.of(SystemConfig()) == Vocabulary()
    assert Vocabulary().system == SystemConfig()
    assert Vocabulary().variables == (3,) and Vocabulary().separator is None


@pytest.mark.parametrize(
    "system", [PAIRS, SystemConfig(4), SystemConfig(1, explicit_time=True)], ids=str
)
def test_vocabulary_tells_its_systems_from_its_symbols(system):
    vocabulary = Vocabulary.of(system)
    stored = Vocabulary(symbols=tuple(json.loads(json.dumps(vocabulary.symbols))))
    assert stored.system == system
    assert [vocabulary.symbols[i] for i in vocabulary.variables] == list(system.variables())
    assert (vocabulary.separator is None) == (system.num_states == 1)


@pytest.mark.parametrize("texts", [("-1.4*y1 + cos(t)",), ("-1.4*y1*y2 + cos(t)", "sin(y1 + y2)")])
def test_systems_round_trip_with_their_constants(texts):
    """The paper's example of a mapping (appendix A), and one of its equations alone."""
    vocabulary = Vocabulary.of(PAIRS)
    low, fraction = vocabulary.encode_system(laws(*texts), 20)
    assert (low == vocabulary.separator).sum() == len(texts) - 1
    decoded = vocabulary.decode_system(low, fraction)
    assert [law.skeleton for law in decoded] == [law.skeleton for law in laws(*texts)]
    assert decoded[0].constants == pytest.approx((-1.4,), abs=1e-6)


def test_what_is_no_system_of_the_vocabulary_is_refused():
    vocabulary = Vocabulary.of(PAIRS)
    with pytest.raises(NotEncodable, match="7 tokens and eos exceed 7"):
        vocabulary.encode_system(laws("y1*y2", "y1 + t"), 7)
    with pytest.raises(NotEncodable, match="no symbol 'y3'"):
        three = SystemConfig(3)
        vocabulary.encode_system(laws("y1", "y2", "y3", system=three), 20)
    with pytest.raises(NotEncodable, match="no symbol 'y1'"):
        Vocabulary().encode_system(laws("y1", "y2"), 20)
    y1, y2 = vocabulary.variables[:2]
    for tokens in ([y1, vocabulary.separator], [y2], [y1, *[vocabulary.separator, y1] * 2]):
        with pytest.raises(ExpressionError):
            vocabulary.decode_system(tokens, [0.0] * len(tokens))
    low, fraction = vocabulary.encode_system(laws("y2", "y1"), 8)
    with pytest.raises(ExpressionError, match="2 equations, where one is expected"):
        vocabulary.decode(low, fraction)


def test_a_separator_goes_with_several_quantities():
    *without, separator = Vocabulary.of(SystemConfig(2)).symbols
    for symbols in ((*SYMBOLS, separator), tuple(without)):
        with pytest.raises(ValueError, match="separator"):
            Vocabulary(symbols=symbols)


def test_several_quantities_are_channels_and_what_is_missing_is_nan():
    form = ExampleFormat(num_points=8, max_length=8, derivative_channel=True, num_states=3)
    t = np.linspace(0, 1, 6)
    y = np.stack([t**2, 1 - t], axis=1)
    y[2, 1] = np.nan
    points, mask = trajectory_points(t, y, form)
    assert points.shape == (8, form.channels) == (8, 7)
    assert mask.tolist() == [True] * 6 + [False] * 2
    np.testing.assert_array_equal(points[:6, :3], np.column_stack([t, y]))
    np.testing.assert_allclose(points[1:5, 4], 2 * t[1:5])
    there = np.isfinite(y[:, 1])
    np.testing.assert_allclose(points[:6, 5][there], -1.0)
    assert np.isnan(points[2, [2, 5]]).all()
    assert np.isnan(points[:, [3, 6]]).all()  # There is no third one.
    alone, _ = trajectory_points(t, y[:, 0], form)
    np.testing.assert_array_equal(alone[:, [0, 1, 4]], points[:, [0, 1, 4]])
    with pytest.raises(ValueError, match="3 quantities, but the network reads no more than 1"):
        trajectory_points(t, np.ones((6, 3)), ExampleFormat(8, 8, False))
