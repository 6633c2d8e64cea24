"""The compiled step: the same on any split of a batch; skipping, averaging."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nsode_jax.configs import smoke

from nsode_jax.config import from_config_dict
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.loss import means
from nsode_jax.training.parallel import on_each_device, replicate, shard, unreplicate
from nsode_jax.training.step import batch_sums, init_state, make_train_step

pytestmark = pytest.mark.devices

MODEL = Model(from_config_dict(smoke.get_config()).model)
PLAIN = TrainingConfig(warmup_steps=0, learning_rate=0.01)
SKIPPING = dataclasses.replace(PLAIN, ema_decay=0.5, max_gradient_norm=100.0)


def batch(size=16, seed=0):
    """Examples of all lengths, so that no mean of means is the mean."""
    rng = np.random.default_rng(seed)
    low = rng.integers(3, 35, (size, 16)).astype(np.int32)
    low *= np.arange(16) < rng.integers(1, 17, (size, 1))
    fraction = np.where(low >= 15, rng.random((size, 16)), 0.0).astype(np.float32)
    words = rng.integers(0, 2**32, (size, 32, 3, 2), dtype=np.uint64).astype(np.uint32)
    return {"words": words, "mask": np.ones((size, 32), bool), "low": low, "fraction": fraction}


@functools.cache
def compiled(config):
    return make_train_step(MODEL, config, Vocabulary())


def run(config, state, *batches, wish=0):
    step = compiled(config)
    state = replicate(state)
    for examples in batches:
        state, metrics = step(state, shard(examples), on_each_device(wish))
    return unreplicate(state), unreplicate(metrics)


@pytest.fixture(scope="module")
def reference():
    """Loss and gradients of the whole batch at once on one device."""

    def loss(params):
        examples = jax.tree.map(jnp.asarray, batch())
        return means(batch_sums(MODEL, params, examples, Vocabulary()))["loss"]

    return jax.jit(jax.value_and_grad(loss))(MODEL.init(0))


@pytest.mark.parametrize("config", [SKIPPING, dataclasses.replace(PLAIN, accumulate=2)])
def test_devices_and_micro_batches_do_not_change_the_step(reference, config):
    assert jax.local_device_count() == 8
    state = init_state(MODEL, config)
    new, metrics = run(config, state, batch())
    loss, gradients = reference
    np.testing.assert_allclose(metrics["loss"], loss, rtol=1e-5)
    # The first moment of Adam after one step is a tenth of the gradient.
    moments = new.optimizer[1][0].mu
    for moment, gradient in zip(*map(jax.tree.leaves, (moments, gradients)), strict=True):
        np.testing.assert_allclose(10 * moment, gradient, atol=2e-6, rtol=1e-4)


def test_bad_steps_are_skipped_and_counted():
    state = init_state(MODEL, SKIPPING)
    poisoned = jax.tree.map(lambda x: x, state)
    # A NaN among the parameters makes every loss NaN: nothing may change but the counts.
    poisoned.params["output"]["bias"] = jnp.full_like(state.params["output"]["bias"], jnp.nan)
    new, metrics = run(SKIPPING, poisoned, batch(), batch(seed=1))
    assert np.isnan(metrics["loss"])
    assert (new.step, new.skipped, new.skipped_in_a_row) == (2, 2, 2)
    for before, after in ((poisoned.params, new.params), (state.optimizer, new.optimizer)):
        jax.tree.map(np.testing.assert_array_equal, before, after)
    # The step after bad ones counts from 0 again, at the learning rate that was due.
    good = dataclasses.replace(new, params=state.params, average=state.params)
    once, metrics = run(SKIPPING, good, batch())
    assert (once.step, once.skipped, once.skipped_in_a_row) == (3, 2, 0)
    fresh, fresh_metrics = run(SKIPPING, state, batch())
    jax.tree.map(np.testing.assert_array_equal, once.params, fresh.params)
    assert metrics["learning_rate"] == fresh_metrics["learning_rate"]


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_an_update_that_is_not_finite_is_skipped(optimizer):
    """Of a finite loss and gradient: the rate is infinite in float32."""
    config = dataclasses.replace(PLAIN, learning_rate=1e39, ema_decay=0.5, optimizer=optimizer)
    state = init_state(MODEL, config)
    new, metrics = run(config, state, batch())
    assert np.isfinite([metrics["loss"], metrics["gradient_norm"]]).all()
    assert (new.step, new.skipped, new.skipped_in_a_row) == (1, 1, 1)
    for name in ("params", "average", "optimizer"):
        jax.tree.map(np.testing.assert_array_equal, getattr(new, name), getattr(state, name))


def test_the_average_follows_the_weights():
    state = init_state(MODEL, SKIPPING)
    one, _ = run(SKIPPING, state, batch())
    # At first it forgets faster than the decay says: 1/10 after the first step.
    expected = jax.tree.map(lambda a, p: 0.1 * a + 0.9 * p, state.params, one.params)
    for a, b in zip(*map(jax.tree.leaves, (one.average, expected)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert one.inference_params is one.average
    plain = init_state(MODEL, PLAIN)
    assert plain.inference_params is plain.params


def test_a_wish_reaches_the_metrics():
    _, metrics = run(SKIPPING, init_state(MODEL, SKIPPING), batch(), wish=2)
    assert metrics["wish"] == 2


def test_only_the_first_step_is_compiled():
    compiled, counts = [], []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )
    try:
        step, state = make_train_step(MODEL, PLAIN, Vocabulary()), init_state(MODEL, PLAIN)
        state = replicate(state)
        for seed in range(3):
            state, _ = step(state, shard(batch(seed=seed)), on_each_device(0))
            counts.append(len(compiled))
    finally:
        jax.monitoring.clear_event_listeners()
    assert 0 < counts[0] == counts[1] == counts[2]


def test_a_batch_that_devices_do_not_divide_is_an_error():
    with pytest.raises(ValueError, match="8 local devices do not divide a batch of 12"):
        shard({"x": np.zeros((12, 3))})
