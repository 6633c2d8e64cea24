"""Discoveries of systems in files: everything comes back, and nothing else is believed."""

import dataclasses
import json

import numpy as np
import pytest
from observing import discovered, prey_discovery

from nsode_jax.discovery import Discovery, SystemDiscovery
from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.observations import Run
from nsode_jax.results.json_fields import DiscoveryFileError


@pytest.fixture(scope="module")
def found():
    return prey_discovery(runs=2, segments=2, notes=("Mind the gap.",))


@pytest.fixture
def content(found, tmp_path):
    found.save(tmp_path / "found.json")
    return json.loads((tmp_path / "found.json").read_text())


def test_everything_comes_back(found, tmp_path):
    found.save(tmp_path / "found.json")
    again = SystemDiscovery.load(tmp_path / "found.json")
    assert str(again) == str(found) and again.notes == ("Mind the gap.",)
    assert again.system == found.system and again.seconds == found.seconds
    for one, other in zip(again.candidates, found.candidates, strict=True):
        assert [law.infix for law in one.laws] == [law.infix for law in other.laws]
        np.testing.assert_array_equal(one.states, other.states)
        assert (one.covariance is None) == (other.covariance is None)
        assert (one.segments, one.shared, one.score) == (other.segments, other.shared, other.score)
    np.testing.assert_array_equal(again.best.covariance, found.best.covariance)
    for one, other in zip(again.runs, found.runs, strict=True):
        np.testing.assert_array_equal(one.y, other.y)
        assert one.noise_sizes is None
    t = found.runs[1].t
    np.testing.assert_array_equal(again.predict(t, run=1), found.predict(t, run=1))


def test_whose_system_it_is_comes_back(found, tmp_path):
    first, second = found.candidates
    own = dataclasses.replace(second, asked_for=True)
    dataclasses.replace(found, candidates=(first, own)).save(tmp_path / "own.json")
    again = SystemDiscovery.load(tmp_path / "own.json")
    assert [candidate.asked_for for candidate in again.candidates] == [False, True]
    content = json.loads((tmp_path / "own.json").read_text())
    del content["candidates"][1]["asked_for"]  # As files were before.
    (tmp_path / "before.json").write_text(json.dumps(content))
    assert not SystemDiscovery.load(tmp_path / "before.json").candidates[1].asked_for


def test_how_precise_values_are_comes_back(content, tmp_path):
    sizes = [[1.0, 2.0]] * 120
    for run in content["runs"]:
        run["noise"] = sizes
    (tmp_path / "weighted.json").write_text(json.dumps(content))
    again = SystemDiscovery.load(tmp_path / "weighted.json")
    again.save(tmp_path / "again.json")
    for run in (*again.runs, *SystemDiscovery.load(tmp_path / "again.json").runs):
        np.testing.assert_array_equal(run.noise_sizes, sizes)
        np.testing.assert_array_equal(run.weights, 1 / np.array(sizes))
    for run in content["runs"]:  # As files were before.
        del run["noise"]
    (tmp_path / "before.json").write_text(json.dumps(content))
    assert SystemDiscovery.load(tmp_path / "before.json").runs[0].noise_sizes is None


def test_inputs_order_and_time_come_back(tmp_path):
    system = System(("y",), explicit_time=True, order=2)
    found = discovered(system, ("-4.1*y - 0.4*v + 0.1*cos(t)",), (1.0, 0.0))
    found.save(tmp_path / "found.json")
    assert SystemDiscovery.load(tmp_path / "found.json").system == system


def test_inputs_at_times_of_their_own_come_back(found, tmp_path):
    t = np.linspace(0.0, 8.0, 500)
    run = Run(found.runs[0].t, found.runs[0].y, np.sin(t)[:, None], None, t)
    system = dataclasses.replace(found.system, inputs=("u",))
    laws = tuple(Expression(law.prefix, system.variables) for law in found.best.laws)
    best = dataclasses.replace(found.best, system=system, laws=laws)
    driven = dataclasses.replace(found, candidates=(best,), runs=(run,) * len(found.runs))
    driven.save(tmp_path / "driven.json")
    again = SystemDiscovery.load(tmp_path / "driven.json").runs[0]
    np.testing.assert_array_equal(again.input_times, t)
    np.testing.assert_array_equal(again.inputs(t), run.inputs(t))


def test_what_is_held_comes_back(found, tmp_path):
    t = found.runs[0].t
    u = np.stack([np.sin(t), np.sin(t) > 0], axis=1)
    system = dataclasses.replace(found.system, inputs=("u", "pump"), held=("pump",))
    run = Run(t, found.runs[0].y, u, holds=system.holds)
    laws = tuple(Expression(law.prefix, system.variables) for law in found.best.laws)
    best = dataclasses.replace(found.best, system=system, laws=laws)
    driven = dataclasses.replace(found, candidates=(best,), runs=(run,) * len(found.runs))
    driven.save(tmp_path / "driven.json")
    again = SystemDiscovery.load(tmp_path / "driven.json")
    assert again.system == system and again.runs[0].holds == (False, True)
    between = (t[1:] + t[:-1]) / 2
    np.testing.assert_array_equal(again.runs[0].inputs(between), run.inputs(between))
    content = json.loads((tmp_path / "driven.json").read_text())
    content["system"]["held"] = ["tap"]
    (tmp_path / "damaged.json").write_text(json.dumps(content))
    with pytest.raises(DiscoveryFileError, match="held names inputs"):
        SystemDiscovery.load(tmp_path / "damaged.json")
    del content["system"]["held"]  # As files were before.
    (tmp_path / "before.json").write_text(json.dumps(content))
    assert SystemDiscovery.load(tmp_path / "before.json").system.held == ()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda c: c.update(format="nsode_jax discovery"), "not a"),
        (lambda c: c.update(version=9), "update nsode_jax"),
        (lambda c: c.update(runs=[]), "no runs"),
        (lambda c: c.update(candidates=[]), "no candidates"),
        (lambda c: c.pop("notes"), "notes is missing"),
        (lambda c: c["system"].update(order=3), "order must be 1 or 2"),
        (lambda c: c["system"].update(observed=["a", "a"]), "must differ"),
        (lambda c: c["system"].update(explicit_time=1), "not true or false"),
        (lambda c: c["runs"][0].update(t=c["runs"][0]["t"][::-1]), "does not increase"),
        (lambda c: c["runs"][0].update(input_times=[1.0, 0.0]), "input_times does not increase"),
        (lambda c: c["runs"][0].update(y=[[1.0]]), "is not 120 rows of 2 numbers"),
        (lambda c: c["runs"][0]["y"].__setitem__(0, ["nan", 1.0]), "not a number"),
        (lambda c: c["runs"][0].update(noise=[[0.0, 1.0]] * 120), "noise is not positive"),
        (lambda c: c["candidates"][0].update(formulas=["prey"]), "1 formulas for"),
        (lambda c: c["candidates"][0].update(formulas=["fox", "prey"]), "unknown name 'fox'"),
        (lambda c: c["candidates"][0].update(states=[[1.0, 1.0]]), "is not 4 rows of 2"),
        (lambda c: c["candidates"][0].update(segments=-1), "not a whole number"),
        (lambda c: c["candidates"][0].update(shared=[[0, 99]]), "not pairs of constants"),
        (lambda c: c["candidates"][0].update(residuals=[1.0]), "is not 2 numbers"),
        (lambda c: c["candidates"][0].update(covariance=[[1.0]]), "is not 4 rows of 4"),
    ],
)
def test_damage_is_named_in_one_line(content, damage, message, tmp_path):
    damage(content)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DiscoveryFileError, match=message) as error:
        SystemDiscovery.load(path)
    assert "\n" not in str(error.value)


def test_one_kind_of_discovery_is_no_other(found, tmp_path):
    found.save(tmp_path / "found.json")
    with pytest.raises(DiscoveryFileError, match='not a "nsode_jax discovery" file'):
        Discovery.load(tmp_path / "found.json")
