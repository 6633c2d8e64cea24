"""NSODE as in Becker et al.: data, model and training of the paper.

    python -m nsode_jax.generate --config configs/paper.py --data_dir DATA
    python -m nsode_jax.train --config configs/paper.py --workdir RUN

The paper trained on 63 million equations for 18 epochs on four A100 GPUs.
"""

from ml_collections import ConfigDict

from nsode_jax.config import defaults


def get_config() -> ConfigDict:
    """Every field that differs from the defaults, which are the paper's."""
    config = defaults()
    config.generation.update(num_skeletons=100_000)
    config.model.update(
        num_points=1024,
        patch_size=1,
        max_length=64,
        layers=6,
        heads=16,
        width=512,
        hidden_width=2048,
        norm="post",
        derivative_channel=False,
    )
    config.training.update(
        dataset="nsode/paper",
        batch_size=600,
        learning_rate=1e-4,
        warmup_steps=10_000,
        schedule="constant",
        steps=1_000_000,
    )
    return config
