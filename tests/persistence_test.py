"""Files of discoveries: every bit comes back, and nothing else gets in."""

import dataclasses
import json
import math

import numpy as np
import pytest
from bitwise import assert_same
from numpy.testing import assert_array_equal

from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.sampling import EquationPrior, sample_expression
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results import json_fields
from nsode_jax.results.persistence import DiscoveryFileError, load, save
from nsode_jax.results.result import Candidate, Result
from nsode_jax.selection.catalogue import NamedLaw

AWKWARD = (0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1 / 3, 1e16, 2.0, -1e-7)


OWN_LAW = NamedLaw.from_entry(
    {
        "name": "“α” growth",
        "formula": "r*y*(1 - (y/K)**theta) - a*y/(y + b)",
        "also": ["k*y - c*y**p"],
        "order": [["b", "K"]],
        "frequency": 1 / 3,
        "parameters": {
            "r": ["rate", "+", "1/time"],
            "K": ["size", "+", "value"],
            "theta": ["shape", "any", "1", 0.5, 2.0],
            "a": ["loss", "+", "value/time"],
            "b": ["half of it", "+", "value"],
        },
    }
)


def discovery():
    rng = np.random.default_rng(0)
    trajectories = (
        Trajectory(np.sort(rng.normal(size=9)), rng.normal(size=9)),
        Trajectory(np.arange(8.0), np.array(AWKWARD), np.exp(rng.normal(size=8)), 0.1 / 3),
    )
    laws = (
        Candidate(
            Expression.from_infix("0.1234567890123456789*y - 1e-300*y**2"),
            (1 / 3, -0.0),
            (trajectories[0].t[0], 0.0),
            0.1 + 0.2,
            5e-324,
            -123.456,
            log_probability=-1e-9,
            converged=True,
            probability=0.75,
            held_out_rms=2 / 3,
            goodness_of_fit=1 / 7,
            covariance=rng.normal(size=(3, 3)),
            freedom=17.0,
            origin="network, evolved",
            end_times=(trajectories[0].t[-1], 7.0),
            observed=(0.1, 7.5),
        ),
        Candidate(Expression.from_infix("exp(y)/(-0.0 - y)"), (0.5, math.nan), (0.0, 1.0),
                  -math.inf, math.inf, math.inf),
        Candidate(Expression((3.0,)), (0.5, 1.5), (0.0, 1.0), 0.5, 0.5, 0.5,
                  covariance=np.array([[math.nan]])),
        Candidate(Expression(("y",)), (0.5, 1.5), (0.0, 1.0), 0.5, 0.5, 0.5,
                  covariance=np.zeros((0, 0))),
    )  # fmt: skip
    laws = tuple(dataclasses.replace(law, own_laws=(OWN_LAW,)) for law in laws)
    limits = (
        Limits([1 / 3, 2.0], [math.nan, 0.1], [True, False]),
        Limits([], [], []),
    )
    note, tried = "A note: “α” & \n.", ("all 7 laws", "“β”")
    return Discovery(laws, trajectories, (note,), 0.7, tried, limits)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "law.json"
    save(discovery(), path)
    return path


def changed(file, change):
    """The file after a change of its content."""
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def is_default(value, field):
    if field.default is dataclasses.MISSING:
        return False
    return value is field.default or (isinstance(value, float) and math.isnan(value))


class TestRoundTrip:
    def test_every_field_comes_back_bit_by_bit(self, file):
        before = discovery()
        assert_same(before, Discovery.load(file), "discovery")
        # A field that nothing sets would come back whether it is saved or not.
        for thing in (before, before.candidates[0], before.trajectories[1]):
            for field in dataclasses.fields(thing):
                assert not is_default(getattr(thing, field.name), field), field.name

    def test_a_file_from_before_it_was_kept_what_was_tried(self, file):
        older = load(changed(file, lambda content: content.pop("tried")))
        assert_same(dataclasses.replace(discovery(), tried=()), Discovery(**vars(older)), "older")

    def test_is_the_same_file_again(self, file, tmp_path):
        save(load(file), tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == file.read_bytes()

    def test_is_strict_json(self, file):
        def refuse(name):
            raise AssertionError(name)

        content = json.loads(file.read_bytes(), parse_constant=refuse)
        assert content["format"] == "nsode_jax discovery" and content["version"] == 2
        assert content["candidates"][1]["r2"] == "-inf"
        assert content["candidates"][1]["probability"] == "nan"

    def test_any_formula_comes_back(self, tmp_path):
        rng, laws = np.random.default_rng(1), []
        while len(laws) < 200:
            try:
                laws.append(canonicalize(sample_expression(EquationPrior(), rng)))
            except ExpressionError:
                continue
        candidates = [Candidate(law, (0.0,), (0.0,), 1.0, 1.0, 1.0) for law in laws]
        save(Discovery(tuple(candidates), (Trajectory([0], [1]),), (), 1.0), tmp_path / "laws.json")
        loaded = load(tmp_path / "laws.json").candidates
        assert [candidate.expression for candidate in loaded] == laws


class TestWriting:
    def test_a_failure_leaves_the_old_file(self, file, monkeypatch):
        before = file.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                save(discovery(), file)
        assert file.read_bytes() == before
        assert list(file.parent.iterdir()) == [file]

    def test_an_endless_formula_is_not_written(self, tmp_path):
        endless = Expression(("neg",) * 400 + ("y",))
        law = Candidate(endless, (0.0,), (0.0,), 1.0, 1.0, 1.0)
        with pytest.raises(DiscoveryFileError, match="401 tokens is too long to save"):
            save(Discovery((law,), (Trajectory([0], [1]),), (), 1.0), tmp_path / "law.json")
        assert not list(tmp_path.iterdir())


def set_candidate(**fields):
    return lambda content: content["candidates"][0].update(fields)


class TestDamage:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (b"", "not JSON, or damaged"),
            (b'{"format": "nsode_jax disc', "not JSON, or damaged"),
            (b"\xff\xfe\x00", "not JSON, or damaged"),
            (b"\x89PNG\r\n\x1a\n", "not JSON, or damaged"),
            (b"[" * 200_000, "too deeply nested"),
            (b"[1]", 'not a "nsode_jax discovery" file'),
            (b'{"format": ["nsode_jax discovery"]}', 'not a "nsode_jax discovery" file'),
            (b'{"format": "nsode_jax discovery"}', "version is not a whole number"),
            (b'{"format": "nsode_jax discovery", "version": NaN}', "not strict JSON: NaN"),
            (b"9" * 10_000, "not JSON, or damaged"),
        ],
    )
    def test_other_files(self, tmp_path, text, reason):
        path = tmp_path / "law.json"
        path.write_bytes(text)
        with pytest.raises(DiscoveryFileError, match=reason) as caught:
            load(path)
        message = str(caught.value)
        assert message.startswith(f"cannot load the discovery {str(path)!r}: ")
        assert "\n" not in message and len(message) < 500

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda c: c.update(version=3), "version is 3, .* reads up to 2; update nsode_jax"),
            (lambda c: c.update(version=True), "version is not"),
            (lambda c: c.update(version="1"), "version is not"),
            (lambda c: c.pop("notes"), "notes is missing"),
            (lambda c: c.update(notes="abc"), "notes is not a list"),
            (lambda c: c.update(notes=[1]), r"notes\[0\] is not text"),
            (lambda c: c.update(seconds=None), "seconds is not a number"),
            (lambda c: c.update(seconds=True), "seconds is not a number"),
            (lambda c: c.update(candidates=[]), "no candidates"),
            (lambda c: c.update(candidates=[7]), r"candidates\[0\] is not an object"),
            (lambda c: c.update(trajectories=[]), "no trajectories"),
            (lambda c: c.update(tried=["all", 7]), r"tried\[1\] is not text"),
            (lambda c: c["limits"].pop(), "1 limits for 2 trajectories"),
            (lambda c: c["limits"][0]["t"].pop(), r"limits\[0\] has 1 times, 2 limits, 2 sides"),
            (lambda c: c["limits"][0].update(below=[1, 0]), r"below\[0\] is not true or false"),
            (lambda c: c["trajectories"][0].pop("y"), r"trajectories\[0\].y is missing"),
            (lambda c: c["trajectories"][0].update(t=[0.0]), "as many times as values"),
            (lambda c: c["trajectories"][0]["t"].reverse(), "strictly increasing"),
            (lambda c: c["trajectories"][1]["y"].insert(3, "nan"), r"\[1\].y\[3\] is not a number"),
            (lambda c: c["trajectories"][1]["y"].insert(3, 10**400), r"y\[3\] is not a number"),
            (set_candidate(y0s=[1.0]), r"candidates\[0\].y0s is not 2 numbers"),
            (set_candidate(end_times=[1.0]), "1 end_times for 2 trajectories"),
            (set_candidate(origin=None), r"candidates\[0\].origin is not text"),
            (lambda c: c["trajectories"][0].pop("noise"), r"\[0\].noise is missing"),
            (lambda c: c["trajectories"][1]["noise"].pop(), "positive, one for each value"),
            (lambda c: c["trajectories"][1].update(noise=[-1] * 8), "must be positive"),
            (set_candidate(converged=1), r"candidates\[0\].converged is not true or false"),
            (set_candidate(r2="NaN"), r"candidates\[0\].r2 is not a number"),
            (set_candidate(r2=[1]), r"candidates\[0\].r2 is not a number"),
            (set_candidate(covariance=[[1, 2], [3, 4]]), "covariance is not 3 rows of 3 numbers"),
            (set_candidate(covariance=[[1] * 3, [1] * 2, [1] * 3]), "not 3 rows of 3"),
            (set_candidate(covariance=0), r"candidates\[0\].covariance is not a list"),
            (lambda c: c["candidates"][0].pop("covariance"), r"\[0\].covariance is missing"),
            (set_candidate(formula=["y"]), "formula is not text"),
            (set_candidate(formula=""), "ends too early"),
            (set_candidate(formula="y + x"), "unknown name 'x'"),
            (set_candidate(formula="__import__('os').system('true')"), "cannot read the formula"),
            (set_candidate(formula="().__class__"), "cannot read the formula"),
            (set_candidate(formula="lambda: y"), "cannot read the formula"),
            (set_candidate(formula="(" * 500 + "y"), "too deeply nested"),
            (set_candidate(formula="y+" * 400 + "y"), "more than 300 operators and numbers"),
            (set_candidate(formula="y" * 20_000), "longer than 10000 characters"),
            (set_candidate(formula="1e999*y"), "too large"),
        ],
    )
    def test_changed_files(self, file, change, reason):
        with pytest.raises(DiscoveryFileError, match=reason) as caught:
            load(changed(file, change))
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 500

    def test_every_cut_is_noticed(self, file):
        data = file.read_bytes().rstrip()
        for length in range(0, len(data), 97):
            file.write_bytes(data[:length])
            with pytest.raises(DiscoveryFileError):
                load(file)

    def test_a_huge_file_is_not_read(self, file, monkeypatch):
        monkeypatch.setattr(json_fields, "LARGEST_FILE", 1000)
        with pytest.raises(DiscoveryFileError, match="larger than 0.001 MB"):
            load(file)

    def test_what_a_later_version_may_add_is_ignored(self, file):
        changed(file, lambda content: content.update(colour="blue"))
        assert_array_equal(load(file).trajectories[1].y, AWKWARD)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nowhere.json")


def test_the_name_of_a_law_is_told_to_readers_of_the_file(file):
    law = Candidate(
        Expression.from_infix("0.5*y - 0.001*y**2"),
        (9.0,),
        (0.0,),
        0.9,
        1.0,
        1.0,
        probability=0.8,
        observed=(9.0, 480.0),
    )
    rare = dataclasses.replace(law, probability=0.001)
    save(Result((law, rare), (Trajectory([0, 1, 2], [9, 14, 20]),), (), 1.0), file)
    first, second = json.loads(file.read_text())["candidates"]
    assert first["name"]["law"].startswith("logistic growth") and second["name"] is None
    values = {part["name"]: part["value"] for part in first["name"]["parameters"]}
    assert values == {"r": pytest.approx(0.5), "K": pytest.approx(500.0)}
