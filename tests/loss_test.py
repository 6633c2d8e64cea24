"""The two-hot loss and the metrics beside it, against NumPy and by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
from batches import targets

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.decoding.grammar import soft_token
from nsode_jax.decoding.propose import token_table
from nsode_jax.expressions.expression import Expression
from nsode_jax.training.loss import decoded_constants, decoder_inputs, means, two_hot_sums

VOCABULARY = Vocabulary()


def metrics(logits, low, fraction):
    return means(two_hot_sums(jnp.asarray(logits, jnp.float32), low, fraction, VOCABULARY))


def certain(low, fraction):
    """Logits of a model that predicts the targets."""
    p = np.zeros((*low.shape, VOCABULARY.size))
    for index in np.ndindex(*low.shape):
        p[*index, low[index]] = 1 - fraction[index]
        p[*index, min(int(low[index]) + 1, VOCABULARY.size - 1)] += fraction[index]
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), -1e4)


def test_loss_against_numpy():
    low, fraction = targets(3)
    low = low.at[0, 5:].set(0)
    fraction = fraction.at[0, 5:].set(0.0)
    logits = np.random.default_rng(1).normal(size=(3, 8, 36)).astype(np.float32)
    found = metrics(logits, low, fraction)
    log_p = np.asarray(logits, np.float64)
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    total, hits, count = 0.0, 0, 0
    for i, j in np.ndindex(3, 8):
        token, upper = int(low[i, j]), float(fraction[i, j])
        if token == 0:
            continue
        count += 1
        for weight, index in ((1 - upper, token), (upper, token + 1)):
            if weight > 0:
                total -= weight * (log_p[i, j, index] - np.log(weight))
        best = int(log_p[i, j].argmax())
        hits += best == token or (upper > 0 and best == token + 1)
    assert count == 21
    np.testing.assert_allclose(found["loss"], total / count, rtol=1e-5)
    np.testing.assert_allclose(found["accuracy"], hits / count, rtol=1e-6)


def test_perfect_prediction():
    low, fraction = targets(2)
    found = metrics(certain(low, fraction), low, fraction)
    assert abs(float(found["loss"])) < 1e-5
    assert float(found["accuracy"]) == 1.0
    assert float(found["constant_error"]) < 1e-4


def test_accuracies_by_kind():
    low, fraction = VOCABULARY.encode(Expression.from_infix("0.3*y + sin(2*y)"), 12)
    low, fraction = jnp.asarray(low)[None], jnp.asarray(fraction)[None]
    # add mul 0.3 y sin mul 2 y <eos>: one operator wrong, no y right, constants off by one cell.
    tokens = [VOCABULARY.symbols[int(t)] if t < 15 else "c" for t in low[0, :9]]
    wrong = np.array(low)
    wrong[0, 0] = VOCABULARY.symbols.index("mul")
    wrong[0, [i for i, t in enumerate(tokens) if t == "y"]] = VOCABULARY.eos
    wrong[0, [i for i, t in enumerate(tokens) if t == "c"]] += 2
    found = metrics(certain(wrong, fraction), low, fraction)
    operators = sum(t not in ("y", "c", "<eos>") for t in tokens)
    assert operators >= 4
    assert float(found["operator_accuracy"]) == pytest.approx(1 - 1 / operators)
    assert float(found["variable_accuracy"]) == 0.0
    assert float(found["constant_accuracy"]) == 0.0
    assert float(found["constant_error"]) == pytest.approx(2.0, abs=1e-4)  # Two cells of 1.


def test_constants_are_decoded_as_the_decoder_does():
    logits = jnp.asarray(np.random.default_rng(3).normal(size=(4, 50, 36)), jnp.float32)
    best = VOCABULARY.grid_start + jnp.argmax(logits[..., VOCABULARY.grid_start :], axis=-1)
    low, fraction = soft_token(logits, best, token_table(VOCABULARY))
    expected = [
        VOCABULARY.constant(int(a), float(b))
        for a, b in zip(low.ravel(), fraction.ravel(), strict=True)
    ]
    found = decoded_constants(logits, VOCABULARY)
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-5)


def test_nothing_to_count_is_zero():
    low, fraction = jnp.full((1, 4), 3), jnp.zeros((1, 4))
    found = metrics(np.zeros((1, 4, 36)), low, fraction)
    assert float(found["constant_error"]) == 0.0


def test_decoder_inputs_are_shifted():
    low, fraction = targets(1)
    shifted, shifted_fraction = decoder_inputs(low, fraction)
    assert shifted[0, 0] == Vocabulary().bos
    assert shifted_fraction[0, 0] == 0.0
    np.testing.assert_array_equal(shifted[0, 1:], low[0, :-1])
    np.testing.assert_array_equal(shifted_fraction[0, 1:], fraction[0, :-1])
