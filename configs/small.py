"""A model of 2 million parameters that two CPU cores train in one to two hours.

    python -m nsode_jax.train --config configs/small.py --workdir RUN

Its data are those of base.py, but for the longest equations: drawn as training
goes, with noise, gaps, short windows and series of 8 points and up.
"""

from ml_collections import ConfigDict

from configs import base


def get_config() -> ConfigDict:
    """The wide prior of base.py, and a model for a CPU."""
    config = base.get_config()
    config.generation.update(num_skeletons=50_000, max_complexity=27)
    config.model.update(max_length=28, layers=4, heads=4, width=128, hidden_width=512)
    config.training.update(
        batch_size=64,
        learning_rate=1e-3,
        warmup_steps=500,
        steps=18_000,
    )
    return config
