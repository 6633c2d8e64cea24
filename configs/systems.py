"""Several quantities and explicit time (appendix A), seconds on a CPU: a preview.

    python -m nsode_jax.train --config configs/systems.py --workdir RUN

Systems of one or two equations that may depend on the time, drawn from the prior as
training goes. A network of this size learns their grammar, not much more: a larger one
needs larger fields of `model` and more steps, and nothing else.
"""

from ml_collections import ConfigDict

from nsode_jax.config import defaults


def get_config() -> ConfigDict:
    """As small as still trains."""
    config = defaults()
    config.update(
        system=dict(num_states=2, explicit_time=True),
        generation=dict(
            num_skeletons=200,
            simplify=False,
            max_complexity=31,
            constants_per_skeleton=2,
            max_constants_per_skeleton=4,
            initial_values_per_ode=3,
            validation_share=0.1,
        ),
        prior=dict(max_operators=3, size_weights=(1.0, 1.0, 1.0), law_share=0.5, max_exponent=4.0),
        solver=dict(method="dop853", num_points=64, max_value=100.0, min_range=0.01),
        corruption=dict(noisy_share=0.5, sparse_share=0.3, window_share=0.2, copies=2),
        model=dict(
            num_points=32,
            patch_size=8,
            max_length=32,
            layers=1,
            heads=2,
            width=32,
            hidden_width=64,
            norm="pre",
            derivative_channel=True,
        ),
        training=dict(
            dataset="online:",
            batch_size=16,
            learning_rate=5e-3,
            warmup_steps=5,
            steps=60,
            log_every=10,
            validate_every=30,
            validation_batches=1,
            save_every=30,
        ),
    )
    return config
