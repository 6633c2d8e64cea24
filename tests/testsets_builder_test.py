"""The TFDS builder of the test sets."""

import numpy as np
import pytest
import tensorflow_datasets as tfds
from nsode_jax.data_builders.nsode_testsets.nsode_testsets_dataset_builder import (
    Builder,
    problem_to_features,
    split_of,
)

from nsode_jax.data.records import features_to_record
from nsode_jax.evaluation.testsets import TEST_SETS, NumericLaw, Problem, textbook
from nsode_jax.expressions.expression import Expression, Skeleton


def decay() -> tuple[Problem, ...]:
    return (
        Problem("numeric", NumericLaw("-|y|", lambda y: -np.abs(y)), y0=1.0, num_points=5),
        Problem("plain", Expression.from_infix("-0.5*y"), y0=3.0, duration=2.0, num_points=7),
    )


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("testsets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TEST_SETS, "two-laws", decay)
        builder = Builder(data_dir=str(folder), test_sets=("textbook", "two-laws"))
        builder.download_and_prepare()
    return str(folder)


def read(split, data_dir):
    return list(tfds.data_source("nsode_testsets", split=split, data_dir=data_dir))


def test_rows_are_the_problems_in_their_order(data_dir):
    rows, problems = read("textbook", data_dir), textbook()
    assert [row["name"].decode() for row in rows] == [problem.name for problem in problems]
    for row, problem in zip(rows, problems, strict=True):
        assert row["y"].tobytes() == problem.solve().tobytes()  # All 64 bits.
        assert row["y0"] == problem.y0 == row["y"][0]
        assert row["max_time"] == problem.duration


def test_skeleton_and_constants_make_the_law(data_dir):
    for row, problem in zip(read("textbook", data_dir), textbook(), strict=True):
        skeleton = Skeleton.from_key(row["skeleton"].decode())
        assert skeleton.with_constants(row["constants"]) == problem.law
        assert Expression.from_infix(row["law"].decode()) == problem.law


def test_rows_read_as_training_records(data_dir):
    record = features_to_record(read("textbook", data_dir)[0])
    np.testing.assert_array_equal(record.t, textbook()[0].t)
    assert record.expression == textbook()[0].law


def test_a_law_without_our_operators_has_no_skeleton(data_dir):
    numeric, plain = read("two_laws", data_dir)
    assert (numeric["law"], numeric["skeleton"], numeric["constants"].size) == (b"-|y|", b"", 0)
    assert (plain["skeleton"], plain["constants"].tolist()) == (b"mul -c y", [-0.5])
    assert (numeric["y"].size, plain["y"].size) == (5, 7)


def test_all_test_sets_are_built_by_default(tmp_path):
    assert Builder(data_dir=str(tmp_path)).test_sets == tuple(TEST_SETS)
    assert len({split_of(name) for name in TEST_SETS}) == len(TEST_SETS)
    assert all(split_of(name).isidentifier() for name in TEST_SETS)


def test_an_unknown_test_set_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no test set nothing; there are .*textbook"):
        Builder(data_dir=str(tmp_path), test_sets=("nothing",))


def test_a_problem_without_a_solution_is_an_error():
    blows_up = Problem("blow-up", Expression.from_infix("y**2"), y0=1.0)
    with pytest.raises(ValueError, match="blow-up: .* has no solution from 1.0"):
        problem_to_features(blows_up)
