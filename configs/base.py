"""What we train on: laws with small constants, noise, gaps, any units; for one large GPU.

    bash launch/pretrain_gpu.sh

trains it for ten minutes on one H100 with 16 CPU cores, without network, and sets batch
and steps from what it measures there. Without a limit of time:

    python -m nsode_jax.train --config configs/base.py --workdir RUN \\
        --config.model.dtype=bfloat16 --config.training.data_workers=15

Either draws fresh examples from the bank of skeletons that ships with the package. To
store a data set instead:

    python -m nsode_jax.generate --config configs/base.py --data_dir DATA
    python -m nsode_jax.train --config configs/base.py --workdir RUN \\
        --config.training.dataset=nsode/base --config.training.data_dir=DATA
"""

from ml_collections import ConfigDict

from nsode_jax.config import defaults


def get_config() -> ConfigDict:
    """The wide prior, and a model that it fits."""
    config = defaults()
    config.update(
        generation=dict(
            num_skeletons=300_000,
            simplify=False,
            max_complexity=31,
            constants_per_skeleton=2,
            max_constants_per_skeleton=120,
            initial_values_per_ode=8,
            min_time=1.0,
            heavy_initial_share=0.3,
            heavy_initial_values=(0.02, 50.0),
            rescaled_share=0.6,
            rescaled_size=(0.5, 5.0),
        ),
        prior=dict(
            max_operators=8,
            size_weights=(1.0, 1.0, 1.0, 1.0, 1.0, 0.3, 0.2, 0.1),
            law_share=0.4,
            integer_probability=0.3,
            log_uniform_share=0.5,
            min_constant=1e-3,
            max_exponent=5.0,
            integer_exponent_probability=0.75,
        ),
        solver=dict(method="dop853", num_points=256, max_value=100.0, min_range=0.01),
        corruption=dict(
            noisy_share=0.5,
            min_noise=1e-3,
            max_noise=0.1,
            sparse_share=0.3,
            irregular_share=0.5,
            dropped_share=0.3,
            max_dropped=0.5,
            window_share=0.15,
            min_window=0.25,
            copies=2,
        ),
        # 17.8M parameters, 36 MB as exported. The cores should limit such a run, not the GPU:
        # at 900 examples a second each, 15 of them draw 6 million in seven minutes. The GPU
        # could train a larger model on these, but it has to travel, and to decode on a laptop.
        model=dict(
            num_points=128,
            patch_size=8,
            max_length=32,
            layers=6,
            heads=5,
            width=320,
            hidden_width=1280,
            norm="pre",
            derivative_channel=True,
        ),
        training=dict(
            dataset="online:base",
            batch_size=256,
            learning_rate=5e-4,
            warmup_steps=1000,
            schedule="cosine",
            clip_norm=1.0,
            adam_b2=0.98,
            weight_decay=0.01,
            ema_decay=0.999,
            steps=25_000,
        ),
    )
    return config
