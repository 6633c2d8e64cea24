"""A model of 2 million parameters that two CPU cores train in one to two hours.

    python -m nsode_jax.train --config configs/small.py --workdir RUN

Its data are drawn as training goes, with noise, gaps, short windows and series of 8
points and up, from a narrower prior than base.py's: a model of this size, trained for so
long, found twice as many of ODEBench's skeletons with it. Half of the equations are the
paper's trees of up to five operators, half the forms that known laws take.

    bash launch/train_in_background.sh

trains it on for days, from weights that have seen most.
"""

from ml_collections import ConfigDict
from nsode_jax.configs import base


def get_config() -> ConfigDict:
    """A model for a CPU, and a prior that it can learn."""
    config = base.get_config()
    config.update(
        generation=dict(
            num_skeletons=100_000,  # The first ones of the bank: simpler ones count for more.
            max_complexity=27,
            initial_values_per_ode=4,
            min_time=0.0,
            heavy_initial_share=0.0,
            rescaled_share=0.0,
            fresh_law_share=0.5,
        ),
        prior=dict(max_operators=5, size_weights=(1.0, 1.0, 1.0, 1.0, 1.0), min_constant=1e-2),
        corruption=dict(sparse_share=0.4, dropped_share=0.0, window_share=0.25),
        model=dict(max_length=28, layers=4, heads=4, width=128, hidden_width=512),
        training=dict(
            batch_size=128,
            length_multiple=4,
            optimizer="muon",
            learning_rate=1.2e-3,
            warmup_steps=300,
            schedule="constant",
            steps=9_000,
            decay_steps=1_500,
        ),
    )
    return config
