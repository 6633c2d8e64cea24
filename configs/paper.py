"""NSODE as in Becker et al.: data, model and training of the paper.

    python -m nsode_jax.generate --config configs/paper.py --data_dir DATA
    python -m nsode_jax.train --config configs/paper.py --config.training.data_dir=DATA

The paper trained on "63M ODEs" for 18 epochs on four A100 GPUs, with batches of 600. We read
that as 63 million solutions: 250,000 skeletons, each with 25 sets of constants (12% of them hold
no constants and are one equation), 25 initial values of each equation, of which 45% pass the
checks, are 62.8 million. 18 epochs of 63 million are 1.89 million steps. (Read as 63 million
sets of constants it would be ten times as much: 12 TB on the paper's grid.)

What the paper leaves open, and we chose: complexities up to 63 and targets up to 64 tokens;
1% of the skeletons, by hash, for validation; skeletons of the test set `skeletons` are left
out, and those of `iv` and `constants` come first; a second of processor time for SymPy's
`simplify`; the optimizer, Adam with b2 = 0.999 and neither weight decay nor clipping;
parameters drawn as in Flax, embeddings from N(0, 0.02^2); no dropout. docs/paper.md holds the
whole comparison.
"""

from ml_collections import ConfigDict

from nsode_jax.config import defaults


def get_config() -> ConfigDict:
    """Every field that differs from the defaults, which are the paper's."""
    config = defaults()
    config.update(
        generation=dict(num_skeletons=250_000),
        model=dict(
            num_points=1024,
            patch_size=1,
            max_length=64,
            layers=6,
            heads=16,
            width=512,
            hidden_width=2048,
            norm="post",
            derivative_channel=False,
        ),
        training=dict(
            dataset="nsode/paper",
            batch_size=600,
            learning_rate=1e-4,
            warmup_steps=10_000,
            schedule="constant",
            steps=1_890_000,
        ),
    )
    return config
