"""Endless fresh examples from a bank."""

import dataclasses
import itertools

import numpy as np
import pytest
from batches import same
from nsode_jax.configs import base, smoke, systems

from nsode_jax.config import from_config_dict
from nsode_jax.data import online
from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.bits import words_to_float
from nsode_jax.data.generate import split_of
from nsode_jax.data.online import OnlineBatches, OnlineConfig, skeletons_of
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.system import integrate
from nsode_jax.expressions.coupled import SystemConfig, skeleton_of
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.system.workers import Workers

SMOKE = from_config_dict(smoke.get_config())
GENERATION = dataclasses.replace(SMOKE.generation, num_skeletons=300)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("bank") / "bank.gz"
    with Workers(0) as workers:
        SkeletonBank.draw(GENERATION, workers).save(path)
    form = SMOKE.model.example_format
    return OnlineConfig(str(path), GENERATION, SMOKE.corruption, form, "train", 8, seed=0)


def take(config, number, processes=0, state=None):
    batches = OnlineBatches(config, processes)
    if state:
        batches.set_state(state)
    drawn = list(itertools.islice(batches, number))
    state = batches.get_state()
    batches.close()
    return drawn, state


def test_batches_hold_trajectories_and_targets(config):
    clean = dataclasses.replace(config, corruption=CorruptionConfig())
    (batch, *_), _ = take(clean, 1)
    assert batch["words"].shape == (8, 32, 3, 2)
    assert batch["mask"].all()
    vocabulary = Vocabulary()
    for row in range(8):
        expression = vocabulary.decode(batch["low"][row], batch["fraction"][row])
        assert split_of(expression.skeleton.key, GENERATION.validation_share) == "train"
        t, y, _ = words_to_float(batch["words"][row]).T
        np.testing.assert_allclose(y, solve(expression, y[0], t), rtol=2e-2, atol=2e-2)


def test_number_of_workers_does_not_change_the_examples(config):
    alone, _ = take(config, 20)
    together, _ = take(config, 20, processes=2)
    assert all(same(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("processes", [0, 2])
def test_workers_draw_other_batches_in_between(config, processes):
    other = dataclasses.replace(config, split="validation")
    expected, _ = take(config, 12)
    expected_of_other, _ = take(other, 9)
    batches = OnlineBatches(config, processes)
    drawn = list(itertools.islice(batches, 5))
    drawn_of_other = batches.first_of(other, 9)
    drawn += itertools.islice(batches, 7)
    batches.close()
    assert all(same(a, b) for a, b in zip(drawn, expected, strict=True))
    assert all(same(a, b) for a, b in zip(drawn_of_other, expected_of_other, strict=True))


@pytest.mark.parametrize("position", [1, 8, 11])
def test_a_position_is_found_again(config, position):
    """In the first chunk of batches, between two, and in the second."""
    expected, _ = take(config, position + 3)
    _, state = take(config, position)
    resumed, _ = take(config, 3, processes=1, state=state)
    assert all(same(a, b) for a, b in zip(expected[position:], resumed, strict=True))


def test_nothing_repeats_and_seeds_differ(config):
    batches, _ = take(config, 40)
    trajectories = np.concatenate([b["words"].reshape(8, -1) for b in batches])
    assert len(np.unique(trajectories, axis=0)) == len(trajectories)
    other, _ = take(dataclasses.replace(config, seed=1), 1)
    assert not same(batches[0], other[0])


def test_solutions_of_one_equation_are_mixed_through(config):
    batches, _ = take(config, 8)
    equations = [b["low"].tobytes() + b["fraction"].tobytes() for b in batches]
    assert len(set(equations)) == len(equations)
    distinct = [len(np.unique(b["low"], axis=0)) for b in batches]
    assert np.mean(distinct) > 4  # Of 8; side by side three share an equation.


def test_only_the_first_skeletons_are_used(config):
    few = dataclasses.replace(config.generation, num_skeletons=5)
    batches, _ = take(dataclasses.replace(config, generation=few), 8)
    first = SkeletonBank.load(config.bank).first(5)
    rows = [(b["low"][i], b["fraction"][i]) for b in batches for i in range(8)]
    drawn = {Vocabulary().decode(*row).skeleton.key for row in rows}
    assert drawn <= set(first.keys) and len(drawn) >= 2


def test_what_is_drawn_from_is_said(config):
    bank = SkeletonBank.load(config.bank)
    said = OnlineBatches(config, 0).source
    few = len(skeletons_of(bank, config))
    assert said == f"{few} of the first 300 skeletons of the bank {config.bank}"
    laws = dataclasses.replace(
        config.generation,
        fresh_law_share=0.5,
        prior=dataclasses.replace(GENERATION.prior, max_operators=2, size_weights=()),
    )
    beside_laws = dataclasses.replace(config, generation=laws)
    fewer = len(skeletons_of(bank, beside_laws))
    assert 0 < fewer < few
    said = OnlineBatches(beside_laws, 0).source
    assert said.startswith(f"{fewer} of the first 300 skeletons")
    assert said.endswith(", 50% of the examples from fresh laws")
    assert OnlineBatches(dataclasses.replace(beside_laws, bank=""), 0).source.startswith(
        "the prior,"
    )


def test_copies_of_a_solution_are_observed_differently(config):
    """Thinned and noisy copies of one solution have one target, but other points."""
    twice = dataclasses.replace(config.corruption, noisy_share=1.0, copies=2)
    batches, _ = take(dataclasses.replace(config, corruption=twice), 8)
    points = np.concatenate([b["words"].reshape(8, -1) for b in batches])
    assert len(np.unique(points, axis=0)) == len(points) == 64
    once, _ = take(config, 8)

    def equations(some):
        return len({b["fraction"][i].tobytes() for b in some for i in range(8)})

    assert equations(batches) < 0.75 * equations(once)


def test_validation_has_other_skeletons(config):
    vocabulary = Vocabulary()

    def skeletons(split):
        batches, _ = take(dataclasses.replace(config, split=split), 16)
        rows = [(b["low"][i], b["fraction"][i]) for b in batches for i in range(8)]
        return {vocabulary.decode(*row).skeleton for row in rows}

    assert not skeletons("train") & skeletons("validation")


def test_frequencies_are_those_of_a_stored_data_set(config):
    bank = SkeletonBank.load(config.bank)
    work = dict(bank.work(GENERATION, "train"))
    batches, _ = take(dataclasses.replace(config, batch_size=64), 40)
    lengths = np.concatenate([(b["low"] != 0).sum(axis=1) - 1 for b in batches])
    weights = {key: n / sum(work.values()) for key, n in work.items()}
    share = sum(w for key, w in weights.items() if len(key.split()) <= 6)
    # Equations differ in how many of their solutions can be trusted.
    assert abs(np.mean(lengths <= 6) - share) < 0.15


def test_what_cannot_be_drawn_is_refused_at_once(config):
    with pytest.raises(FileNotFoundError, match="no skeleton bank"):
        OnlineBatches(dataclasses.replace(config, bank="nothing"), 0)
    with pytest.raises(ValueError, match="no skeleton for nowhere"):
        OnlineBatches(dataclasses.replace(config, split="nowhere"), 0)


def test_fingerprints_are_of_all_that_decides_examples_but_what_has_a_name(config):
    def fingerprint(**change):
        return OnlineBatches(dataclasses.replace(config, **change), 0).fingerprint

    named = ({"seed": 1}, {"batch_size": 4}, {"process": 1})
    assert {fingerprint(**change) for change in named} == {fingerprint()}
    corruption = dataclasses.replace(config.corruption, noisy_share=0.123)
    others = ({"split": "validation"}, {"bank": "base"}, {"corruption": corruption})
    assert len({fingerprint(), *(fingerprint(**change) for change in others)}) == 4


def test_processes_draw_other_examples_and_share_their_position(config):
    other = dataclasses.replace(config, process=1)
    ours, state = take(config, 3)
    theirs, their_state = take(other, 3)
    assert state == their_state
    assert not any(same(a, b) for a, b in zip(ours, theirs, strict=True))
    expected, _ = take(other, 5)
    resumed, _ = take(other, 2, state=state)
    assert all(same(a, b) for a, b in zip(expected[3:], resumed, strict=True))


def test_settings_that_give_no_example_end_with_a_message(config, monkeypatch):
    monkeypatch.setattr(online, "_MAX_BARREN", 50)
    solver = dataclasses.replace(GENERATION.solver, min_range=1e9)
    hopeless = dataclasses.replace(GENERATION, solver=solver)
    with pytest.raises(RuntimeError, match="50 equations in a row gave no example .*min_range"):
        take(dataclasses.replace(config, generation=hopeless), 1)


def test_the_shipped_bank_and_the_wide_prior():
    wide = from_config_dict(base.get_config())
    config = OnlineConfig(
        "base",
        wide.generation,
        wide.corruption,
        wide.model.example_format,
        "train",
        32,
        seed=0,
    )
    batches, _ = take(config, 8)
    vocabulary = Vocabulary()
    longest, lasts = 0, []
    for batch in batches:
        for row in range(32):
            expression = vocabulary.decode(batch["low"][row], batch["fraction"][row])
            longest = max(longest, expression.complexity)
            observed = batch["mask"][row]
            t, y, _ = words_to_float(batch["words"][row][observed]).T
            assert (np.diff(t) > 0).all()
            assert t[0] == 0.0
            lasts.append(t[-1])
            assert 8 <= observed.sum() <= 128
            assert np.abs(y).max() < 2 * wide.generation.solver.max_value
    assert longest > 18
    assert 0.1 < np.mean(np.asarray(lasts) < 2.0) < 0.6
    assert 0.3 < np.mean(np.asarray(lasts) > 3.5)


def test_fresh_laws_take_their_share(config):
    """Beside them the bank stands for the trees alone; splits stay apart."""
    prior = dataclasses.replace(GENERATION.prior, max_operators=2, size_weights=())
    keys = set(SkeletonBank.load(config.bank).keys)

    def skeletons(share, split="train"):
        generation = dataclasses.replace(
            GENERATION, prior=prior, fresh_law_share=share, max_complexity=15
        )
        changed = dataclasses.replace(config, generation=generation, split=split, batch_size=32)
        (*batches, _), _ = take(changed, 9)
        rows = [(b["low"][i], b["fraction"][i]) for b in batches for i in range(32)]
        return [Vocabulary().decode(*row).skeleton for row in rows]

    def operators(skeleton):
        return sum(token in OPERATORS for token in skeleton.tokens)

    assert max(map(operators, skeletons(0.0))) > 2
    few = skeletons(1e-9)
    assert max(map(operators, few)) <= 2 and {s.key for s in few} <= keys
    half, laws = skeletons(0.5), skeletons(1.0)
    assert max(map(operators, laws)) > 3
    assert {s.key for s in laws} - keys
    outside = [np.mean([s.key not in keys for s in drawn]) for drawn in (half, laws)]
    assert 0.25 * outside[1] < outside[0] < 0.75 * outside[1]
    share = GENERATION.validation_share
    assert {split_of(s.key, share) for s in half} == {"train"}
    assert {split_of(s.key, share) for s in skeletons(0.5, "validation")} == {"validation"}
    again = skeletons(0.5)
    assert again == half


SYSTEMS = from_config_dict(systems.get_config())
OF_SYSTEMS = OnlineConfig(
    "", SYSTEMS.generation, CorruptionConfig(), SYSTEMS.model.example_format, "train", 8, seed=0
)


def test_systems_are_drawn_from_the_prior_and_solved():
    batches, _ = take(OF_SYSTEMS, 8)
    vocabulary, several = Vocabulary.of(SYSTEMS.generation.system), 0
    for batch in batches:
        assert batch["words"].shape == (8, 32, 5, 2)
        for row in range(8):
            laws = vocabulary.decode_system(batch["low"][row], batch["fraction"][row])
            key = skeleton_of(laws).key
            assert split_of(key, SYSTEMS.generation.validation_share) == "train"
            t, *y = words_to_float(batch["words"][row]).T[: 1 + len(laws)]
            expected = integrate(laws, [column[0] for column in y], t)
            np.testing.assert_allclose(np.stack(y, 1), expected, rtol=5e-2, atol=5e-2)
            beyond = words_to_float(batch["words"][row])[:, 1 + len(laws) : 3]
            assert np.isnan(beyond).all()
            several += len(laws) == 2
    assert 0.1 < several / 64 < 0.8


def test_batches_of_systems_are_a_function_of_the_seed():
    expected, _ = take(OF_SYSTEMS, 10)
    _, state = take(OF_SYSTEMS, 7)
    resumed, _ = take(OF_SYSTEMS, 3, processes=2, state=state)
    assert all(same(a, b) for a, b in zip(expected[7:], resumed, strict=True))
    other, _ = take(dataclasses.replace(OF_SYSTEMS, seed=1), 1)
    assert not same(expected[0], other[0])


def test_fingerprints_tell_systems_apart():
    generation = dataclasses.replace(SYSTEMS.generation, system=SystemConfig(2))
    others = dataclasses.replace(OF_SYSTEMS, generation=generation)
    ours, theirs = (OnlineBatches(each, 0).fingerprint for each in (OF_SYSTEMS, others))
    assert ours != theirs


def test_a_bank_of_other_systems_is_refused(config):
    generation = dataclasses.replace(config.generation, system=SystemConfig(2))
    with pytest.raises(ValueError, match="one of other systems than generation.system"):
        OnlineBatches(dataclasses.replace(config, generation=generation), 0)


def test_a_bank_of_systems_is_drawn_from(tmp_path):
    generation = dataclasses.replace(SYSTEMS.generation, num_skeletons=60)
    with Workers(0) as workers:
        bank = SkeletonBank.draw(generation, workers)
    bank.save(tmp_path / "bank.gz")
    with_bank = dataclasses.replace(
        OF_SYSTEMS, bank=str(tmp_path / "bank.gz"), generation=generation
    )
    batches, _ = take(with_bank, 8)
    vocabulary = Vocabulary.of(generation.system)
    rows = [(b["low"][i], b["fraction"][i]) for b in batches for i in range(8)]
    drawn = {skeleton_of(vocabulary.decode_system(*row)).key for row in rows}
    assert drawn <= set(bank.keys) and len(drawn) > 5


def test_without_a_bank_one_quantity_is_drawn_from_the_prior_too(config):
    batches, _ = take(dataclasses.replace(config, bank=""), 8)
    rows = [(b["low"][i], b["fraction"][i]) for b in batches for i in range(8)]
    drawn = {Vocabulary().decode(*row).skeleton.key for row in rows}
    assert len(drawn) > 10
    assert {split_of(key, GENERATION.validation_share) for key in drawn} == {"train"}
