"""`benchmarks/training.py` on smoke sizes, with PyTorch where there is one.

TORCH_PYTHON may name an interpreter with PyTorch and transformers, if this one has none.
"""

import dataclasses
import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from nsode_jax.configs import paper, small, smoke

from benchmarks import training
from nsode_jax.config import from_config_dict
from nsode_jax.data.vocabulary import EOS
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.speed import flops_per_example

SMOKE = from_config_dict(smoke.get_config())
TORCH_PYTHON = os.environ.get("TORCH_PYTHON", sys.executable)


@functools.cache
def has_torch() -> bool:
    command = [TORCH_PYTHON, "-c", "import torch, transformers"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize("file", [paper, small, smoke])
def test_batches_have_the_shapes_of_a_config(file):
    config = from_config_dict(file.get_config())
    batch, form = training.draw_batch(config, 8, seed=0), config.model.example_format
    assert batch["words"].shape == (8, form.num_points, config.model.channels, 2)
    assert batch["mask"].shape == (8, form.num_points)
    assert batch["low"].shape == batch["fraction"].shape == (8, form.max_length)
    assert ((batch["low"] == EOS).sum(axis=1) == 1).all()
    # The paper's series are all whole, the others' are not.
    assert batch["mask"].all() == (file is paper)
    again = training.draw_batch(config, 8, seed=0)
    assert all(np.array_equal(again[name], batch[name]) for name in batch)


def test_ours_alone_where_there_is_no_torch():
    measured, remarks = training.measure(SMOKE, 8, rounds=2, torch_python="/no/python")
    (ours,) = measured
    assert ours.parameters == Model(SMOKE.model).num_parameters()["total"]
    # Not all rounds count on a busy machine.
    assert 1 <= len(ours.seconds) == len(ours.rates) <= 2 * training.MOST_ROUNDS
    assert min(ours.seconds) > 0 and min(ours.rates) > 1e8
    assert ours.last_loss < ours.loss  # One batch, learned by heart.
    assert ours.xla_temporaries > 0
    if sys.platform == "linux":
        assert 50 < ours.peak < 5000
        assert all(0 <= share <= 1 for share in ours.others)
    assert remarks[0].startswith("PyTorch is left out: ") and "/no/python" in remarks[0]
    assert remarks[1].startswith("BigBird is left out: ")
    lines = list(training.report(SMOKE, 8, measured))
    assert any(line.startswith("ours") and f"{ours.parameters:,}" in line for line in lines)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_torch_does_the_same_job(norm):
    if not has_torch():
        pytest.skip(f"{TORCH_PYTHON} has no PyTorch with transformers")
    config = dataclasses.replace(
        SMOKE,
        model=dataclasses.replace(SMOKE.model, norm=norm, layers=2),
        training=dataclasses.replace(SMOKE.training, clip_norm=1.0, weight_decay=0.1),
    )
    measured, _ = training.measure(config, 8, rounds=1, torch_python=TORCH_PYTHON)
    ours, torch, bigbird = measured
    for row in (torch, bigbird) if norm == "post" else (torch,):
        for name in ("parameters", "loss", "gradient_norm", "last_loss"):
            assert getattr(row, name) == pytest.approx(getattr(ours, name), rel=1e-4), name
    verdicts = [line.rpartition(": ")[2] for line in training.agreement(config.model, measured)]
    assert verdicts[1:] == [
        "the same",
        "the same" if norm == "post" else "another network, BigBird is post-norm",
    ]


def test_the_last_word_of_a_process_that_ends(tmp_path):
    command = [sys.executable, "-c", "import no_such_module"]
    with pytest.raises(training.WorkerFailed, match="No module named 'no_such_module'"):
        training.Worker("bad", command, tmp_path)
    with pytest.raises(training.WorkerFailed, match="exit code 3"):
        training.Worker("silent", [sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_the_report_pairs_steps_of_one_round():
    flops = 8 * flops_per_example(SMOKE.model)
    rates = [2 * flops, flops, flops]
    times, their_times, others = [1.0, 2.0, 4.0], [3.0, 4.0, 8.0], [0.0, 0.25, 0.5]
    ours = training.Measured("ours", "", 100, 3.0, 1.0, 2.0, times, rates, others)
    theirs = training.Measured("PyTorch", "", 102, 3.0, 1.0, 2.0, their_times, rates, others)
    lines = list(training.report(SMOKE, 8, [ours, theirs]))
    cells = {line.split()[0]: line.split() for line in lines[2:4]}
    assert cells["ours"][1:5] == ["100", "2.000", "(1.500-3.000)", "1.00"]
    assert cells["ours"][8:10] == ["50%", "25%"]  # The first of 1/2, 1/2 and 1/4.
    assert cells["PyTorch"][4:6] == ["2.00", "(2.00-2.50)"]
    assert lines[-1].endswith("+2.00% parameters: NOT THE SAME")


@pytest.mark.parametrize("others", [(0.0, 0.5, 0.1, 0.0), (0.5,) * 8])
def test_rounds_on_a_busy_machine_do_not_count(monkeypatch, others):
    shares = iter((0.0,) * training.WARM_UP_STEPS + others)

    class Fake:
        facts = {"version": "", "parameters": 1}

        def __init__(self, name, command, folder):
            self.name = name
            if name != training.OURS:
                raise training.WorkerFailed("not here")

        def step(self):
            share = next(shares)
            numbers = {"loss": 1.0, "gradient_norm": 1.0, "rates": [1.0, 3.0]}
            return {"seconds": 1.0 + share, "others": share, **numbers}

        def peak_megabytes(self):
            return 100.0

        __enter__, __exit__ = lambda self: self, lambda *_: None

    monkeypatch.setattr(training, "Worker", Fake)
    (ours,), remarks = training.measure(SMOKE, 8, rounds=2, torch_python="")
    assert remarks[:2] == [f"{name} is left out: not here" for name in ("PyTorch", "BigBird")]
    if others[0] == 0.0:
        assert ours.seconds == [1.0, 1.1]
        assert remarks[2].startswith("in 1 of 3 rounds") and remarks[2].endswith("not counted")
    else:
        assert ours.seconds == [1.5] * 8
        assert remarks[2].startswith("in 8 of 8 rounds") and remarks[2].endswith("BUSY MACHINE")
    assert ours.rates[0] == 2.0 and ours.peak == 100.0
