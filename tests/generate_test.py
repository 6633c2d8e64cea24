"""Skeletons, equations and solutions: what is generated."""

import collections
import dataclasses
import math
import types

import numpy as np
import pytest
from nsode_jax.configs import base, paper, smoke, systems

from nsode_jax.config import from_config_dict, name_of
from nsode_jax.data import reserved_skeletons, skeletons
from nsode_jax.data.examples import corrupted_example
from nsode_jax.data.generate import (
    GenerationConfig,
    draw_records,
    settings,
    skeleton_records,
    split_of,
    stream,
)
from nsode_jax.data.skeletons import draw_skeletons
from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.dynamics.solve import derivative_error, solutions, solve
from nsode_jax.dynamics.system import integrate
from nsode_jax.expressions.coupled import SystemConfig
from nsode_jax.expressions.expression import Skeleton
from nsode_jax.system.settings import require_at_least_1

CONFIG = from_config_dict(smoke.get_config()).generation
WIDE = from_config_dict(base.get_config())


def records_of(config, keys, seed=0):
    records, counts = [], collections.Counter()
    for key in keys:
        new, new_counts = draw_records(config, config.system.skeleton(key), stream(seed, key))
        records += new
        counts += new_counts
    return records, counts


@pytest.fixture(scope="module")
def keys():
    return sorted(set(draw_skeletons(CONFIG, 0)[0]))[:60]


def test_every_tree_is_kept_or_dropped_for_a_reason():
    keys, counts = draw_skeletons(CONFIG, 0)
    assert counts["trees"] == skeletons.TREES_PER_BATCH
    assert len(keys) + sum(counts.values()) - counts["trees"] == counts["trees"]
    assert min(counts["constant equation"], counts["outside the language"]) > 0
    for key in keys:
        skeleton = Skeleton.from_key(key)
        assert "y" in skeleton.tokens
        assert len(skeleton.tokens) <= CONFIG.max_complexity


def test_long_equations_are_dropped():
    short = dataclasses.replace(CONFIG, max_complexity=5)
    keys, counts = draw_skeletons(short, 0)
    assert max(len(key.split()) for key in keys) == 5
    assert counts["too long"] > 0


def test_held_out_skeletons_are_dropped_whatever_their_signs(monkeypatch):
    before, _ = draw_skeletons(CONFIG, 0)
    assert {"mul c y", "mul -c y"} <= set(before)
    monkeypatch.setattr(reserved_skeletons, "held_out_keys", lambda: {"mul c y"})
    after, counts = draw_skeletons(CONFIG, 0)
    assert set(before) - set(after) == {"mul c y", "mul -c y"}
    assert counts["held out for testing"] == len(before) - len(after)


def test_batches_of_trees_do_not_depend_on_each_other():
    first, second = draw_skeletons(CONFIG, 1)[0], draw_skeletons(CONFIG, 2)[0]
    assert first != second
    assert draw_skeletons(CONFIG, 1)[0] == first
    assert draw_skeletons(dataclasses.replace(CONFIG, seed=1), 1)[0] != first


def test_records_are_solutions_of_their_equations(keys):
    records, counts = records_of(CONFIG, keys)
    assert counts["kept"] == len(records) > 50
    reasons = "no constants keep the skeleton", "constant outside the grid"
    assert counts["equations"] + counts[reasons[0]] == len(keys) and not counts[reasons[1]]
    for record in records[::5]:
        assert record.y.shape == (CONFIG.solver.num_points,)
        again = solve(record.expression, record.y[0], record.t)
        np.testing.assert_allclose(again, record.y, rtol=1e-7, atol=1e-7)
        assert derivative_error(record.expression, record.y, record.t[1]) <= 1.0
        assert abs(record.y[0]) <= CONFIG.solver.max_initial_value


def test_records_of_a_skeleton_are_its_sets_one_after_the_other():
    key = "add mul -c pow y c mul c y"
    records, counts = skeleton_records(CONFIG, (key, 4))
    rng, expected = stream(CONFIG.seed, "solutions", key), []
    for _ in range(4):
        expected += draw_records(CONFIG, CONFIG.system.skeleton(key), rng)[0]
    assert [r.y.tobytes() for r in records] == [r.y.tobytes() for r in expected]
    assert counts["equations"] == 4
    assert counts["kept"] + counts["no trusted solution"] == 4 * CONFIG.initial_values_per_ode


def test_sets_of_constants_are_unique():
    # Without constants there is one equation, whatever the number of sets.
    records, counts = skeleton_records(CONFIG, ("sin y", 5))
    assert len(records) <= CONFIG.initial_values_per_ode
    assert (counts["equations"], counts["equation drawn before"]) == (1, 4)
    # Of integers from 2 to 4 as a coefficient there are three.
    integers = dataclasses.replace(CONFIG.prior, integer_probability=1.0, max_constant=4.0)
    config = dataclasses.replace(CONFIG, prior=integers)
    records, counts = skeleton_records(config, ("mul -c y", 40))
    assert {tuple(r.constants) for r in records} == {(-2.0,), (-3.0,), (-4.0,)}
    assert counts["equations"] == 3


def test_the_papers_numbers():
    config = from_config_dict(paper.get_config()).generation
    prior, solver = config.prior, config.solver
    assert (prior.max_operators, prior.symbol_probability) == (5, 0.5)
    assert prior.binary == dict.fromkeys(("add", "sub", "mul", "div", "pow"), 1.0)
    assert prior.unary == dict.fromkeys(("sin", "cos", "exp", "sqrt", "log"), 1.0)
    assert (prior.integer_probability, prior.max_constant, prior.law_share) == (0.5, 10.0, 0.0)
    assert (config.constants_per_skeleton, config.initial_values_per_ode) == (25, 25)
    assert config.max_constants_per_skeleton == 25
    assert config.simplify
    assert (solver.max_time, solver.num_points, solver.max_initial_value) == (4.0, 1024, 5.0)
    assert (solver.method, solver.tolerance, solver.max_derivative_error) == ("lsoda", 1e-9, 1.0)
    assert (config.min_time, config.heavy_initial_share, config.rescaled_share) == (0, 0, 0)


def test_durations_and_initial_values_of_the_wide_prior():
    config = dataclasses.replace(WIDE.generation, rescaled_share=0.0)
    keys = ["mul -c y", "add mul -c y c", "add mul -c pow y c mul c y"] * 60
    records = [
        r
        for i, key in enumerate(keys)
        for r in draw_records(config, config.system.skeleton(key), stream(i))[0]
    ]
    durations = {record.max_time for record in records}
    assert len(durations) > 50
    assert config.min_time <= min(durations) < 1.2
    assert 3.4 < max(durations) <= config.solver.max_time
    sizes = np.abs([record.y[0] for record in records])
    assert sizes.max() > 20
    assert np.mean(sizes < 0.2) > 0.05


def test_rescaled_records_are_exact_and_fill_the_view():
    config = dataclasses.replace(WIDE.generation, rescaled_share=1.0)
    keys = ["add mul -c pow y c mul c y", "add mul -c y c", "mul -c sqrt y", "sin y"]
    records, counts = [], collections.Counter()
    for seed in range(25):
        more, more_counts = records_of(config, keys, seed=seed)
        records, counts = records + more, counts + more_counts
    assert 0 < counts["rescaled"] <= counts["kept"] == len(records)
    rescaled = [r for r in records if r.max_time == config.solver.max_time]
    assert len(rescaled) >= counts["rescaled"]
    for record in rescaled[::7]:
        (again,) = solutions(record.expression, record.y[:1], record.t, method="dop853")
        np.testing.assert_allclose(again, record.y, rtol=1e-6, atol=1e-6)
    # Where the constants allow no other unit of value, only time is rescaled.
    sizes = np.array([np.abs(record.y).max() for record in rescaled])
    assert np.mean(sizes <= config.rescaled_size[1] * (1 + 1e-9)) > 0.8
    # sin(y) in other units has coefficients.
    assert any(r.skeleton.key == "mul c sin mul c y" for r in rescaled)


def test_a_rescaled_equation_stays_in_its_split():
    config = dataclasses.replace(WIDE.generation, rescaled_share=1.0, validation_share=0.5)
    keys = [key for key in dict.fromkeys(draw_skeletons(config, 0)[0])][:80]
    for key in keys:
        for record in draw_records(config, config.system.skeleton(key), stream(1, key))[0]:
            assert split_of(record.skeleton.key, 0.5) == split_of(key, 0.5)


PAIRS = dataclasses.replace(
    from_config_dict(systems.get_config()).generation, rescaled_share=0.0, initial_values_per_ode=4
)


def test_trees_of_systems_hold_the_variables_of_their_systems():
    keys, counts = draw_skeletons(PAIRS, 0)
    assert len(keys) + sum(counts.values()) - counts["trees"] == counts["trees"]
    several = [key for key in keys if "|" in key]
    assert 0.2 < len(several) / len(keys) < 0.6
    for key in keys:
        skeleton = PAIRS.system.skeleton(key)
        assert all(set(part.variables) & set(part.tokens) for part in skeleton.parts)
        assert ("y2" in skeleton.tokens) <= (key in several)
        assert len(skeleton.tokens) <= PAIRS.max_complexity
    drawn = {token for key in keys for token in key.split()}
    assert {"y1", "y2", "t", "|"} <= drawn and "y" not in drawn


@pytest.mark.parametrize("rescaled", [0.0, 1.0])
def test_records_of_systems_solve_them(rescaled):
    """In the units of the drawn equations, and in those that fill the view."""
    config = dataclasses.replace(PAIRS, rescaled_share=rescaled, min_time=1.0)
    keys = [key for key in draw_skeletons(config, 1)[0] if "|" in key][:40]
    records, counts = records_of(config, ["mul -c y1 | add mul c t mul -c y2", *keys])
    assert counts["kept"] == len(records) > 8
    assert bool(counts["rescaled"]) == bool(rescaled)
    for record in records:
        assert record.y.shape == (config.solver.num_points, 2)
        again = integrate(record.laws, record.y[0], record.t)
        np.testing.assert_allclose(again, record.y, rtol=1e-5, atol=1e-5)


def test_systems_of_one_quantity_are_series():
    records, _ = records_of(PAIRS, ["mul -c y1"])
    assert records[0].y.shape == (PAIRS.solver.num_points,)
    assert records[0].expression.variables == ("y1", "t")


def test_settings_of_one_quantity_do_not_name_systems():
    """So that data sets, banks and runs from before there were systems stay valid."""
    assert "system" not in settings(CONFIG) and "system" not in repr(CONFIG)
    assert settings(PAIRS)["system"] == {"num_states": 2, "explicit_time": True}
    assert settings(dataclasses.replace(PAIRS, system=SystemConfig(3))) != settings(PAIRS)


def test_splits_are_by_skeleton_and_of_about_the_right_size():
    keys = {key for batch in range(4) for key in draw_skeletons(CONFIG, batch)[0]}
    validation = {key for key in keys if split_of(key, 0.2) == "validation"}
    assert abs(len(validation) / len(keys) - 0.2) < 0.05
    # A larger share contains the smaller one.
    assert {key for key in keys if split_of(key, 0.1) == "validation"} < validation
    assert not [key for key in keys if split_of(key, 0.0) == "validation"]


def test_an_example_holds_the_record(keys):
    records, _ = records_of(CONFIG, keys[:20])
    form = from_config_dict(smoke.get_config()).model.example_format
    corruption = from_config_dict(smoke.get_config()).corruption
    example = corrupted_example(records[0], form, corruption, Vocabulary(), stream(0))
    decoded = Vocabulary().decode(example["low"], example["fraction"])
    assert decoded.skeleton == records[0].expression.skeleton
    np.testing.assert_allclose(decoded.constants, records[0].constants, rtol=1e-5)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_skeletons", 0, "num_skeletons must be at least 1"),
        ("initial_values_per_ode", 0, "initial_values_per_ode must be at least 1"),
        ("records_per_shard", 0, "records_per_shard must be at least 1"),
        ("validation_share", 1.0, "validation_share must lie in"),
        ("rescaled_share", 1.5, "rescaled_share must lie in"),
        ("rescaled_size", (0.0, 1.0), "rescaled_size must be two sizes"),
        ("heavy_initial_values", (2.0, 1.0), "heavy_initial_values must be two sizes"),
        ("min_time", 5.0, "min_time must lie in"),
        ("heavy_initial_values", (1.0, np.inf), "heavy_initial_values must be two sizes"),
        ("seconds_per_tree", 0.0, "seconds_per_tree must be positive"),
        ("seconds_per_tree", np.nan, "seconds_per_tree must be positive"),
        ("max_constants_per_skeleton", 8, "8 is below constants_per_skeleton 25"),
        ("max_constants_per_skeleton", -3, "-3 is below constants_per_skeleton 25"),
    ],
)
def test_impossible_settings_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        GenerationConfig(**{field: value})


def test_nan_is_no_count():
    with pytest.raises(ValueError, match="max_steps must be at least 1, got nan"):
        require_at_least_1(types.SimpleNamespace(max_steps=math.nan), "max_steps")


def test_the_argument_of_a_config_file_is_no_part_of_its_name():
    assert [name_of(file) for file in ("small", "a/cfg.py", "a/cfg.py:1.5")] == [
        "small", "cfg", "cfg",
    ]  # fmt: skip
