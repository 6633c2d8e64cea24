"""Operations counted, peak measured, rates told."""

import dataclasses
import json
import time
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from nsode_jax.modeling.checkpoints import TrainingCheckpoints
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.transformer import Model
from nsode_jax.training import loop, monitor
from nsode_jax.training.speed import Speed, flops_per_example, peak_flops, peak_memory

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
    assert speed.report() == {}
    speed.waited(50.0)
    now[0] = 60.0  # The first step is compiled.
    speed.stepped(16)
    assert speed.report() == {}
    for length in (16, 16, 8, 4):
        speed.waited(0.1)
        speed.stepped(length)
    now[0] = 67.0
    speed.paused(6.0)
    now[0] = 68.0  # Two seconds of steps.
    rates = speed.report()
    assert rates["samples_per_second"] == pytest.approx(20)
    # Targets that have been cut cost less.
    assert rates["tokens_per_second"] == pytest.approx(20 * (8 + 11))
    operations = sum(flops_per_example(WIDE, length) for length in (16, 16, 8, 4)) / 4
    assert 0.5 * flops_per_example(WIDE) < operations < 0.9 * flops_per_example(WIDE)
    assert rates["flops_utilization"] == pytest.approx(0.02 * operations / flops_per_example(WIDE))
    assert rates["input_wait"] == pytest.approx(0.2)
    assert speed.report() == {}


class SimulatedRun:
    """A run of the smoke config whose parts take the seconds that a test prescribes."""

    COMPILATION, VALIDATION, SAVING = 60.0, 100.0, 30.0

    def __init__(self, monkeypatch, smoke_config, workdir: Path):
        self._patch, self._config, self._workdir = monkeypatch, smoke_config, workdir
        self._now = self._free = 0.0
        """The time, and when the devices have done all that has been dispatched."""

    def rows(self, step: float, batch: float, **changes: int) -> dict[int, dict]:
        """Trains; the metrics by step."""

        def make_train_step(*arguments):
            compute = self._real["make_train_step"](*arguments)

            def dispatch(*arguments):
                state, metrics = compute(*arguments)
                self._now += 0.0 if self._free else self.COMPILATION
                self._free = end = max(self._free, self._now) + step
                loss = types.SimpleNamespace(
                    value=metrics["loss"], end=end, is_ready=lambda: self._now >= end
                )
                return state, metrics | {"loss": loss}

            return dispatch

        def unreplicate(tree):
            if isinstance(tree, dict):
                self._now = max(self._now, tree["loss"].end)
                tree = tree | {"loss": tree["loss"].value}
            return self._real["unreplicate"](tree)

        def passing(seconds: float, result):
            def function(*arguments, **_):
                self._now += seconds
                return result(*arguments)

            return function

        names = ("make_train_step", "unreplicate", "shard")
        self._real = {name: getattr(loop, name) for name in names}
        patch = self._patch.setattr
        patch(time, "perf_counter", lambda: self._now)
        patch(loop, "make_train_step", make_train_step)
        patch(loop, "unreplicate", unreplicate)
        patch(loop, "shard", passing(batch, self._real["shard"]))
        patch(loop, "validate", passing(self.VALIDATION, lambda *_: {"loss": 1.0}))
        patch(monitor, "peak_flops", lambda dtype: 1e9)
        patch(TrainingCheckpoints, "save", passing(self.SAVING, lambda *_: None))
        c = self._config
        training = dataclasses.replace(c.training, steps=12, **changes)
        loop.train(dataclasses.replace(c, training=training), self._workdir)
        text = (self._workdir / "metrics.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        return {row["step"]: row for row in rows if row["kind"] == "train"}


@pytest.mark.parametrize(
    ("log_every", "validate_every", "save_every"), [(1, 1, 1), (3, 3, 3), (2, 3, 5), (4, 2, 12)]
)
def test_pauses_do_not_count(
    monkeypatch, smoke_config, tmp_path, log_every, validate_every, save_every
):
    rows = SimulatedRun(monkeypatch, smoke_config, tmp_path).rows(
        step=2.0,
        batch=0.0,
        log_every=log_every,
        validate_every=validate_every,
        save_every=save_every,
    )
    assert sorted(rows) == list(range(log_every, 13, log_every))
    # The first step has no rate, since it was compiled.
    assert "samples_per_second" not in rows.pop(1, {})
    for row in rows.values():
        assert row["samples_per_second"] == pytest.approx(8 / 2.0)
        assert row["input_wait"] == 0


def test_waiting_is_counted_when_it_happens(monkeypatch, smoke_config, tmp_path):
    """A step takes a second, its batch three; devices are idle before and after a pause."""
    run = SimulatedRun(monkeypatch, smoke_config, tmp_path)
    rows = run.rows(step=1.0, batch=3.0, log_every=3, validate_every=3, save_every=6)
    # Two steps in four seconds, and then three in ten: three batches and the last step.
    assert rows[3]["samples_per_second"] == pytest.approx(2 * 8 / 4)
    assert rows[3]["input_wait"] == pytest.approx(3 / 4)
    for step in (6, 9, 12):
        assert rows[step]["samples_per_second"] == pytest.approx(3 * 8 / 10)
        assert rows[step]["input_wait"] == pytest.approx(9 / 10)


def test_input_wait_is_a_share(monkeypatch, smoke_config, tmp_path):
    run = SimulatedRun(monkeypatch, smoke_config, tmp_path)
    rows = run.rows(step=1.0, batch=3.0, log_every=1, validate_every=4, save_every=12)
    waits = [rows[step]["input_wait"] for step in range(2, 13)]
    assert all(0 <= wait <= 1 for wait in waits)
    assert max(waits) == 1


def test_peak_memory(monkeypatch):
    assert peak_memory() == {}  # CPUs do not tell.
    devices = [
        types.SimpleNamespace(memory_stats=lambda n=n: {"peak_bytes_in_use": n * 2**30})
        for n in (1, 3)
    ]
    monkeypatch.setattr(jax, "local_devices", lambda: devices)
    assert peak_memory() == {"peak_memory_gib": 3.0}
