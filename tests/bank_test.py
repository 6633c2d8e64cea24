"""The skeleton bank: drawn in parallel, resumed, stored, checked."""

import dataclasses
import gzip
import json

import numpy as np
import pytest
from nsode_jax.configs import base, smoke

from nsode_jax.config import from_config_dict
from nsode_jax.data import bank as bank_module
from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.generate import GenerationConfig, split_of
from nsode_jax.data.reserved_skeletons import held_out_keys, is_held_out, known_keys
from nsode_jax.evaluation.testsets import odebench, textbook
from nsode_jax.expressions.constants import resample_constants
from nsode_jax.expressions.expression import Skeleton
from nsode_jax.system.workers import Workers

CONFIG = dataclasses.replace(from_config_dict(smoke.get_config()).generation, num_skeletons=1500)


@pytest.fixture(scope="module")
def bank():
    with Workers(0) as workers:
        return SkeletonBank.draw(CONFIG, workers)


def test_skeletons_are_unique_and_as_many_as_asked(bank):
    assert len(bank.keys) == len(set(bank.keys)) == CONFIG.num_skeletons
    assert all("y" in Skeleton.from_key(key).tokens for key in bank.keys)
    counts = bank.counts
    dropped = sum(counts.values()) - counts["trees"] - counts["known from the test sets"]
    # The last batch may hold more than were needed.
    assert 0 <= counts["trees"] - dropped + counts["known from the test sets"] - 1500 < 500


def test_a_smaller_bank_begins_a_larger_one(bank):
    smaller = dataclasses.replace(CONFIG, num_skeletons=700)
    with Workers(2) as workers:
        assert SkeletonBank.draw(smaller, workers).keys == bank.keys[:700]


def test_an_interrupted_drawing_goes_on(bank, tmp_path, monkeypatch):
    monkeypatch.setattr(bank_module, "_BATCHES_PER_PART", 2)
    calls = []

    def draw(config, batch):
        calls.append(batch)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return original(config, batch)

    original = bank_module.draw_skeletons
    monkeypatch.setattr(bank_module, "draw_skeletons", draw)
    with Workers(0) as workers:
        with pytest.raises(KeyboardInterrupt):
            SkeletonBank.draw(CONFIG, workers, folder=tmp_path)
        assert [path.name for path in sorted(tmp_path.iterdir())] == [
            "part-00000.json",
            "part-00001.json",
        ]
        resumed = SkeletonBank.draw(CONFIG, workers, folder=tmp_path)
        assert calls[:7] == [0, 1, 2, 3, 4, 5, 4]
        other = dataclasses.replace(CONFIG, seed=1)
        with pytest.raises(ValueError, match="begun with other settings"):
            SkeletonBank.draw(other, workers, folder=tmp_path)
    assert resumed.keys == bank.keys
    assert resumed.counts == bank.counts


def test_file_round_trip_is_exact_and_deterministic(bank, tmp_path):
    bank.save(tmp_path / "a.gz")
    bank.save(tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    loaded = SkeletonBank.load(tmp_path / "a.gz")
    assert (loaded.keys, loaded.settings, loaded.counts) == (
        bank.keys,
        bank.settings,
        bank.counts,
    )
    assert not list(tmp_path.glob("*.partial"))


def test_damaged_files_are_refused(bank, tmp_path):
    path = tmp_path / "bank.gz"
    bank.save(path)
    data = path.read_bytes()
    text = gzip.decompress(data).decode()
    header, body = text.split("\n", 1)
    other = json.dumps({**json.loads(header), "format": "another"})
    for damaged, message in [
        (data[: len(data) // 2], "damaged or no nsode_jax skeleton bank"),
        (b"no bank", "damaged or no nsode_jax skeleton bank"),
        (gzip.compress(b"[1]\nmul c y\n"), "damaged or no nsode_jax skeleton bank"),
        (gzip.compress(f"{other}\n{body}".encode()), "has the format 'another'"),
        (gzip.compress(text.replace("sin", "cos").encode()), "its checksum differs"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=message):
            SkeletonBank.load(path)
    with pytest.raises(FileNotFoundError, match="no skeleton bank"):
        SkeletonBank.load(tmp_path / "none.gz")


def test_rare_complexities_get_more_constants(bank):
    sets = dict(zip(bank.keys, bank.constant_sets(CONFIG), strict=True))
    sharing = {}
    for key in sets:
        sharing.setdefault(len(key.split()), []).append(sets[key])
    counts = {size: len(members) for size, members in sharing.items()}
    commonest, rarest = max(counts, key=counts.get), min(counts, key=counts.get)
    assert set(sharing[commonest]) == {CONFIG.constants_per_skeleton}
    assert set(sharing[rarest]) == {CONFIG.max_constants_per_skeleton}
    even = dataclasses.replace(CONFIG, max_constants_per_skeleton=2)
    assert set(bank.constant_sets(even)) == {2}


def test_splits_share_the_skeletons(bank):
    train = [key for key, _ in bank.work(CONFIG, "train")]
    validation = [key for key, _ in bank.work(CONFIG, "validation")]
    assert sorted(train + validation) == sorted(bank.keys)
    assert all(split_of(key, CONFIG.validation_share) == "train" for key in train)


def test_an_exhausted_prior_is_an_error():
    prior = dataclasses.replace(
        CONFIG.prior, max_operators=1, size_weights=(), law_share=0.0, operators="add sin"
    )
    config = GenerationConfig(
        prior=prior, simplify=False, num_skeletons=10_000, known_test_skeletons=False
    )
    with Workers(0) as workers, pytest.raises(RuntimeError, match="holds no more than about"):
        SkeletonBank.draw(config, workers)


def test_known_test_skeletons_come_first():
    config = dataclasses.replace(
        from_config_dict(base.get_config()).generation, num_skeletons=len(known_keys())
    )
    with Workers(0) as workers:
        bank = SkeletonBank.draw(config, workers)
    fitting = [key for key in known_keys() if len(key.split()) <= config.max_complexity]
    fitting = [key for key in fitting if not is_held_out(key)]
    assert bank.keys[: len(fitting)] == tuple(fitting)
    assert bank.counts["known from the test sets"] == len(fitting) > 600


def test_the_shipped_bank():
    bank = SkeletonBank.load("base")
    config = from_config_dict(base.get_config()).generation
    assert len(bank.keys) == len(set(bank.keys)) == config.num_skeletons >= 300_000
    assert bank.settings == bank_module.drawing_settings(config)
    unsigned = {Skeleton.from_key(key).unsigned_key for key in bank.keys}
    assert len(held_out_keys()) == 100
    assert not unsigned & held_out_keys()
    # Nearly all of it is in the canonical form of today: other skeletons get no constants.
    rng = np.random.default_rng(0)
    sample = bank.keys[::1500]
    kept = [resample_constants(Skeleton.from_key(key), config.prior, rng) for key in sample]
    assert sum(law is not None for law in kept) >= 0.99 * len(sample)
    # The laws of the textbook and most of ODEBench are in it.
    assert all(p.expression.skeleton.key in bank.keys for p in textbook())
    laws = {p.expression.skeleton.unsigned_key for p in odebench() if p.expression}
    assert len(laws & unsigned) >= 0.7 * len(laws)


def test_held_out_means_whatever_the_signs():
    key = min(key for key in held_out_keys() if "c" in key.split())
    negative = " ".join("-c" if token == "c" else token for token in key.split())
    assert is_held_out(key) and is_held_out(negative)
    assert not is_held_out("mul c y")


def test_an_older_bank_yields_nothing_that_was_held_out_since(bank):
    key = min(held_out_keys())
    older = SkeletonBank((*bank.keys, key), bank.settings, bank.counts)
    work = older.work(CONFIG, "train") + older.work(CONFIG, "validation")
    assert sorted(k for k, _ in work) == sorted(bank.keys)
