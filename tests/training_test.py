"""The training loop on the smoke config: it learns, saves, resumes and exports."""

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from configs import smoke
from data_builders.nsode.nsode_dataset_builder import Builder
from nsode_jax.config import defaults, from_config_dict, load
from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.data.workers import Workers
from nsode_jax.decoding.propose import Proposer
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.modeling.pretrained import WeightsError, export, load_pretrained
from nsode_jax.modeling.transformer import Model
from nsode_jax.training import loop
from nsode_jax.training.loop import TrainingConfig, learning_rate, train
from nsode_jax.training.parallel import replicate, shard, unreplicate

CONFIG = from_config_dict(smoke.get_config())


@pytest.fixture(scope="module")
def training_config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    Builder(config="smoke", data_dir=str(folder), processes=2).download_and_prepare()
    return dataclasses.replace(CONFIG.training, data_dir=str(folder))


@pytest.fixture(scope="module")
def run(training_config, tmp_path_factory):
    """A finished run of 30 steps."""
    workdir = tmp_path_factory.mktemp("run")
    validation = train(CONFIG.generation, CONFIG.corruption, CONFIG.model, training_config, workdir)
    return workdir, validation


def lines(workdir: Path, kind: str) -> dict[int, dict]:
    rows = [json.loads(row) for row in (workdir / "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: row for row in rows if row["kind"] == kind}


def test_loss_falls(run):
    workdir, validation = run
    losses = {step: row["loss"] for step, row in lines(workdir, "train").items()}
    assert sorted(losses) == [5, 10, 15, 20, 25, 30]
    assert losses[30] < losses[5] - 0.3
    assert sorted(lines(workdir, "validation")) == [15, 30]
    assert validation["loss"] == pytest.approx(lines(workdir, "validation")[30]["loss"])
    assert list(workdir.glob("tensorboard/events*"))


def test_a_resumed_run_equals_an_undisturbed_one(run, training_config, tmp_path):
    workdir, _ = run
    half = dataclasses.replace(training_config, steps=15)
    train(CONFIG.generation, CONFIG.corruption, CONFIG.model, half, tmp_path)
    train(CONFIG.generation, CONFIG.corruption, CONFIG.model, training_config, tmp_path)
    resumed, undisturbed = lines(tmp_path, "train"), lines(workdir, "train")
    assert [resumed[s]["loss"] for s in (20, 25, 30)] == [
        undisturbed[s]["loss"] for s in (20, 25, 30)
    ]


def test_a_run_on_fresh_examples_resumes_where_it_was(tmp_path):
    bank = tmp_path / "bank.gz"
    with Workers(0) as workers:
        SkeletonBank.draw(CONFIG.generation, workers).save(bank)
    config = dataclasses.replace(
        CONFIG.training,
        dataset=f"online:{bank}",
        steps=6,
        log_every=1,
        validate_every=3,
        save_every=3,
    )

    def losses(folder, kind, **changes):
        changed = dataclasses.replace(config, **changes)
        train(CONFIG.generation, CONFIG.corruption, CONFIG.model, changed, folder)
        return {step: row["loss"] for step, row in lines(folder, kind).items()}

    undisturbed = losses(tmp_path / "a", "train")
    assert len(set(undisturbed.values())) == 6
    losses(tmp_path / "b", "train", steps=3)
    # Another number of workers draws the same examples.
    assert losses(tmp_path / "b", "train", data_workers=0) == undisturbed
    assert sorted(lines(tmp_path / "b", "validation")) == [3, 6]


def test_the_run_exports_weights_that_decode(run):
    workdir, _ = run
    proposer = Proposer.from_pretrained(workdir / "weights")
    assert proposer.card["samples_seen"] == 30 * 8
    t = np.linspace(0, 4, 20)
    series = [Trajectory(t, np.exp(-t)), Trajectory(t[:9], 1 + t[:9]), Trajectory(t, t**2)]
    proposals = proposer.propose(series, beams=4, samples=3)
    assert len(proposals) == 3
    for candidates in proposals:
        assert len(candidates) >= 4
        scores = [score for _, score in candidates]
        assert scores == sorted(scores, reverse=True)
        assert len({e for e, _ in candidates}) == len(candidates)
        assert all(e.complexity < CONFIG.model.max_length for e, _ in candidates)
    again = proposer.propose(series, beams=4, samples=3)
    assert again == proposals
    # Each series alone gives the same candidates as in the batch.
    alone = proposer.propose(series[1:2], beams=4)
    beam_only = proposer.propose(series, beams=4)
    assert [e.skeleton for e, _ in alone[0]] == [e.skeleton for e, _ in beam_only[1]]


def test_gradients_are_the_same_on_one_and_on_eight_devices():
    assert jax.local_device_count() == 8
    model = Model(CONFIG.model)
    optimizer = optax.sgd(1.0)
    rng = np.random.default_rng(0)
    batch = {
        "words": rng.integers(0, 2**32, (8, 32, 3, 2), dtype=np.uint64).astype(np.uint32),
        "mask": np.ones((8, 32), bool),
        # The same number of positions on each device: means of means are the mean.
        "low": np.full((8, 16), 3, np.int32),
        "fraction": np.zeros((8, 16), np.float32),
    }
    state = loop.init_state(model, optimizer, 0)
    step = loop.make_train_step(model, optimizer)
    new, metrics = step(replicate(state), shard(batch))
    new = unreplicate(new)
    assert int(new.step) == 1

    def loss(params):
        return loop._metrics(model, params, jax.tree.map(jnp.asarray, batch))["loss"]

    value, gradients = jax.value_and_grad(loss)(state.params)
    np.testing.assert_allclose(metrics["loss"][0], value, rtol=1e-5)
    for before, after, gradient in zip(
        *map(jax.tree.leaves, (state.params, new.params, gradients)), strict=True
    ):
        np.testing.assert_allclose(before - after, gradient, atol=2e-6)


def test_a_batch_that_devices_do_not_divide_is_an_error():
    with pytest.raises(ValueError, match="8 local devices do not divide a batch of 12"):
        shard({"x": np.zeros((12, 3))})


def test_learning_rate_warms_up_and_stays():
    schedule = learning_rate(TrainingConfig())
    rates = [float(schedule(step)) for step in (0, 5000, 10_000, 500_000)]
    np.testing.assert_allclose(rates, [0.0, 5e-5, 1e-4, 1e-4], rtol=1e-5)


def test_cosine_decays_to_zero():
    schedule = learning_rate(TrainingConfig(schedule="cosine", steps=1000, warmup_steps=100))
    assert float(schedule(100)) == pytest.approx(1e-4)
    assert 0 < float(schedule(900)) < 2e-5
    assert float(schedule(1000)) == pytest.approx(0.0, abs=1e-9)


def test_time_limit_ends_a_run_cleanly(training_config, tmp_path):
    config = dataclasses.replace(training_config, steps=10**6, max_seconds=0.01)
    train(CONFIG.generation, CONFIG.corruption, CONFIG.model, config, tmp_path)
    assert (tmp_path / "weights" / "model.json").is_file()
    assert lines(tmp_path, "validation")


def test_exported_weights_are_verified(tmp_path):
    model = Model(CONFIG.model)
    params = model.init(0)
    export(tmp_path, params, CONFIG.model, Vocabulary(), {"note": "x"}, half_precision=False)
    _, loaded, vocabulary, card = load_pretrained(tmp_path)
    assert card == {"note": "x"}
    assert vocabulary == Vocabulary()
    for a, b in zip(jax.tree.leaves(params), jax.tree.leaves(loaded), strict=True):
        np.testing.assert_array_equal(a, b)

    description = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**description, "schema_version": 99}))
    with pytest.raises(WeightsError, match="schema version 99"):
        load_pretrained(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(description))
    damaged = bytearray((tmp_path / "weights.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "weights.npz").write_bytes(bytes(damaged))
    with pytest.raises(WeightsError, match="SHA-256 does not match"):
        load_pretrained(tmp_path)
    with pytest.raises(WeightsError, match="neither a folder"):
        load_pretrained("no-such-weights")


def test_configs_are_locked_and_complete():
    config = defaults()
    with pytest.raises(AttributeError):
        config.model.depth = 3
    with pytest.raises(TypeError):
        config.model.layers = "six"
    # Fewer than 60 for those who generate, and for those who train.
    data = [f for name in ("prior", "solver", "generation") for f in config[name]]
    training = [f for name in ("corruption", "model", "training") for f in config[name]]
    assert len(data) + len(training) == sum(map(len, config.values()))
    assert max(len(data), len(training)) < 60
    for path in sorted(Path("configs").glob("[a-z]*.py")):
        name = "online:base" if path.stem in ("base", "small") else f"nsode/{path.stem}"
        assert load(path).training.dataset == name


def test_config_values_out_of_range_are_refused():
    config = defaults()
    config.training.schedule = "sometimes"
    with pytest.raises(ValueError, match="schedule must be"):
        from_config_dict(config)
    with pytest.raises(FileNotFoundError):
        load("configs/nothing.py")
