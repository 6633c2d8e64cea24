"""Seconds on a CPU: a tiny model on a tiny data set, for the tests.

python -m nsode_jax.train --config configs/smoke.py --workdir RUN
"""

from ml_collections import ConfigDict

from nsode_jax.config import defaults


def get_config() -> ConfigDict:
    """As small as still trains."""
    config = defaults()
    config.update(
        generation=dict(
            num_skeletons=40,
            simplify=False,
            max_complexity=15,
            constants_per_skeleton=2,
            max_constants_per_skeleton=8,
            initial_values_per_ode=3,
            known_test_skeletons=False,
            validation_share=0.2,
        ),
        prior=dict(max_operators=3, size_weights=(1.0, 1.0, 1.0), law_share=0.5, max_exponent=4.0),
        solver=dict(num_points=64, max_value=100.0),
        corruption=dict(noisy_share=0.5, sparse_share=0.5),
        model=dict(
            num_points=32,
            patch_size=8,
            max_length=16,
            layers=1,
            heads=2,
            width=32,
            hidden_width=64,
            norm="pre",
            derivative_channel=True,
        ),
        training=dict(
            dataset="nsode/smoke",
            batch_size=8,
            learning_rate=3e-3,
            warmup_steps=5,
            steps=30,
            log_every=5,
            validate_every=15,
            validation_batches=1,
            save_every=15,
        ),
    )
    return config
