"""The network: sizes, masks, caches, soft embeddings and gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batches import targets
from nsode_jax.configs import base, paper, small, smoke, systems

from nsode_jax.config import from_config_dict
from nsode_jax.data.bits import float_to_words
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.decoding.steps import own_positions
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.loss import decoder_inputs, means, two_hot_sums

TINY = ModelConfig(
    num_points=16, patch_size=4, max_length=8, layers=2, heads=2, width=16, hidden_width=32,
    norm="pre", derivative_channel=True,
)  # fmt: skip


@functools.cache
def tiny(norm="pre"):
    model = Model(ModelConfig(**{**TINY.__dict__, "norm": norm}))
    return model, model.init(0)


def trajectories(batch, seed=0, points=16, channels=3):
    values = np.random.default_rng(seed).normal(size=(batch, points, channels))
    return jnp.asarray(float_to_words(values)), jnp.ones((batch, points), bool)


@pytest.mark.parametrize(
    ("config", "encoder", "decoder"),
    [
        (paper, 19_505_664, 25_294_884),
        (base, 7_895_360, 9_900_836),
        (small, 992_128, 1_071_396),
        (smoke, 57_920, 15_748),
        (systems, 90_688, 16_455),
    ],
)
def test_parameter_counts(config, encoder, decoder):
    typed = from_config_dict(config.get_config())
    model_config, vocabulary = typed.model, Vocabulary.of(typed.generation.system)
    assert model_config.vocabulary_size == vocabulary.size
    assert (vocabulary == Vocabulary()) == (config is not systems)
    counts = Model(model_config).num_parameters()
    assert counts == {"encoder": encoder, "decoder": decoder, "total": encoder + decoder}


def test_the_papers_sizes_are_the_defaults():
    assert from_config_dict(paper.get_config()).model == ModelConfig()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_cached_steps_equal_teacher_forcing(norm):
    model, params = tiny(norm)
    memory = jax.jit(model.encode)(params, *trajectories(2))
    low, fraction = targets(2)
    expected = jax.jit(model.decode)(params, memory, low, fraction)
    cache, step = model.init_cache(2, 3), jax.jit(model.step)
    own = own_positions(2, 3, 8)
    for i in range(8):
        tokens = (jnp.tile(x[:, i : i + 1], (1, 3)) for x in (low, fraction))
        logits, cache = step(params, memory, cache, own, *tokens, jnp.int32(i))
        for beam in range(3):
            np.testing.assert_allclose(logits[:, beam], expected[:, i], atol=2e-5)


def test_decoder_does_not_look_ahead():
    model, params = tiny()
    memory = model.encode(params, *trajectories(1))
    low, fraction = targets(1)
    before = model.decode(params, memory, low, fraction)
    other = 3 if int(low[0, 5]) != 3 else 4
    after = model.decode(params, memory, low.at[0, 5].set(other), fraction.at[0, 5].set(0.0))
    np.testing.assert_array_equal(before[0, :5], after[0, :5])
    assert np.abs(before[0, 5:] - after[0, 5:]).max() > 1e-4


def test_masked_patches_do_not_matter_and_others_do():
    model, params = tiny()
    words, mask = trajectories(1)
    low, fraction = targets(1)
    short = mask.at[0, 8:].set(False)

    def logits(words, mask):
        return model.decode(params, model.encode(params, words, mask), low, fraction)

    other = words.at[0, 8:].set(trajectories(1, seed=1)[0][0, 8:])
    np.testing.assert_array_equal(logits(words, short), logits(other, short))
    assert np.abs(logits(words, mask) - logits(other, mask)).max() > 1e-4


def test_soft_embedding_interpolates():
    model, params = tiny()
    memory = model.encode(params, *trajectories(1))
    table = params["token_embedding"]["embedding"]
    with_mix = {**params, "token_embedding": {"embedding": table.at[3].set(
        0.25 * table[20] + 0.75 * table[21])}}  # fmt: skip
    low, zero = jnp.full((1, 1), 20), jnp.zeros((1, 1))
    soft = model.decode(params, memory, low, zero + 0.75)
    hard = model.decode(with_mix, memory, low * 0 + 3, zero)
    np.testing.assert_allclose(soft, hard, atol=1e-6)


@functools.cache
def loss_and_gradients():
    model, _ = tiny()

    def loss(params, words, mask, low, fraction):
        logits = model.decode(
            params, model.encode(params, words, mask), *decoder_inputs(low, fraction)
        )
        return means(two_hot_sums(logits, low, fraction, Vocabulary()))["loss"]

    return jax.jit(jax.value_and_grad(loss))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, 5e-324])
def test_special_values_give_finite_gradients(value):
    _, params = tiny()
    words = jnp.asarray(float_to_words(np.full((2, 16, 3), value)))
    mask = jnp.ones((2, 16), bool)
    loss, gradients = loss_and_gradients()(params, words, mask, *targets(2))
    assert np.isfinite(loss)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_bfloat16_activations_keep_float32_parameters_and_logits(norm):
    model = Model(ModelConfig(**{**TINY.__dict__, "norm": norm, "dtype": "bfloat16"}))
    params = model.init(0)
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.float32.dtype}
    memory = model.encode(params, *trajectories(1))
    assert memory[0][0][0].dtype == jnp.bfloat16
    exact_model, _ = tiny(norm)
    low, fraction = targets(1)
    rough = model.decode(params, memory, low, fraction)
    exact = exact_model.decode(params, exact_model.encode(params, *trajectories(1)), low, fraction)
    np.testing.assert_allclose(rough, exact, atol=0.03)
    assert np.mean(rough == rough.astype(jnp.bfloat16)) < 0.1  # No bits were cut off.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"patch_size": 5}, "patch_size 5 does not divide"),
        ({"heads": 3}, "heads 3 does not divide"),
        ({"norm": "none"}, "norm must be"),
        ({"dtype": "float64"}, "dtype must be"),
    ],
)
def test_impossible_sizes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**{**TINY.__dict__, **change})


def test_rematerialization_changes_nothing_but_memory():
    model, params = tiny()
    thrifty = Model(ModelConfig(**{**TINY.__dict__, "remat": True}))
    low, fraction = targets(2)

    def loss(model, params):
        memory = model.encode(params, *trajectories(2))
        return jnp.mean(model.decode(params, memory, low, fraction) ** 2)

    def run(model):
        return jax.jit(jax.value_and_grad(functools.partial(loss, model)))

    value, gradients = run(model)(params)
    thrifty_value, thrifty_gradients = run(thrifty)(params)
    np.testing.assert_allclose(thrifty_value, value, rtol=1e-6)
    for a, b in zip(*map(jax.tree.leaves, (gradients, thrifty_gradients)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)
    blocks = 2 * TINY.layers
    assert str(jax.make_jaxpr(run(thrifty))(params)).count("= remat2[") == blocks
