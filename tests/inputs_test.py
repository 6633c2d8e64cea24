"""Batches of training and validation: shares of several processes, workers of both."""

import dataclasses
import itertools
import multiprocessing

import numpy as np
import pytest
from batches import same
from nsode_jax.data_builders.nsode.nsode_dataset_builder import Builder

from nsode_jax.data import online, pipeline
from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.shards import write_dataset
from nsode_jax.expressions.coupled import SystemConfig
from nsode_jax.system.workers import Workers
from nsode_jax.training.inputs import Inputs


def make(config, dataset=None, process=0, processes=1, data_workers=0, **changes) -> Inputs:
    training = dataclasses.replace(
        config.training,
        dataset=dataset or config.training.dataset,
        data_workers=data_workers,
        **changes,
    )
    return Inputs(dataclasses.replace(config, training=training), process, processes)


def rows_of(batch, process, processes):
    return {name: array[process::processes] for name, array in batch.items()}


@pytest.mark.parametrize(("batch_size", "processes"), [(2, 2), (6, 3)])
def test_a_process_encodes_its_rows_alone(smoke_config, monkeypatch, batch_size, processes):
    encoded = []
    encode = pipeline.corrupted_example
    monkeypatch.setattr(pipeline, "corrupted_example", lambda *a: encoded.append(1) or encode(*a))
    whole = list(make(smoke_config, batch_size=batch_size).validation(0, 100))
    assert len(encoded) == len(whole) * batch_size == 12  # Of 13 records.
    for process in range(processes):
        encoded.clear()
        inputs = make(smoke_config, batch_size=batch_size, process=process, processes=processes)
        share = list(inputs.validation(0, 100))
        assert len(encoded) == 12 / processes
        for batch, ours in zip(whole, share, strict=True):
            assert same(rows_of(batch, process, processes), ours)


@pytest.mark.parametrize("processes", [2, 4])
def test_the_batch_of_a_step_is_that_of_one_process(smoke_config, processes):
    """Over more than one epoch of 122 records, also after going on with more processes."""
    alone = make(smoke_config).training(seed=3)
    first = list(itertools.islice(alone, 20))
    position = alone.get_state()
    then = list(itertools.islice(alone, 3))
    for process in range(processes):
        inputs = make(smoke_config, process=process, processes=processes)
        share = inputs.training(seed=3)
        for batch in first:
            assert same(rows_of(batch, process, processes), next(share))
        assert share.get_state() == position
        resumed = inputs.training(seed=3)
        resumed.set_state(position)
        for batch in then:
            assert same(rows_of(batch, process, processes), next(resumed))


def test_batches_are_cut_for_one_process_alone(smoke_config):
    """Several must take steps of one shape: their batches are those without like lengths."""
    longest = smoke_config.model.max_length
    alone = make(smoke_config, length_multiple=2).training(seed=0)
    shapes = {next(alone)["low"].shape for _ in range(9)}
    assert len(shapes) > 1 and max(shapes) <= (8, longest)
    mixed = make(smoke_config).training(seed=0)
    shared = make(smoke_config, length_multiple=2, processes=2).training(seed=0)
    for _ in range(9):
        assert same(rows_of(next(mixed), 0, 2), next(shared))
    with pytest.raises(ValueError, match="number of processes was 2 and is 1"):
        make(smoke_config, length_multiple=2).training(seed=0).set_state(shared.get_state())


def test_a_position_is_none_in_a_data_set_that_was_made_anew(smoke_config, tmp_path):
    noisier = dataclasses.replace(
        smoke_config, corruption=dataclasses.replace(smoke_config.corruption, max_noise=0.3)
    )
    fewer = dataclasses.replace(smoke_config.generation, num_skeletons=20)
    with Workers(0) as workers:
        builder = Builder(config="smoke", data_dir=str(tmp_path))
        write_dataset(builder, fewer, workers)
    for other in (noisier, smoke_config):
        changes = {} if other is noisier else {"data_dir": str(tmp_path)}
        position = make(smoke_config).training(seed=3).get_state()
        with pytest.raises(ValueError, match="contents, corruption and model was"):
            make(other, **changes).training(seed=3).set_state(position)


def of_length(config, max_length, **changes):
    model = dataclasses.replace(config.model, max_length=max_length)
    return make(dataclasses.replace(config, model=model), batch_size=2, **changes)


@pytest.mark.parametrize("seldom_longer", [False, True])
def test_a_model_has_room_for_all_of_a_data_set(smoke_config, tmp_path, seldom_longer):
    """Or the run would end where the first target comes that is too long."""
    share = 0.5 * seldom_longer
    generation = dataclasses.replace(
        smoke_config.generation, num_skeletons=20, rescaled_share=share
    )
    with Workers(0) as workers:
        builder = Builder(config="smoke", data_dir=str(tmp_path))
        write_dataset(builder, generation, workers)
    keys = SkeletonBank.load(next(tmp_path.rglob("skeletons.gz"))).keys
    # In other units an equation may be longer than its skeleton.
    longest = 15 if seldom_longer else max(len(key.split()) for key in keys)
    fitting = of_length(smoke_config, longest + 1, data_dir=str(tmp_path))
    for batches in (itertools.islice(fitting.training(0), 60), fitting.validation(0, 3)):
        assert all(batch["low"].shape == (2, longest + 1) for batch in batches)
    short = of_length(smoke_config, longest, data_dir=str(tmp_path))
    said = f"model.max_length is {longest}, but the data set nsode/smoke needs {longest + 1}"
    with pytest.raises(ValueError, match=said):
        short.training(0)
    with pytest.raises(ValueError, match=said):
        short.validation(0, 1)


def test_a_data_set_that_does_not_say_is_that_of_the_config(smoke_config):
    """As TFDS builds it."""
    most = smoke_config.generation.max_complexity
    of_length(smoke_config, most + 1).training(0)
    with pytest.raises(ValueError, match=f"model.max_length is {most}, but .* needs {most + 1}"):
        of_length(smoke_config, most).training(0)
    with pytest.raises(FileNotFoundError, match="no data set nsode/smoke in"):
        of_length(smoke_config, most, data_dir="/nowhere").training(0)


def test_a_data_set_of_other_systems_is_refused(smoke_config, tmp_path):
    with Workers(0) as workers:
        builder = Builder(config="smoke", data_dir=str(tmp_path))
        few = dataclasses.replace(smoke_config.generation, num_skeletons=20)
        write_dataset(builder, few, workers)
    timed = dataclasses.replace(few, system=SystemConfig(explicit_time=True))
    config = dataclasses.replace(smoke_config, generation=timed)
    with pytest.raises(ValueError, match="is one of other systems than generation.system"):
        make(config, data_dir=str(tmp_path)).training(0)


def test_behind_samples_of_other_batches_there_are_others(smoke_config):
    """Weights that have seen batches of 8 go on with batches of 16: none is seen again."""

    def of(batch_size, first):
        batches = make(smoke_config, "online:", batch_size=batch_size).training(3, first)
        return {
            pair.tobytes()
            for batch in itertools.islice(batches, 8)
            for pair in np.concatenate([batch["low"], batch["fraction"]], axis=-1)
            if np.any(pair[len(pair) // 2 :] > 0)  # A constant between the points of the grid.
        }

    assert len(of(8, 0)) > 10
    assert not of(8, 0) & of(16, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch_size": 4}, "training.batch_size was 8 and is 4;"),
        ({"dataset": "online:"}, "training.dataset was 'nsode/smoke' and is 'online:'"),
    ],
)
def test_a_position_is_one_in_its_own_data_only(smoke_config, change, said):
    batches = make(smoke_config).training(seed=3)
    next(batches)
    other = make(smoke_config, **change).training(seed=3)
    with pytest.raises(ValueError, match="one in other data: ") as error:
        other.set_state(batches.get_state())
    assert said in str(error.value) and "init_from" in str(error.value)
    back = make(smoke_config, "online:").training(seed=3)
    with pytest.raises(ValueError, match="training.seed was 3 and is 4;"):
        make(smoke_config, "online:").training(seed=4).set_state(back.get_state())
    with pytest.raises(ValueError, match="number of processes was 1 and is 2"):
        make(smoke_config, "online:", processes=2).training(seed=3).set_state(back.get_state())


@pytest.mark.parametrize("dataset", ["nsode/smoke", "online:"])
@pytest.mark.parametrize("length_multiple", [0, 2])
def test_batches_begin_where_they_are_asked_to(smoke_config, dataset, length_multiple):
    inputs = make(smoke_config, dataset, length_multiple=length_multiple)
    expected = list(itertools.islice(inputs.training(seed=3), 24))
    behind = list(itertools.islice(inputs.training(seed=3, first=8), 16))
    assert all(same(a, b) for a, b in zip(expected[8:], behind, strict=True))


def test_processes_must_divide_a_batch(smoke_config):
    with pytest.raises(ValueError, match="3 processes do not divide a batch of 8"):
        make(smoke_config, processes=3)


def test_the_workers_of_training_draw_the_validation_batches(smoke_config, monkeypatch, tmp_path):
    with Workers(0) as workers:
        SkeletonBank.draw(smoke_config.generation, workers).save(tmp_path / "bank.gz")
    dataset = f"online:{tmp_path / 'bank.gz'}"
    with make(smoke_config, dataset) as inputs:
        expected = list(inputs.validation(0, 9))
    assert len(expected) == 9

    def refuse(*_):
        raise AssertionError("drawn in the main process")

    monkeypatch.setattr(online._Drawer, "chunk", refuse)
    with make(smoke_config, dataset, data_workers=2) as inputs:
        inputs.training(seed=0)
        drawn = list(inputs.validation(0, 9))
        assert len(multiprocessing.active_children()) == 2
        assert all(same(a, b) for a, b in zip(drawn, expected, strict=True))
        # They are kept, not drawn again.
        assert all(a is b for a, b in zip(drawn, inputs.validation(0, 9), strict=True))
    assert not multiprocessing.active_children()
