"""Operations counted, peak measured, rates told."""

import time

import jax
import jax.numpy as jnp
import pytest

from nsode_jax.modeling.transformer import Model, ModelConfig
from nsode_jax.training.speed import Speed, flops_per_example, peak_flops

# Wide enough that little but matrix products counts.
WIDE = ModelConfig(
    num_points=64, patch_size=8, max_length=16, layers=2, heads=2, width=256, hidden_width=512,
    norm="pre", derivative_channel=True,
)  # fmt: skip


def test_operations_against_xla():
    """The forward pass is a third of a step; XLA counts all operations of the program."""
    model = Model(WIDE)

    def forward(params, words, mask, low, fraction):
        return model.decode(params, model.encode(params, words, mask), low, fraction)

    shapes = (
        model.shapes(),
        jax.ShapeDtypeStruct((4, 64, 3, 2), jnp.uint32),
        jax.ShapeDtypeStruct((4, 64), bool),
        jax.ShapeDtypeStruct((4, 16), jnp.int32),
        jax.ShapeDtypeStruct((4, 16), jnp.float32),
    )
    counted = jax.jit(forward).lower(*shapes).cost_analysis()["flops"]
    assert counted == pytest.approx(4 * flops_per_example(WIDE) / 3, rel=0.05)


def test_peak_is_measured_once():
    peak = peak_flops("float32")
    assert 1e9 < peak < 1e15
    start = time.perf_counter()
    assert peak_flops("float32") == peak
    assert time.perf_counter() - start < 0.01


def test_rates(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    speed = Speed(WIDE, batch_size=10, peak=1000 * flops_per_example(WIDE))
    for _ in range(4):
        speed.stepped(waited=0.1)
    speed.paused(6.0)
    now[0] = 8.0  # Two seconds of steps.
    rates = speed.report()
    assert rates["samples_per_second"] == pytest.approx(20)
    assert rates["tokens_per_second"] == pytest.approx(20 * (8 + 16))
    assert rates["flops_utilization"] == pytest.approx(0.02)
    assert rates["input_wait"] == pytest.approx(0.2)
    now[0] = 9.0
    assert speed.report()["samples_per_second"] == 0
