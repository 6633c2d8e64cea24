"""Sampling from a decoder: the distribution it draws from, its limits, and its seeds."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from decoded import allowed, greedy, open_slots_after, soft

from nsode_jax.decoding.grammar import TokenTable
from nsode_jax.decoding.sampling import Sampling, keep_top_k, keep_top_p, sample
from nsode_jax.decoding.steps import BeamResult, Decoding

PAD, BOS, EOS, Y, ADD, SIN = range(6)
# <pad> <bos> <eos> y add sin and a grid of three constants.
TABLE = TokenTable((0, 0, 0, 0, 2, 1, 0, 0, 0), BOS, EOS, PAD, grid_start=6, grid_size=3)
BATCH, MAX_LENGTH = 2, 5

_RNG = np.random.default_rng(0)
CONTEXT = _RNG.normal(0, 1, (BATCH, TABLE.size))
NEXT = _RNG.normal(0, 1, (TABLE.size, TABLE.size))


def step_fn(cache, ancestors, low, fraction, position):
    """Logits from the trajectory and a fading sum over all soft tokens written so far."""
    del ancestors, position  # Rows never meet, so that each goes on from its own sum.
    following, weight = jnp.asarray(NEXT), fraction[..., None]
    high = jnp.minimum(low + 1, TABLE.size - 1)
    memory = 0.5 * cache + (1 - weight) * following[low] + weight * following[high]
    return jnp.asarray(CONTEXT)[:, None, :] + memory, memory


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum())


def exact_distribution(row, shape_logits=lambda x: x, grammar=True):
    """{tokens: (probability of drawing them, log p of the model)}, by following every branch."""
    outcomes = {}

    def follow(tokens, memory, fed, drawn, log_p_sum):
        low, fraction = fed
        memory = 0.5 * memory + (1 - fraction) * NEXT[low]
        memory = memory + (fraction * NEXT[low + 1] if fraction else 0.0)
        log_p = log_softmax(CONTEXT[row] + memory)
        choices = allowed(tokens, MAX_LENGTH, TABLE, grammar)
        masked = np.full(TABLE.size, -np.inf)
        masked[choices] = log_p[choices]
        draw = np.exp(log_softmax(shape_logits(masked)))
        for token in np.flatnonzero(draw):
            grown = (*tokens, int(token))
            now = drawn * draw[token], log_p_sum + log_p[token]
            if token == EOS:
                outcomes[grown] = now
            elif len(grown) == MAX_LENGTH:
                outcomes[grown] = now[0], -np.inf
            else:
                follow(grown, memory, soft(log_p, token, TABLE), *now)

    follow((), np.zeros(TABLE.size), (BOS, 0.0), 1.0, 0.0)
    assert sum(p for p, _ in outcomes.values()) == pytest.approx(1.0)
    return outcomes


@functools.cache
def jitted_sample(samples, grammar=True, **settings):
    """Compiled once for the same settings, from a key to samples."""
    decoding, sampling = Decoding(TABLE, BATCH, MAX_LENGTH, grammar), Sampling(**settings)
    cache = jnp.zeros((BATCH, samples, TABLE.size))
    return jax.jit(lambda key: sample(step_fn, cache, key, decoding, samples, sampling))


def draw(samples, seed=0, **settings):
    run = jitted_sample(samples=samples, **settings)
    return jax.tree.map(np.asarray, run(jax.random.key(seed)))


def tokens_of(result, row):
    return [
        tuple(tokens[:length].tolist())
        for tokens, length in zip(result.tokens[row], result.lengths[row], strict=True)
    ]


def temperature_half(logits):
    return logits / 0.5


def two_most_probable(logits):
    return np.where(logits >= np.sort(logits)[-2], logits, -np.inf)


def nucleus(logits):
    """Smallest set of at least 0.6, by adding one token after another."""
    probability, kept = np.exp(log_softmax(logits)), []
    for token in np.argsort(-probability):
        kept.append(token)
        if probability[kept].sum() >= 0.6:
            break
    return np.where(np.isin(np.arange(len(logits)), kept), logits, -np.inf)


@pytest.mark.parametrize(
    ("settings", "shape_logits"),
    [
        ({}, lambda logits: logits),
        ({"temperature": 0.5}, temperature_half),
        ({"top_k": 2}, two_most_probable),
        ({"top_p": 0.6}, nucleus),
        (
            {"temperature": 0.5, "top_k": 2, "top_p": 0.6},
            lambda logits: nucleus(two_most_probable(temperature_half(logits))),
        ),
        ({"grammar": False}, lambda logits: logits),
    ],
    ids=["plain", "temperature", "top_k", "top_p", "all", "no_grammar"],
)
def test_samples_follow_the_exact_distribution(settings, shape_logits):
    count = 10_000
    result = draw(count, **settings)
    for row in range(BATCH):
        exact = exact_distribution(row, shape_logits, settings.get("grammar", True))
        drawn = collections.Counter(tokens_of(result, row))
        assert set(drawn) <= set(exact)
        for tokens, (probability, _) in exact.items():
            error = (probability * (1 - probability) / count) ** 0.5
            assert abs(drawn[tokens] / count - probability) < 5 * error + 2 / count, tokens
        # The score is the model's own, whatever the draw.
        log_p = [exact[tokens][1] for tokens in tokens_of(result, row)]
        np.testing.assert_allclose(result.log_probability[row], log_p, atol=1e-4)


def test_every_sample_is_a_complete_expression_with_padding_behind():
    result = draw(2_000, seed=1, temperature=3.0)
    for row in range(BATCH):
        for tokens in tokens_of(result, row):
            slots = [open_slots_after(tokens[:n], TABLE) for n in range(len(tokens))]
            assert tokens[-1] == EOS and slots[-1] == 0 and all(slots[:-1])
    behind = np.arange(MAX_LENGTH)[None, None, :] >= result.lengths[..., None]
    assert (result.tokens[behind] == PAD).all() and (result.low[behind] == PAD).all()
    assert (result.fraction[behind] == 0).all() and np.isfinite(result.log_probability).all()
    # Constants lie between two points of the grid, all else is fed as it is.
    constant = result.tokens >= 6
    assert (result.low[~constant] == result.tokens[~constant]).all()
    assert ((result.low[constant] >= 6) & (result.low[constant] <= 7)).all()


def test_without_grammar_unfinished_samples_are_marked():
    result = draw(2_000, grammar=False)
    unfinished = (result.tokens != EOS).all(-1)
    assert unfinished.any() and not unfinished.all()
    np.testing.assert_array_equal(np.isneginf(result.log_probability), unfinished)


def test_the_key_decides():
    first, again, other = draw(64, seed=3), draw(64, seed=3), draw(64, seed=4)
    for name in BeamResult._fields:
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert tokens_of(first, 0) != tokens_of(other, 0)
    assert len(set(tokens_of(first, 0))) > 5


@pytest.mark.parametrize("settings", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}])
@pytest.mark.parametrize("grammar", [True, False])
def test_the_narrowest_sampling_is_greedy(settings, grammar):
    result = draw(3, grammar=grammar, **settings)
    decoding = Decoding(TABLE, BATCH, MAX_LENGTH, grammar)
    best = jax.jit(lambda cache: greedy(step_fn, cache, decoding))(
        jnp.zeros((BATCH, 1, TABLE.size))
    )
    for name in BeamResult._fields:
        for i in range(3):
            np.testing.assert_allclose(
                getattr(result, name)[:, i], getattr(best, name)[:, 0], atol=1e-6
            )


@pytest.mark.parametrize("temperature", [1e-30, 1e30])
def test_the_coldest_and_the_hottest_draw_as_they_should(temperature):
    result = draw(500, temperature=temperature)
    assert np.isfinite(result.log_probability).all()
    assert (len(set(tokens_of(result, 0))) == 1) == (temperature < 1)


def test_keep_top_k_and_top_p_by_hand():
    logits = jnp.log(jnp.asarray([[0.1, 0.5, 0.15, 0.25], [0.25, 0.25, 0.25, 0.25]]))

    def kept(logits):
        return np.isfinite(logits).tolist()

    assert kept(keep_top_k(logits, 2))[0] == [False, True, False, True]
    assert kept(keep_top_k(logits, 9))[0] == [True] * 4
    assert kept(keep_top_p(logits, 0.49))[0] == [False, True, False, False]
    assert kept(keep_top_p(logits, 0.74))[0] == [False, True, False, True]
    assert kept(keep_top_p(logits, 0.76))[0] == [False, True, True, True]
    assert kept(keep_top_p(logits, 1e-9))[0] == [False, True, False, False]
    # What is forbidden stays so.
    masked = logits.at[:, 1].set(-jnp.inf)
    assert kept(keep_top_k(masked, 4))[0] == kept(keep_top_p(masked, 0.999))[0]
    assert not kept(keep_top_p(masked, 0.999))[0][1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "above 0"),
        ({"temperature": float("nan")}, "above 0"),
        ({"temperature": float("inf")}, "above 0 and finite"),
        ({"temperature": 1e39}, "above 0 and finite"),  # Infinite in float32.
        ({"temperature": 1e-46}, "above 0 and finite"),  # 0 in float32.
        ({"top_k": -1}, "top_k"),
        ({"top_k": 1.5}, "top_k must be a whole number"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"samples": 0}, "at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        draw(**{"samples": 4, **settings})
