"""Several quantities and explicit time (appendix A), seconds on a CPU: a preview.

    python -m nsode_jax.train --config configs/systems.py --workdir RUN

Systems of one or two equations that may depend on the time, drawn from the prior as
training goes. A network of this size learns their grammar, not much more: a larger one
needs larger fields of `model` and more steps, and nothing else.
"""

from ml_collections import ConfigDict
from nsode_jax.configs import smoke


def get_config() -> ConfigDict:
    """The model and the prior of smoke.py, for systems."""
    config = smoke.get_config()
    config.update(
        system=dict(num_states=2, explicit_time=True),
        generation=dict(
            num_skeletons=200,
            max_complexity=31,
            max_constants_per_skeleton=4,
            validation_share=0.1,
        ),
        solver=dict(method="dop853", min_range=0.01),
        corruption=dict(sparse_share=0.3, window_share=0.2, copies=2),
        model=dict(max_length=32),
        training=dict(
            dataset="online:",
            batch_size=16,
            learning_rate=5e-3,
            steps=60,
            log_every=10,
            validate_every=30,
            save_every=30,
        ),
    )
    return config
