"""AdamW, Muon and the learning rate."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from nsode_jax.configs import smoke

from nsode_jax.config import from_config_dict
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.optimizer import learning_rate, make_optimizer

MODEL = Model(from_config_dict(smoke.get_config()).model)
MUON = TrainingConfig(optimizer="muon", warmup_steps=0, learning_rate=0.01)


def first_update(optimizer: optax.GradientTransformation):
    """The first update of the smoke config's model, for random gradients, by parameter."""
    params = MODEL.init(0)
    rng = np.random.default_rng(0)
    gradients = jax.tree.map(lambda p: jnp.asarray(rng.normal(size=p.shape), p.dtype), params)
    updates, _ = jax.jit(optimizer.update)(gradients, optimizer.init(params), params)
    return {
        "/".join(str(entry.key) for entry in path): np.asarray(update)
        for path, update in jax.tree_util.tree_leaves_with_path(updates)
    }


def is_matrix(name: str) -> bool:
    return name.endswith("kernel") and name != "output/kernel"


def test_muon_updates_the_matrices_and_adam_the_rest():
    adam = first_update(optax.nadamw(0.01, b2=MUON.adam_b2, weight_decay=0.0))
    for name, update in first_update(make_optimizer(MUON)).items():
        if not is_matrix(name):
            np.testing.assert_allclose(update, adam[name], rtol=1e-4, atol=1e-7)
            continue
        # Roughly orthogonal; the smallest singular values come from almost 0.
        values = np.linalg.svd(update, compute_uv=False)
        assert values.max() < 2 * np.median(values)
        # As large as AdamW's, whatever the shape: 0.2 times the learning rate.
        assert np.sqrt(np.mean(update**2)) == pytest.approx(0.2 * 0.01, rel=0.3)


def test_weights_decay_under_both():
    plain, decayed = (
        first_update(make_optimizer(dataclasses.replace(MUON, weight_decay=decay)))
        for decay in (0.0, 0.1)
    )
    params = {
        "/".join(str(entry.key) for entry in path): np.asarray(value)
        for path, value in jax.tree_util.tree_leaves_with_path(MODEL.init(0))
    }
    for name, value in params.items():
        np.testing.assert_allclose(decayed[name] - plain[name], -1e-3 * value, atol=1e-6)


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_the_state_has_one_structure_for_all_settings(name):
    params = MODEL.init(0)
    plain = TrainingConfig(optimizer=name)
    other = TrainingConfig(
        optimizer=name, clip_norm=1.0, decay_steps=5, weight_decay=0.1, adam_b2=0.9
    )
    cosine = dataclasses.replace(plain, schedule="cosine")
    structures = {
        jax.tree.structure(make_optimizer(config).init(params)) for config in (plain, other, cosine)
    }
    assert len(structures) == 1


def test_learning_rate_warms_up_and_stays():
    schedule = learning_rate(TrainingConfig())
    rates = [float(schedule(step)) for step in (0, 5000, 10_000, 500_000)]
    np.testing.assert_allclose(rates, [0.0, 5e-5, 1e-4, 1e-4], rtol=1e-5)


def test_cosine_decays_to_zero():
    schedule = learning_rate(TrainingConfig(schedule="cosine", steps=1000, warmup_steps=100))
    assert float(schedule(100)) == pytest.approx(1e-4)
    assert 0 < float(schedule(900)) < 2e-5
    assert float(schedule(1000)) == pytest.approx(0.0, abs=1e-9)


def test_a_constant_rate_decays_in_a_line_at_the_end():
    schedule = learning_rate(TrainingConfig(steps=1000, warmup_steps=100, decay_steps=200))
    rates = [float(schedule(step)) for step in (50, 100, 800, 850, 1000, 1001)]
    np.testing.assert_allclose(rates, [5e-5, 1e-4, 1e-4, 7.5e-5, 0.0, 0.0], rtol=1e-5, atol=1e-12)
    # Of a branch from a young trunk: in the steps that are left.
    young = learning_rate(TrainingConfig(steps=250, warmup_steps=100, decay_steps=200))
    rates = [float(young(step)) for step in (100, 175, 250)]
    np.testing.assert_allclose(rates, [1e-4, 5e-5, 0.0], rtol=1e-5, atol=1e-12)
    # A run that is shorter than its warm-up does not decay.
    short = learning_rate(TrainingConfig(steps=10, warmup_steps=100, decay_steps=200))
    assert float(short(10)) == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "sgd"}, "optimizer must be 'adamw' or 'muon', got 'sgd'"),
        ({"schedule": "cosine", "decay_steps": 5}, "end a constant schedule, not a cosine one"),
        ({"decay_steps": -1}, "decay_steps must not be negative"),
        ({"learning_rate": -1e-3}, "learning_rate must not be negative"),
        ({"adam_b2": 1.5}, "adam_b2 must be at least 0 and below 1"),
        ({"max_seconds": -1.0}, "max_seconds must not be negative"),
        ({"init_from": "small", "branch_from": "run"}, "init_from, or a run, branch_from"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**settings)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name", ["learning_rate", "clip_norm", "weight_decay", "max_gradient_norm", "max_seconds"]
)
def test_settings_are_finite(name, value):
    with pytest.raises(ValueError, match=f"{name} must not be negative, and be finite, got "):
        TrainingConfig(**{name: value})
