"""From a stored data set to batches."""

import dataclasses

import grain
import numpy as np
import pytest
from nsode_jax.configs import systems
from nsode_jax.data_builders.nsode.nsode_dataset_builder import Builder, NsodeConfig

from nsode_jax.config import from_config_dict
from nsode_jax.data.bits import words_to_float
from nsode_jax.data.encode import ExampleFormat
from nsode_jax.data.pipeline import batches
from nsode_jax.data.records import features_to_record, open_split, record_to_features
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.system import integrate


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    Builder(config="smoke", data_dir=str(folder), processes=0).download_and_prepare()
    return str(folder)


FORM = ExampleFormat(num_points=32, max_length=16, derivative_channel=True)
CORRUPTION = CorruptionConfig(noisy_share=0.5, sparse_share=0.5)


def pipeline(data_dir, seed=0, corruption=CORRUPTION):
    source = open_split("nsode/smoke", "train", data_dir)
    return iter(batches(source, FORM, corruption, batch_size=8, seed=seed))


def test_batches_hold_trajectories_and_targets(data_dir):
    batch = next(pipeline(data_dir, corruption=CorruptionConfig()))
    assert batch["words"].shape == (8, 32, 3, 2)
    assert batch["mask"].all()
    vocabulary = Vocabulary()
    for row in range(8):
        expression = vocabulary.decode(batch["low"][row], batch["fraction"][row])
        t, y, slope = words_to_float(batch["words"][row]).T
        expected = solve(expression, y[0], t)
        np.testing.assert_allclose(y, expected, rtol=2e-2, atol=2e-2)  # Two-hot in float32.
        inner = slice(1, -1)
        np.testing.assert_allclose(slope[inner], np.gradient(y, t)[inner])


def test_pipeline_is_deterministic_and_resumes(data_dir):
    def same(a, b):
        return all(np.array_equal(a[k], b[k]) for k in a)

    first, second = pipeline(data_dir), pipeline(data_dir)
    for _ in range(20):  # More than one epoch of 122 records.
        batch = next(first)
        assert same(batch, next(second))
    state = first.get_state()
    expected = [next(first) for _ in range(3)]
    resumed = pipeline(data_dir)
    resumed.set_state(state)
    assert all(same(batch, next(resumed)) for batch in expected)
    assert not same(next(pipeline(data_dir, seed=1)), next(pipeline(data_dir)))


def test_epochs_are_corrupted_anew(data_dir):
    source = open_split("nsode/smoke", "validation", data_dir)
    size = len(source)
    data = iter(batches(source, FORM, CORRUPTION, batch_size=size, seed=0))
    first, second = next(data), next(data)
    assert isinstance(data, grain.DatasetIterator)
    assert sorted(first["low"].tolist()) == sorted(second["low"].tolist())
    assert sorted(first["words"].tolist()) != sorted(second["words"].tolist())


def test_too_few_records_is_an_error(data_dir):
    source = open_split("nsode/smoke", "validation", data_dir)
    with pytest.raises(ValueError, match="fewer than a batch"):
        batches(source, FORM, CORRUPTION, batch_size=len(source) + 1, seed=0)


def test_systems_are_stored_by_time_and_quantity(tmp_path):
    """Those with fewer quantities than others hold NaN in their place."""
    config = from_config_dict(systems.get_config())
    generation = dataclasses.replace(config.generation, num_skeletons=30, validation_share=0.2)
    named = NsodeConfig(name="few_systems", generation=generation)
    Builder(config=named, data_dir=str(tmp_path), processes=0).download_and_prepare()
    source = open_split("nsode/few_systems", "train", str(tmp_path))
    states, system = set(), generation.system
    for i in range(len(source)):
        record = features_to_record(source[i], system)
        states.add(len(record.laws))
        assert source[i]["y"].shape == (generation.solver.num_points, system.num_states)
        assert np.isnan(source[i]["y"][:, len(record.laws) :]).all()
        again = record_to_features(record, system)
        np.testing.assert_array_equal(again["y"], source[i]["y"])
        expected = integrate(record.laws, np.atleast_1d(record.y[0]), record.t)
        y = record.y.reshape(len(record.y), -1)
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)
    assert states == {1, 2}
    form, vocabulary = config.model.example_format, Vocabulary.of(system)
    batch = next(
        iter(batches(source, form, CORRUPTION, batch_size=8, seed=0, vocabulary=vocabulary))
    )
    assert batch["words"].shape == (8, 32, 5, 2)
    for low, fraction in zip(batch["low"], batch["fraction"], strict=True):
        assert len(vocabulary.decode_system(low, fraction)) in states
