"""A model of 2 million parameters that two CPU cores train in one to two hours.

    python -m nsode_jax.generate --config configs/small.py --data_dir DATA
    python -m nsode_jax.train --config configs/small.py --workdir RUN \\
        --config.training.data_dir=DATA

Noise, gaps, short windows and series of 8 points and up are in its training data.
"""

from ml_collections import ConfigDict

from nsode_jax.config import defaults


def get_config() -> ConfigDict:
    """The small model and its wider prior: simple laws and small constants."""
    config = defaults()
    config.generation.update(
        num_skeletons=50_000,
        simplify=False,
        max_complexity=27,
        constants_per_skeleton=2,
        max_constants_per_skeleton=120,
        initial_values_per_ode=4,
        validation_share=0.01,
    )
    config.prior.update(
        size_weights=(1.0, 1.0, 1.0, 1.0, 1.0),
        law_share=0.4,
        integer_probability=0.3,
        log_uniform_share=0.5,
        max_exponent=5.0,
        integer_exponent_probability=0.75,
    )
    config.solver.update(num_points=256, max_value=100.0, min_range=0.01)
    config.corruption.update(
        noisy_share=0.5,
        min_noise=1e-3,
        max_noise=0.1,
        sparse_share=0.4,
        irregular_share=0.5,
        window_share=0.25,
        min_window=0.25,
    )
    config.model.update(
        num_points=128,
        patch_size=8,
        max_length=28,
        layers=4,
        heads=4,
        width=128,
        hidden_width=512,
        norm="pre",
        derivative_channel=True,
    )
    config.training.update(
        dataset="nsode/small",
        batch_size=64,
        learning_rate=1e-3,
        warmup_steps=500,
        schedule="cosine",
        clip_norm=1.0,
        adam_b2=0.98,
        weight_decay=0.01,
        steps=9_500,
    )
    return config
