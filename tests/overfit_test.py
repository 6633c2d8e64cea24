"""A smoke-size model learns 64 equations by heart: network, loss and decoding fit together."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from decoded import greedy

from nsode_jax.data.examples import corrupted_example, points_to_words
from nsode_jax.data.records import features_to_record, open_split
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.decoding.propose import token_table
from nsode_jax.decoding.steps import Decoding
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.loss import means
from nsode_jax.training.step import batch_sums

STEPS, STEPS_PER_CALL = 1000, 100
VOCABULARY = Vocabulary()


def equations(config, count=64):
    """Examples of so many different equations, without noise."""
    source = open_split("nsode/smoke", "train", config.training.data_dir)
    records = {}
    for features in source:
        record = features_to_record(features)
        records.setdefault(record.expression.infix, record)
    assert len(records) >= count
    clean = dataclasses.replace(config.corruption, noisy_share=0.0, sparse_share=0.0)
    rng = np.random.default_rng(0)
    examples = [
        corrupted_example(record, config.model.example_format, clean, VOCABULARY, rng)
        for record in list(records.values())[:count]
    ]
    return points_to_words({k: np.stack([e[k] for e in examples]) for k in examples[0]})


def learned(model, batch):
    """Parameters after all steps on one batch, on one device."""
    optimizer = optax.adamw(optax.cosine_decay_schedule(3e-3, STEPS), b2=0.98)

    @jax.jit
    def some_steps(params, state):
        def step(carry, _):
            params, state = carry

            def loss(params):
                return means(batch_sums(model, params, batch, VOCABULARY))["loss"]

            updates, state = optimizer.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (params, state), length=STEPS_PER_CALL)[0]

    params = model.init(0)
    state = optimizer.init(params)
    for _ in range(STEPS // STEPS_PER_CALL):
        params, state = some_steps(params, state)
    return params


def test_64_equations_are_memorized(smoke_config):
    model = Model(smoke_config.model)
    batch = equations(smoke_config)
    params = learned(model, jax.tree.map(jnp.asarray, batch))

    @jax.jit
    def decode(params):
        memory = model.encode(params, batch["words"], batch["mask"])
        return greedy(
            functools.partial(model.step, params, memory),
            model.init_cache(64, 1),
            Decoding(token_table(VOCABULARY), batch=64, max_length=model.config.max_length),
        )

    written = decode(params)
    for i in range(64):
        target = VOCABULARY.decode(batch["low"][i], batch["fraction"][i]).prefix
        found = VOCABULARY.decode(written.low[i, 0], written.fraction[i, 0]).prefix
        assert symbols(found) == symbols(target)
        np.testing.assert_allclose(constants(found), constants(target), atol=0.02)


def symbols(prefix):
    return [t if isinstance(t, str) else "c" for t in prefix]


def constants(prefix):
    return [t for t in prefix if not isinstance(t, str)]
