"""Files of discoveries: every bit comes back, and nothing else gets in."""

import dataclasses
import json
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.sampling import EquationPrior, sample_expression
from nsode_jax.reporting import persistence
from nsode_jax.reporting.persistence import DiscoveryFileError, load, save
from nsode_jax.reporting.result import Candidate, Discovery

AWKWARD = (0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1 / 3, 1e16, 2.0, -1e-7)


def bits(values):
    return np.asarray(values, np.float64).tobytes()


def discovery():
    rng = np.random.default_rng(0)
    trajectories = (
        Trajectory(np.sort(rng.normal(size=9)), rng.normal(size=9)),
        Trajectory(np.arange(8.0), np.array(AWKWARD)),
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
            weight=0.75,
            covariance=rng.normal(size=(3, 3)),
        ),
        Candidate(Expression.from_infix("exp(y)/(-0.0 - y)"), (0.5, math.nan), (0.0, 1.0),
                  -math.inf, math.inf, math.inf),
        Candidate(Expression((3.0,)), (0.5, 1.5), (0.0, 1.0), 0.5, 0.5, 0.5,
                  covariance=np.array([[math.nan]])),
        Candidate(Expression(("y",)), (0.5, 1.5), (0.0, 1.0), 0.5, 0.5, 0.5,
                  covariance=np.zeros((0, 0))),
    )  # fmt: skip
    return Discovery(laws, trajectories, ("A note: “α” & \n.",), 0.7)


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


class TestRoundTrip:
    def test_every_field_comes_back_bit_by_bit(self, file):
        before, after = discovery(), load(file)
        assert after.notes == before.notes and after.seconds == before.seconds
        for one, other in zip(before.trajectories, after.trajectories, strict=True):
            assert bits(one.t) == bits(other.t) and bits(one.y) == bits(other.y)
        for one, other in zip(before.candidates, after.candidates, strict=True):
            for field in dataclasses.fields(Candidate):
                old, new = getattr(one, field.name), getattr(other, field.name)
                if field.name == "expression":
                    assert old == new and bits(old.constants) == bits(new.constants)
                elif old is None or isinstance(old, bool):
                    assert old is new
                else:
                    assert bits(old) == bits(new) and np.shape(old) == np.shape(new), field.name

    def test_is_the_same_file_again(self, file, tmp_path):
        save(load(file), tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == file.read_bytes()

    def test_is_strict_json(self, file):
        def refuse(name):
            raise AssertionError(name)

        content = json.loads(file.read_bytes(), parse_constant=refuse)
        assert content["format"] == "nsode_jax discovery" and content["version"] == 1
        assert content["candidates"][1]["r2"] == "-inf"
        assert content["candidates"][1]["weight"] == "nan"

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
            (lambda c: c.update(version=2), "version is 2, .* reads up to 1; update nsode_jax"),
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
            (lambda c: c["trajectories"][0].pop("y"), r"trajectories\[0\].y is missing"),
            (lambda c: c["trajectories"][0].update(t=[0.0]), "as many times as values"),
            (lambda c: c["trajectories"][0]["t"].reverse(), "strictly increasing"),
            (lambda c: c["trajectories"][1]["y"].insert(3, "nan"), r"\[1\].y\[3\] is not a number"),
            (lambda c: c["trajectories"][1]["y"].insert(3, 10**400), r"y\[3\] is not a number"),
            (set_candidate(y0s=[1.0]), "1 y0s and 2 start_times for 2 trajectories"),
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
        monkeypatch.setattr(persistence, "LARGEST_FILE", 1000)
        with pytest.raises(DiscoveryFileError, match="larger than 0.001 MB"):
            load(file)

    def test_what_a_later_version_may_add_is_ignored(self, file):
        changed(file, lambda content: content.update(colour="blue"))
        assert_array_equal(load(file).trajectories[1].y, AWKWARD)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nowhere.json")
