"""The generator, the TFDS builder and the pipeline that reads it."""

import grain
import numpy as np
import pytest

from configs import smoke
from data_builders.nsode.nsode_dataset_builder import Builder
from nsode_jax import config as config_module
from nsode_jax import generate
from nsode_jax.data.bits import words_to_float
from nsode_jax.data.encode import ExampleFormat
from nsode_jax.data.generate import GenerationConfig, Generator, split_of
from nsode_jax.data.pipeline import batches
from nsode_jax.data.records import features_to_record, open_split, record_to_features
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.dynamics.solve import derivative_error, solve
from nsode_jax.expressions.expression import Skeleton

CONFIG = config_module.from_config_dict(smoke.get_config()).generation


@pytest.fixture(scope="module")
def generator():
    return Generator(CONFIG, processes=0)


@pytest.fixture(scope="module")
def records(generator):
    return list(generator.records("train"))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    Builder(config="smoke", data_dir=str(folder), processes=2).download_and_prepare()
    return str(folder)


def test_skeletons_are_unique_and_as_many_as_asked(generator):
    skeletons = generator.skeletons()
    assert len(set(skeletons)) == len(skeletons) == CONFIG.num_skeletons
    assert all("y" in s.tokens for s in skeletons)
    assert all(len(s.tokens) <= CONFIG.max_complexity for s in skeletons)


def test_records_are_solutions_of_their_equations(records):
    assert len(records) > 50
    keys = [key for key, _ in records]
    assert len(set(keys)) == len(keys)
    for _, record in records[::10]:
        assert record.y.shape == (CONFIG.solver.num_points,)
        again = solve(record.expression, record.y[0], record.t)
        np.testing.assert_allclose(again, record.y, rtol=1e-7, atol=1e-7)
        assert derivative_error(record.expression, record.y, record.t[1]) <= 1.0
        assert abs(record.y[0]) <= CONFIG.solver.max_initial_value


def test_splits_share_no_skeleton(generator, records):
    train = {record.skeleton for _, record in records}
    validation = {record.skeleton for _, record in generator.records("validation")}
    assert validation and not train & validation
    assert all(split_of(s, CONFIG) == "train" for s in train)


def test_rare_complexities_get_more_constants(generator):
    sets = generator.constant_sets()
    sharing = {}
    for skeleton in sets:
        sharing.setdefault(len(skeleton.tokens), []).append(sets[skeleton])
    counts = {size: len(members) for size, members in sharing.items()}
    commonest = max(counts, key=counts.get)
    rarest = min(counts, key=counts.get)
    assert set(sharing[commonest]) == {CONFIG.constants_per_skeleton}
    assert min(sharing[rarest]) > CONFIG.constants_per_skeleton


def test_number_of_processes_does_not_change_the_records(records):
    parallel = list(Generator(CONFIG, processes=2).records("train"))
    assert [key for key, _ in parallel] == [key for key, _ in records]
    for (_, a), (_, b) in zip(parallel, records, strict=True):
        assert a.skeleton == b.skeleton
        assert a.constants.tobytes() == b.constants.tobytes()
        assert a.y.tobytes() == b.y.tobytes()


def test_an_exhausted_prior_is_an_error():
    prior = CONFIG.prior.__class__(max_operators=1, law_share=0.0)
    config = GenerationConfig(prior=prior, simplify=False, num_skeletons=10_000)
    with pytest.raises(RuntimeError, match="holds no more than about"):
        Generator(config, processes=0).skeletons()


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="num_skeletons"):
        GenerationConfig(num_skeletons=0)


def test_features_and_back(records):
    record = records[0][1]
    back = features_to_record(record_to_features(record))
    assert back.skeleton == record.skeleton
    assert back.y.tobytes() == record.y.tobytes()


def test_builder_stores_the_generators_records_exactly(data_dir, records):
    source = open_split("nsode/smoke", "train", data_dir)
    assert len(source) == len(records)

    def fingerprint(record):
        return record.skeleton.key, record.constants.tobytes(), record.y.tobytes()

    stored = {fingerprint(features_to_record(source[i])) for i in range(len(source))}
    assert stored == {fingerprint(record) for _, record in records}


def test_missing_data_set_says_how_to_build_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="nsode_jax.generate --config configs/smoke.py"):
        open_split("nsode/smoke", "train", str(tmp_path))


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "configs/nothing.py"], "no config file"),
        (["--config", "tests/generate_test.py"], "is not a config of the builder"),
        (["--config", "configs/smoke.py", "--data_dir", "/proc/nothing"], "/proc/nothing"),
        (["--config", "configs/smoke.py", "--processes", "-1"], "must not be negative"),
    ],
)
def test_bad_arguments_of_the_command_line(arguments, message, capsys, tmp_path):
    if "--data_dir" not in arguments:
        arguments = [*arguments, "--data_dir", str(tmp_path)]
    assert generate.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_command_line_leaves_an_existing_data_set_alone(data_dir, capsys):
    assert generate.main(["--config", "configs/smoke.py", "--data_dir", data_dir]) == 0
    assert "is there already" in capsys.readouterr().out


def test_skeleton_keys_survive_text():
    skeleton = Skeleton.from_key("add mul -c y c")
    assert Skeleton.from_key(skeleton.key) == skeleton
